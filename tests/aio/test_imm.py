# SPDX-License-Identifier: BSD-2-Clause
"""Immediates: order, credit, cancellation."""

from __future__ import annotations

import asyncio

import pytest

import mrc


async def test_immediate_brings_number_length_and_solicited(ends):
    pair = await ends()
    local, remote = await pair.regions(bytearray(b"x" * 100), bytearray(100))
    await pair.a.write(local, remote, length=60, imm=0xFFFFFFFF, solicited=True, timeout=5)
    await pair.a.write(local, remote, length=0, imm=0, timeout=5)  # H20
    first = await pair.b.receive_imm(timeout=5)
    second = await pair.b.receive_imm(timeout=5)
    assert first == (0xFFFFFFFF, 60, True)
    assert second == (0, 0, False)


async def test_slow_reader_holds_the_sender_and_loses_nothing(mem):
    """MRC has no receiver-not-ready (0.3): credit keeps the receive queue from running dry."""
    pair = await mem(imm_queue=8, depth=64)
    local, remote = await pair.regions(bytearray(1), bytearray(1))
    writes = [
        asyncio.ensure_future(pair.a.write(local, remote, imm=i, timeout=20)) for i in range(50)
    ]
    await asyncio.wait(writes[:8])
    with pytest.raises(mrc.MrcResourceError):
        pair.a.write_nowait(local, remote, imm=99)
    assert sum(w.done() for w in writes) == 8
    got = [(await pair.b.receive_imm(timeout=5)).imm for _ in range(50)]
    assert got == list(range(50))
    await asyncio.gather(*writes)


async def test_plain_writes_pass_while_immediates_wait(mem):
    pair = await mem(imm_queue=1, depth=4)
    local, remote = await pair.regions(bytearray(1), bytearray(1))
    await pair.a.write(local, remote, imm=1, timeout=5)
    waiting = asyncio.ensure_future(pair.a.write(local, remote, imm=2, timeout=20))
    for _ in range(20):
        await pair.a.write(local, remote, timeout=5)
    assert not waiting.done()
    assert (await pair.b.receive_imm(timeout=5)).imm == 1
    await waiting
    assert (await pair.b.receive_imm(timeout=5)).imm == 2


async def test_receive_imm_times_out(mem, raises_with):
    pair = await mem()
    with raises_with(TimeoutError, "no immediate", "0.01"):
        await pair.b.receive_imm(timeout=0.01)


async def test_cancelled_receive_loses_no_immediate(mem):
    """Cancel readers at every possible moment around the arrival; count what is received."""
    pair = await mem()
    local, remote = await pair.regions(bytearray(1), bytearray(1))
    got = []
    for i in range(60):
        readers = [asyncio.ensure_future(pair.b.receive_imm()) for _ in range(3)]
        write = asyncio.ensure_future(pair.a.write(local, remote, imm=i, timeout=5))
        for _ in range(i % 12):
            await asyncio.sleep(0)
        for reader in readers:
            reader.cancel()
        results = await asyncio.gather(*readers, return_exceptions=True)
        got += [r.imm for r in results if isinstance(r, mrc.Immediate)]
        await write
        while len(got) <= i:
            got.append((await pair.b.receive_imm(timeout=5)).imm)
    assert got == list(range(60))


async def test_peer_limit_of_immediates_in_flight_is_kept(mem):
    """B.8: at most max_wimm_dest in flight; the sender waits instead of breaking the QP."""
    pair = await mem(max_wimm=4, depth=64)
    local, remote = await pair.regions(bytearray(64_000), bytearray(64_000))
    writes = [pair.a.write(local, remote, imm=i, timeout=20) for i in range(64)]
    await asyncio.gather(*writes)
    assert [(await pair.b.receive_imm(timeout=5)).imm for _ in range(64)] == list(range(64))
    assert pair.b.drops()["wimm_limit"] == 0
