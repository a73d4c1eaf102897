# SPDX-License-Identifier: BSD-2-Clause
"""Transfer: the data side of a connection.

Writes out, completions and immediates in, with room and credit to wait for. Knows no channel,
and of the peer only its limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, TypedDict

from ._check import U32_MAX, whole
from ._core import POST_LATER, POST_NOW
from ._waits import Gate, Mailbox, limit
from .bringup import RECV_ID, Half
from .cq import WcBatch, work_completion
from .errors import MrcResourceError, MrcUsageError, MrcWorkError
from .mr import MemoryRegion
from .oob import RemoteRegion
from .qp import SendWr
from .types import (
    MESSAGE_BYTES_MAX,
    SendFlags,
    WcFlags,
    WcStatus,
    WorkCompletion,
    WrOpcode,
)

__all__ = ["Immediate", "Transfer", "WriteArgs", "write_request"]

_ADDRESS_MAX = (1 << 64) - 1

_SOLICITED = int(WcFlags.SOLICITED)
_BOTH = SendFlags.SIGNALED | SendFlags.SOLICITED


class Immediate(NamedTuple):
    """What a write with immediate brought; its data is in place."""

    imm: int
    byte_len: int
    solicited: bool


class WriteArgs(TypedDict, total=False):
    """Which part of the two regions, in bytes; length None is as much as both have.

    imm: a 32-bit number the peer gets from receive_imm() after all earlier data (B.8). solicited
    sets the event bit of its last packet.
    """

    local_offset: int
    remote_offset: int
    length: int | None
    imm: int | None
    solicited: bool


def write_request(
    wr_id: int,
    mr: MemoryRegion,
    remote: RemoteRegion,
    *,
    local_offset: int = 0,
    remote_offset: int = 0,
    length: int | None = None,
    imm: int | None = None,
    solicited: bool = False,
) -> SendWr:
    """The work request of a write. MrcUsageError: it cannot be one."""
    if not isinstance(remote, RemoteRegion):
        raise MrcUsageError(f"remote {remote!r:.60} is no RemoteRegion")
    for name, value in (("local_offset", local_offset), ("remote_offset", remote_offset)):
        whole(name, value, 0, _ADDRESS_MAX)
    if length is not None:
        whole("length", length, 0, _ADDRESS_MAX)
    if length is None:
        length = min(mr.length - local_offset, remote.length - remote_offset)
    laddr, size = mr.range(local_offset, length)
    if remote_offset + size > remote.length:
        raise MrcUsageError(
            f"bytes {remote_offset}..{remote_offset + size} are outside the peer's region "
            f"{remote.name!r} of {remote.length}"
        )
    if size > MESSAGE_BYTES_MAX:
        raise MrcUsageError(f"a write of {size} bytes; at most {MESSAGE_BYTES_MAX} (H20)")
    if imm is not None:
        whole("imm", imm, 0, U32_MAX)
    return SendWr(
        wr_id,
        laddr,
        remote.addr + remote_offset,
        size,
        mr.lkey,
        remote.rkey,
        imm or 0,
        WrOpcode.RDMA_WRITE if imm is None else WrOpcode.RDMA_WRITE_WITH_IMM,
        _BOTH if solicited else SendFlags.SIGNALED,
    )


class Transfer:
    """Work of one queue pair.

    `on_error` is called when failed completions were seen; `on_credit` with the number of
    immediates the peer may send again.
    """

    def __init__(
        self,
        half: Half,
        peer_imm_queue: int,
        on_error: Callable[[WcStatus], None],
        on_credit: Callable[[int], None],
    ) -> None:
        self._qp = half.qp
        self._cq = half.cq
        self._driver = half.driver
        self._depth = half.options.depth
        self._imm_queue = half.options.imm_queue
        self._peer_imm_queue = peer_imm_queue
        self._on_error = on_error
        self._on_credit = on_credit
        self._batch = WcBatch(256)
        self._slots = Gate(self._depth)
        self._credits = Gate(peer_imm_queue)
        self._pending: dict[int, asyncio.Future[WorkCompletion]] = {}
        self._wr_last = 0
        self._inbox: Mailbox[Immediate] = Mailbox()
        self._consumed = 0
        self._idle: asyncio.Future[None] | None = None
        self._lost: Exception | None = None

    @property
    def in_flight(self) -> int:
        """Writes handed over and not completed, cancelled ones included."""
        return len(self._pending)

    # -- writes ------------------------------------------------------------------------------

    async def write(self, wr: SendWr) -> WorkCompletion:
        """Wait for room, and for a credit when there is an immediate; post; wait for the end."""
        with_imm = wr.opcode is WrOpcode.RDMA_WRITE_WITH_IMM
        if with_imm:
            await self._credits.acquire()
        try:
            await self._slots.acquire()
        except BaseException:
            if with_imm:
                self._credits.release()
            raise
        return await self._post(wr)

    def next_id(self) -> int:
        """For a work request: no other has it."""
        self._wr_last += 1
        return self._wr_last

    def write_nowait(self, wr: SendWr) -> asyncio.Future[WorkCompletion]:
        """Post at once. MrcResourceError: no room, or no credit, now."""
        with_imm = wr.opcode is WrOpcode.RDMA_WRITE_WITH_IMM
        if with_imm and not self._credits.try_acquire():
            raise MrcResourceError(f"the peer has {self._peer_imm_queue} immediates unread")
        if not self._slots.try_acquire():
            if with_imm:
                self._credits.release()
            raise MrcResourceError(f"{self._depth} writes are in flight")
        return self._post(wr)

    def _post(self, wr: SendWr) -> asyncio.Future[WorkCompletion]:
        """Hand over. The permits are held by the caller; given back when it cannot be done."""
        first = not self._pending  # leaves at once; what follows gathers for the end of the pass
        try:
            self._slots.check()
            self._qp.post_at(wr, POST_NOW if first else POST_LATER)
        except BaseException:
            self._slots.release()
            if wr.opcode is WrOpcode.RDMA_WRITE_WITH_IMM:
                self._credits.release()
            raise
        done: asyncio.Future[WorkCompletion] = self._driver.loop.create_future()
        self._pending[wr.wr_id] = done
        if not first:
            self._driver.push_soon()
        return done

    async def drain(self, timeout: float | None) -> None:
        """Until every write handed over has completed, one way or the other."""
        async with limit(timeout, f"{len(self._pending)} writes did not complete"):
            while self._pending:
                if self._idle is None:
                    self._idle = self._driver.loop.create_future()
                await asyncio.shield(self._idle)

    # -- immediates --------------------------------------------------------------------------

    def add_credits(self, count: int) -> None:
        """The peer's application took that many immediates."""
        self._credits.release(count)

    async def receive_imm(self, timeout: float | None) -> Immediate:
        """The next immediate. When cancelled none is lost."""
        async with limit(timeout, "no immediate came"):
            item = await self._inbox.get()
        self._consumed += 1
        if self._consumed * 2 >= self._imm_queue and self._lost is None:
            count, self._consumed = self._consumed, 0
            self._qp.post_recv([RECV_ID] * count)
            self._on_credit(count)
        return item

    # -- completions -------------------------------------------------------------------------

    def on_completions(self) -> None:
        """Take all completions there are and settle what they belong to."""
        worst = WcStatus.SUCCESS
        while not self._cq.closed:
            batch = self._cq.poll(self._batch)
            for fields in batch.tuples():
                status = fields[4]
                if status and worst in (WcStatus.SUCCESS, WcStatus.WR_FLUSH_ERR):
                    worst = WcStatus(status)
                if not fields[0] & RECV_ID:
                    self._settle(fields)
                elif not status:
                    self._inbox.put(Immediate(fields[3], fields[2], bool(fields[6] & _SOLICITED)))
            if len(batch) < batch.size:
                break
        if worst is not WcStatus.SUCCESS:
            self._on_error(worst)

    def last_words(self) -> None:
        """Bad news came by another way: completions that say why are perhaps just behind it."""
        with suppress(OSError, MrcUsageError):  # closed or unusable: then there are none
            self._qp.ctx.pump.catch_up()
        self.on_completions()

    def _settle(self, fields: tuple[int, ...]) -> None:
        done = self._pending.pop(fields[0], None)
        if done is None:
            return
        self._slots.release()
        if not self._pending and self._idle is not None:
            self._idle.set_result(None)
            self._idle = None
        if done.done():  # cancelled: the completion is dropped
            return
        wc = work_completion(fields)
        if wc.status is WcStatus.SUCCESS:
            done.set_result(wc)
        elif wc.status is WcStatus.WR_FLUSH_ERR and self._lost is not None:
            done.set_exception(self._lost)
        else:
            done.set_exception(MrcWorkError(wc, "write"))

    # -- the end -----------------------------------------------------------------------------

    def refuse(self, exc: Exception) -> None:
        """No more writes; those handed over go on."""
        self._slots.fail(exc)
        self._credits.fail(exc)

    def finish(self, exc: Exception) -> None:
        """No more immediates will come; those that came can still be received."""
        self._inbox.fail(exc)

    def lose(self, exc: Exception) -> None:
        """All that waits fails; work in flight does with its completions."""
        if self._lost is None:
            self._lost = exc
        self._slots.fail(exc)
        self._credits.fail(exc)
        self._inbox.fail(exc)
