# SPDX-License-Identifier: BSD-2-Clause
"""CompletionQueue and the batches it is polled into."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from ._check import U32_MAX, whole
from ._children import Children, Owned
from ._core import records
from ._typed import typed
from .comp import CompletionChannel
from .device import Context
from .errors import MrcUsageError
from .types import WcFlags, WcOpcode, WcStatus, WorkCompletion

__all__ = ["CompletionQueue", "WcBatch", "work_completion"]

_BATCH_MAX = 1 << 24
_WC = struct.Struct("=QIIIBBBxQ")  # struct mrc_wc
# Looked up for each completion: calling an enumeration takes ten times as long.
_STATUS = tuple(WcStatus)
_OPCODE = tuple(WcOpcode)
_FLAGS = tuple(WcFlags(bits) for bits in range(4))


class WcBatch:
    """Room for `size` completions; what a poll left is valid until the next poll into it.

    For one thread at a time; several threads may poll one queue, each into a batch of its own.
    """

    __slots__ = ("_bytes", "array", "count", "size")

    def __init__(self, size: int = 256) -> None:
        self.size = whole("size of a completion batch", size, 1, _BATCH_MAX)
        self.count = 0
        self.array, self._bytes = records("mrc_wc", size)

    def __len__(self) -> int:
        return self.count

    def tuples(self) -> Iterator[tuple[int, ...]]:
        """(wr_id, qpn, byte_len, imm, status, opcode, flags, reserved): the fast way."""
        return _WC.iter_unpack(self._bytes[: self.count * _WC.size])

    def __iter__(self) -> Iterator[WorkCompletion]:
        for fields in self.tuples():
            yield work_completion(fields)


def work_completion(fields: Sequence[int]) -> WorkCompletion:
    """The record of one tuple of WcBatch.tuples()."""
    wr_id, qpn, byte_len, imm, status, opcode, flags = fields[:7]
    return WorkCompletion(
        wr_id, qpn, byte_len, imm, _STATUS[status], _OPCODE[opcode], _FLAGS[flags]
    )


class CompletionQueue(Owned):
    """A ring of `depth` completions.

    When it overruns, it takes no more, `overrun` stays true, its queue pairs go to ERR and an
    AsyncEvent says so: never a silent loss. With a `channel` it can be armed for events. Closing
    closes the queue pairs that complete into it.
    """

    @typed
    def __init__(
        self, ctx: Context, depth: int = 256, channel: CompletionChannel | None = None
    ) -> None:
        if channel is not None and channel.ctx is not ctx:
            raise MrcUsageError("completion queue and channel belong to different contexts")
        self.ctx = ctx
        self.depth = whole("depth", depth, 1, U32_MAX)
        self.number = ctx.pump.cq_create(self.depth)
        self.qps = Children()
        self.channel = channel
        self._unacked = 0
        if channel is not None:
            try:
                channel.bind(self, self.number)
            except BaseException:
                ctx.pump.cq_destroy(self.number)
                raise
        self._closed = False
        ctx.cqs.add(self)

    def require_open(self) -> None:
        """MrcUsageError when closed."""
        if self._closed:
            raise MrcUsageError("the completion queue is closed")

    def poll(self, batch: WcBatch | int = 16) -> WcBatch:
        """Take what is there, without waiting: into the batch given, or a new one of that size."""
        self.require_open()
        target = batch if isinstance(batch, WcBatch) else WcBatch(batch)
        target.count = 0
        target.count = self.ctx.pump.cq_poll(self.number, target.array, target.size)
        return target

    @property
    def overrun(self) -> bool:
        """True once completions came while the ring was full."""
        self.require_open()
        return self.ctx.pump.cq_overrun(self.number)

    # -- events ------------------------------------------------------------------------------

    @typed
    def arm(self, *, solicited_only: bool = False) -> None:
        """One event on the channel at the next completion, then no more until armed again.

        solicited_only: only an immediate whose sender asked for it, or an error. Completions that
        are waiting already make no event: arm, then poll. MrcUsageError: no channel.
        """
        self.require_open()
        if self.channel is None:
            raise MrcUsageError("the completion queue has no channel")
        self.ctx.verbs.cq_arm(self.number, solicited_only)

    def ack_events(self, count: int = 1) -> None:
        """That many events taken from the channel are done with. MrcUsageError: not so many."""
        self.require_open()
        whole("count", count, 0, U32_MAX)
        if count > self._unacked:
            raise MrcUsageError(f"{count} of {self._unacked} events cannot be acknowledged")
        self.ctx.verbs.cq_ack(self.number, count)
        self._unacked -= count

    def on_event(self) -> None:
        """The channel gave out an event of this queue."""
        self._unacked += 1

    def close(self) -> None:
        """Close its queue pairs, then itself; completions not polled are gone. Twice is once.

        MrcUsageError while events are not acknowledged: whoever took them may still come to poll.
        """
        if self._closed:
            return
        if self._unacked and not self.ctx.closed:
            raise MrcUsageError(f"{self._unacked} events of {self!r} are not acknowledged")
        self.qps.close_all()
        if not self.ctx.closed:
            self.ctx.pump.cq_destroy(self.number)
            if self.channel is not None:
                self.channel.unbind(self.number)
        self._closed = True
        self.ctx.cqs.discard(self)

    def __repr__(self) -> str:
        return f"<CompletionQueue {self.number} depth {self.depth}>"
