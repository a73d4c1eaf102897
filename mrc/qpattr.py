# SPDX-License-Identifier: BSD-2-Clause
"""Attributes of a queue pair, and which of them each transition needs or refuses (C.3).

The state table is C's (mrc_qp_attr.c); what is here says in words what C says with a number.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from ipaddress import IPv6Address
from typing import Any

from ._check import U32_MAX, bytes_of, whole
from ._typed import named
from ._verbs import HINT_NONE, QpMask, qp_rules
from .errors import MrcUsageError
from .types import MPR_MAX, PATH_MTUS, Access, QpCap, QpState, Recovery

__all__ = [
    "HINT_NONE",
    "QpAttr",
    "QpMode",
    "attr_of",
    "check",
    "mask_of",
    "plain",
    "refuse_verbs",
    "rules",
]


class QpMode(IntEnum):
    """MRC, or what it is compared with (ADR 95)."""

    MRC = 0
    RC = 1  # one EV, data taken in order only, go-back-N; for comparison only


@named
@dataclass(frozen=True, slots=True)
class QpAttr:
    """Attributes to set (None: leave) or found by a query. C.3 gives ranges and defaults.

    timeout: 0..24, 1.024 us x 2^n. linear_cnt 0..7, exp_cnt 0..25 (25: for ever), set together.
    mpr, mpr_dest: units of 128 PSNs. PSNs: 24 bits. train_max: 0 automatic, else 1..16 packets.
    sack_threshold: bytes, 0 the default (H7). src, dst, dport, dest_qpn, path_mtu form the
    address vector and are set together. timestamps: TSETH in every data packet, 4 bytes more (A.5,
    E.7). rx_paused: take no new data. rx_penalty: 0..127, at least that in every SACK; 255 never
    any (E.6). path and cc are ids of PathTable and Controller, hint that
    of a QpHint or HINT_NONE. vendor: 128 bytes, kept for the application. version: one bit of
    DeviceAttr.mrc_protocol_version, or 0, ours to choose. mode: both ends have the same; RC takes a
    path table of one EV.
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
    rx_paused: bool | None = None
    rx_penalty: int | None = None
    hint: int | None = None
    vendor: bytes | None = None
    version: int | None = None
    mode: QpMode | None = None

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
    "rx_paused": QpMask.RX_PAUSED,
    "rx_penalty": QpMask.RX_PENALTY,
    "hint": QpMask.HINT,
    "vendor": QpMask.VENDOR,
    "version": QpMask.VERSION,
    "mode": QpMask.MODE,
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
    "sack_threshold": (0, U32_MAX),
    "path": (0, U32_MAX),
    "cc": (0, U32_MAX),
    "hint": (0, U32_MAX),
    "version": (0, U32_MAX),
    "access": (0, 0xFF),
    "cap": (0, U32_MAX),
    "linear_cnt": (0, 7),
    "exp_cnt": (0, 25),
    "train_max": (0, 16),
    "timestamps": (0, 1),
    "recovery": (0, 2),
    "rx_paused": (0, 1),
    "rx_penalty": (0, 255),
    "mode": (0, 1),
}

# Attributes that are set together.
GROUPS = (("src", "dst", "dport", "dest_qpn", "path_mtu"), ("linear_cnt", "exp_cnt"))

_VENDOR_BYTES = 128

_NO_RNR = "MRC has no receiver-not-ready; max_wimm_dest limits immediates (B.8)"
_NO_READS = "MRC has no reads or atomics; mpr and mpr_dest limit packets in flight (B.12)"
_PATHS = "MRC sprays over the EVs of a path table; set path"
# Attributes of verbs that MRC refuses -> what there is instead (C.3).
_REFUSED = {
    "port_num": _PATHS + ", whose planes are the ports",
    "retry_cnt": "MRC has linear_cnt and exp_cnt (B.9)",
    "rnr_retry": _NO_RNR,
    "min_rnr_timer": _NO_RNR,
    "max_rd_atomic": _NO_READS,
    "max_dest_rd_atomic": _NO_READS,
    **dict.fromkeys(("alt_ah_attr", "alt_port_num", "alt_pkey_index", "alt_timeout"), _PATHS),
    "path_mig_state": _PATHS + "; there is no migration",
    "cur_qp_state": "a queue pair knows its state",
    "en_sqd_async_notify": "MRC has no SQD state",
    "qkey": "MRC queue pairs are connected; there is no q_key",
    "pkey_index": "the partition key is always 0xFFFF (H6)",
}


def mask_of(names: Any) -> int:
    """The C mask of these fields. MrcUsageError: no such field."""
    mask = 0
    for name in names:
        if name not in _MASK_OF:
            raise MrcUsageError(f"{name}: {_REFUSED.get(name, 'is no attribute of a queue pair')}")
        mask |= _MASK_OF[name]
    return mask


def _names(mask: int) -> tuple[str, ...]:
    return tuple(name for name, bit in _MASK_OF.items() if bit & mask)


def rules() -> dict[tuple[QpState, QpState], tuple[tuple[str, ...], tuple[str, ...]]]:
    """C.3: (from, to) -> fields required and fields optional; all others are refused.

    From a state to itself: without a transition. Any state may go to ERR or RESET, without fields.
    """
    return {
        (QpState(start), QpState(to)): (_names(required), _names(optional & ~required))
        for start, to, required, optional in qp_rules()
    }


_RULES = rules()


def refuse_verbs(given: dict[str, Any]) -> None:
    """MrcUsageError that names what MRC has instead of these verbs attributes."""
    for name in given:
        if name in _MASK_OF:
            raise MrcUsageError(f"{name}: goes into QpAttr")
        mask_of((name,))


def check(now: QpState, known: set[str], given: dict[str, Any]) -> None:
    """MrcUsageError when these fields cannot be set now. `known`: set since RESET."""
    _check_ranges(given)
    to = given.get("state", now)
    names = given.keys() - {"state"}
    if "state" in given and to in (QpState.ERR, QpState.RESET):
        if names:
            raise MrcUsageError(f"to {to.name} takes no attributes, got {_list(names)}")
        return
    rule = None if "state" in given and to is now else _RULES.get((now, to))
    if rule is None:
        if "state" in given:
            raise MrcUsageError(f"a queue pair cannot go from {now.name} to {to.name}")
        if names:
            raise MrcUsageError(f"in {now.name} nothing can be set, got {_list(names)}")
        return
    required, optional = rule
    what = f"{now.name} to {to.name}" if "state" in given else f"{now.name}"
    if refused := names - set(required) - set(optional):
        raise MrcUsageError(f"{what} does not take {_list(refused)}")
    if missing := [name for name in required if name not in names | known]:
        raise MrcUsageError(f"{what} needs {', '.join(missing)}")


def _list(names: Any) -> str:
    return ", ".join(sorted(names))


def _check_ranges(given: dict[str, Any]) -> None:
    for name, (low, high) in _RANGE.items():
        if name in given:
            whole(name, given[name], low, high)
    for name in ("src", "dst"):
        if name in given and not isinstance(given[name], IPv6Address):
            raise MrcUsageError(f"{name} {given[name]!r} is no IPv6Address")
    if "state" in given and not isinstance(given["state"], QpState):
        raise MrcUsageError(f"state {given['state']!r} is no QpState")
    if "path_mtu" in given and given["path_mtu"] not in PATH_MTUS:
        raise MrcUsageError(f"path MTU {given['path_mtu']} is not one of {PATH_MTUS}")
    if "vendor" in given:
        bytes_of("vendor", given["vendor"], _VENDOR_BYTES)
    for group in GROUPS:
        missing = [name for name in group if name not in given]
        if missing and len(missing) < len(group):
            raise MrcUsageError(f"{', '.join(group)} are set together; missing: {missing}")


def plain(given: dict[str, Any]) -> dict[str, Any]:
    """The values as C takes them."""
    return {name: _plain(value) for name, value in given.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, IPv6Address):
        return value.packed
    return value if isinstance(value, bytes) else int(value)


def attr_of(raw: dict[str, Any], names: Any) -> QpAttr:
    """The fields named, as found by a query; the others None."""
    convert: dict[str, Any] = {
        "state": QpState,
        "access": Access,
        "cap": QpCap,
        "timestamps": bool,
        "recovery": Recovery,
        "rx_paused": bool,
        "mode": QpMode,
        "src": IPv6Address,
        "dst": IPv6Address,
    }
    return QpAttr(**{name: convert.get(name, lambda v: v)(raw[name]) for name in names})
