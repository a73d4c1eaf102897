# SPDX-License-Identifier: BSD-2-Clause
"""Endpoint operations of a context (F.1): EV probes, and which planes are in use here.

Both need no queue pair. A peer is whoever a path table leads to; probes of strangers are not
answered.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from ._check import whole
from ._core import Pump
from ._paths import Paths
from ._typed import typed
from .errors import MrcResourceError, MrcUsageError
from .types import PLANE_MAX, PLANES_ALL, ProbeResult

__all__ = ["CONTROL_CLASS", "ID_MAX", "IN_FLIGHT", "Endpoint", "Pace"]

CONTROL_CLASS = 0xFF  # request class: the control class, whatever its DSCP
_IDS = 0xF000  # from here on they are the engine's (D.8)
ID_MAX = _IDS - 1
# An id is used again no sooner than this, so that no answer to the former request is on its way.
_ID_REST_NS = 1_000_000_000
_TIMEOUT_MAX_NS = 60_000_000_000
# A peer answers a burst of 256 requests and then one in 10 us (mrc_ep.h); what is above that is
# dropped. Half of the burst and half of the pace leave room for probes that bunch on their way.
IN_FLIGHT = 128
_PACE_NS = 20_000


class Pace:
    """How fast requests may follow each other: IN_FLIGHT at once, then one in 20 us.

    Times in ns of the context's clock.
    """

    __slots__ = ("_until",)

    def __init__(self) -> None:
        self._until = 0

    def early(self, now: int) -> int:
        """For how long nothing more may be sent, or the peer would not answer it; 0: for none."""
        return max(0, self._until - now - (IN_FLIGHT - 1) * _PACE_NS)

    def sent(self, now: int) -> None:
        """One more is on its way."""
        self._until = max(self._until, now) + _PACE_NS


class Endpoint:
    """Made by the context; see Context.endpoint."""

    __slots__ = (
        "_allowed",
        "_calls",
        "_carried",
        "_next_id",
        "_round_ns",
        "in_use",
        "pace",
        "planes_up",
    )

    def __init__(self, pump: Pump) -> None:
        self._calls = Paths(pump)
        self._next_id = 0
        self.pace = Pace()  # of all who send: a peer counts them together
        self.in_use: set[int] = set()  # ids that wait for a result, or that a call will use
        self._round_ns: int | None = None
        self._allowed = PLANES_ALL
        self._carried = PLANES_ALL
        self.planes_up = PLANES_ALL

    def set_plane(self, plane: int, *, up: bool) -> None:
        """Use a plane no longer, or again, on all path tables; the peers are told (D.7)."""
        whole("plane", plane, 1, PLANE_MAX)
        self._allowed = _with(self._allowed, plane, up=up)
        self._apply()

    def allowed(self, plane: int) -> bool:
        """Whether set_plane() left the plane in use, whatever its carrier."""
        return bool(self._allowed >> plane & 1)

    def set_carrier(self, plane: int, *, up: bool) -> None:
        """The link of a plane, 1..31, went or came back; used is what is also allowed."""
        self._carried = _with(self._carried, plane, up=up)
        self._apply()

    def _apply(self) -> None:
        mask = self._allowed & self._carried
        if mask != self.planes_up:
            self._calls.set_planes(mask)
            self.planes_up = mask

    @typed
    def post(
        self,
        path: int,
        evs: Sequence[int],
        *,
        timeout_ns: int,
        dscp: int = CONTROL_CLASS,
        service_time: bool = False,
    ) -> list[int]:
        """Send an EV probe on each of these EVs of a path table (C.7); the ids of those accepted.

        Each gives one result, answered or not, timeout_ns (above 0, at most 60 s) from now at the
        latest. dscp: the request class, 0..63. service_time: the peer has agreed to correct the
        timestamp it reflects (H11), so that its time to answer can be taken off.

        MrcUsageError: no such path or EV. MrcResourceError: ids used up.
        """
        whole("timeout in ns", timeout_ns, 1, _TIMEOUT_MAX_NS)
        if not 0 <= dscp < 64 and dscp != CONTROL_CLASS:
            raise MrcUsageError(f"request class {dscp} is not a DSCP in 0..63")
        ids = [(self._next_id + i) % _IDS for i in range(len(evs))]
        if self._next_id + len(evs) > _IDS:
            now = time.monotonic_ns()
            if self._round_ns is not None and now - self._round_ns < _ID_REST_NS:
                raise MrcResourceError("request ids are used up for the moment")
            self._round_ns = now
        requests = [
            {
                "timeout_ns": timeout_ns,
                "path": path,
                "ev": ev,
                "id": number,
                "dscp": dscp,
                "service_time": service_time,
            }
            for ev, number in zip(evs, ids, strict=True)
        ]
        accepted = self._calls.ep_post(requests) if requests else 0
        self._next_id = (self._next_id + accepted) % _IDS
        self.in_use.update(ids[:accepted])
        return ids[:accepted]

    @staticmethod
    def possible(timeout_ns: int, dscp: int) -> bool:
        """Whether a request may have this timeout and class."""
        return 1 <= timeout_ns <= _TIMEOUT_MAX_NS and (0 <= dscp < 64 or dscp == CONTROL_CLASS)

    def post_one(
        self,
        path: int,
        ev: int,
        number: int,
        *,
        timeout_ns: int,
        dscp: int,
        service_time: bool = False,
        port_status: int | None = None,
    ) -> bool:
        """One request under an id of the caller's; false: no room now.

        port_status: an update with this mask instead of a probe. MrcUsageError: no such path or
        EV, or the id waits for an answer of the same node.
        """
        request = {
            "timeout_ns": timeout_ns,
            "path": path,
            "ev": ev,
            "id": number,
            "dscp": dscp,
            "service_time": int(service_time),
            "port_status": int(port_status is not None),
            "port_status_mask": port_status or 0,
        }
        posted = self._calls.ep_post([request]) == 1
        if posted:
            self.in_use.add(number)
        return posted

    def poll(self) -> list[tuple[int, ProbeResult]]:
        """(id, result) of the probes that are over since the last call."""
        found = self._calls.ep_poll()
        self.in_use.difference_update(number for number, _ in found)
        return found


def _with(mask: int, plane: int, *, up: bool) -> int:
    return mask | 1 << plane if up else mask & ~(1 << plane)
