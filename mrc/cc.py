# SPDX-License-Identifier: BSD-2-Clause
"""Congestion control: CcProfile, NsccConfig, and the Controller of one destination (E)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from ._check import U32_MAX, real, whole
from ._children import Owned
from ._typed import check_fields, named, typed
from .device import Context
from .errors import MrcUsageError
from .types import PATH_MTUS, CcKind, CcState

__all__ = ["CcInfo", "CcProfile", "Controller", "NsccConfig"]

_NO_LIMIT = 2**64 - 1

# Bounds of mrc_cc.c and mrc_nscc.c, by the names that they have here.
_RTT_MAX_NS = 10 * 10**9
_BYTES_MAX = 1 << 40
_WHOLE = {
    "base_rtt": _RTT_MAX_NS,
    "target_delay": _RTT_MAX_NS,
    "max_cwnd": _BYTES_MAX,
    "adjust_bytes_threshold": U32_MAX,
    "adjust_period_threshold": _RTT_MAX_NS,
    "qa_threshold": 2**64 - 1,
}
_REAL = {
    "qa_gate": 32.0,
    "eta": 1e12,
    "fi": 1e12,
    "fi_scale": 1e6,
    "gamma": 1.0,
    "max_md_jump": 1.0,
}
_NETWORK = {"link_bps": 10**13, "base_rtt_ns": _RTT_MAX_NS, "window": _BYTES_MAX}


@named
@dataclass(frozen=True, slots=True)
class NsccConfig:
    """Parameters by their API names (C.5, E.4); 0 derives the default from rate and base RTT.

    Times in ns, up to 10 s (qa_threshold: any), max_cwnd (up to 2**40), adjust_bytes_threshold, fi
    and eta in bytes, qa_gate as log2, up to 32, gamma and max_md_jump up to 1. check() and whatever
    takes it: MrcUsageError names what is out of range.
    """

    base_rtt: int = 0
    target_delay: int = 0
    max_cwnd: int = 0
    adjust_bytes_threshold: int = 0
    adjust_period_threshold: int = 0
    qa_threshold: int = 0
    qa_gate: float = 0.0
    eta: float = 0.0
    fi: float = 0.0
    fi_scale: float = 0.0
    gamma: float = 0.0
    max_md_jump: float = 0.0
    disable_qa: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    def check(self) -> None:
        """MrcUsageError: a parameter is no number, or out of range."""
        for name, high in _WHOLE.items():
            whole(name, getattr(self, name), 0, high)
        for name, limit in _REAL.items():
            real(name, getattr(self, name), limit)
        if 0 < self.max_cwnd < PATH_MTUS[0]:
            raise MrcUsageError(f"max_cwnd {self.max_cwnd} holds no packet of any path MTU")


@named
@dataclass(frozen=True, slots=True)
class CcProfile:
    """Which controller, for what network.

    link_bps: rate of the slower of the two hosts, bit/s; 0: 10 Gbit/s. base_rtt_ns: round trip of a
    full packet over the longest idle path; 0: not known, NSCC then keeps the scale of a software
    stack, 500 us (ADR 13). window: bytes in flight, of FIXED always, of NSCC at most, up to 2**40;
    0 derives it.
    trimming: the fabric trims. steady: the window grows by no more in a round trip of milliseconds
    than in one of 12 us; the better choice where hosts are software (ADR 76). Always so while the
    round trip is not known. origin: the managed profile it is of (C.5).
    """

    kind: CcKind = CcKind.NSCC
    link_bps: int = 0
    base_rtt_ns: int = 0
    window: int = 0
    trimming: bool = False
    nscc: NsccConfig = field(default_factory=NsccConfig)
    steady: bool = False
    origin: object | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        for name, high in _NETWORK.items():
            whole(name, getattr(self, name), 0, high)
        if self.kind is CcKind.FIXED and self.window < 1:
            raise MrcUsageError("a fixed window needs its size in bytes")
        self.nscc.check()

    def native(self, path_mtu: int) -> dict[str, int | float | bool]:
        """The fields of struct mrc_cc_cfg."""
        n = self.nscc
        return {
            "kind": int(self.kind),
            "trimming": self.trimming,
            "disable_qa": n.disable_qa,
            "mtu_bytes": path_mtu,
            "link_bps": self.link_bps,
            "base_rtt_ns": n.base_rtt or self.base_rtt_ns,
            "target_delay_ns": n.target_delay,
            "fi": n.fi,
            "fi_scale": n.fi_scale,
            "eta": n.eta,
            "gamma": n.gamma,
            "max_md_jump": n.max_md_jump,
            "qa_gate": n.qa_gate,
            "qa_threshold_ns": n.qa_threshold,
            "max_cwnd_bytes": n.max_cwnd or self.window,
            "adjust_bytes": n.adjust_bytes_threshold,
            "adjust_period_ns": n.adjust_period_threshold,
            "steady": self.steady,
        }


@dataclass(frozen=True, slots=True)
class CcInfo:
    """A controller and its queue pairs, now (E.2, E.5): state, and sums over the queue pairs.

    cwnd_bytes and max_wnd_bytes: window and its ceiling, None without congestion control.
    inflight_bytes: nominal sizes, may be slightly negative (E.1). backlog_bytes: payload posted
    that has not left a first time. waiting_rtx packets of rtx_bytes wait to leave again.
    """

    state: CcState
    cwnd_bytes: int | None
    max_wnd_bytes: int | None
    inflight_bytes: int
    inflight_pkts: int
    backlog_bytes: int
    waiting_rtx: int
    rtx_bytes: int
    base_rtt_ns: int
    avg_delay_ns: int
    qps: int


_INFO_FIELDS = tuple(f.name for f in fields(CcInfo))


class Controller(Owned):
    """The controller of one destination, shared by the queue pairs to it (QPCC, E.5, H42).

    path_mtu: of the queue pair it is made for, bytes; one window packet, and the unit of the
    derived parameters (E.4). Queue pairs with another path MTU may share it.
    """

    @typed
    def __init__(self, ctx: Context, profile: CcProfile, path_mtu: int) -> None:
        if path_mtu not in PATH_MTUS:
            raise MrcUsageError(f"path MTU {path_mtu} is not one of {PATH_MTUS}")
        window = profile.nscc.max_cwnd or profile.window
        if profile.kind is CcKind.NSCC and 0 < window < path_mtu:
            raise MrcUsageError(f"a window of {window} bytes is less than the path MTU {path_mtu}")
        self.ctx = ctx
        self.profile = profile
        self.number = ctx.pump.cc_create(profile.native(path_mtu))
        self._closed = False
        ctx.controllers.add(self)

    def query(self) -> CcInfo:
        """State and counts now. Walks the send queues: for a display, not for each packet."""
        values: dict[str, Any] = self.ctx.pump.cc_query(self.number, _INFO_FIELDS)
        for name in ("cwnd_bytes", "max_wnd_bytes"):
            if values[name] == _NO_LIMIT:
                values[name] = None
        values["state"] = CcState(values["state"])
        return CcInfo(**values)

    def close(self) -> None:
        """MrcUsageError while a queue pair uses it. Twice is once."""
        if self._closed:
            return
        if not self.ctx.closed:
            self.ctx.pump.cc_destroy(self.number)
        self._closed = True
        self.ctx.controllers.discard(self)
