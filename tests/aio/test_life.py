# SPDX-License-Identifier: BSD-2-Clause
"""Room, time limits, cancellation, errors, and every way a connection can end."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

import mrc

from .conftest import LOOP_ONLY

DEAD = {"loss_ppm": 1_000_000}


# ---- room ----------------------------------------------------------------------------------


async def test_depth_limits_writes_in_flight(mem):
    pair = await mem(depth=4)
    local, remote = await pair.regions(bytearray(100_000), bytearray(100_000))
    pair.wire.faults(**DEAD)
    futures = [pair.a.write_nowait(local, remote) for _ in range(4)]
    assert pair.a.in_flight == 4
    with pytest.raises(mrc.MrcResourceError):
        pair.a.write_nowait(local, remote)
    waiting = asyncio.ensure_future(pair.a.write(local, remote, timeout=20))
    await asyncio.sleep(0)
    assert pair.a.in_flight == 4
    pair.wire.faults()
    await asyncio.gather(*futures, waiting)
    assert pair.a.in_flight == 0


async def test_room_is_given_in_order_of_asking(mem):
    pair = await mem(depth=1)
    local, remote = await pair.regions(bytearray(10), bytearray(10))
    order = []

    async def one(i):
        await pair.a.write(local, remote, timeout=10)
        order.append(i)

    await asyncio.gather(*(one(i) for i in range(50)))
    assert order == list(range(50))


async def test_drain_waits_for_all(mem, raises_with):
    pair = await mem()
    local, remote = await pair.regions(bytearray(100_000), bytearray(100_000))
    pair.wire.faults(**DEAD)
    futures = [pair.a.write_nowait(local, remote) for _ in range(8)]
    with raises_with(TimeoutError, "8 writes did not complete"):
        await pair.a.drain(timeout=0.01)
    pair.wire.faults()
    await pair.a.drain(timeout=10)
    assert all(f.done() for f in futures)


# ---- cancellation --------------------------------------------------------------------------


async def test_cancelled_write_leaves_the_connection_usable(mem):
    """It cannot be recalled: it is completed, and keeps the region busy until then."""
    pair = await mem()
    source, target = bytearray(b"a" * 50_000), bytearray(50_000)
    local, remote = await pair.regions(source, target)
    pair.wire.faults(**DEAD)
    task = asyncio.ensure_future(pair.a.write(local, remote))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert pair.a.in_flight == 1
    with pytest.raises(mrc.MrcUsageError):
        local.close()
    with pytest.raises(BufferError):
        source.append(0)
    pair.wire.faults()
    await pair.a.drain(timeout=10)
    assert target == source
    local.close()
    source.append(0)
    again = pair.a.register(bytearray(b"b" * 50_000))
    await pair.a.write(again, remote, timeout=10)
    assert target == b"b" * 50_000


async def test_write_that_times_out_counts_until_it_is_done(mem, raises_with):
    pair = await mem(depth=1)
    local, remote = await pair.regions(bytearray(10), bytearray(10))
    pair.wire.faults(**DEAD)
    with raises_with(TimeoutError, "a write did not complete within 0.01 s"):
        await pair.a.write(local, remote, timeout=0.01)
    with raises_with(TimeoutError, "a write did not complete"):
        await pair.a.write(local, remote, timeout=0.01)  # this one never got its room
    assert pair.a.in_flight == 1
    pair.wire.faults()
    await pair.a.write(local, remote, timeout=10)
    assert pair.a.stats().bytes_acked == 20


async def test_cancelling_at_every_point_leaks_no_room(mem):
    pair = await mem(depth=2, imm_queue=4)
    local, remote = await pair.regions(bytearray(10), bytearray(10))
    for i in range(60):
        tasks = [
            asyncio.ensure_future(pair.a.write(local, remote, imm=k if k % 2 else None))
            for k in range(4)
        ]
        for _ in range(i % 9):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await pair.a.drain(timeout=5)
        while True:
            try:
                await pair.b.receive_imm(timeout=0.001)
            except TimeoutError:
                break
    for _ in range(10):
        await pair.a.write(local, remote, imm=1, timeout=5)
        await pair.b.receive_imm(timeout=5)


# ---- errors of a work request --------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["rkey", "past the end", "before the start", "wraps at 2^64"])
async def test_bad_remote_access_is_a_completion(mem, wrong):
    """Field reports 43, 44: refused, no byte touched, an error completion, both told."""
    pair = await mem()
    target = bytearray(b"\x55" * 1000)
    local, remote = await pair.regions(bytearray(5000), target)
    bad = {
        "rkey": mrc.RemoteRegion("x", remote.addr, 1000, remote.rkey ^ 0x10000000),
        "past the end": mrc.RemoteRegion("x", remote.addr, 1001, remote.rkey),
        "before the start": mrc.RemoteRegion("x", remote.addr - 1, 1000, remote.rkey),
        "wraps at 2^64": mrc.RemoteRegion("x", (1 << 64) - 5, 1000, remote.rkey),
    }[wrong]
    with pytest.raises(mrc.MrcWorkError) as caught:
        await pair.a.write(local, bad, length=min(bad.length, 1001), timeout=10)
    assert caught.value.wc.status is mrc.WcStatus.REM_ACCESS_ERR
    assert target == b"\x55" * 1000
    assert isinstance(await pair.a.wait_closed(timeout=5), mrc.MrcPeerLost)
    assert isinstance(await pair.b.wait_closed(timeout=5), mrc.MrcPeerLost)
    with pytest.raises(mrc.MrcPeerLost):
        await pair.a.write(local, remote, timeout=1)


@LOOP_ONLY
async def test_what_the_peer_says_of_a_write_counts_before_its_farewell(mem):
    """Its refusal has arrived, but nobody looked yet, when it gives up the connection."""
    pair = await mem()
    local, remote = await pair.regions(bytearray(10), bytearray(10))
    bad = mrc.RemoteRegion("x", remote.addr, 10, remote.rkey ^ 0x10000000)
    written = pair.a.write_nowait(local, bad)
    pair.b.context.turn()
    pair.a._on_message({"type": "abort", "reason": "it is over"})
    with pytest.raises(mrc.MrcWorkError) as caught:
        await written
    assert caught.value.wc.status is mrc.WcStatus.REM_ACCESS_ERR


async def test_region_without_remote_write_refuses_peers(mem):
    """Field report 45: nor can it be advertised."""
    pair = await mem()
    local, _ = await pair.regions(bytearray(10), bytearray(10))
    secret = bytearray(b"secret-bytes")
    private = pair.b.register(secret, remote_write=False)
    with pytest.raises(mrc.MrcUsageError):
        pair.b.advertise("private", private)
    guess = mrc.RemoteRegion("private", private.addr, 10, private.rkey)
    with pytest.raises(mrc.MrcWorkError) as caught:
        await pair.a.write(local, guess, timeout=10)
    assert caught.value.wc.status is mrc.WcStatus.REM_ACCESS_ERR
    assert secret == b"secret-bytes"


async def test_closed_region_refuses_peers(mem):
    pair = await mem()
    target = bytearray(b"\x11" * 10)
    region = pair.b.register(target)
    pair.b.advertise("t", region)
    remote = await pair.a.remote_region("t", timeout=5)
    region.close()
    with pytest.raises(mrc.MrcWorkError):
        await pair.a.write(pair.a.register(bytearray(10)), remote, timeout=10)
    assert target == b"\x11" * 10


async def test_regions_of_another_connection_are_refused(mem):
    one, two = await mem(), await mem()
    local, remote = await one.regions(bytearray(10), bytearray(10))
    with pytest.raises(mrc.MrcUsageError):
        await two.a.write(local, remote)
    with pytest.raises(mrc.MrcUsageError):
        two.a.advertise("x", local)


@pytest.mark.parametrize(
    "where",
    [
        {"local_offset": 11},
        {"local_offset": -1},
        {"remote_offset": 11},
        {"remote_offset": -1},
        {"length": 11},
        {"length": -1},
        {"local_offset": 5, "length": 6},
        {"imm": 1 << 32},
        {"imm": -1},
    ],
)
async def test_writes_outside_are_usage_errors(mem, where):
    pair = await mem()
    local, remote = await pair.regions(bytearray(10), bytearray(10))
    with pytest.raises(mrc.MrcUsageError):
        await pair.a.write(local, remote, **where)
    await pair.a.write(local, remote, imm=0, timeout=5)  # nothing was broken or used up


# ---- the end -------------------------------------------------------------------------------


async def test_close_completes_what_is_in_flight(ends):
    """Field reports 49 and 50: what is in flight arrives, and the peer is told."""
    pair = await ends(depth=32)
    source, target = bytearray(b"z" * 400_000), bytearray(400_000)
    local, remote = await pair.regions(source, target)
    futures = [
        pair.a.write_nowait(local, remote, local_offset=i, remote_offset=i, length=20_000, imm=i)
        for i in range(0, 400_000, 20_000)
    ]
    await pair.a.close()
    assert [f.result().status for f in futures] == [mrc.WcStatus.SUCCESS] * 20
    assert target == source
    assert await pair.b.wait_closed(timeout=5) is None
    for i in range(0, 400_000, 20_000):  # what came before the goodbye is still there
        assert (await pair.b.receive_imm(timeout=1)).imm == i
    with pytest.raises(mrc.MrcPeerLost):
        await pair.b.receive_imm(timeout=1)


async def test_close_completes_what_the_peer_has_in_flight(mem):
    pair = await mem(depth=32)
    local, remote = await pair.regions(bytearray(400_000), bytearray(400_000))
    futures = [pair.a.write_nowait(local, remote) for _ in range(8)]
    await pair.b.close()
    assert all(f.done() and f.result().status is mrc.WcStatus.SUCCESS for f in futures)
    with pytest.raises(mrc.MrcPeerLost):
        await pair.a.write(local, remote)


async def test_both_close_at_once(ends):
    pair = await ends()
    local, remote = await pair.regions(bytearray(100_000), bytearray(100_000))
    write = asyncio.ensure_future(pair.a.write(local, remote))
    await asyncio.sleep(0)
    async with asyncio.timeout(4):  # less than the time limit of close
        await asyncio.gather(pair.a.close(), pair.b.close(), pair.a.close())
    assert (await write).status is mrc.WcStatus.SUCCESS


async def test_close_flushes_when_the_peer_does_not_answer(mem):
    pair = await mem(depth=8)
    local, remote = await pair.regions(bytearray(100), bytearray(100))
    pair.wire.faults(**DEAD)
    futures = [pair.a.write_nowait(local, remote) for _ in range(8)]
    await pair.a.close(timeout=0.05)
    outcomes = [f.exception() for f in futures]
    assert [e.wc.status for e in outcomes] == [mrc.WcStatus.WR_FLUSH_ERR] * 8
    assert local.closed


async def test_usage_after_close(mem):
    pair = await mem()
    local, remote = await pair.regions(bytearray(10), bytearray(10))
    await pair.a.write(local, remote, timeout=5)
    await pair.a.close()
    for use in (
        lambda: pair.a.write(local, remote),
        lambda: pair.a.receive_imm(timeout=1),
        lambda: pair.a.remote_region("other", timeout=1),
        lambda: pair.a.call("x", {}, timeout=1),
    ):
        with pytest.raises(mrc.MrcUsageError):
            await use()
    assert pair.a.stats().bytes_acked == 10  # statistics stay readable
    assert len(pair.a.path_stats()) == 16
    assert await pair.a.wait_closed(timeout=1) is None


async def test_vanished_peer_fails_all_waits(ends):
    """Field report 50: TCP ends without goodbye."""
    pair = await ends(depth=2)
    local, remote = await pair.regions(bytearray(100), bytearray(100))
    if pair.wire:
        pair.wire.faults(**DEAD)
    waits = [
        asyncio.ensure_future(c)
        for c in (
            pair.a.receive_imm(),
            pair.a.remote_region("never"),
            pair.a.call("never", {}),
            pair.a.wait_closed(),
        )
    ]
    if pair.wire:
        waits += [asyncio.ensure_future(pair.a.write(local, remote)) for _ in range(4)]
    await asyncio.sleep(0)
    pair.b._channel.abort()
    results = await asyncio.wait_for(asyncio.gather(*waits, return_exceptions=True), 5)
    assert [type(r) for r in results] == [mrc.MrcPeerLost] * len(waits)
    assert "vanished" in str(results[0])
    assert pair.a.in_flight == 0
    await pair.a.close()


async def test_dead_path_to_the_peer_exhausts_the_retries(mem):
    """Field report 26: an error completion, the others flushed, both sides told, no crash."""
    pair = await mem(depth=8, ack_timeout=8, retry_linear=1, retry_exp=1)
    local, remote = await pair.regions(bytearray(100), bytearray(100))
    reader = asyncio.ensure_future(pair.b.receive_imm())
    pair.wire.faults(**DEAD)
    futures = [pair.a.write_nowait(local, remote) for _ in range(8)]
    await asyncio.wait(futures, timeout=10)
    statuses = [f.exception().wc.status for f in futures]
    assert statuses == [mrc.WcStatus.RETRY_EXC_ERR] + [mrc.WcStatus.WR_FLUSH_ERR] * 7
    lost = await pair.a.wait_closed(timeout=5)
    assert "retry" in str(lost)
    with pytest.raises(mrc.MrcPeerLost, match="retry"):
        await reader
    await pair.a.close()
    await pair.b.close()


async def test_context_closed_under_a_connection(udp):
    context = mrc.Context()
    pair = await udp(server={}, context=context)
    local, remote = await pair.regions(bytearray(10), bytearray(10))
    await pair.a.write(local, remote, timeout=5)
    context.close()
    with pytest.raises(mrc.MrcUsageError):
        await pair.a.write(local, remote, timeout=5)
    await pair.a.close()
    assert isinstance(await pair.b.wait_closed(timeout=5), mrc.MrcPeerLost)
    assert pair.a.stats().bytes_acked == 10


async def test_nothing_is_left_behind(no_leaks):
    def descriptors():
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    async def once():
        async with await mrc.mem_pair() as pair:
            local = pair.a.register(bytearray(10))
            pair.b.advertise("t", pair.b.register(bytearray(10)))
            await pair.a.write(local, await pair.a.remote_region("t", timeout=5), timeout=5)

    await once()
    before = descriptors()
    for _ in range(10):
        await once()
    gc.collect()
    await asyncio.sleep(0)
    assert descriptors() <= before
