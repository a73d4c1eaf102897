# SPDX-License-Identifier: BSD-2-Clause
"""Calls into C for what verbs users have beside queues: channels, events, hints, attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ._core import Pump, ffi, fill, lib

__all__ = ["API_VERSION", "HINT_NONE", "AsyncTuple", "QpMask", "Verbs", "device_attr", "qp_rules"]

API_VERSION: int = lib.MRC_API_VERSION
HINT_NONE: int = lib.MRC_HINT_NONE


class QpMask:
    """Bits of the modify mask, by the names of csrc/core/mrc_types.h."""

    STATE = lib.MRC_QP_STATE
    ACCESS = lib.MRC_QP_ACCESS
    AV = lib.MRC_QP_AV
    RQ_PSN = lib.MRC_QP_RQ_PSN
    SQ_PSN = lib.MRC_QP_SQ_PSN
    PATH = lib.MRC_QP_PATH
    CC = lib.MRC_QP_CC
    MPR = lib.MRC_QP_MPR
    MPR_DEST = lib.MRC_QP_MPR_DEST
    WIMM = lib.MRC_QP_WIMM
    WIMM_DEST = lib.MRC_QP_WIMM_DEST
    TIMEOUT = lib.MRC_QP_TIMEOUT
    RETRY = lib.MRC_QP_RETRY
    SACK = lib.MRC_QP_SACK
    TRAIN = lib.MRC_QP_TRAIN
    CAP = lib.MRC_QP_CAP
    RX_PAUSED = lib.MRC_QP_RX_PAUSED
    RX_PENALTY = lib.MRC_QP_RX_PENALTY
    TIMESTAMPS = lib.MRC_QP_TIMESTAMPS
    RECOVERY = lib.MRC_QP_RECOVERY
    HINT = lib.MRC_QP_HINT
    VENDOR = lib.MRC_QP_VENDOR
    VERSION = lib.MRC_QP_VERSION
    MODE = lib.MRC_QP_MODE


def device_attr() -> dict[str, int]:
    """What this build supports, by the names of struct mrc_device_attr."""
    out = ffi.new("struct mrc_device_attr *")
    lib.mrc_device_query(out)
    return _plain(out)


def qp_rules() -> list[tuple[int, int, int, int]]:
    """The rows of C.3: (from, to, mask of what is required, mask of what is optional)."""
    found: list[tuple[int, int, int, int]] = []
    while (rule := lib.mrc_qp_rule(len(found))) != ffi.NULL:
        found.append((getattr(rule, "from"), rule.to, rule.required, rule.optional))
    return found


def _plain(struct: Any) -> dict[str, int]:
    return {name: getattr(struct, name) for name in dir(struct) if not name.endswith("_")}


class AsyncTuple(NamedTuple):
    """struct mrc_async_event, its numbers uninterpreted."""

    time: int
    type: int
    id: int
    status: int
    plane: int
    drop_count: int


class Verbs:
    """The calls of one pump; errors as those of Pump."""

    __slots__ = ("_pump",)

    def __init__(self, pump: Pump) -> None:
        self._pump = pump

    # -- completion channels -----------------------------------------------------------------

    def channel_create(self) -> int:
        return self._pump.checked(lib.mrc_pump_channel_create(self._pump.ptr), "channel")

    def channel_destroy(self, channel: int) -> None:
        rc = lib.mrc_pump_channel_destroy(self._pump.ptr, channel)
        self._pump.checked(rc, "close completion channel")

    def channel_fd(self, channel: int) -> int:
        return self._pump.checked(lib.mrc_pump_channel_fd(self._pump.ptr, channel), "channel")

    def cq_channel(self, cq: int, channel: int) -> None:
        self._pump.checked(lib.mrc_pump_cq_channel(self._pump.ptr, cq, channel), "channel")

    def cq_arm(self, cq: int, solicited_only: bool) -> None:
        rc = lib.mrc_pump_cq_arm(self._pump.ptr, cq, int(solicited_only))
        self._pump.checked(rc, "arm completion queue")

    def cq_event(self, channel: int) -> int | None:
        """The next completion queue with an event, or None."""
        rc = lib.mrc_pump_cq_event(self._pump.ptr, channel)
        return None if rc == lib.MRC_ERR_NOENT else self._pump.checked(rc, "channel")

    def cq_ack(self, cq: int, count: int) -> None:
        rc = lib.mrc_pump_cq_ack(self._pump.ptr, cq, count)
        self._pump.checked(rc, "acknowledge completion events")

    # -- asynchronous events -----------------------------------------------------------------

    def async_take(self) -> AsyncTuple | None:
        e = ffi.new("struct mrc_async_event *")
        if not self._pump.checked(lib.mrc_pump_async_take(self._pump.ptr, e), "events"):
            return None
        return AsyncTuple(e.time, e.type, e.id, e.status, e.plane, e.drop_count)

    def async_ack(self, count: int) -> None:
        self._pump.checked(lib.mrc_pump_async_ack(self._pump.ptr, count), "acknowledge events")

    # -- hints, attributes -------------------------------------------------------------------

    def hint_create(self, values: Mapping[str, Any], mask: int) -> int:
        rc = lib.mrc_pump_hint_create(self._pump.ptr, self._hint(values, mask))
        return self._pump.checked(rc, "queue pair hint")

    def hint_modify(self, hint: int, values: Mapping[str, Any], mask: int) -> None:
        rc = lib.mrc_pump_hint_modify(self._pump.ptr, hint, self._hint(values, mask))
        self._pump.checked(rc, "modify queue pair hint")

    @staticmethod
    def _hint(values: Mapping[str, Any], mask: int) -> Any:
        native = ffi.new("struct mrc_qp_hint *")
        fill(native, {**values, "mask": mask})
        return native

    def hint_query(self, hint: int) -> dict[str, Any]:
        out = ffi.new("struct mrc_qp_hint *")
        self._pump.checked(lib.mrc_pump_hint_query(self._pump.ptr, hint, out), "queue pair hint")
        return _plain(out) | {"vendor": bytes(out.vendor)}

    def hint_destroy(self, hint: int) -> None:
        rc = lib.mrc_pump_hint_destroy(self._pump.ptr, hint)
        self._pump.checked(rc, "close queue pair hint")

    def query(self) -> dict[str, int]:
        out = ffi.new("struct mrc_device_attr *")
        self._pump.checked(lib.mrc_pump_query(self._pump.ptr, out), "device attributes")
        return _plain(out)
