# SPDX-License-Identifier: BSD-2-Clause
"""Calls into C for path tables and endpoint operations; errors as those of Pump."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from ._check import U32_MAX, whole
from ._core import NEVER, Pump, ev_event, ffi, fill, lib
from .planes import PlanePairs
from .types import EvEvent, EvState, PathPlanes, PathStats, ProbeResult

__all__ = ["Paths"]

_EVENT_BATCH = 256
_EV_STATES = tuple(EvState)
_in_order = attrgetter(*PathStats.__dataclass_fields__)  # state and backup are the last


def _fill_lane(native: Any, lane: tuple[int, int, bool, bytes]) -> None:
    ev, plane, backup, template = lane
    fill(native, {"ev": ev, "plane": plane, "backup": backup})
    native.tmpl_len = len(template)
    ffi.memmove(native.tmpl, template, len(template))


class Paths:
    """The calls of one pump."""

    __slots__ = ("_pump",)

    def __init__(self, pump: Pump) -> None:
        self._pump = pump

    def path_create(
        self,
        port: int,
        peer: Mapping[str, Any],
        cfg: Mapping[str, int],
        lanes: Sequence[tuple[int, int, bool, bytes]],
        addrs: PlanePairs = (),
    ) -> tuple[int, bytes]:
        """Lanes and path table; returns the path id and the source address in use.

        peer: src, dst (16 bytes), scope_id, dport. lanes: (ev, plane, backup, template). addrs:
        the ends of planes that have others than peer's.
        """
        native_peer = ffi.new("struct mrc_peer_addr *")
        native_cfg = ffi.new("struct mrc_path_cfg *")
        native_lanes = ffi.new("struct mrc_lane_cfg[]", len(lanes))
        src_out = ffi.new("uint8_t[16]")
        fill(native_peer, {k: list(v) if isinstance(v, bytes) else v for k, v in peer.items()})
        native_addrs = ffi.new("struct mrc_plane_addr[]", len(addrs))
        for one, (plane, own, theirs) in zip(native_addrs, addrs, strict=True):
            fill(one, {"plane": plane, "src": list(own.packed), "dst": list(theirs.packed)})
        fill(native_cfg, {**cfg, "count": len(lanes), "addr_count": len(addrs)})
        native_cfg.addrs = native_addrs
        for native, lane in zip(native_lanes, lanes, strict=True):
            _fill_lane(native, lane)
        rc = lib.mrc_pump_path_create(
            self._pump.ptr, port, native_peer, native_cfg, native_lanes, src_out
        )
        return self._pump.checked(rc, "path table"), bytes(src_out)

    def path_destroy(self, path: int) -> None:
        self._pump.checked(lib.mrc_pump_path_destroy(self._pump.ptr, path), "close path table")

    def path_events(self, path: int) -> list[EvEvent]:
        """The EV events of one table that nobody read; no queue pair uses it any more.

        The last may be no change but the drop count of those that were lost after all others.
        """
        out = ffi.new("struct mrc_ev_event[]", _EVENT_BATCH)
        found: list[EvEvent] = []
        while True:
            rc = lib.mrc_pump_path_events(self._pump.ptr, path, out, _EVENT_BATCH)
            n = self._pump.checked(rc, "close path table")
            found.extend(ev_event(out[i]) for i in range(n))
            if n < _EVENT_BATCH:
                return found

    def path_stats(self, path: int, count: int) -> list[PathStats]:
        out = ffi.new("struct mrc_path_stats[]", count)
        n = self._pump.checked(
            lib.mrc_pump_path_stats(self._pump.ptr, path, out, count), "path statistics"
        )
        return [_path_stats(out[i]) for i in range(min(n, count))]

    def path_rtt_anew(self, path: int) -> None:
        self._pump.checked(lib.mrc_pump_path_rtt_anew(self._pump.ptr, path), "path statistics")

    def path_set_state(self, path: int, ev: int, state: EvState) -> None:
        whole("EV", ev, 0, U32_MAX)
        rc = lib.mrc_pump_path_set_state(self._pump.ptr, path, ev, state)
        self._pump.checked(rc, f"EV {ev:#x} to {state.name}")

    def path_replace(
        self, path: int, ev: int, lane: tuple[int, int, bool, bytes], state: EvState
    ) -> None:
        """lane: as in path_create; its backup flag is not used."""
        native = ffi.new("struct mrc_lane_cfg *")
        _fill_lane(native, lane)
        rc = lib.mrc_pump_path_replace(self._pump.ptr, path, ev, native, state)
        self._pump.checked(rc, f"EV {ev:#x} to {lane[0]:#x}")

    def path_set_events(self, path: int, mask: int) -> None:
        self._pump.checked(lib.mrc_pump_path_set_events(self._pump.ptr, path, mask), "event mask")

    def path_set_planes(self, path: int, local_up: int, remote_up: int) -> None:
        for mask in (local_up, remote_up):
            whole("plane mask", mask, 0, U32_MAX)
        rc = lib.mrc_pump_path_set_planes(self._pump.ptr, path, local_up, remote_up)
        self._pump.checked(rc, "plane masks")

    def path_planes(self, path: int) -> PathPlanes:
        out = ffi.new("struct mrc_ep_planes *")
        self._pump.checked(lib.mrc_pump_path_planes(self._pump.ptr, path, out), "plane masks")
        return PathPlanes(out.local_up, out.remote_up, out.told, bool(out.pending))

    def set_planes(self, local_up: int) -> None:
        self._pump.checked(lib.mrc_pump_set_planes(self._pump.ptr, local_up), "plane masks")

    # -- endpoint operations -----------------------------------------------------------------

    def ep_post(self, requests: Sequence[Mapping[str, int]]) -> int:
        """How many EV probes were accepted, in order; 0 when there is no room."""
        native = ffi.new("struct mrc_ep_req[]", len(requests))
        for one, values in zip(native, requests, strict=True):
            fill(one, values)
        rc = lib.mrc_pump_ep_post(self._pump.ptr, native, len(requests))
        return 0 if rc == lib.MRC_ERR_FULL else self._pump.checked(rc, "EV probe")

    def ep_poll(self) -> list[tuple[int, ProbeResult]]:
        """(request id, result) of the EV probes that are over."""
        out = ffi.new("struct mrc_ep_rsp[]", lib.MRC_EP_PROBES)
        n = self._pump.checked(
            lib.mrc_pump_ep_poll(self._pump.ptr, out, lib.MRC_EP_PROBES), "EV probes"
        )
        return [
            (r.id, ProbeResult(r.ev, r.plane, rtt, r.port, bool(r.adjusted)))
            for r in (out[i] for i in range(n))
            for rtt in (None if r.rtt_ns == NEVER else r.rtt_ns,)
        ]


def _path_stats(s: Any) -> PathStats:
    """For each path of a table, many times a second: hence by place, not by name."""
    *counted, state, backup = _in_order(s)
    return PathStats(*(*counted, _EV_STATES[state], backup))
