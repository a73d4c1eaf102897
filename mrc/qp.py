# SPDX-License-Identifier: BSD-2-Clause
"""QueuePair: its states and attributes (C.3), and posting work to it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, fields
from ipaddress import IPv6Address
from typing import Any, NamedTuple

from ._children import Owned
from ._core import QpMask, records
from .cq import CompletionQueue
from .errors import MrcResourceError, MrcUsageError
from .pd import ProtectionDomain
from .types import (
    MPR_MAX,
    PATH_MTUS,
    Access,
    QpCap,
    QpState,
    QpStats,
    Recovery,
    SendFlags,
    WrOpcode,
)

__all__ = ["QpAttr", "QpInitAttr", "QueuePair", "SendBatch", "SendWr"]

_SEND_WR = struct.Struct("=QQQIIIIBB6x")  # struct mrc_send_wr


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


@dataclass(frozen=True, slots=True)
class QpAttr:
    """Attributes to set (None: leave) or found by a query. C.3 gives ranges and defaults.

    timeout: 0..24, 1.024 us x 2^n. linear_cnt 0..7, exp_cnt 0..25 (25: for ever), set together.
    mpr, mpr_dest: units of 128 PSNs. PSNs: 24 bits. train_max: 0 automatic, else 1..16 packets.
    sack_threshold: bytes, 0 the default (H7). src, dst, dport, dest_qpn, path_mtu form the
    address vector and are set together. path and cc are ids of PathTable and Controller.
    timestamps: TSETH in every data packet, 4 bytes more (A.5, E.7); before RTS only.
    """

    state: QpState | None = None
    access: Access | None = None
    src: IPv6Address | None = None
    dst: IPv6Address | None = None
    dport: int | None = None
    dest_qpn: int | None = None
    path_mtu: int | None = None
    rq_psn: int | None = None
    sq_psn: int | None = None
    path: int | None = None
    cc: int | None = None
    mpr: int | None = None
    mpr_dest: int | None = None
    max_wimm: int | None = None
    max_wimm_dest: int | None = None
    timeout: int | None = None
    linear_cnt: int | None = None
    exp_cnt: int | None = None
    sack_threshold: int | None = None
    train_max: int | None = None
    cap: QpCap | None = None
    timestamps: bool | None = None
    recovery: Recovery | None = None

    def __str__(self) -> str:
        given = [(f.name, getattr(self, f.name)) for f in fields(self)]
        return "\n".join(f"{name:<16}: {value}" for name, value in given if value is not None)


_MASK_OF = {
    "state": QpMask.STATE,
    "access": QpMask.ACCESS,
    **dict.fromkeys(("src", "dst", "dport", "dest_qpn", "path_mtu"), QpMask.AV),
    "rq_psn": QpMask.RQ_PSN,
    "sq_psn": QpMask.SQ_PSN,
    "path": QpMask.PATH,
    "cc": QpMask.CC,
    "mpr": QpMask.MPR,
    "mpr_dest": QpMask.MPR_DEST,
    "max_wimm": QpMask.WIMM,
    "max_wimm_dest": QpMask.WIMM_DEST,
    "timeout": QpMask.TIMEOUT,
    "linear_cnt": QpMask.RETRY,
    "exp_cnt": QpMask.RETRY,
    "sack_threshold": QpMask.SACK,
    "train_max": QpMask.TRAIN,
    "cap": QpMask.CAP,
    "timestamps": QpMask.TIMESTAMPS,
    "recovery": QpMask.RECOVERY,
}

# (from, to) -> attributes needed, given with it or before (C.3). Any state may go to ERR or RESET.
_REQUIRED: dict[tuple[QpState, QpState], tuple[str, ...]] = {
    (QpState.RESET, QpState.INIT): ("access",),
    (QpState.INIT, QpState.RTR): (
        *("src", "dst", "dport", "dest_qpn", "path_mtu", "rq_psn"),
        *("path", "mpr_dest", "max_wimm_dest"),
    ),
    (QpState.RTR, QpState.RTS): (
        *("sq_psn", "cc", "mpr", "max_wimm", "timeout", "linear_cnt", "exp_cnt"),
    ),
}

# Field -> (lowest, highest) of what a caller may give.
_RANGE = {
    "dport": (1, 0xFFFF),
    "dest_qpn": (3, 0xFFFFFF),  # 0, 1 and 2 are never handed out (A.4)
    "rq_psn": (0, 0xFFFFFF),
    "sq_psn": (0, 0xFFFFFF),
    "mpr": (1, MPR_MAX),
    "mpr_dest": (1, MPR_MAX),
    "max_wimm": (1, 0xFFFF),
    "max_wimm_dest": (1, 0xFFFF),
    "timeout": (0, 24),
    "linear_cnt": (0, 7),
    "exp_cnt": (0, 25),
    "train_max": (0, 16),
    "timestamps": (0, 1),
    "recovery": (0, 2),
}


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
    """Work requests packed side by side, so that posting them is one call."""

    __slots__ = ("_bytes", "array", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.array, self._bytes = records("mrc_send_wr", size)

    def put(self, index: int, wr: SendWr) -> None:
        """MrcUsageError when a field does not fit."""
        try:
            _SEND_WR.pack_into(self._bytes, index * _SEND_WR.size, *wr)
        except struct.error as exc:
            raise MrcUsageError(f"a field of {wr} is out of range: {exc}") from exc


class QueuePair(Owned):
    """One queue pair, made in RESET. Both completion queues may be the same."""

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
        self._one = SendBatch(1)
        self._known: set[str] = set()  # attributes set since RESET
        for owner in (pd.qps, send_cq.qps, recv_cq.qps):
            owner.add(self)

    # -- state -------------------------------------------------------------------------------

    def modify(self, attr: QpAttr) -> None:
        """Set what is not None.

        MrcUsageError: a transition C.3 does not have, an attribute it needs missing, a value out
        of range; nothing is changed then.
        """
        self._require_open()
        given = {f.name: getattr(attr, f.name) for f in fields(attr)}
        given = {name: value for name, value in given.items() if value is not None}
        _check_ranges(given)
        if attr.state is not None:
            _check_transition(self.state, attr.state, self._known | given.keys())
        mask = 0
        for name in given:
            mask |= _MASK_OF[name]
        self.ctx.pump.qp_modify(self.qpn, {k: _plain(v) for k, v in given.items()}, mask)
        self._known |= given.keys()
        if attr.state is QpState.RESET:
            self._known.clear()

    def query(self) -> QpAttr:
        """All attributes as they are now; possible in every state."""
        self._require_open()
        raw = self.ctx.pump.qp_query(self.qpn)
        values: dict[str, Any] = {f.name: raw[f.name] for f in fields(QpAttr)}
        values["state"] = QpState(values["state"])
        values["access"] = Access(values["access"])
        values["cap"] = QpCap(values["cap"])
        values["timestamps"] = bool(values["timestamps"])
        values["recovery"] = Recovery(values["recovery"])
        values["src"] = IPv6Address(values["src"])
        values["dst"] = IPv6Address(values["dst"])
        return QpAttr(**values)

    @property
    def state(self) -> QpState:
        """The state it is in now; errors change it without the application."""
        self._require_open()
        return QpState(self.ctx.pump.qp_query(self.qpn)["state"])

    def stats(self) -> QpStats:
        """Counters and the present window."""
        self._require_open()
        return self.ctx.pump.qp_stats(self.qpn)

    # -- work --------------------------------------------------------------------------------

    def post_send(self, wrs: Sequence[SendWr] | SendWr) -> int:
        """Hand over work, in RTS. Returns how many were taken, in order.

        MrcResourceError: none, the queue is full. MrcUsageError: wrong state, bad key or bounds.
        """
        self._require_open()
        if isinstance(wrs, SendWr):
            batch, count = self._one, 1
            batch.put(0, wrs)
        else:
            batch, count = SendBatch(max(len(wrs), 1)), len(wrs)
            for index, wr in enumerate(wrs):
                batch.put(index, wr)
        taken = self.ctx.pump.post_send(self.qpn, batch.array, count)
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


def _plain(value: Any) -> Any:
    return value.packed if isinstance(value, IPv6Address) else int(value)


def _check_ranges(given: dict[str, Any]) -> None:
    for name, (low, high) in _RANGE.items():
        if name in given and not low <= given[name] <= high:
            raise MrcUsageError(f"{name} {given[name]} is not in {low}..{high}")
    if "path_mtu" in given and given["path_mtu"] not in PATH_MTUS:
        raise MrcUsageError(f"path MTU {given['path_mtu']} is not one of {PATH_MTUS}")
    for group in (("src", "dst", "dport", "dest_qpn", "path_mtu"), ("linear_cnt", "exp_cnt")):
        missing = [name for name in group if name not in given]
        if missing and len(missing) < len(group):
            raise MrcUsageError(f"{', '.join(group)} are set together; missing: {missing}")


def _check_transition(now: QpState, to: QpState, given: set[str]) -> None:
    if to in (QpState.ERR, QpState.RESET):
        return
    required = _REQUIRED.get((now, to))
    if required is None:
        raise MrcUsageError(f"a queue pair cannot go from {now.name} to {to.name}")
    missing = [name for name in required if name not in given]
    if missing:
        raise MrcUsageError(f"{now.name} to {to.name} needs {', '.join(missing)}")
