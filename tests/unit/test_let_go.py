# SPDX-License-Identifier: BSD-2-Clause
"""What is closed lets its memory go at once: no collector of cycles is needed for it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from ipaddress import IPv6Address
from pathlib import Path

import pytest

import mrc

LOOPBACK = IPv6Address("::1")
MB = 1 << 20


@pytest.fixture(autouse=True)
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def private_bytes() -> int:
    """Memory of this process that is in use and nobody else's."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no line for anonymous memory")


def verbs(ctx: mrc.Context) -> list[object]:
    """One of each object."""
    port = mrc.Port(ctx, mrc.Backend.UDP, addr=LOOPBACK, udp_port=20000, udp_port_tries=1000)
    cq = mrc.CompletionQueue(ctx, 4096)
    pd = mrc.ProtectionDomain(ctx)
    init = mrc.QpInitAttr(sq_depth=64, rq_depth=64)
    return [port, cq, pd, mrc.MemoryRegion.alloc(pd, MB), mrc.QueuePair(pd, cq, cq, init)]


@pytest.mark.parametrize("pump", ["loop", "thread"])
def test_a_closed_context_needs_no_collector(pump):
    ctx = mrc.Context(pump=pump)
    assert ctx.async_events.get_nowait() is None
    kept = verbs(ctx)
    gone: list[weakref.ref[object]] = [weakref.ref(obj) for obj in (ctx, *kept)]
    ctx.close()
    del ctx, kept
    assert [ref() for ref in gone] == [None] * len(gone)


def test_what_a_context_takes_it_gives_back_when_it_is_closed():
    count = 20
    for _ in range(2):  # the first round also pays for what is made once
        before = private_bytes()
        contexts = [mrc.Context() for _ in range(count)]
        kept = [verbs(ctx) for ctx in contexts]
        opened = private_bytes()
        for ctx in contexts:
            ctx.close()
        closed = private_bytes()
    assert opened - before < count * 2 * MB  # the pool alone, that nobody has borrowed from, is 6
    assert closed - before < count * MB // 4
    del kept


def test_a_closed_connection_lets_its_buffers_go():
    async def main() -> list[weakref.ref[object]]:
        async with await mrc.mem_pair() as pair:
            source = pair.a.register(bytearray(MB))
            target = pair.b.register(bytearray(MB))
            pair.b.advertise("target", target)
            remote = await pair.a.remote_region("target", timeout=5)
            await pair.a.write(source, remote, timeout=5)
            return [weakref.ref(source), weakref.ref(target)]

    gone = asyncio.run(main())
    assert [ref() for ref in gone] == [None, None]
