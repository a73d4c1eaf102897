# SPDX-License-Identifier: BSD-2-Clause
"""What a forked child closes stays open in its parent: they share descriptors, not memory."""

from __future__ import annotations

import asyncio
import os

import pytest

import mrc


def in_child(act) -> None:
    """Do that in a forked child, which must come to its end."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def close_driver(end):
    end.context.attached._detach()  # what the last user's close comes to


@pytest.mark.parametrize("act", [lambda end: end.context.close(), close_driver])
async def test_a_child_that_closes_does_not_stop_its_parent(mem, act):
    """The event loop's epoll set is one for both."""
    ends = await mem()
    local, remote = await ends.regions(bytearray(4096), bytearray(4096))
    for end in (ends.a, ends.b):
        in_child(lambda end=end: act(end))
    done = await ends.a.write(local, remote, timeout=5)
    assert done.status is mrc.WcStatus.SUCCESS
    assert not ends.a.closed.done()
    assert not ends.b.closed.done()


async def test_a_child_takes_no_notifications_from_its_parent():
    context = mrc.Context()
    async with mrc.Notifications(context.async_events) as events:
        waiting = events._driver.loop.create_task(events.get(timeout=5))
        await asyncio.sleep(0)
        assert events._waiting
        in_child(events.close)
        context.disable_plane(1)
        assert (await waiting).type is mrc.AsyncType.PORT_ERR
        context.async_events.ack()
    context.close()
