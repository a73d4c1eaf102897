# SPDX-License-Identifier: BSD-2-Clause
"""What is true in thread mode only (ADR 122); all other tests of this folder run in both modes."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import mrc
from mrc._core import Pump

pytestmark = pytest.mark.parametrize("pump", ["thread"], indirect=True)

LIMIT_S = 20


def pumps():
    """How many threads of pumps this process has."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except OSError:  # it has just ended
            continue
    return names.count("mrc-pump")


def busily(condition):
    """Wait for it without giving the loop a chance."""
    end = time.monotonic() + LIMIT_S
    while not condition() and time.monotonic() < end:
        pass
    return condition()


async def test_data_flows_while_the_loop_is_blocked(ends):
    pair = await ends()
    source, target = bytearray(os.urandom(3_000_000)), bytearray(3_000_000)
    local, remote = await pair.regions(source, target)
    written = pair.a.write_nowait(local, remote)
    assert busily(lambda: pair.a.stats().sq_used == 0)
    assert target == source
    assert not written.done()  # nobody had the time to say so
    assert (await written).status is mrc.WcStatus.SUCCESS


async def test_the_loop_is_woken_for_completions_only(mem, monkeypatch):
    """Not for the packets of 250 segments, nor for those at the peer that only places them."""
    pair = await mem()
    local, remote = await pair.regions(bytearray(1_000_000), bytearray(1_000_000))
    looks: list[Pump] = []
    turn = Pump.turn

    def counted(pump, budget):
        looks.append(pump)
        return turn(pump, budget)

    monkeypatch.setattr(Pump, "turn", counted)
    for _ in range(20):
        await pair.a.write(local, remote, timeout=LIMIT_S)
    assert looks.count(pair.a.context.pump) <= 2 * 20
    assert looks.count(pair.b.context.pump) <= 2


async def test_one_mode_beside_the_other(udp):
    """A peer in loop mode."""
    pair = await udp(server={"pump": "loop"})
    assert pair.a.context.threaded
    assert not pair.b.context.threaded
    source, target = bytearray(os.urandom(1_000_000)), bytearray(1_000_000)
    local, remote = await pair.regions(source, target)
    await pair.a.write(local, remote, timeout=LIMIT_S)
    assert target == source


async def test_who_pumps_is_a_matter_of_the_context(raises_with):
    with mrc.Context(pump="loop") as context, raises_with(mrc.MrcUsageError, "context"):
        await mrc.connect("::1", 1, context=context, pump="thread")
    with raises_with(mrc.MrcUsageError, "pump", "'both'"):
        await mrc.connect("::1", 1, pump="both")  # type: ignore[arg-type]


async def test_names_that_are_no_mode(monkeypatch, raises_with):
    with raises_with(mrc.MrcUsageError, "spin_us"):
        mrc.Context(pump="thread", spin_us=-1)
    monkeypatch.setenv("MRC_PUMP", "both")
    with raises_with(mrc.MrcUsageError, "MRC_PUMP", "'both'"):
        mrc.Context()


# -- ends ------------------------------------------------------------------------------------


async def test_close_ends_the_thread(mem):
    before = pumps()
    pair = await mrc.mem_pair()
    assert pumps() == before + 2
    await pair.close()
    assert pumps() == before


async def test_a_context_closed_under_traffic_fails_what_waits(mem):
    pair = await mem(depth=4)
    local, remote = await pair.regions(bytearray(8_000_000), bytearray(8_000_000))
    writes = [pair.a.write_nowait(local, remote) for _ in range(4)]
    pair.a.context.close()
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert all(isinstance(r, mrc.MrcError | mrc.WorkCompletion) for r in results)
    assert isinstance(results[-1], mrc.MrcError)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
async def test_a_lost_context_takes_its_thread_along():
    """Its memory goes with it, so nobody may write there any more."""
    before = pumps()
    context = mrc.Context()
    region = mrc.MemoryRegion(mrc.ProtectionDomain(context), bytearray(1000))
    assert pumps() == before + 1
    del context, region
    gc.collect()
    assert pumps() == before


async def test_calls_from_many_threads_come_in_one_after_the_other(mem):
    pair = await mem(loss_ppm=1000)
    local, remote = await pair.regions(bytearray(1_000_000), bytearray(1_000_000))
    over = threading.Event()
    failures = []

    def look():
        calls = 0
        while not over.is_set() or calls == 0:
            try:
                pair.a.context.drops()
                pair.a.qp.query()
                mrc.MemoryRegion(pair.a.pd, bytearray(100)).close()
            except Exception as exc:  # noqa: BLE001 - there must be none
                failures.append(exc)
                return
            calls += 1

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            await pair.a.write(local, remote, timeout=LIMIT_S)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert failures == []


# -- the process -----------------------------------------------------------------------------

RUNNING = """
import asyncio, os, signal, sys, threading
import mrc

async def main():
    pair = await mrc.mem_pair(depth=64)
    local = pair.a.register(bytearray(1_000_000))
    pair.b.advertise("t", pair.b.register(bytearray(1_000_000)))
    remote = await pair.a.remote_region("t", timeout=20)
    for _ in range(64):
        pair.a.write_nowait(local, remote)
    {end}

{before}
asyncio.run(main())
"""


def ending(end, before="", **kwargs):
    """How a program ends whose pumps are at work."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUNNING.format(end=end, before=before)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        **kwargs,
    )


@pytest.mark.parametrize("how", ["return", "sys.exit(0)", "globals().update(kept=pair)"])
async def test_the_interpreter_ends_under_traffic(how):
    for _ in range(3):
        done = ending(how)
        assert (done.returncode, done.stdout) == (0, "")
        assert "Fatal" not in done.stderr


async def test_ctrl_c_goes_to_the_main_thread():
    # Whoever runs the tests may ignore the signal, and that is inherited.
    heed = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    done = ending("os.kill(os.getpid(), signal.SIGINT); await asyncio.sleep(60)", heed)
    assert done.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in done.stderr


async def test_a_forked_child_ends_by_itself():
    """With a copy of everything but the threads: also of what they held."""
    fork = """
    for _ in range(10):
        child = os.fork()
        if child == 0:
            try:
                pair.a.stats()
            except mrc.MrcForkError:
                sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        pair.a.write_nowait(local, remote) if pair.a.in_flight < 64 else None
    await pair.close()
    """
    done = ending(fork)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


PEER = """
import asyncio
import mrc

async def main():
    async with await mrc.listen("[::1]:0") as server:
        print(server.sockname[1], flush=True)
        conn = await server.accept()
        conn.advertise("t", conn.register(bytearray(1_000_000)))
        await conn.wait_closed()

asyncio.run(main())
"""


def start_peer():
    return subprocess.Popen([sys.executable, "-c", PEER], stdout=subprocess.PIPE, text=True)


async def write_on(conn, local, remote):
    while True:
        await conn.write(local, remote)


async def test_a_killed_peer_is_noticed():
    with start_peer() as peer:
        try:
            assert peer.stdout is not None
            port = int(peer.stdout.readline())
            async with await mrc.connect("::1", port) as conn:
                local = conn.register(bytearray(1_000_000))
                remote = await conn.remote_region("t", timeout=LIMIT_S)
                await conn.write(local, remote, timeout=LIMIT_S)
                writing = asyncio.ensure_future(write_on(conn, local, remote))
                peer.kill()
                with pytest.raises(mrc.MrcPeerLost):
                    await writing
        finally:
            peer.kill()
