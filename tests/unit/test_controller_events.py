# SPDX-License-Identifier: BSD-2-Clause
"""The controller API: states of EVs as traffic finds them, and the events of a node (C.6, D.10)."""

from __future__ import annotations

from ipaddress import IPv6Address

import pytest

import mrc
from mrc.controller import EvAttr, EvSetState, OptAttr
from mrc.ev import EventMask

from .nodes import ALL, BAD, DENIED, GOOD, HERE, Node, Writer, udp


@pytest.fixture
def writer():
    made = Writer()
    with made.a.ctx, made.b.ctx:
        yield made


def test_assumed_bad_is_shown(writer):
    assert writer.node.states() == [GOOD] * 4
    writer.die()
    assert writer.node.states() == [GOOD, BAD, GOOD, GOOD]
    writer.heal()
    assert writer.node.states() == [GOOD] * 4


# ---- events (C.6, D.10) --------------------------------------------------------------------


def test_events_of_both_ways(writer):
    writer.die()
    writer.heal()
    first, second = writer.node.control.events()
    assert (first.profile, first.ev, first.state) == (writer.node.profile.id, udp(50002, 2), BAD)
    assert (second.ev, second.state) == (udp(50002, 2), GOOD)
    assert (first.drop_count, second.drop_count) == (0, 0)
    assert first.time < second.time <= writer.a.ctx.now()
    assert writer.node.control.events() == []


def test_only_what_was_asked(writer):
    writer.node.profile.modify(EvAttr(events=EventMask.GOOD))
    writer.die()
    writer.heal()
    assert [e.state for e in writer.node.control.events()] == [GOOD]
    writer.node.profile.modify(EvAttr(events=EventMask.NONE))
    writer.die()
    writer.heal()
    assert writer.node.control.events() == []


def test_states_set_by_hand_raise_none(writer):
    writer.node.profile.modify(ops=[EvSetState(udp(50001), DENIED)])
    assert writer.node.control.events() == []


def event(table, number, *, lost=0, ev=50001, to=mrc.EvState.ASSUMED_BAD):
    before = mrc.EvState.GOOD if to is mrc.EvState.ASSUMED_BAD else mrc.EvState.ASSUMED_BAD
    return mrc.EvEvent(number, ev, 1, before, to, mrc.EvReason.LOSS, lost, table.number)


def test_the_ring_counts_exactly_what_it_lost(context):
    node = Node(context, event_ring=3).offline().online()
    table = node.table()
    node.control.on_events([event(table, n) for n in range(5)])
    assert [(e.time, e.drop_count) for e in node.control.events()] == [(0, 0), (1, 0), (2, 0)]
    node.control.on_events([event(table, 5, lost=7), event(table, 6)])
    assert [(e.time, e.drop_count) for e in node.control.events()] == [(5, 9), (6, 0)]


def test_or_says_only_that_some_were_lost(context):
    node = Node(context, event_ring=1, opt_attr=ALL & ~OptAttr.EXACT_DROPS).offline().online()
    table = node.table()
    node.control.on_events([event(table, n) for n in range(5)])
    node.control.events()
    node.control.on_events([event(table, 9)])
    assert [e.drop_count for e in node.control.events()] == [1]


def test_what_a_table_had_no_room_for_is_counted_when_it_ends(context):
    """Its ring is full, nobody reads, it closes: what was lost after its last event counts, too."""
    node = Node(context).offline().online()
    table = node.table(probes=mrc.ProbeConfig(event_ring=4))
    for _ in range(10):
        table.deny(50001)
        table.allow(50001)
    table.close()
    assert [e.drop_count for e in node.control.events()] == [0] * 4
    after = node.table()
    node.control.on_events([event(after, 1)])
    assert [e.drop_count for e in node.control.events()] == [6]


def test_events_that_are_none_of_ours(context):
    node = Node(context).offline().online()
    table = node.table()
    other = mrc.PathTable(node.port, mrc.EvProfile.udp(4), IPv6Address("fd00::c"), 4791, src=HERE)
    held = mrc.EvEvent(
        3, 50001, 1, mrc.EvState.GOOD, mrc.EvState.GOOD, mrc.EvReason.LOSS, 2, table.number
    )
    node.control.on_events([event(other, 1), event(table, 2, ev=7), held])
    assert node.control.events() == []
    skip = event(table, 4, to=mrc.EvState.SKIP)
    node.control.on_events([skip])
    # 7 was replaced meanwhile: it has no name, and counts as lost
    assert [(e.state, e.drop_count) for e in node.control.events()] == [(GOOD, 3)]


def test_whoever_reads_the_events_leaves_them_to_the_controller(writer):
    writer.die()
    assert any(e.ev == 50002 for e in writer.a.ctx.events())
    assert [e.state for e in writer.node.control.events()] == [BAD]
