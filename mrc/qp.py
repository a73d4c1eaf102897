# SPDX-License-Identifier: BSD-2-Clause
"""QueuePair: its states and attributes (C.3), and posting work to it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from ._check import whole
from ._children import Owned
from ._core import records
from ._typed import check_fields, named, typed
from ._verbs import QpMask
from .cq import CompletionQueue
from .errors import MrcResourceError, MrcUsageError
from .pd import ProtectionDomain
from .qpattr import QpAttr, attr_of, check, mask_of, plain, refuse_verbs
from .types import MPR_MAX, QpState, QpStats, SendFlags, WrOpcode

__all__ = ["QpAttr", "QpInitAttr", "QueuePair", "SendBatch", "SendWr"]

_BATCH_MAX = 1 << 20
_SEND_WR = struct.Struct("=QQQIIIIBB6x")  # struct mrc_send_wr


@named
@dataclass(frozen=True, slots=True)
class QpInitAttr:
    """Sizes fixed when the queue pair is made.

    sq_depth, rq_depth: work requests. mpr_max: largest MPR of either role, units of 128 PSNs
    (1..64). max_wimm_dest: immediates in flight towards this side. ev_max: largest path table.
    """

    sq_depth: int = 64
    rq_depth: int = 64
    mpr_max: int = MPR_MAX
    max_wimm_dest: int = 64
    ev_max: int = 256

    def __post_init__(self) -> None:
        check_fields(self)


class SendWr(NamedTuple):
    """One work request: `length` bytes from `laddr` (inside the region of lkey) to `raddr`."""

    wr_id: int
    laddr: int
    raddr: int
    length: int
    lkey: int
    rkey: int
    imm: int = 0
    opcode: WrOpcode = WrOpcode.RDMA_WRITE
    flags: SendFlags = SendFlags.SIGNALED


class SendBatch:
    """Work requests packed side by side: posting them is one call, again and again the same.

    It begins as `size` (1..2^20) empty requests; put() fills them in. For one thread at a time:
    whoever fills it in while another posts it posts what is half filled in.
    """

    __slots__ = ("_bytes", "array", "size")

    def __init__(self, size: int) -> None:
        self.size = whole("size of a batch", size, 1, _BATCH_MAX)
        self.array, self._bytes = records("mrc_send_wr", size)

    def put(self, index: int, wr: SendWr) -> None:
        """MrcUsageError when a field does not fit, or the batch has no such place."""
        if index != 0:
            whole("index", index, 0, self.size - 1)
        try:
            _SEND_WR.pack_into(self._bytes, index * _SEND_WR.size, *wr)
        except (struct.error, TypeError) as exc:
            what = f"a field of work request {wr!r:.200}"
            raise MrcUsageError(f"{what} is out of range: {exc}") from exc


class QueuePair(Owned):
    """One queue pair, made in RESET. Both completion queues may be the same."""

    @typed
    def __init__(
        self,
        pd: ProtectionDomain,
        send_cq: CompletionQueue,
        recv_cq: CompletionQueue,
        init: QpInitAttr | None = None,
    ) -> None:
        pd.require_open()
        for cq in (send_cq, recv_cq):
            cq.require_open()
            if cq.ctx is not pd.ctx:
                raise MrcUsageError("queue pair and completion queue belong to different contexts")
        self.pd = pd
        self.ctx = pd.ctx
        self.init = init or QpInitAttr()
        self.send_cq = send_cq
        self.recv_cq = recv_cq
        self.qpn = pd.ctx.pump.qp_create(
            pd=pd.number,
            send_cq=send_cq.number,
            recv_cq=recv_cq.number,
            **{f.name: getattr(self.init, f.name) for f in fields(self.init)},
        )
        self._closed = False
        self._spare: list[SendBatch] = []  # batches of one that nobody is posting at the moment
        self._known: set[str] = set()  # attributes set since RESET
        for owner in (pd.qps, send_cq.qps, recv_cq.qps):
            owner.add(self)

    # -- state -------------------------------------------------------------------------------

    @typed
    def modify(self, attr: QpAttr | None = None, **verbs: Any) -> None:
        """Set what is not None; the tables of docs/reference/queue-pair.md say what may be when.

        To RESET the queue pair gets a new number, so that packets of its former life find nobody.
        MrcUsageError: a transition C.3 does not have, an attribute it needs missing or does not
        take, a value out of range, or an attribute of verbs that MRC refuses; nothing is changed
        then.
        """
        self._require_open()
        refuse_verbs(verbs)
        given = {f.name: getattr(attr, f.name) for f in fields(QpAttr)} if attr else {}
        given = {name: value for name, value in given.items() if value is not None}
        check(self.state, self._known, given)
        number = self.ctx.pump.qp_modify(self.qpn, plain(given), mask_of(given))
        self._known |= given.keys()
        if number:
            self.qpn = number
            self._known.clear()

    @typed
    def query(self, *names: str) -> QpAttr:
        """These attributes as they are now, by default all; the others are None.

        Possible in every state. MrcUsageError: no such attribute.
        """
        self._require_open()
        wanted = names or tuple(f.name for f in fields(QpAttr))
        return attr_of(self.ctx.pump.qp_query(self.qpn, mask_of(wanted)), wanted)

    @property
    def state(self) -> QpState:
        """The state it is in now; errors change it without the application."""
        self._require_open()
        return QpState(self.ctx.pump.qp_query(self.qpn, QpMask.STATE)["state"])

    def stats(self) -> QpStats:
        """Counters and the present window."""
        self._require_open()
        return self.ctx.pump.qp_stats(self.qpn)

    # -- work --------------------------------------------------------------------------------

    def post_send(self, wrs: Sequence[SendWr] | SendWr | SendBatch, *, first: int = 0) -> int:
        """Hand over work, in RTS. Returns how many were taken, in order.

        A SendBatch is handed over as it is packed, from request `first` on: for small writes, whose
        packing costs more than their sending.

        MrcResourceError: none, the queue is full. MrcUsageError: wrong state, bad key or bounds.
        """
        self._require_open()
        if isinstance(wrs, SendBatch):
            return self._post(wrs, first, wrs.size - whole("first", first, 0, wrs.size))
        if first != 0:
            raise MrcUsageError("first is for a SendBatch")
        if isinstance(wrs, SendWr):
            return self._post_one(wrs)
        try:
            count = len(wrs)
        except TypeError:
            raise MrcUsageError(f"wrs {wrs!r:.60} is no list of SendWr") from None
        batch = SendBatch(max(count, 1))
        for index, wr in enumerate(wrs):
            batch.put(index, wr)
        return self._post(batch, 0, count)

    def _post_one(self, wr: SendWr) -> int:
        batch = self._spare_batch()
        try:
            batch.put(0, wr)
            return self._post(batch, 0, 1)
        finally:
            self._spare.append(batch)

    def _spare_batch(self) -> SendBatch:
        """One that no other thread uses: C reads it without the interpreter's lock."""
        try:
            return self._spare.pop()
        except IndexError:
            return SendBatch(1)

    def post_at(self, wr: SendWr, when: int) -> None:
        """For connections: this one POST_NOW or POST_LATER, and Pump.push() or turn() follows."""
        self._require_open()
        batch = self._spare_batch()
        try:
            batch.put(0, wr)
            if not self.ctx.pump.post(self.qpn, batch.array, when):
                raise MrcResourceError(f"send queue of QP {self.qpn} is full")
        finally:
            self._spare.append(batch)

    def _post(self, batch: SendBatch, first: int, count: int) -> int:
        taken = self.ctx.pump.post_send(self.qpn, batch.array + first, count)
        if taken == 0 and count > 0:
            raise MrcResourceError(f"send queue of QP {self.qpn} is full")
        return taken

    def post_recv(self, wr_ids: Sequence[int]) -> int:
        """Receives for immediates, from INIT on. Returns how many were taken, in order.

        MrcResourceError: none, the queue is full.
        """
        self._require_open()
        taken = self.ctx.pump.post_recv(self.qpn, wr_ids)
        if taken == 0 and wr_ids:
            raise MrcResourceError(f"receive queue of QP {self.qpn} is full")
        return taken

    # -- life --------------------------------------------------------------------------------

    def close(self) -> None:
        """Flush what is outstanding into the completion queues, then go. Twice is once."""
        if self._closed:
            return
        if not self.ctx.closed:
            self.ctx.pump.qp_destroy(self.qpn)
        self._closed = True
        for owner in (self.pd.qps, self.send_cq.qps, self.recv_cq.qps):
            owner.discard(self)

    def _require_open(self) -> None:
        if self._closed:
            raise MrcUsageError("the queue pair is closed")

    def __repr__(self) -> str:
        return f"<QueuePair {self.qpn:#x}>"
