# SPDX-License-Identifier: BSD-2-Clause
"""Asynchronous events of a context (C.1): queues, queue pairs and ports in trouble or back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

from ._check import U32_MAX, seconds, whole
from .errors import MrcUsageError
from .types import WcStatus

if TYPE_CHECKING:
    from .device import Context

__all__ = ["AsyncEvent", "AsyncEvents", "AsyncType", "wait_for"]

T = TypeVar("T")
_WAIT_MAX_MS = 1_000_000_000


class AsyncType(IntEnum):
    """What happened; `id` of the event is what stands in brackets."""

    CQ_ERR = 0  # a completion queue overran [its number]
    QP_FATAL = 1  # an error took a queue pair to ERR [QPN]; status says which
    QP_LAST_WQE = 2  # the last completion of a queue pair in ERR is in its queues [QPN]
    COMM_EST = 3  # a queue pair in RTR got its first packet [QPN]
    PORT_ACTIVE = 4  # plane `plane` came up here [0]
    PORT_ERR = 5  # it went down
    PEER_PORT_ACTIVE = 6  # plane `plane` came up at the peer of a path table [its number]
    PEER_PORT_ERR = 7  # it went down
    PATHS_BAD = 8  # no path of a table is known to work [its number] (field report 39)
    PATHS_OK = 9  # one does again


@dataclass(frozen=True, slots=True)
class AsyncEvent:
    """`time` in ns of the monotonic clock; `drop_count` events were lost just before this one."""

    time: int
    type: AsyncType
    id: int
    status: WcStatus
    plane: int
    drop_count: int


class AsyncEvents:
    """The events of one context, in order: Context.async_events.

    `fd` is readable exactly while one waits. At most 256 are kept, those taken and not
    acknowledged included; what finds no room is counted in the next one's drop_count.
    """

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx

    @property
    def fd(self) -> int:
        """For poll() or an event loop; not to be read from."""
        return self.ctx.verbs.channel_fd(0)

    def get_nowait(self) -> AsyncEvent | None:
        """The next event, or None."""
        raw = self.ctx.verbs.async_take()
        if raw is None:
            return None
        return AsyncEvent(
            raw.time, AsyncType(raw.type), raw.id, WcStatus(raw.status), raw.plane, raw.drop_count
        )

    def wait(self, timeout: float | None = None) -> AsyncEvent | None:
        """Give turns until an event comes; None after `timeout` seconds.

        MrcUsageError: an event loop drives the context.
        """
        return wait_for(self.ctx, self.get_nowait, timeout)

    def ack(self, count: int = 1) -> None:
        """That many events are done with: their room is free. MrcUsageError: not so many."""
        self.ctx.verbs.async_ack(whole("count", count, 0, U32_MAX))

    def done(self, _event: AsyncEvent) -> None:
        """Acknowledge one event."""
        self.ack(1)


def wait_for(ctx: Context, take: Callable[[], T | None], timeout: float | None) -> T | None:
    """Turns of the context until `take` gives something, or the seconds have passed."""
    if ctx.attached is not None:
        raise MrcUsageError("an event loop drives the context: await the event instead")
    limit = seconds(timeout)
    end = None if limit is None else time.monotonic() + limit
    while (found := take()) is None:
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            return None
        ctx.wait(-1 if left is None else min(max(1, int(left * 1000)), _WAIT_MAX_MS))
    return found
