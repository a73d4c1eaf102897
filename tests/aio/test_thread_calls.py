# SPDX-License-Identifier: BSD-2-Clause
"""Calls of several threads at once into a context whose turns a thread takes (ADR 122)."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import threading

import pytest

import mrc
from mrc import _core, _verbs
from mrc._core import Pump

pytestmark = pytest.mark.parametrize("pump", ["thread"], indirect=True)

LIMIT_S = 20


class Held:
    """The library, one of whose calls comes back only when it is let go: others come meanwhile."""

    def __init__(self, lib, name):
        self.came = threading.Semaphore(0)
        self.go = threading.Event()
        self._lib = lib
        self._name = name

    def __getattr__(self, name):
        call = getattr(self._lib, name)
        if name != self._name:
            return call

        def held(*args):
            result = call(*args)
            self.came.release()
            assert self.go.wait(LIMIT_S)
            return result

        return held


def in_threads(count, work, *, then):
    """What `work` returned in that many threads, each begun when the one before was inside."""
    found = [None] * count

    def run(index):
        found[index] = work(index)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for index, thread in enumerate(threads):
        thread.start()
        then(index)
    for thread in threads:
        thread.join(LIMIT_S)
        assert not thread.is_alive()
    return found


async def test_each_thread_posts_its_own_work(mem, monkeypatch):
    """While C reads one request another thread packs its own."""
    pair = await mem()
    local, remote = await pair.regions(bytearray(64), bytearray(64))
    inside = threading.Barrier(2)
    posted = []
    post_send = Pump.post_send

    def both(pump, qpn, array, count):
        inside.wait(LIMIT_S)
        posted.append(array[0].wr_id)
        return post_send(pump, qpn, array, count)

    monkeypatch.setattr(Pump, "post_send", both)
    wrs = [mrc.SendWr(i, local.addr, remote.addr, 64, local.lkey, remote.rkey) for i in (1, 2)]
    pair.a._driver.leave(pair.a)  # they are not its writes
    in_threads(2, lambda i: pair.a.qp.post_send(wrs[i]), then=lambda i: None)
    assert sorted(posted) == [1, 2]
    found: list[int] = []
    while len(found) < 2:
        found += [wc.wr_id for wc in pair.a.qp.send_cq.poll()]
    assert sorted(found) == [1, 2]


async def test_each_thread_has_its_own_events(mem, monkeypatch):
    pair = await mem(evs=8)
    evs = [s.ev for s in pair.a.path_stats()]
    pair.a.context.events()
    held = Held(_core.lib, "mrc_pump_events")
    monkeypatch.setattr(_core, "lib", held)
    pair.a.path.deny(evs[0])

    def then(index):
        assert held.came.acquire(timeout=LIMIT_S)
        if index == 0:
            pair.a.path.deny(evs[1])
        else:
            held.go.set()

    found = in_threads(2, lambda _: pair.a.context.events(), then=then)
    assert [[e.ev for e in events] for events in found] == [[evs[0]], [evs[1]]]


async def test_each_thread_has_its_own_asynchronous_event(mem, monkeypatch):
    pair = await mem()
    context = pair.a.context
    pair.a._driver.leave(pair.a)
    while context.async_events.get_nowait() is not None:
        context.async_events.ack()
    cqs = [mrc.CompletionQueue(context, 1) for _ in range(2)]
    made = [mrc.QueuePair(pair.a.pd, cq, cq) for cq in cqs]
    for qp in made:  # two flushed receives into a queue of one: an overrun
        qp.modify(mrc.QpAttr(state=mrc.QpState.INIT, access=mrc.Access.REMOTE_WRITE))
        qp.post_recv([1, 2])
        qp.modify(mrc.QpAttr(state=mrc.QpState.ERR))
    held = Held(_core.lib, "mrc_pump_async_take")
    monkeypatch.setattr(_verbs, "lib", held)

    def then(index):
        assert held.came.acquire(timeout=LIMIT_S)
        if index == 1:
            held.go.set()

    found = in_threads(2, lambda _: context.async_events.get_nowait(), then=then)
    assert found[0] != found[1]
    assert {type(e.type) for e in found} == {mrc.AsyncType}


# -- joining ---------------------------------------------------------------------------------


async def test_what_came_before_a_connection_joined_is_delivered(mem):
    """The bit was taken by a turn that had nobody to tell; no packet comes any more."""
    pair = await mem()
    local, remote = await pair.regions(bytearray(8), bytearray(8))
    driver = pair.b._driver
    driver.leave(pair.b)
    await pair.a.write(local, remote, imm=7, timeout=LIMIT_S)
    for _ in range(3):
        driver._turn()
        await asyncio.sleep(0)
    driver.join(pair.b)
    assert (await pair.b.receive_imm(timeout=LIMIT_S)).imm == 7


async def test_a_queue_pair_that_failed_before_it_joined_is_noticed(mem):
    pair = await mem()
    driver = pair.a._driver
    driver.leave(pair.a)
    pair.b._driver.leave(pair.b)  # a peer that tells nothing
    wr = mrc.SendWr(1, 0, 0, 8, 0x12345678, 0)
    local, _ = await pair.regions(bytearray(8), bytearray(8))
    pair.a.qp.post_send(wr._replace(laddr=local.addr, lkey=local.lkey, rkey=0x7777))
    while pair.a.qp.state is not mrc.QpState.ERR:
        driver._turn()
        await asyncio.sleep(0)
    driver._turn()
    driver.join(pair.a)
    assert isinstance(await pair.a.wait_closed(timeout=LIMIT_S), mrc.MrcPeerLost)


# -- closing ---------------------------------------------------------------------------------


async def test_counters_of_a_context_that_another_thread_closes():
    """It says that it is closed, not that very much was dropped."""
    for _ in range(30):
        context = mrc.Context()
        told: list[str] = []
        began = threading.Event()

        def look(context=context, told=told, began=began):
            while True:
                try:
                    assert max(context.drops().values()) < 1 << 63
                except mrc.MrcUsageError as exc:
                    told.append(str(exc))
                    return
                finally:
                    began.set()

        thread = threading.Thread(target=look)
        thread.start()
        assert began.wait(LIMIT_S)
        context.close()
        thread.join(LIMIT_S)
        assert len(told) == 1
        assert "closed" in told[0]


async def test_turns_of_other_threads_do_not_refuse_a_close():
    for _ in range(30):
        context = mrc.Context()
        began = threading.Event()

        def turn(context=context, began=began):
            while True:
                try:
                    context.turn()
                except mrc.MrcUsageError:
                    return
                finally:
                    began.set()

        threads = [threading.Thread(target=turn) for _ in range(2)]
        for thread in threads:
            thread.start()
        assert began.wait(LIMIT_S)
        context.close()
        for thread in threads:
            thread.join(LIMIT_S)
            assert not thread.is_alive()


async def test_nobody_begins_to_wait_while_it_is_being_closed():
    """Or the close would be refused when connections have been given up already."""
    context = mrc.Context()
    refused: list[str] = []

    class Driver:
        def before_close(self):
            def wait():
                try:
                    context.wait(LIMIT_S * 1000)
                except mrc.MrcUsageError as exc:
                    refused.append(str(exc))

            thread = threading.Thread(target=wait)
            thread.start()
            thread.join(LIMIT_S)

        def before_close_of(self, fd):
            raise AssertionError(fd)

    context.attached = Driver()
    context.close()
    assert context.closed
    assert len(refused) == 1
    assert "closed" in refused[0]


async def test_two_threads_that_close_are_both_done():
    for _ in range(20):
        context = mrc.Context()
        mrc.MemoryRegion(mrc.ProtectionDomain(context), bytearray(10))
        start = threading.Barrier(3)
        failures: list[Exception] = []

        def close(context=context, start=start, failures=failures):
            start.wait(LIMIT_S)
            try:
                context.close()
            except mrc.MrcError as exc:
                failures.append(exc)

        threads = [threading.Thread(target=close) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        assert failures == []
        assert context.closed


# -- starting --------------------------------------------------------------------------------

REFUSED = """
import os, resource, mrc

mrc.Context(pump="loop").close()
held = []
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
try:
    while True:
        held.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
for _ in range(3):  # what a pump takes without its thread
    os.close(held.pop())
for _ in range(3):
    try:
        mrc.Context(pump="thread")
    except mrc.MrcResourceError as exc:
        print(exc)
for _ in range(3):
    held.append(os.open(os.devnull, os.O_RDONLY))  # all of it is free again
"""


def run(program):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


async def test_a_thread_that_cannot_be_started_leaves_nothing():
    done = run(REFUSED)
    assert (done.returncode, done.stderr) == (0, "")
    sentence = f"pump='thread': cannot start a thread: {os.strerror(errno.EMFILE)}"
    assert done.stdout.splitlines() == [sentence] * 3
