# SPDX-License-Identifier: BSD-2-Clause
"""An event loop that looks for the next packet before it sleeps (ADR 131)."""

from __future__ import annotations

import asyncio

import pytest

import mrc
from mrc._core import Pump

from .conftest import LOOP_ONLY

SOON = int(mrc.TurnFlags.SOON)
PASSES = 200


class Turns:
    """Turns of one pump, which says SOON as long as `soon` is not used up, and not after that."""

    def __init__(self, pump: Pump) -> None:
        self.pump = pump
        self.soon = 0
        self.taken = 0

    def __call__(self, real: int) -> int:
        self.taken += 1
        if self.soon == 0:
            return real & ~SOON
        self.soon -= 1
        return real | SOON


@pytest.fixture
def turns_of(monkeypatch):
    """turns_of(context): from now on."""
    real = Pump.turn

    def watch(context: mrc.Context) -> Turns:
        turns = Turns(context.pump)

        def turn(pump: Pump, budget: int) -> int:
            flags = real(pump, budget)
            return turns(flags) if pump is turns.pump else flags

        monkeypatch.setattr(Pump, "turn", turn)
        return turns

    return watch


async def passes_until(condition) -> bool:
    for _ in range(PASSES):
        if condition():
            return True
        await asyncio.sleep(0)
    return False


@LOOP_ONLY
async def test_it_looks_as_long_as_the_pump_says_so(mem, turns_of):
    pair = await mem()
    local, remote = await pair.regions(bytearray(64), bytearray(64))
    turns = turns_of(pair.a.context)
    turns.soon = PASSES // 2
    await pair.a.write(local, remote, timeout=5)
    assert await passes_until(lambda: turns.soon == 0)
    before = turns.taken
    assert not await passes_until(lambda: turns.taken > before + PASSES // 2)


@LOOP_ONLY
async def test_others_have_their_pass_of_the_loop_meanwhile(mem, turns_of):
    pair = await mem()
    local, remote = await pair.regions(bytearray(64), bytearray(64))
    turns = turns_of(pair.a.context)
    turns.soon = 1 << 30
    await pair.a.write(local, remote, timeout=5)
    before = turns.taken
    for _ in range(PASSES):
        await asyncio.sleep(0)
    assert turns.taken - before <= 2 * PASSES + 2  # one each, and one for the descriptor


@LOOP_ONLY
async def test_closing_ends_it(mem, turns_of):
    pair = await mem()
    turns = turns_of(pair.a.context)
    turns.soon = 1 << 30
    pair.a._driver.kick()
    assert await passes_until(lambda: turns.taken > 1)
    await pair.a.close()
    before = turns.taken
    assert not await passes_until(lambda: turns.taken > before)


@pytest.mark.parametrize("spin_us", [0, 7])
async def test_spin_us_is_for_both_modes(monkeypatch, pump, spin_us):
    told: list[int] = []
    name = "start" if pump == "thread" else "spin"
    real = getattr(Pump, name)

    def noted(self: Pump, value: int) -> None:
        told.append(value)
        real(self, value)

    monkeypatch.setattr(Pump, name, noted)
    with mrc.Context(spin_us=spin_us):
        assert told == [spin_us]
