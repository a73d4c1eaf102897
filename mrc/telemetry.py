# SPDX-License-Identifier: BSD-2-Clause
"""Counters and path states as plain JSON values: what the commands print and scripts read.

Counters of a queue pair and of a path only grow, so a report over a period is the difference of two
snapshots; nothing here can be negative, infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter, sub
from typing import Any

from .types import EvEvent, EvState, PathStats, PortCap, PortStats, QpStats

__all__ = [
    "Snapshot",
    "combine_paths",
    "event_json",
    "grown",
    "mrc_json",
    "path_json",
    "paths_up",
    "port_json",
]

# end.mrc: name in reports -> counters of QpStats it adds up
_MRC_KEYS = (
    "packets_sent",
    "packets_retransmitted",
    "spurious_retransmits",
    "sacks_received",
    "nacks_received",
    "timeouts",
    "losses_inferred",
    "probes_sent",
    "ecn_marks",
    "packets_received",
    "duplicates_received",
    "ooo_received",
    "trims_received",
    "sacks_sent",
    "nacks_sent",
)
_PATH_GAUGES = frozenset(
    {"ev", "plane", "state", "backup", "rtt_min_ns", "rtt_max_ns", "bad_since_ns", "good_since_ns"}
)
_PATH_COUNTERS = tuple(f.name for f in fields(PathStats) if f.name not in _PATH_GAUGES)
_counters = attrgetter(*_PATH_COUNTERS)
_gauges = attrgetter(*(f.name for f in fields(PathStats) if f.name in _PATH_GAUGES))
_BADNESS = {EvState.GOOD: 0, EvState.SKIP: 1, EvState.ASSUMED_BAD: 2, EvState.DENIED: 3}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One connection at one moment."""

    time_ns: int
    qp: QpStats
    paths: tuple[PathStats, ...]
    path_table: tuple[int, int]
    """Equal for connections that share their paths."""


def grown(now: Sequence[Snapshot], earlier: Sequence[Snapshot]) -> list[Snapshot]:
    """What grew, by connection; gauges (state, window, RTT extremes) as they are now.

    Tables of many paths cost most by far: one that connections share is looked at once.
    """
    tables: dict[tuple[int, int], tuple[PathStats, ...]] = {}
    found = []
    for one, before in zip(now, earlier, strict=True):
        if one.path_table not in tables:
            tables[one.path_table] = _paths_since(one.paths, before.paths)
        qp = _qp_since(one.qp, before.qp)
        found.append(Snapshot(one.time_ns, qp, tables[one.path_table], one.path_table))
    return found


_QP_GAUGES = frozenset({"cwnd_bytes", "inflight_bytes", "outstanding", "sq_used", "state", "error"})
_QP_COUNTERS = tuple(f.name for f in fields(QpStats) if f.name not in _QP_GAUGES)


def _qp_since(now: QpStats, before: QpStats) -> QpStats:
    grown = {name: getattr(now, name) - getattr(before, name) for name in _QP_COUNTERS}
    return replace(now, **grown)


def _paths_since(paths: Sequence[PathStats], earlier: Sequence[PathStats]) -> tuple[PathStats, ...]:
    known = {path.ev: path for path in earlier}
    return tuple(_path_since(path, known[path.ev]) if path.ev in known else path for path in paths)


def _path_since(now: PathStats, before: PathStats) -> PathStats:
    counts = map(sub, _counters(now), _counters(before))
    return PathStats(*counts, *_gauges(now))


def combine_paths(snapshots: Iterable[Snapshot]) -> list[PathStats]:
    """One record per EV of several connections.

    A table that they share counts once; of different tables the counters are added and the worst
    state is told.
    """
    tables = {snapshot.path_table: snapshot.paths for snapshot in snapshots}
    merged: dict[int, PathStats] = {}
    for path in (path for table in tables.values() for path in table):
        known = merged.get(path.ev)
        merged[path.ev] = path if known is None else _combine_two(known, path)
    return list(merged.values())


def _combine_two(a: PathStats, b: PathStats) -> PathStats:
    added: dict[str, Any] = {n: getattr(a, n) + getattr(b, n) for n in _PATH_COUNTERS}
    minima = [path.rtt_min_ns for path in (a, b) if path.rtt_min_ns]
    return replace(
        a,
        **added,
        state=max(a.state, b.state, key=_BADNESS.__getitem__),
        backup=a.backup and b.backup,
        rtt_min_ns=min(minima, default=0),
        rtt_max_ns=max(a.rtt_max_ns, b.rtt_max_ns),
        bad_since_ns=max(a.bad_since_ns, b.bad_since_ns),
        good_since_ns=max(a.good_since_ns, b.good_since_ns),
    )


def _us(ns: float) -> float:
    return round(ns / 1000, 3)


def path_json(path: PathStats) -> dict[str, Any]:
    """One element of `paths[]`. Times in microseconds; 0 where nothing was measured yet."""
    return {
        "ev": path.ev,
        "plane": path.plane,
        "state": path.state.name,
        "backup": path.backup,
        "packets_sent": path.packets_sent,
        "bytes_sent": path.bytes_sent,
        "packets_lost": path.packets_lost,
        "retransmits": path.retransmits,
        "ecn_marks": path.ecn_marks,
        "trims": path.trims,
        "probes_sent": path.probes_sent,
        "probes_answered": path.probes_answered,
        "rtt_us": {
            "min": _us(path.rtt_min_ns),
            "avg": _us(path.rtt_sum_ns / path.rtt_count) if path.rtt_count else 0.0,
            "max": _us(path.rtt_max_ns),
        },
    }


def paths_up(paths: Iterable[PathStats]) -> int:
    """How many paths carry data now: GOOD or SKIP (D.5), and not in reserve."""
    return sum(p.state in (EvState.GOOD, EvState.SKIP) and not p.backup for p in paths)


def port_json(port: PortStats) -> dict[str, Any]:
    """One element of `ports[]`: counters, and what the system granted."""
    plain: dict[str, Any] = {f.name: getattr(port, f.name) for f in fields(port)}
    plain["kind"] = port.kind.name.lower()
    plain["caps"] = [cap.name.lower() for cap in PortCap if cap & port.caps and cap.name]
    return plain


def mrc_json(stats: Iterable[QpStats]) -> dict[str, int]:
    """The counters of `mrc`, added up over connections."""
    totals = dict.fromkeys(_MRC_KEYS, 0)
    for qp in stats:
        for name in _MRC_KEYS:
            totals[name] += getattr(qp, name)
    return totals


def event_json(event: EvEvent, start_ns: int) -> dict[str, Any]:
    """One element of `mrc.ev_events`; t in seconds since `start_ns` of the monotonic clock."""
    return {
        "t": round((event.time - start_ns) / 1e9, 6),
        "ev": event.ev,
        "plane": event.plane,
        "from": event.from_state.name,
        "to": event.to_state.name,
        "reason": event.reason.name.lower(),
        "events_lost_before": event.drop_count,
    }
