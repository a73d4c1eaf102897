# SPDX-License-Identifier: BSD-2-Clause
"""Bytes arrive where they were written, whatever the wire does."""

from __future__ import annotations

import asyncio
import random

import numpy as np
import pytest

import mrc

from .conftest import LOOP_ONLY


def noise(nbytes: int, seed: int = 7) -> bytearray:
    return bytearray(random.Random(seed).randbytes(nbytes))


@pytest.mark.parametrize("nbytes", [1, 3, 4096, 4097, 65_537, 1 << 20])
async def test_write_places_all_bytes(ends, nbytes):
    pair = await ends()
    source, target = noise(nbytes), bytearray(nbytes)
    local, remote = await pair.regions(source, target)
    wc = await pair.a.write(local, remote, timeout=10)
    assert wc.status is mrc.WcStatus.SUCCESS
    assert target == source


async def test_write_changes_nothing_else(ends):
    pair = await ends()
    source, target = noise(10_000), bytearray(b"\xee" * 30_000)
    local, remote = await pair.regions(source, target)
    await pair.a.write(local, remote, local_offset=1, remote_offset=9_999, length=8_001, timeout=10)
    assert target == b"\xee" * 9_999 + source[1:8_002] + b"\xee" * 12_000


@pytest.mark.parametrize("mtu", [256, 1024, 4096])
async def test_path_mtu_is_the_smaller_wish(udp, mtu):
    pair = await udp(server={}, mtu=mtu)
    assert pair.a.agreed.path_mtu == pair.b.agreed.path_mtu == mtu
    source, target = noise(5 * mtu + 1), bytearray(5 * mtu + 1)
    local, remote = await pair.regions(source, target)
    await pair.a.write(local, remote, timeout=10)
    assert target == source
    assert pair.a.stats().packets_sent >= 6


@pytest.mark.parametrize("recovery", ["guarded", "off", "plain"])
async def test_timestamps_and_recovery_are_as_asked(udp, recovery):
    pair = await udp(server={}, timestamps=True, recovery=recovery)
    assert pair.a.qp.query().timestamps is True
    assert pair.b.qp.query().timestamps is False  # each end for what it sends
    assert pair.a.qp.query().recovery is mrc.Recovery[recovery.upper()]
    source, target = noise(200_001), bytearray(200_001)
    local, remote = await pair.regions(source, target)
    await pair.a.write(local, remote, timeout=10)
    assert target == source


async def test_both_directions_at_once(ends):
    pair = await ends()
    one, two = noise(500_000, 1), noise(500_000, 2)
    to_b, to_a = bytearray(500_000), bytearray(500_000)
    local_a, remote_b = await pair.regions(one, to_b)
    local_b = pair.b.register(two)
    pair.a.advertise("back", pair.a.register(to_a))
    remote_a = await pair.b.remote_region("back", timeout=5)
    await asyncio.gather(
        pair.a.write(local_a, remote_b, timeout=10), pair.b.write(local_b, remote_a, timeout=10)
    )
    assert (to_b, to_a) == (one, two)


async def test_numpy_and_memoryview_are_buffers_too(mem):
    pair = await mem()
    source = np.arange(10_000, dtype=np.float64)
    target = np.zeros(10_000, dtype=np.float64)
    local, remote = await pair.regions(source, target.data)
    await pair.a.write(local, remote, timeout=5)
    assert np.array_equal(source, target)


async def test_read_only_memory_can_be_sent(mem):
    pair = await mem()
    target = bytearray(5)
    pair.b.advertise("t", pair.b.register(target))
    remote = await pair.a.remote_region("t", timeout=5)
    await pair.a.write(pair.a.register(b"fixed", remote_write=False), remote, timeout=5)
    assert target == b"fixed"


@pytest.mark.parametrize("loss_ppm", [0, 1_000, 20_000])
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_loss_and_duplication_are_repaired(mem, loss_ppm, seed):
    pair = await mem(loss_ppm=loss_ppm, dup_ppm=loss_ppm, seed=seed)
    source, target = noise(3_000_000, seed), bytearray(3_000_000)
    local, remote = await pair.regions(source, target)
    chunk = 250_000
    writes = [
        pair.a.write(
            local, remote, local_offset=at, remote_offset=at, length=chunk, imm=at, timeout=30
        )
        for at in range(0, len(source), chunk)
    ]
    await asyncio.gather(*writes)
    assert target == source
    got = [(await pair.b.receive_imm(timeout=5)).imm for _ in writes]
    assert got == list(range(0, len(source), chunk))  # B.8: in order, each once (report 54)
    if loss_ppm >= 20_000:
        assert pair.a.stats().packets_retransmitted > 0


async def test_psn_wrap_with_loss(mem):
    """Field report 9: numbers start just before the wrap."""
    pair = await mem(start_psn=0xFFFF80, loss_ppm=10_000, seed=5)
    source, target = noise(4_000_000), bytearray(4_000_000)
    local, remote = await pair.regions(source, target)
    await pair.a.write(local, remote, timeout=30)
    assert target == source


async def test_start_psn_is_random_unless_given(mem):
    psns = {(await mem()).a.local.qp.psn for _ in range(3)}
    assert len(psns) == 3
    assert (await mem(start_psn=5)).a.local.qp.psn == 5


async def test_all_paths_carry(udp):
    pair = await udp(evs=8)
    source, target = noise(4 << 20), bytearray(4 << 20)
    local, remote = await pair.regions(source, target)
    await pair.a.write(local, remote, timeout=30)
    sent = [p.packets_sent for p in pair.a.path_stats()]
    assert len(sent) == 8
    assert min(sent) > 0
    assert sum(sent) == pair.a.stats().packets_sent


async def test_denied_path_carries_nothing(mem):
    """Field report 37."""
    pair = await mem(evs=4)
    ev = pair.a.path_stats()[1].ev
    pair.a.deny(ev)
    source, target = noise(1 << 20), bytearray(1 << 20)
    local, remote = await pair.regions(source, target)
    await pair.a.write(local, remote, timeout=10)
    by_ev = {p.ev: p for p in pair.a.path_stats()}
    assert by_ev[ev].packets_sent == 0
    assert by_ev[ev].state is mrc.EvState.DENIED
    pair.a.allow(ev)
    await pair.a.write(local, remote, timeout=10)
    assert {p.ev: p for p in pair.a.path_stats()}[ev].packets_sent > 0
    with pytest.raises(mrc.MrcUsageError):
        pair.a.deny(0xDEAD)


async def test_cut_path_raises_events_and_data_goes_round(mem):
    pair = await mem(evs=4, seed=3)
    cut = pair.a.path_stats()[0].ev
    pair.wire.faults(ev=cut, loss_ppm=1_000_000)
    source, target = noise(2 << 20), bytearray(2 << 20)
    local, remote = await pair.regions(source, target)
    await pair.a.write(local, remote, timeout=30)
    assert target == source
    events = pair.a.ev_events()
    assert any(e.ev == cut and e.to_state is mrc.EvState.ASSUMED_BAD for e in events)
    assert pair.a.ev_events() == []  # drained


@LOOP_ONLY  # in thread mode an acknowledgement may take the others along
async def test_the_first_write_leaves_at_once_and_the_others_together(udp):
    """ADR 123: nothing waits for the loop when nothing is in flight, and no one leaves alone."""
    pair = await udp()
    local, remote = await pair.regions(bytearray(64), bytearray(64))
    before = pair.a.stats().packets_sent
    written = [pair.a.write_nowait(local, remote) for _ in range(8)]
    assert pair.a.stats().packets_sent == before + 1
    await asyncio.wait_for(asyncio.gather(*written), 10)
    assert pair.a.stats().packets_sent >= before + 8


async def test_the_last_of_many_is_not_forgotten(ends):
    """What waits for the end of a pass leaves with it, however the loop gets there."""
    pair = await ends()
    local, remote = await pair.regions(bytearray(64), bytearray(64))
    for size in (1, 2, 3, pair.a.options.depth):
        written = [pair.a.write_nowait(local, remote) for _ in range(size)]
        done, late = await asyncio.wait(written, timeout=10)
        assert (len(done), late) == (size, set())
