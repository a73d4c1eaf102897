# SPDX-License-Identifier: BSD-2-Clause
"""The controller API: a change is whole or not made, and nothing outlives what it belongs to."""

from __future__ import annotations

import errno
from dataclasses import replace
from ipaddress import IPv6Address
from typing import Any

import pytest

import mrc
from mrc.controller import (
    CcAttr,
    EvAttr,
    EvId,
    EvMode,
    EvReplace,
    EvSetState,
    FmtMode,
    FormatAttr,
    NodeController,
    NodeLimits,
)
from mrc.controller.evarray import EvArray
from mrc.controller.steps import Step, all_or_none
from mrc.errors import MrcControlError, MrcUsageError
from mrc.ev import EvField
from mrc.types import EV_MAX

from .nodes import DENIED, EMPTY, FIELDS, GOOD, HERE, OFFLINE, ONLINE, THERE, Node, udp

ELSEWHERE = IPv6Address("fd00::c")


@pytest.fixture
def node(context):
    return Node(context).offline().online()


def evs(table):
    return [s.ev for s in table.stats()]


def states(table):
    return [s.state.name for s in table.stats()]


def refusing(table, monkeypatch, name, exc, after=0):
    """The table's method does its work `after` times, then refuses once."""
    real, calls = getattr(table, name), []

    def method(*args, **kwargs):
        calls.append(args)
        if len(calls) == after + 1:
            raise exc
        real(*args, **kwargs)

    monkeypatch.setattr(table, name, method)


def refused(number):
    return pytest.raises(MrcControlError, match=f"^{errno.errorcode[number]}: ")


# ---- all path tables or none (C.5) ---------------------------------------------------------


@pytest.fixture
def tables(node):
    made = [node.table(), node.table(ELSEWHERE)]
    return sorted(made, key=node.profile.tables().index)


@pytest.mark.parametrize(
    ("exc", "number"),
    [(OSError(errno.EADDRINUSE, "in use"), errno.EIO), (MrcUsageError("no"), errno.EINVAL)],
)
def test_an_ev_is_replaced_in_all_tables_or_in_none(node, tables, monkeypatch, exc, number):
    before = node.profile.query_array(64)
    refusing(tables[1], monkeypatch, "replace", exc)
    with refused(number):
        node.profile.modify(ops=[EvReplace(udp(50001), udp(50077))])
    assert [evs(t) for t in tables] == [[50001, 50002, 50003, 50004]] * 2
    assert node.profile.query_array(64) == before
    assert [e.value for e in node.profile.profile] == [50001, 50002, 50003, 50004]
    node.profile.modify(ops=[EvReplace(udp(50001), udp(50077))])  # nothing is stuck
    assert [evs(t) for t in tables] == [[50077, 50002, 50003, 50004]] * 2


def test_a_denied_ev_is_denied_when_it_comes_back(node, tables, monkeypatch):
    node.profile.modify(ops=[EvSetState(udp(50001), DENIED)])
    refusing(tables[1], monkeypatch, "replace", OSError(errno.EADDRINUSE, "in use"))
    with refused(errno.EIO):
        node.profile.modify(ops=[EvReplace(udp(50001), udp(50077))])
    assert [states(t)[0] for t in tables] == ["DENIED"] * 2
    assert node.states()[0] == DENIED


def test_a_state_is_set_in_all_tables_or_in_none(node, tables, monkeypatch):
    refusing(tables[1], monkeypatch, "deny", MrcUsageError("no such EV"))
    with refused(errno.EINVAL):
        node.profile.modify(ops=[EvSetState(udp(50001), DENIED)])
    assert [states(t)[0] for t in tables] == ["GOOD"] * 2
    assert node.states() == [GOOD] * 4
    assert node.profile.profile.deny == ()
    node.profile.modify(ops=[EvSetState(udp(50001), DENIED)])
    refusing(tables[1], monkeypatch, "allow", MrcUsageError("no such EV"))
    with refused(errno.EINVAL):
        node.profile.modify(ops=[EvSetState(udp(50001), GOOD)])
    assert [states(t)[0] for t in tables] == ["DENIED"] * 2
    assert node.states()[0] == DENIED


@pytest.mark.parametrize("after", [0, 1, 3])
def test_fields_change_online_as_a_whole(context, monkeypatch, after):
    node = Node(context).offline(fields=FIELDS)
    node.fill(*(EvId(bytes([i << 4]), 1 + i % 2) for i in (1, 2, 3, 4)))
    node.profile.modify(state=ONLINE)
    table = node.table()
    made = node.profile.profile
    other = EvAttr(fields=(EvField(16, 0xD000, mask=0x000F),))
    refusing(table, monkeypatch, "replace", OSError(errno.EADDRINUSE, "in use"), after)
    with refused(errno.EIO):
        node.profile.modify(other)
    assert evs(table) == [0xC001, 0xC002, 0xC003, 0xC004]
    assert (node.profile.attr.fields, node.profile.profile) == (FIELDS, made)
    node.profile.modify(other)
    assert evs(table) == [0xD001, 0xD002, 0xD003, 0xD004]


def test_events_asked_for_go_back_too(node, tables, monkeypatch):
    refusing(tables[1], monkeypatch, "set_events", MrcUsageError("no"))
    asked = node.profile.attr.events
    with refused(errno.EINVAL):
        node.profile.modify(EvAttr(events=type(asked).NONE))
    assert node.profile.attr.events == asked
    for table in tables:
        table.deny(50001)
        table.allow(50001)
    assert [e.state for e in node.control.events()] == [GOOD] * 2


def test_what_cannot_be_taken_back_is_said():
    def fails():
        raise OSError(errno.EIO, "gone")

    with pytest.raises(MrcControlError, match=r"^EIO: it: .*1 changes could not be taken back"):
        all_or_none("it", [Step(lambda: None, fails), Step(fails, lambda: None)])


# ---- events ----------------------------------------------------------------------------------


def test_events_of_a_closed_table_are_its_own(node):
    """The number of the table is another's at once."""
    other = node.control.create_ev_profile()
    other.modify(replace(node.profile.attr), state=OFFLINE)
    other.modify(ops=[EvReplace(EMPTY, udp(50001 + i, 1 + i % 2)) for i in range(4)])
    other.modify(state=ONLINE)
    table = node.table()
    table.deny(50001)
    table.allow(50001)
    table.close()
    again = mrc.PathTable(node.port, other.profile, THERE, 4791, src=HERE)
    assert again.number == table.number
    assert [(e.profile, e.ev) for e in node.control.events()] == [(node.profile.id, udp(50001))]
    assert node.ctx.events() == []


def test_closing_a_table_leaves_the_events_of_others(node, tables):
    for table in tables:
        for _ in range(3):
            table.deny(50001)
            table.allow(50001)
    tables[0].close()
    assert {e.path for e in node.ctx.events()} == {tables[1].number}
    assert len(node.control.events()) == 6


def test_the_event_of_an_ev_replaced_meanwhile_is_counted(node):
    table = node.table()
    table.deny(50001)
    table.allow(50001)
    node.profile.modify(ops=[EvReplace(udp(50001), udp(50099))])
    table.deny(50003)
    table.allow(50003)
    assert [(e.ev, e.drop_count) for e in node.control.events()] == [(udp(50003), 1)]


# ---- a closed controller ---------------------------------------------------------------------


def test_a_closed_controller_governs_nothing(node):
    cc = node.control.create_cc_profile()
    cc.modify(CcAttr(algorithm=None), state=OFFLINE)
    cc.modify(state=ONLINE)
    made = node.profile.profile
    node.control.close()
    for call in (
        lambda: node.profile.modify(state=OFFLINE),
        lambda: node.profile.modify(ops=[EvSetState(udp(50001), DENIED)]),
        lambda: node.profile.query_array(64),
        lambda: node.profile.profile,
        lambda: cc.profile,
        lambda: node.fmt.modify(state=OFFLINE),
        node.profile.destroy,
        lambda: node.control.set_port(1, enabled=False),
        lambda: node.control.port_state(1),
    ):
        with pytest.raises(MrcControlError, match="EINVAL: this controller is closed"):
            call()
    second = NodeController(node.ctx)
    table = mrc.PathTable(node.port, made, THERE, 4791, src=HERE)
    table.deny(50001)
    table.allow(50001)
    assert second.events() == []


# ---- tags (H23) ------------------------------------------------------------------------------


def test_tags_in_use_are_not_given_again(context):
    """A table as large as can be, and one entry replaced until the tags have gone round."""
    node = Node(context)
    array = EvArray("key", [1], 1)
    array.fill(EvMode.EXPLICIT, EV_MAX, (), node.fmt)
    others = {s.tag for s in array.slots[1:]}
    assert len(others) == EV_MAX - 1
    for _ in range(20000):
        before = replace(array.slots[0])
        array.put(array.slots[0], udp(50001), denied=False)
        assert array.slots[0].tag != before.tag
        assert array.slots[0].tag not in others
    array.restore(array.slots[0], before)
    following = EvArray("other", [1], 1, after=array)
    following.fill(EvMode.EXPLICIT, EV_MAX, (), node.fmt)
    assert not {s.tag for s in array.slots} & {s.tag for s in following.slots}


# ---- words and types -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"\xc7\x70", "c770"),
        (b"\x10\x00", "1000"),
        (b"\x00\x01\x20", "000120"),
        (b"\x0c\x77", "0c77"),
        (b"", "0000"),
    ],
)
def test_an_ev_in_words(value, words):
    assert str(EvId(value, 3)) == f"{words} on port 3"


def wrong(make, *args, **kwargs):
    """A record as somebody without a type checker makes it."""
    return make(*args, **kwargs)


_ATTR: dict[str, Any] = {
    "mode": EvMode.EXPLICIT,
    "format": 1,
    "count": 2,
    "fields": (EvField(16, mask=0xFFFF),),
}


@pytest.mark.parametrize(
    "call",
    [
        lambda n: n.profile.modify(state="OFFLINE"),
        lambda n: n.profile.modify(FormatAttr()),
        *(
            lambda n, more=more: n.control.create_ev_profile().modify(
                EvAttr(**(_ATTR | more)), state=OFFLINE
            )
            for more in (
                {"mode": 2},
                {"count": 2.0},
                {"count": "2"},
                {"count": True},
                {"fields": [EvField(16, mask=0xFFFF)]},
                {"fields": (1,)},
                {"format": [1]},
                {"loss": "x"},
                {"events": 1},
            )
        ),
        lambda n: n.profile.modify(ops=[EvReplace(udp(50001), EvId(b"\xc3\x51", -1))]),
        lambda n: n.profile.modify(ops=[EvReplace(udp(50001), EvId(b"\xc3\x51", 1 << 70))]),
        lambda n: n.profile.modify(
            ops=[EvReplace(udp(50001), wrong(EvId, bytearray(b"\xc3\x77")))]
        ),
        lambda n: wrong(EvId, "ab"),
        lambda n: n.profile.modify(ops=[wrong(EvSetState, udp(50001), 4)]),
        lambda n: n.profile.modify(ops=[wrong(EvSetState, udp(50001), 99)]),
        lambda n: n.profile.modify(ops=[wrong(EvSetState, udp(50001), None)]),
        lambda n: n.profile.modify(ops=[5]),
        lambda n: n.control.port_state("1"),
        lambda n: n.control.set_port(1, enabled="no"),
        lambda n: n.profile.query_array("4"),
        lambda n: n.control.create_format().modify(
            wrong(FormatAttr, FmtMode.UDP, 16), state=OFFLINE
        ),
        lambda n: n.control.create_format().modify(wrong(FormatAttr, [3], (16,)), state=OFFLINE),
        lambda n: n.control.create_cc_profile().modify(wrong(CcAttr, [1]), state=OFFLINE),
        lambda n: wrong(NodeLimits, ev_max_count="x"),
        lambda n: wrong(NodeController, mrc.Context(), ports="2"),
        lambda n: wrong(NodeController, mrc.Context(), limits={}),
    ],
)
def test_wrong_types_are_einval(node, call):
    before = node.profile.query_array(64)
    with refused(errno.EINVAL):
        call(node)
    assert node.profile.query_array(64) == before


def test_a_number_that_is_none_is_not_found(node):
    for call in (node.control.format, node.control.ev_profile, node.control.cc_profile):
        with refused(errno.ENOENT):
            call([1])
