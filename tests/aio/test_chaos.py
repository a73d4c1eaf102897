# SPDX-License-Identifier: BSD-2-Clause
"""Seeded disorder: many users of one pair, faults on the wire, an end at a random moment.

Whatever happens, every write has one outcome, a write that succeeded is in place, immediates come
in order and once, and nothing is left open.
"""

from __future__ import annotations

import asyncio
import random

import pytest

import mrc
from mrc.transfer import WriteArgs

SLOT = 8192  # bytes of the target that belong to one write
WRITES = 200
ENDS = ["close a", "close b", "both", "a vanishes", "b vanishes", "context a", "bad key"]


class Chaos:
    def __init__(self, pair: mrc.aio.MemPair, rng: random.Random) -> None:
        self.a, self.b, self.wire = pair
        self.rng = rng
        self.source = bytearray(rng.randbytes(SLOT * WRITES))
        self.target = bytearray(SLOT * WRITES)
        self.placed: list[tuple[int, int]] = []
        self.sent_imms: list[int] = []
        self.got_imms: list[int] = []
        self.outcomes: list[str] = []

    async def prepare(self) -> None:
        self.local = self.a.register(self.source)
        self.b.advertise("t", self.b.register(self.target))
        self.remote = await self.a.remote_region("t", timeout=5)

    async def write(self, slot: int) -> None:
        rng = self.rng
        length = rng.choice([0, 1, 100, 4096, 5000, SLOT])
        at = slot * SLOT
        part: WriteArgs = {"local_offset": at, "remote_offset": at, "length": length}
        if rng.random() < 0.5:
            part["imm"] = slot
        timeout = rng.choice([None, None, None, None, 0.001, 0.01])
        try:
            await self.a.write(self.local, self.remote, timeout=timeout, **part)
        except (mrc.MrcError, TimeoutError) as exc:
            self.outcomes.append(type(exc).__name__)
        except asyncio.CancelledError:
            self.outcomes.append("cancelled")
            raise
        else:
            self.outcomes.append("ok")
            self.placed.append((at, length))
            if "imm" in part:
                self.sent_imms.append(slot)

    async def read(self) -> None:
        while True:
            try:
                self.got_imms.append((await self.b.receive_imm(timeout=5)).imm)
            except mrc.MrcError:
                return

    async def disturb(self) -> None:
        evs = [p.ev for p in self.a.path_stats()]
        while True:
            await asyncio.sleep(self.rng.random() * 0.004)
            ev = self.rng.choice(evs)
            what = self.rng.randrange(4)
            if what == 0:
                self.wire.faults(loss_ppm=self.rng.choice([0, 1000, 50_000]), dup_ppm=1000)
            elif what == 1:
                self.wire.faults(ev=ev, loss_ppm=self.rng.choice([0, 1_000_000]))
            elif what == 2:
                self.a.deny(ev)
            else:
                self.a.allow(ev)

    async def end(self, how: str) -> None:
        if how == "both":
            await asyncio.gather(self.a.close(2), self.b.close(2))
        elif how.startswith("close"):
            await (self.a if how.endswith("a") else self.b).close(2)
        elif how.endswith("vanishes"):
            (self.a if how.startswith("a") else self.b)._channel.abort()
        elif how == "context a":
            self.a.context.close()
        else:
            bad = mrc.RemoteRegion("t", self.remote.addr, 10, self.remote.rkey ^ 0x40000000)
            with pytest.raises((mrc.MrcError, TimeoutError)):
                await self.a.write(self.local, bad, length=10, timeout=5)


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("seed", range(6))
async def test_disorder(seed, how, no_leaks):
    rng = random.Random(f"{seed} {how}")
    pair = await mrc.mem_pair(
        seed=seed + 1,
        evs=4,
        depth=rng.choice([1, 4, 16]),
        imm_queue=rng.choice([1, 3, 100]),
        mtu=rng.choice([256, 1024, 4096]),
        start_psn=rng.choice([0, 0xFFFFF0]),
        ack_timeout=10,
    )
    chaos = Chaos(pair, rng)
    await chaos.prepare()
    reader = asyncio.ensure_future(chaos.read())
    noise = asyncio.ensure_future(chaos.disturb())
    writes = [asyncio.ensure_future(chaos.write(i)) for i in range(WRITES)]
    for _ in range(rng.randrange(16)):
        await asyncio.sleep(0.0005)
        if rng.random() < 0.3:
            rng.choice(writes).cancel()
    noise.cancel()
    await asyncio.gather(noise, return_exceptions=True)
    await chaos.end(how)
    chaos.wire.faults()
    await pair.close(2)
    async with asyncio.timeout(10):
        results = await asyncio.gather(*writes, return_exceptions=True)
        await reader
    assert all(r is None or isinstance(r, asyncio.CancelledError) for r in results), results
    assert pair.a.in_flight == pair.b.in_flight == 0
    for at, length in chaos.placed:
        assert chaos.target[at : at + length] == chaos.source[at : at + length]
    assert chaos.got_imms == sorted(set(chaos.got_imms))  # B.8: in the order of posting, once
    assert set(chaos.sent_imms) <= set(chaos.got_imms) or how not in ("close a", "both")
    assert pair.a.context.closed
    assert pair.b.context.closed
