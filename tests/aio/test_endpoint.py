# SPDX-License-Identifier: BSD-2-Clause
"""Endpoint operations: probes of paths, and planes that are taken out and given back (F.1, D.7)."""

from __future__ import annotations

import asyncio

import pytest

import mrc

TWO_PLANES = mrc.EvProfile.udp(8, planes=2)
PLANE_2 = 1 << 2


async def until(condition, seconds=5):
    """Wait for a condition, with a limit; it changes in turns of the loop."""
    for _ in range(1000 * seconds):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError(f"not within {seconds} seconds")


# ---- probes --------------------------------------------------------------------------------


async def test_every_path_is_measured_from_both_ends(ends):
    pair = await ends(ev_profile=TWO_PLANES)
    for conn in (pair.a, pair.b):
        results = await conn.probe_paths(timeout=5)
        assert [(r.ev, r.plane) for r in results] == [(e.value, e.plane) for e in TWO_PLANES]
        assert all(r.rtt_ns is not None and 0 < r.rtt_ns < 5_000_000_000 for r in results)
    assert pair.a.stats().probes_sent == 0  # not of the queue pair


@pytest.mark.parametrize("told", [False, True])
async def test_probes_say_whether_the_peers_own_time_is_taken_off(mem, told):
    pair = await mem(evs=4, service_time=told)
    assert pair.a.agreed.service_time is told
    results = await pair.a.probe_paths(timeout=5)
    assert [r.adjusted for r in results] == [told] * 4


async def test_a_dead_path_is_named_and_left_as_it_is(mem):
    pair = await mem(evs=8)
    bad = pair.a.path_stats()[3].ev
    pair.wire.faults(loss_ppm=1_000_000, ev=bad)
    results = await pair.a.probe_paths(timeout=0.05)
    assert [r.ev for r in results if r.rtt_ns is None] == [bad]
    assert all(s.state is mrc.EvState.GOOD for s in pair.a.path_stats())
    assert [r.ev for r in await pair.a.probe_paths([bad], timeout=0.01)] == [bad]


async def test_more_paths_than_may_be_on_their_way(mem):
    pair = await mem(evs=700)
    results = await pair.a.probe_paths(timeout=10)
    assert len(results) == 700
    assert all(r.rtt_ns is not None for r in results)
    assert pair.b.drops()["probe_rate"] == 0


async def test_batches_at_the_same_time_do_not_mix(ends):
    pair = await ends(evs=16)
    batches = await asyncio.gather(*(pair.a.probe_paths(timeout=5) for _ in range(20)))
    evs = [s.ev for s in pair.a.path_stats()]
    assert all([r.ev for r in batch] == evs for batch in batches)
    assert all(r.rtt_ns is not None for batch in batches for r in batch)


async def test_cancelled_probes_leave_no_trace(mem):
    pair = await mem(evs=200)
    pair.wire.faults(loss_ppm=1_000_000)
    for _ in range(3):
        task = asyncio.ensure_future(pair.a.probe_paths(timeout=0.05))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    pair.wire.faults()
    assert all(r.rtt_ns is not None for r in await pair.a.probe_paths(timeout=5))


async def test_closing_ends_a_probe_that_waits(mem):
    pair = await mem(evs=4)
    pair.wire.faults(loss_ppm=1_000_000)
    task = asyncio.ensure_future(pair.a.probe_paths(timeout=50))
    await asyncio.sleep(0)
    await pair.a.close(timeout=0)
    with pytest.raises(mrc.MrcUsageError):
        await asyncio.wait_for(task, 5)
    with pytest.raises(mrc.MrcUsageError):
        await pair.a.probe_paths()


async def test_arguments(mem, raises_with):
    pair = await mem(evs=4)
    with raises_with(mrc.MrcUsageError, "EV probe"):
        await pair.a.probe_paths([1])
    with raises_with(mrc.MrcUsageError, "timeout"):
        await pair.a.probe_paths(timeout=0)
    with raises_with(mrc.MrcUsageError, "plane 0"):
        pair.a.context.disable_plane(0)
    assert await pair.a.probe_paths([]) == []


# ---- planes --------------------------------------------------------------------------------


def sent_on(conn, plane):
    return sum(s.packets_sent for s in conn.path_stats() if s.plane == plane)


async def test_a_disabled_plane_carries_nothing_in_either_direction_until_enabled(ends):
    pair = await ends(ev_profile=TWO_PLANES)
    there, back = await pair.regions(bytearray(200_000), bytearray(200_000))
    source = pair.b.register(bytearray(200_000))
    pair.a.advertise("back", pair.a.register(bytearray(200_000)))
    to_a = await pair.b.remote_region("back", timeout=5)

    pair.a.context.disable_plane(2)
    assert not pair.a.context.planes_up & PLANE_2
    await until(lambda: not pair.a.path.planes().pending)
    assert not pair.a.path.planes().told & PLANE_2
    assert not pair.b.path.planes().remote_up & PLANE_2
    before = [sent_on(conn, 2) for conn in (pair.a, pair.b)]
    await pair.a.write(there, back, timeout=10)
    await pair.b.write(source, to_a, timeout=10)
    assert [sent_on(conn, 2) for conn in (pair.a, pair.b)] == before
    assert all(s.state is mrc.EvState.GOOD for s in pair.b.path_stats())

    pair.a.context.enable_plane(2)
    await until(lambda: pair.b.path.planes().remote_up & PLANE_2)
    await pair.a.write(there, back, timeout=10)
    await pair.b.write(source, to_a, timeout=10)
    assert all(sent_on(c, 2) > b for c, b in zip((pair.a, pair.b), before, strict=True))


async def test_a_lost_update_is_told_again(mem):
    pair = await mem(ev_profile=TWO_PLANES)
    pair.wire.faults(loss_ppm=1_000_000)
    pair.a.context.disable_plane(1)
    await asyncio.sleep(0.01)  # more than the three first ones
    assert pair.b.path.planes().remote_up == pair.a.path.planes().told
    assert pair.a.path.planes().pending
    pair.wire.faults()
    await until(lambda: not pair.b.path.planes().remote_up & 1 << 1)


async def test_who_comes_later_learns_it_too():
    with mrc.Context() as context:
        context.disable_plane(2)
        async with await mrc.listen("[::1]:0", ev_profile=TWO_PLANES) as server:
            port = server.sockname[1]
            a, b = await asyncio.gather(
                mrc.connect("::1", port, context=context, ev_profile=TWO_PLANES),
                server.accept(timeout=5),
            )
            async with a, b:
                assert not a.path.planes().local_up & PLANE_2
                await until(lambda: not b.path.planes().remote_up & PLANE_2)
                await until(lambda: not a.path.planes().pending)


async def test_two_programs_of_one_host_are_both_answered():
    """Both are ::1 to the server, and use the same EVs: the answer must find the one that asked."""
    async with await mrc.listen("[::1]:0", evs=4) as server:
        port = server.sockname[1]
        first, second = [await mrc.connect("::1", port, evs=4) for _ in range(2)]
        async with first, second, await server.accept(5), await server.accept(5):
            for conn in (first, second, first):
                assert all(r.rtt_ns is not None for r in await conn.probe_paths(timeout=1))
            assert first.drops()["ep_stale"] == second.drops()["ep_stale"] == 0
