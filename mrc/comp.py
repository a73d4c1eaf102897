# SPDX-License-Identifier: BSD-2-Clause
"""CompletionChannel: a descriptor that says which armed completion queues have something (C.1)."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from ._children import Owned
from ._typed import typed
from .errors import MrcUsageError
from .events import wait_for

if TYPE_CHECKING:
    from .cq import CompletionQueue
    from .device import Context

__all__ = ["CompletionChannel"]


class CompletionChannel(Owned):
    """Events of the completion queues made with it, one for each arming.

    `fd` is readable exactly while an event waits; somebody must still give the context its turns.
    mrc.aio.Notifications awaits it. Each event taken is to be acknowledged with the queue's
    ack_events(); until then the queue does not close.
    """

    @typed
    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.number = ctx.verbs.channel_create()
        self._cqs: weakref.WeakValueDictionary[int, CompletionQueue] = weakref.WeakValueDictionary()
        self._closed = False
        ctx.channels.add(self)

    @property
    def fd(self) -> int:
        """For poll() or an event loop; not to be read from."""
        self._require_open()
        return self.ctx.verbs.channel_fd(self.number)

    def get_nowait(self) -> CompletionQueue | None:
        """The next queue that has an event, or None."""
        self._require_open()
        while (number := self.ctx.verbs.cq_event(self.number)) is not None:
            cq = self._cqs.get(number)
            if cq is not None:
                cq.on_event()
                return cq
        return None

    def wait(self, timeout: float | None = None) -> CompletionQueue | None:
        """Give turns until an event comes: the queue, or None after `timeout` seconds.

        MrcUsageError: an event loop drives the context.
        """
        return wait_for(self.ctx, self.get_nowait, timeout)

    @staticmethod
    @typed
    def done(cq: CompletionQueue) -> None:
        """Acknowledge one event."""
        cq.ack_events(1)

    @typed
    def bind(self, cq: CompletionQueue, number: int) -> None:
        """Events of this queue come here."""
        self._require_open()
        self.ctx.verbs.cq_channel(number, self.number)
        self._cqs[number] = cq

    def unbind(self, number: int) -> None:
        """The queue is gone."""
        self._cqs.pop(number, None)

    def close(self) -> None:
        """Close the descriptor, and the Notifications that wait for it. Twice is once.

        MrcUsageError while queues use it.
        """
        if self._closed:
            return
        if not self.ctx.closed:
            if self._cqs:
                raise MrcUsageError(f"{self!r} is still in use by completion queues")
            fd = self.fd
            if self.ctx.attached is not None:
                self.ctx.attached.before_close_of(fd)  # while the number is still ours
            self.ctx.verbs.channel_destroy(self.number)
        self._closed = True
        self.ctx.channels.discard(self)

    def _require_open(self) -> None:
        if self._closed:
            raise MrcUsageError("the completion channel is closed")

    def __repr__(self) -> str:
        return f"<CompletionChannel {self.number}>"
