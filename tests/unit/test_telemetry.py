# SPDX-License-Identifier: BSD-2-Clause
"""Counters as reports: what grew, and how often tables of paths are looked at."""

from mrc.telemetry import Snapshot, combine_paths, grown
from mrc.types import EvState, PathStats, QpState, QpStats, WcStatus

COUNTERS = {
    name: 0
    for name in PathStats.__dataclass_fields__
    if name not in ("ev", "plane", "state", "backup")
}


def path(ev, **more):
    return PathStats(**{**COUNTERS, **more}, ev=ev, plane=1, state=EvState.GOOD, backup=False)


def qp(**more):
    plain = {**dict.fromkeys(QpStats.__dataclass_fields__, 0), **more}
    return QpStats(**{**plain, "state": QpState.RTS, "error": WcStatus.SUCCESS})


def snapshot(paths, table, **more):
    return Snapshot(0, qp(**more), tuple(paths), (0, table))


def test_counters_grow_and_gauges_are_as_they_are():
    before = snapshot([path(1, packets_sent=3, rtt_max_ns=9)], 1, packets_sent=3)
    now = snapshot([path(1, packets_sent=10, rtt_max_ns=5)], 1, packets_sent=11)
    (more,) = grown([now], [before])
    assert more.qp.packets_sent == 8
    assert (more.paths[0].packets_sent, more.paths[0].rtt_max_ns) == (7, 5)


def test_an_ev_that_was_not_there_before_is_shown_whole():
    (more,) = grown([snapshot([path(2, bytes_sent=7)], 1)], [snapshot([path(1)], 1)])
    assert [(p.ev, p.bytes_sent) for p in more.paths] == [(2, 7)]


def test_a_table_that_connections_share_is_looked_at_once():
    before = [snapshot([path(1)], table) for table in (1, 1, 2)]
    now = [snapshot([path(1, packets_sent=5)], table) for table in (1, 1, 2)]
    first, second, other = grown(now, before)
    assert first.paths is second.paths
    assert other.paths is not first.paths
    assert [p.packets_sent for p in combine_paths([first, second, other])] == [10]
