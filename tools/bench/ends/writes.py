# SPDX-License-Identifier: BSD-2-Clause
"""Many small writes through the library.

    writes.py recv ADDRESS PORT OPTIONS LOOP
    writes.py send ADDRESS PORT OPTIONS LOOP MODE BYTES SECONDS
    writes.py mem  -       0    OPTIONS LOOP MODE BYTES SECONDS

OPTIONS is a JSON object: keyword arguments of connect() or listen(). LOOP is asyncio or uvloop.
MODE is ``latency``: one write at a time, how long until the application knows that it is complete;
or ``pipelined``: as many in flight as the depth allows.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import mrc
from tools.scorecard.ends.common import Stop, ready, report

REGION = 1 << 20
WARM_UP = 50


def main(argv: list[str]) -> int:
    """The command line above."""
    role, address, port, text, name, *more = argv
    options: dict[str, Any] = json.loads(text)
    with asyncio.Runner(loop_factory=_factory(name)) as runner:
        match role:
            case "recv":
                runner.run(_receive(address, int(port), options))
            case "send":
                runner.run(_send((address, int(port)), options, *more))
            case "mem":
                runner.run(_memory(options, *more))
            case _:
                print(__doc__, file=sys.stderr)
                return 1
    return 0


def _factory(name: str) -> Callable[[], asyncio.AbstractEventLoop]:
    if name == "uvloop":
        import uvloop

        factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
        return factory
    return asyncio.new_event_loop


async def _receive(address: str, port: int, options: dict[str, Any]) -> None:
    stop = Stop()
    async with await mrc.listen(f"[{address}]:{port}", **options) as server:
        ready()
        async with await server.accept(timeout=10) as conn:
            conn.advertise("ring", conn.register(bytearray(REGION)))
            while not stop.set and not conn.closed.done():
                await asyncio.wait([conn.closed], timeout=0.2)
    report()


async def _send(
    to: tuple[str, int], options: dict[str, Any], mode: str, size: str, seconds: str
) -> None:
    async with await mrc.connect(*to, **options) as conn:
        result = await _work(conn, mode, int(size), float(seconds))
    report(**result)


async def _memory(options: dict[str, Any], mode: str, size: str, seconds: str) -> None:
    async with await mrc.mem_pair(**options) as pair:
        pair.b.advertise("ring", pair.b.register(bytearray(REGION)))
        result = await _work(pair.a, mode, int(size), float(seconds))
    report(**result)


async def _work(conn: mrc.Connection, mode: str, size: int, seconds: float) -> dict[str, Any]:
    ring = await conn.remote_region("ring", timeout=5)
    block = conn.register(bytearray(size))
    if mode == "latency":
        return await _latency(conn, block, ring, seconds)
    return await _pipelined(conn, block, ring, seconds)


async def _latency(
    conn: mrc.Connection, block: mrc.MemoryRegion, ring: mrc.RemoteRegion, seconds: float
) -> dict[str, Any]:
    taken: list[int] = []
    end = time.perf_counter_ns() + int(seconds * 1e9)
    while (begin := time.perf_counter_ns()) < end:
        await conn.write(block, ring)
        taken.append(time.perf_counter_ns() - begin)
    counted = sorted(taken[WARM_UP:])
    if not counted:
        return {"count": 0}
    n = len(counted)
    return {
        "count": n,
        "p50_us": counted[n // 2] / 1e3,
        "p99_us": counted[n - 1 - n // 100] / 1e3,
        "min_us": counted[0] / 1e3,
        "max_us": counted[-1] / 1e3,
    }


async def _pipelined(
    conn: mrc.Connection, block: mrc.MemoryRegion, ring: mrc.RemoteRegion, seconds: float
) -> dict[str, Any]:
    depth, size = conn.options.depth, block.length
    flying: deque[asyncio.Future[mrc.WorkCompletion]] = deque()
    done, begin, cpu = 0, time.perf_counter(), time.process_time()
    end = begin + seconds
    while time.perf_counter() < end:
        while len(flying) < depth:
            flying.append(conn.write_nowait(block, ring))
        while len(flying) > depth // 2:
            await flying.popleft()
            done += 1
    used, taken = time.process_time() - cpu, time.perf_counter() - begin
    await conn.drain(timeout=5)
    return {"writes": done, "bytes": done * size, "seconds": taken, "cpu_seconds": used}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
