# SPDX-License-Identifier: BSD-2-Clause
"""PathTable: the EVs of a profile towards one peer, as lanes of a port, with their states."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address

from ._check import U32_MAX, whole
from ._children import Owned
from ._paths import Paths
from ._typed import check_fields, named, typed
from .ev import EventMask, EvEntry, EvProfile
from .headers import outer_templates
from .planes import PlanePairs
from .port import Port
from .types import Backend, EvState, PathPlanes, PathStats

__all__ = ["PathTable", "ProbeConfig"]

_NO_EVENTS = 8  # MRC_EV_EVENTS_NONE; there 0 means all


@named
@dataclass(frozen=True, slots=True)
class ProbeConfig:
    """How an ASSUMED_BAD path is tested (F.2). Intervals double from first to last; ns.

    `timeout_ns` is the least time an answer may take; it adapts upward to the round trips seen.
    `reverse_interval_ns`: who only receives probes its way back once a round trip, no more often
    than this (D.8). `event_ring`: EV events kept until they are read, a power of two.
    """

    successes: int = 3
    interval_ns: int = 1_000_000
    interval_max_ns: int = 50_000_000
    timeout_ns: int = 2_000_000
    event_ring: int = 1024
    reverse_interval_ns: int = 1_000_000

    def __post_init__(self) -> None:
        check_fields(self)


class PathTable(Owned):
    """Shared by the queue pairs to one peer (D.5 to D.8).

    `src` :: lets the kernel choose; the attribute `src` tells what it chose. `planes`: both ends
    where a plane has addresses of its own (C.4); packets are taken from any of the peer's. OSError:
    a lane could not be set up, in words. MrcProfileError: the profile's row templates do not lead
    to dst.
    """

    @typed
    def __init__(
        self,
        port: Port,
        profile: EvProfile,
        dst: IPv6Address,
        dport: int,
        *,
        src: IPv6Address | None = None,
        scope_id: int = 0,
        probes: ProbeConfig | None = None,
        seed: int = 0,
        planes: PlanePairs = (),
    ) -> None:
        self.ctx = port.ctx
        self._calls = Paths(port.ctx.pump)
        self.port = port
        self.profile = profile
        self.dst = dst
        source = src or IPv6Address(0)
        probes = probes or ProbeConfig()
        self._own = {plane: own for plane, own, _ in planes}
        self._theirs = {plane: theirs for plane, _, theirs in planes}
        templates = self._templates(profile.towards(dst, self._theirs), source)
        says_plane = profile.rows.evs.plane if profile.rows is not None else None
        self.number, used = self._calls.path_create(
            port.index,
            {"src": source.packed, "dst": dst.packed, "scope_id": scope_id, "dport": dport},
            {
                "min_active": profile.min_active,
                "probe_successes": probes.successes,
                "event_ring": probes.event_ring,
                "probe_interval_ns": probes.interval_ns,
                "probe_interval_max_ns": probes.interval_max_ns,
                "probe_timeout_ns": probes.timeout_ns,
                "seed": seed or self.ctx.seed,
                "reverse": profile.reverse_rule,
                "loss": profile.loss,
                "skip": profile.skip,
                "reverse_interval_ns": probes.reverse_interval_ns,
                "event_mask": _native_mask(profile.events),
                "ev_plane_shift": says_plane.low if says_plane is not None else 0,
                "ev_plane_bits": says_plane.width if says_plane is not None else 0,
            },
            [
                (e.value, e.plane, e.backup, template)
                for e, template in zip(profile, templates, strict=True)
            ],
            planes,
        )
        self.src = IPv6Address(used)
        self._closed = False
        self.ctx.paths.add(self)
        for ev in profile.deny:  # before any queue pair can use it
            self.deny(ev)

    def _templates(self, profile: EvProfile, source: IPv6Address) -> list[bytes]:
        """Outer headers; empty where the kernel's routes, or nothing, make them."""
        if self.port.backend is Backend.RAW:
            return outer_templates(profile, source, self._own)
        return [b""] * len(profile)

    def stats(self) -> list[PathStats]:
        """One record per EV."""
        return self._calls.path_stats(self.number, len(self.profile))

    def rtt_anew(self) -> None:
        """rtt_min_ns and rtt_max_ns of all EVs are from now on those of what comes."""
        self._calls.path_rtt_anew(self.number)

    @typed
    def deny(self, ev: int) -> None:
        """Never use this EV again until allow(). MrcUsageError: no such EV."""
        self._calls.path_set_state(self.number, ev, EvState.DENIED)

    @typed
    def allow(self, ev: int) -> None:
        """Lift a denial, or declare a path good. MrcUsageError: no such EV."""
        self._calls.path_set_state(self.number, ev, EvState.GOOD)

    @typed
    def replace(self, ev: int, entry: EvEntry, *, deny: bool = False) -> None:
        """Another path in the place of an EV: same plane, nothing is known of it yet (C.5, D.7).

        What was in flight on the former is recovered like a loss. MrcUsageError: no such EV,
        another plane, or an EV of the table. MrcProfileError: its path does not fit the format.
        """
        whole("ev", ev, 0, U32_MAX)
        alone = EvProfile(self.profile.format, (entry,), rows=self.profile.rows)
        one = alone.towards(self.dst, self._theirs)
        self._calls.path_replace(
            self.number,
            ev,
            (entry.value, entry.plane, entry.backup, self._templates(one, self.src)[0]),
            EvState.DENIED if deny else EvState.GOOD,
        )

    @typed
    def set_events(self, mask: EventMask) -> None:
        """Which new states raise an event from now on (C.6)."""
        self._calls.path_set_events(self.number, _native_mask(mask))

    @typed
    def set_planes(self, local_up: int, remote_up: int) -> None:
        """Which planes are up: bit N is plane N (D.7). EVs keep their states.

        The peer is told of the local ones, and may report other remote ones at any time.
        """
        self._calls.path_set_planes(self.number, local_up, remote_up)

    def planes(self) -> PathPlanes:
        """Which planes are up, here and at the peer, and what the peer knows of it."""
        return self._calls.path_planes(self.number)

    def close(self) -> None:
        """MrcUsageError while a queue pair uses it. Twice is once.

        EV events that nobody read yet go to the controller of the context: the number of the table
        may be another's soon.
        """
        if self._closed:
            return
        if not self.ctx.closed:
            unread = self._calls.path_events(self.number)
            if self.ctx.node is not None and unread:
                self.ctx.node.on_events(unread)
            self._calls.path_destroy(self.number)
        self._closed = True
        self.ctx.paths.discard(self)

    def __repr__(self) -> str:
        return f"<PathTable {self.number} to {self.dst}, {len(self.profile)} EVs>"


def _native_mask(mask: EventMask) -> int:
    return mask.value or _NO_EVENTS
