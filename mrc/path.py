# SPDX-License-Identifier: BSD-2-Clause
"""PathTable: the EVs of a profile towards one peer, as lanes of a port, with their states."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address

from ._children import Owned
from .ev import EvProfile
from .headers import outer_templates
from .port import Port
from .types import Backend, EvState, PathPlanes, PathStats

__all__ = ["PathTable", "ProbeConfig"]


@dataclass(frozen=True, slots=True)
class ProbeConfig:
    """How an ASSUMED_BAD path is tested (F.2). Intervals double from first to last; ns.

    `timeout_ns` is the least time an answer may take; it adapts upward to the round trips seen.
    """

    successes: int = 3
    interval_ns: int = 1_000_000
    interval_max_ns: int = 50_000_000
    timeout_ns: int = 2_000_000
    event_ring: int = 1024


class PathTable(Owned):
    """Shared by the queue pairs to one peer (D.5 to D.7).

    `src` :: lets the kernel choose; the attribute `src` tells what it chose. OSError: a lane
    could not be set up, in words.
    """

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
    ) -> None:
        self.ctx = port.ctx
        self.port = port
        self.profile = profile
        self.dst = dst
        source = src or IPv6Address(0)
        probes = probes or ProbeConfig()
        if port.backend is Backend.RAW:
            templates = outer_templates(profile, source)
        else:  # the kernel's routes, or nothing, make the outer header
            templates = [b""] * len(profile)
        self.number, used = self.ctx.pump.path_create(
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
            },
            [
                (e.value, e.plane, e.backup, template)
                for e, template in zip(profile, templates, strict=True)
            ],
        )
        self.src = IPv6Address(used)
        self._closed = False
        self.ctx.paths.add(self)

    def stats(self) -> list[PathStats]:
        """One record per EV."""
        return self.ctx.pump.path_stats(self.number, len(self.profile))

    def deny(self, ev: int) -> None:
        """Never use this EV again until allow(). MrcUsageError: no such EV."""
        self.ctx.pump.path_set_state(self.number, ev, EvState.DENIED)

    def allow(self, ev: int) -> None:
        """Lift a denial, or declare a path good. MrcUsageError: no such EV."""
        self.ctx.pump.path_set_state(self.number, ev, EvState.GOOD)

    def set_planes(self, local_up: int, remote_up: int) -> None:
        """Which planes are up: bit N is plane N (D.7). EVs keep their states.

        The peer is told of the local ones, and may report other remote ones at any time.
        """
        self.ctx.pump.path_set_planes(self.number, local_up, remote_up)

    def planes(self) -> PathPlanes:
        """Which planes are up, here and at the peer, and what the peer knows of it."""
        return self.ctx.pump.path_planes(self.number)

    def close(self) -> None:
        """MrcUsageError while a queue pair uses it. Twice is once."""
        if self._closed:
            return
        if not self.ctx.closed:
            self.ctx.pump.path_destroy(self.number)
        self._closed = True
        self.ctx.paths.discard(self)

    def __repr__(self) -> str:
        return f"<PathTable {self.number} to {self.dst}, {len(self.profile)} EVs>"
