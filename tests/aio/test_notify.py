# SPDX-License-Identifier: BSD-2-Clause
"""Completion and asynchronous events, awaited (C.1)."""

from __future__ import annotations

import asyncio

import pytest

import mrc
from mrc._core import MemWire
from tests.unit.sides import Side


class Receiver:
    """A side whose completion queue has a channel, and one that writes to it."""

    def __init__(self):
        wire = MemWire(1024, 1)
        self.a, self.b = Side(wire, 0), Side(wire, 1)
        self.channel = mrc.CompletionChannel(self.b.ctx)
        self.cq = mrc.CompletionQueue(self.b.ctx, 64, self.channel)
        self.b.qp.close()
        self.b.qp = mrc.QueuePair(self.b.pd, self.cq, self.cq)
        self.a.connect(self.b)
        self.b.connect(self.a)
        self.src = mrc.MemoryRegion(self.a.pd, bytearray(64))
        self.dst = mrc.MemoryRegion(self.b.pd, bytearray(64))
        self.b.qp.post_recv(range(16))
        # Somebody must give the writer its turns, too: an event loop's Notifications do.
        self.turns = mrc.Notifications(mrc.CompletionChannel(self.a.ctx))

    def write(self, imm, flags=mrc.SendFlags.SIGNALED):
        self.a.qp.post_send(
            mrc.SendWr(
                imm,
                self.src.addr,
                self.dst.addr,
                64,
                self.src.lkey,
                self.dst.rkey,
                imm,
                mrc.WrOpcode.RDMA_WRITE_WITH_IMM,
                flags,
            )
        )

    def close(self):
        self.turns.close()
        self.a.ctx.close()
        self.b.ctx.close()


@pytest.fixture
async def rx():
    found = Receiver()
    yield found
    found.close()


async def test_one_event_for_each_arming(rx):
    async with mrc.Notifications(rx.channel) as events:
        rx.cq.arm()
        rx.write(1)
        rx.write(2)
        assert await events.get(timeout=5) is rx.cq
        rx.cq.ack_events()
        rx.write(3)
        with pytest.raises(TimeoutError, match="no event came"):
            await events.get(timeout=0.05)
        immediates = [wc.imm for wc in rx.cq.poll()]
        assert immediates == [1, 2, 3]
        rx.cq.arm()
        rx.write(4)
        assert await events.get(timeout=5) is rx.cq
        rx.cq.ack_events()


async def test_solicited_only(rx):
    async with mrc.Notifications(rx.channel) as events:
        rx.cq.arm(solicited_only=True)
        rx.write(1)
        with pytest.raises(TimeoutError):
            await events.get(timeout=0.05)
        rx.write(2, mrc.SendFlags.SOLICITED)
        assert await events.get(timeout=5) is rx.cq
        first, second = rx.cq.poll()
        assert not first.flags & mrc.WcFlags.SOLICITED
        assert second.flags & mrc.WcFlags.SOLICITED
        rx.cq.ack_events()


async def test_iteration_acknowledges(rx):
    async with mrc.Notifications(rx.channel) as events:
        rx.cq.arm()
        rx.write(0)
        got = 0
        async for cq in events:
            cq.arm()  # first, then poll: nothing can slip between
            got += len(cq.poll())
            if got >= 3:
                break
            rx.write(got)
    # the one whose turn was left early is acknowledged, too
    rx.b.qp.close()
    rx.cq.close()


async def test_a_cancelled_wait_loses_nothing(rx):
    async with mrc.Notifications(rx.channel) as events:
        waits = [asyncio.ensure_future(events.get()) for _ in range(3)]
        await asyncio.sleep(0)
        waits[0].cancel()
        waits[2].cancel()
        rx.cq.arm()
        rx.write(1)
        assert await asyncio.wait_for(waits[1], 5) is rx.cq
        assert waits[0].cancelled()
        assert waits[2].cancelled()
        rx.cq.ack_events()


async def test_flush_by_a_call_wakes_the_waiter(rx):
    """The completion is not brought by a turn but made by close()."""
    async with mrc.Notifications(rx.channel) as events:
        waiting = asyncio.ensure_future(events.get(timeout=5))
        await asyncio.sleep(0)
        rx.cq.arm(solicited_only=True)
        rx.b.qp.close()
        assert await waiting is rx.cq
        assert {wc.status for wc in rx.cq.poll(64)} == {mrc.WcStatus.WR_FLUSH_ERR}
        rx.cq.ack_events()


async def test_asynchronous_events_tell_why(rx):
    events = mrc.Notifications(rx.a.ctx.async_events)
    async with events, mrc.Notifications(rx.channel):
        rx.b.qp.modify(mrc.QpAttr(state=mrc.QpState.ERR))
        rx.write(1)
        found = []
        async for event in events:
            found.append(event)
            if event.type is mrc.AsyncType.QP_LAST_WQE:
                break
    assert [e.type for e in found] == [mrc.AsyncType.QP_FATAL, mrc.AsyncType.QP_LAST_WQE]
    assert {(e.id, e.status) for e in found} == {(rx.a.qp.qpn, mrc.WcStatus.REM_OP_ERR)}
    assert rx.a.qp.state is mrc.QpState.ERR


async def test_overrun_is_told(rx):
    small = mrc.CompletionQueue(rx.a.ctx, 1)
    qp = mrc.QueuePair(rx.a.pd, small, small)
    qp.modify(mrc.QpAttr(state=mrc.QpState.INIT, access=mrc.Access.NONE))
    qp.post_recv([1, 2])
    async with mrc.Notifications(rx.a.ctx.async_events) as events:
        qp.close()
        event = await events.get(timeout=5)
    assert (event.type, event.id) == (mrc.AsyncType.CQ_ERR, small.number)
    assert small.overrun


async def test_planes_are_told(rx):
    async with mrc.Notifications(rx.a.ctx.async_events) as events:
        rx.a.ctx.disable_plane(3)
        down = await events.get(timeout=5)
        rx.a.ctx.enable_plane(3)
        up = await events.get(timeout=5)
    assert (down.type, down.plane) == (mrc.AsyncType.PORT_ERR, 3)
    assert (up.type, up.plane) == (mrc.AsyncType.PORT_ACTIVE, 3)
    assert up.time >= down.time


async def test_who_waits_when_the_context_closes_is_told(rx):
    events = mrc.Notifications(rx.channel)
    waiting = asyncio.ensure_future(events.get())
    await asyncio.sleep(0)
    rx.b.ctx.close()
    with pytest.raises(mrc.MrcUsageError):
        await waiting
    events.close()


async def test_a_channel_that_closes_takes_its_notifications_along(rx):
    """Its descriptor's number is free at once: the next channel gets it, and must find it so."""
    channel = mrc.CompletionChannel(rx.b.ctx)
    events = mrc.Notifications(channel)
    waiting = asyncio.ensure_future(events.get())
    await asyncio.sleep(0)
    fd = channel.fd
    channel.close()
    with pytest.raises(mrc.MrcUsageError):
        await asyncio.wait_for(waiting, 5)
    made = [mrc.CompletionChannel(rx.b.ctx) for _ in range(64)]
    # Other threads of the process open descriptors, too: then another one got the number.
    again = next((c for c in made if c.fd == fd), made[0])
    queue = mrc.CompletionQueue(rx.b.ctx, 8, again)
    async with mrc.Notifications(again) as news:
        with pytest.raises(mrc.MrcUsageError, match="in use by completion queues"):
            again.close()
        qp = mrc.QueuePair(rx.b.pd, queue, queue)
        qp.modify(mrc.QpAttr(state=mrc.QpState.INIT, access=mrc.Access.NONE))
        qp.post_recv([1])
        queue.arm()
        qp.close()
        assert await news.get(timeout=5) is queue  # a refused close let go of nothing
        queue.ack_events()
    events.close()


async def test_one_at_a_time_for_each_source(rx):
    async with mrc.Notifications(rx.channel):
        with pytest.raises(mrc.MrcUsageError, match="waits for these events already"):
            mrc.Notifications(rx.channel)
    async with mrc.Notifications(rx.channel) as events:
        with pytest.raises(TimeoutError):
            await events.get(timeout=0)
    with pytest.raises(mrc.MrcUsageError, match="closed"):
        await events.get()


async def test_blocking_waits_are_refused_while_a_loop_drives(rx):
    async with mrc.Notifications(rx.channel):
        with pytest.raises(mrc.MrcUsageError, match="await"):
            rx.channel.wait(0.1)
    assert rx.channel.wait(0.01) is None
