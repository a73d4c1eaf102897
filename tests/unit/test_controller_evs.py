# SPDX-License-Identifier: BSD-2-Clause
"""The controller API: the EVs of a profile, the tables that follow it, its events (C.5, C.6)."""

from __future__ import annotations

import errno
from ipaddress import IPv6Address

import pytest

import mrc
from mrc.controller import (
    EvAttr,
    EvId,
    EvMode,
    EvReplace,
    EvSetState,
    FmtMode,
    FormatAttr,
    NodeController,
    OptAttr,
)
from mrc.ev import EventMask, EvField, ReverseRule
from mrc.headers import outer_templates

from .nodes import (
    ALL,
    BAD,
    DENIED,
    EMPTY,
    GOOD,
    HERE,
    OFFLINE,
    ONLINE,
    UNKNOWN,
    USID,
    Node,
    udp,
)


@pytest.fixture
def node(context):
    return Node(context).offline()


def states_of(table):
    return {s.ev: s.state for s in table.stats()}


# ---- the array -----------------------------------------------------------------------------


def test_explicit_entries_begin_unpopulated(node, refused):
    assert node.profile.query_array(4) == [(EMPTY, UNKNOWN)] * 4
    with refused(errno.EINVAL, "4 EVs are not populated yet"):
        node.profile.modify(state=ONLINE)
    node.fill(udp(50001), udp(50002, 2))
    with refused(errno.EINVAL, "2 EVs are not populated yet"):
        node.profile.modify(state=ONLINE)
    node.fill(udp(50003), udp(50004, 2))
    node.profile.modify(state=ONLINE)
    made = node.profile.profile
    assert [(e.value, e.plane) for e in made] == [(50001, 1), (50002, 2), (50003, 1), (50004, 2)]
    assert (made.min_active, made.events) == (1, EventMask.GOOD | EventMask.ASSUMED_BAD)


def test_query_array_says_how_large_it_should_be(node, refused):
    with refused(errno.E2BIG, "has 4 EVs, the array room for 3") as caught:
        node.profile.query_array(3)
    assert caught.value.needed == 4
    assert NodeController.ev_profile(node.control, node.profile.id).query_array(4)
    blank = node.control.create_ev_profile()
    assert blank.query_array(0) == []


def test_one_occurrence_or_all_copies(node):
    node.profile.modify(ops=[EvReplace(EMPTY, udp(50001)), EvReplace(EMPTY, udp(50001))])
    assert [ev for ev, _ in node.profile.query_array(4)] == [udp(50001)] * 2 + [EMPTY] * 2
    node.profile.modify(ops=[EvSetState(udp(50001), DENIED)])
    assert node.states() == [DENIED, GOOD, UNKNOWN, UNKNOWN]
    node.profile.modify(ops=[EvSetState(udp(50001), DENIED, all_copies=True)])
    assert node.states()[:2] == [DENIED, DENIED]
    node.profile.modify(ops=[EvReplace(udp(50001), udp(50002), DENIED, all_copies=True)])
    assert [ev for ev, _ in node.profile.query_array(4)][:2] == [udp(50002)] * 2
    node.profile.modify(ops=[EvReplace(EMPTY, udp(50003), all_copies=True)])
    assert [ev for ev, _ in node.profile.query_array(4)][2:] == [udp(50003)] * 2


def test_copies_have_no_place_on_the_wire(node, refused):
    node.fill(udp(50001), udp(50002), udp(50001), udp(50003))
    with refused(errno.EINVAL, "EV 3, c351 on port 1, is EV 1 too"):
        node.profile.modify(state=ONLINE)


@pytest.mark.parametrize(
    ("op", "number", "words"),
    [
        (EvReplace(udp(50009), udp(50010)), errno.ENOENT, "no EV is c359 on port 1"),
        (EvReplace(udp(50001, 2), udp(50010)), errno.ENOENT, "no EV is c351 on port 2"),
        (EvSetState(udp(50009), DENIED), errno.ENOENT, "no EV is"),
        (EvReplace(EMPTY, udp(50010, 3)), errno.EINVAL, "the device has no such port"),
        (EvReplace(EMPTY, udp(50010, 0)), errno.EINVAL, "the device has no such port"),
        (EvReplace(EMPTY, EvId(b"\xc0\x00\x01")), errno.EINVAL, "beyond the 16 of its fields"),
        (EvReplace(EMPTY, udp(50010), BAD), errno.EINVAL, "ASSUMED_BAD cannot be set"),
        (EvSetState(udp(50001), UNKNOWN), errno.EINVAL, "UNKNOWN cannot be set"),
        (EvSetState(EMPTY, DENIED), errno.EINVAL, "unpopulated entry has no state"),
    ],
)
def test_operations_that_cannot_be(node, refused, op, number, words):
    node.fill(udp(50001))
    before = node.profile.query_array(4)
    with refused(number, words):
        node.profile.modify(ops=[op])
    assert node.profile.query_array(4) == before


def test_a_batch_is_carried_out_up_to_the_first_that_is_refused(node, refused):
    ops = [EvReplace(EMPTY, udp(50001)), EvReplace(EMPTY, udp(50002, 2)), EvReplace(udp(1), EMPTY)]
    with refused(errno.ENOENT) as caught:
        node.profile.modify(ops=ops)
    assert caught.value.done == 2
    assert [ev for ev, _ in node.profile.query_array(4)][:2] == [udp(50001), udp(50002, 2)]


def test_one_kind_of_operation_alone_in_its_call(context, refused):
    node = Node(context, ev_op_max_entries=2).offline().fill(udp(50001), udp(50002))
    put, deny = EvReplace(EMPTY, udp(50003)), EvSetState(udp(50001), DENIED)
    with refused(errno.EINVAL, "several kinds"):
        node.profile.modify(ops=[put, deny])
    with refused(errno.EINVAL, "come alone"):
        node.profile.modify(EvAttr(min_active=2), ops=[put])
    with refused(errno.EINVAL, "come alone"):
        node.profile.modify(state=ONLINE, ops=[put])
    with refused(errno.E2BIG, "3 operations, where 2 are possible"):
        node.profile.modify(ops=[put] * 3)
    node.profile.modify(ops=[put] * 2)


def test_operations_need_an_array(node, refused):
    blank = node.control.create_ev_profile()
    with refused(errno.EINVAL, "has no EVs yet"):
        blank.modify(ops=[EvReplace(EMPTY, udp(1))])
    with refused(errno.EINVAL, "has no EVs yet"):
        blank.query_state([udp(1)])


def test_values_are_bytes_first_field_first(context, refused):
    """H24; the worked example of D.9, its EV bits as in D.4."""
    node = Node(context)
    fmt = node.control.create_format()
    fmt.modify(FormatAttr(FmtMode.SRV6, USID), state=OFFLINE)
    fmt.modify(state=ONLINE)
    fields = (
        EvField(32, 0xFCBBBBBB),
        EvField(16, 0x1007, mask=0x0700),
        EvField(16, 0x2000, mask=0x07FF),
        EvField(16, 0x1015, mask=0x0700),
        EvField(16, 0x302C, mask=0x0700),
    )
    node.offline(format=fmt.id, fields=fields, count=1)
    bits = "101" + "101" + "10100011" + "101" + "101"
    ev = EvId(int(bits.ljust(24, "0"), 2).to_bytes(3, "big"), 2)
    node.fill(ev)
    node.profile.modify(state=ONLINE)
    (entry,) = node.profile.profile
    assert entry.dst == IPv6Address("fcbb:bbbb:1507:25a3:1515:352c::")
    assert (entry.plane, entry.value) == (2, 49153)
    assert node.profile.query_array(1) == [(ev, GOOD)]
    assert node.profile.profile.reverse_rule is ReverseRule.OWN
    with refused(errno.EINVAL, "at most 32 bytes"):
        EvId(bytes(33))


def test_srv6_with_a_segment(context):
    node = Node(context)
    fmt = node.control.create_format()
    fmt.modify(FormatAttr(FmtMode.SRV6, (*[32] * 4, *[32] * 4)), state=OFFLINE)
    fmt.modify(state=ONLINE)
    node.offline(format=fmt.id, fields=(EvField(32, mask=0xFFFFFFFF),) * 8, count=1)
    dst, srh = IPv6Address("fcbb:bbbb:1101:2101::"), IPv6Address("fcbb:bbbb:1102:4102::")
    node.fill(EvId(dst.packed + srh.packed))
    node.profile.modify(state=ONLINE)
    (entry,) = node.profile.profile
    assert (entry.dst, entry.srh) == (dst, srh)
    (header,) = outer_templates(node.profile.profile, HERE)
    assert header[24:40] == dst.packed
    assert header[48:64] == srh.packed


def test_generated_and_automatic(context, refused):
    node = Node(context)
    node.offline(mode=EvMode.GENERATED, count=16, fields=(EvField(16, 0xC000, mask=0x000F),))
    node.profile.modify(state=ONLINE)
    made = node.profile.profile
    assert {e.value for e in made} == set(range(0xC000, 0xC010))
    assert [sum(e.plane == p for e in made) for p in (1, 2)] == [8, 8]
    shown = {
        (int.from_bytes(ev.value[:1], "big") >> 4, ev.port)
        for ev, _ in node.profile.query_array(16)
    }
    assert shown == {(e.value & 15, e.plane) for e in made}
    with refused(errno.EINVAL, "explicit mode only"):
        node.profile.modify(ops=[EvReplace(EMPTY, udp(1))])
    node.profile.modify(state=OFFLINE)
    node.offline(mode=EvMode.AUTO, count=8, fields=())
    node.profile.modify(state=ONLINE)
    assert len({e.value for e in node.profile.profile}) == 8
    assert [ev for ev, _ in node.profile.query_array(8)] == [
        udp(e.value, e.plane) for e in node.profile.profile
    ]


def test_automatic_stev_and_no_automatic_srv6(context, refused):
    node = Node(context)
    stev, srv6 = node.control.create_format(), node.control.create_format()
    stev.modify(FormatAttr(FmtMode.STEV, (16, 16)), state=OFFLINE)
    stev.modify(state=ONLINE)
    srv6.modify(FormatAttr(FmtMode.SRV6, USID), state=OFFLINE)
    node.offline(mode=EvMode.AUTO, format=stev.id, count=128, fields=())
    node.profile.modify(state=ONLINE)
    evs = [e.value for e in node.profile.profile]
    assert len(set(evs)) == 128
    assert len({ev >> 16 for ev in evs}) > 100
    assert all(ev & 0xFFFF >= 49152 for ev in evs)
    with refused(errno.EINVAL, "cannot be automatic"):
        node.control.create_ev_profile().modify(EvAttr(EvMode.AUTO, srv6.id, 4, ()), state=OFFLINE)


def test_backups_are_the_last(node):
    node.profile.modify(EvAttr(backups=2))
    node.online()
    assert [e.backup for e in node.profile.profile] == [False, False, True, True]


def test_contiguous_ranges_where_the_device_has_no_others(context, refused):
    node = Node(context, opt_attr=ALL | OptAttr.EV_RANGE).offline()
    node.fill(udp(50001), udp(50003, 2), udp(50002), udp(50005, 2))
    with refused(errno.EINVAL, "not contiguous: 0xc353 is followed by 0xc355"):
        node.profile.modify(state=ONLINE)
    node.profile.modify(ops=[EvReplace(udp(50005, 2), udp(50004, 2))])
    node.profile.modify(state=ONLINE)


# ---- in use --------------------------------------------------------------------------------


def test_only_what_is_online_can_be_used(node, refused):
    with refused(errno.EINVAL, "is OFFLINE; take it ONLINE to use it"):
        _ = node.profile.profile
    node.online()
    table = node.table()
    with refused(errno.EBUSY, "in use by 1 path tables of queue pairs"):
        node.profile.modify(state=OFFLINE)
    with refused(errno.EBUSY, "in use"):
        node.control.close()
    table.close()
    node.profile.modify(state=OFFLINE)


def test_denied_before_and_while_it_is_used(node):
    """The denylist of a node; field report 37: at run time, too."""
    node.fill(udp(50001), udp(50002, 2), udp(50003), udp(50004, 2))
    node.profile.modify(ops=[EvSetState(udp(50003), DENIED)])
    node.profile.modify(state=ONLINE)
    first, second = node.table(), node.table(IPv6Address("fd00::c"))
    for table in (first, second):
        assert states_of(table)[50003] is mrc.EvState.DENIED
    node.profile.modify(ops=[EvSetState(udp(50001), DENIED), EvSetState(udp(50003), GOOD)])
    for table in (first, second, node.table(IPv6Address("fd00::d"))):
        assert states_of(table) == {
            50001: mrc.EvState.DENIED,
            50002: mrc.EvState.GOOD,
            50003: mrc.EvState.GOOD,
            50004: mrc.EvState.GOOD,
        }
    assert node.profile.query_state([udp(50001), udp(50003)]) == [DENIED, GOOD]


def test_replaced_while_it_is_used(node, refused):
    node.online()
    table = node.table()
    table.deny(50001)
    node.profile.modify(
        ops=[EvReplace(udp(50001), udp(50011)), EvReplace(udp(50002, 2), udp(50012, 2), DENIED)]
    )
    assert states_of(table) == {
        50011: mrc.EvState.GOOD,
        50012: mrc.EvState.DENIED,
        50003: mrc.EvState.GOOD,
        50004: mrc.EvState.GOOD,
    }
    before = node.profile.query_array(4)
    with refused(errno.EBUSY, "keep to port 1"):
        node.profile.modify(ops=[EvReplace(udp(50003), udp(50013, 2))])
    with refused(errno.EINVAL, "is EV 2 too") as caught:
        node.profile.modify(ops=[EvReplace(udp(50004, 2), udp(50012, 2))])
    assert caught.value.done == 0
    assert node.profile.query_array(4) == before
    assert states_of(table)[50004] is mrc.EvState.GOOD
    assert [e.value for e in node.profile.profile] == [50011, 50012, 50003, 50004]


def test_the_port_may_change_while_nobody_uses_it(node):
    node.online()
    node.profile.modify(ops=[EvReplace(udp(50003), udp(50013, 2))])
    assert node.table().stats()[2].plane == 2


def test_no_change_online_without_the_capability(context, refused):
    node = Node(context, opt_attr=ALL & ~OptAttr.EV_ONLINE).offline().online()
    with refused(errno.EPERM, "replaces no EV"):
        node.profile.modify(ops=[EvReplace(udp(50001), udp(50011))])
    with refused(errno.EPERM, "changes nothing"):
        node.profile.modify(EvAttr(events=EventMask.NONE))
    node.profile.modify(ops=[EvSetState(udp(50001), DENIED)])  # always
    assert node.states()[0] is DENIED


def test_what_never_changes_online(node, refused):
    node.online()
    for attr in (EvAttr(count=8), EvAttr(mode=EvMode.AUTO), EvAttr(min_active=2)):
        with refused(errno.EBUSY, "take it OFFLINE to change"):
            node.profile.modify(attr)


def test_fields_change_online(node, refused):
    """Other bits around the same EVs: every path moves, in the tables in use as well."""
    node.offline(fields=(EvField(16, 0xC350, mask=0x000F),))
    node.fill(*(EvId(bytes([i << 4]), 1 + i % 2) for i in range(4)))
    node.profile.modify(state=ONLINE)
    table = node.table()
    assert sorted(states_of(table)) == [0xC350, 0xC351, 0xC352, 0xC353]
    node.profile.modify(EvAttr(fields=(EvField(16, 0xD000, mask=0x00F0),)))
    assert sorted(states_of(table)) == [0xD000, 0xD010, 0xD020, 0xD030]
    with refused(errno.EINVAL, "beyond"):
        node.profile.modify(EvAttr(fields=(EvField(16, 0xD001),)))
    assert sorted(e.value for e in node.profile.profile) == sorted(states_of(table))


def test_a_tag_is_not_used_again_at_once(context):
    """H23: late feedback of the former path must not be taken for that of the new one."""
    node = Node(context)
    fmt = node.control.create_format()
    fmt.modify(FormatAttr(FmtMode.SRV6, (32, 32, 32, 32)), state=OFFLINE)
    fmt.modify(state=ONLINE)
    node.offline(format=fmt.id, fields=(EvField(32, mask=0xFFFFFFFF),) * 4, count=2)
    ways = [EvId(IPv6Address(f"fcbb:bbbb:{n}::").packed) for n in range(1, 4)]
    node.fill(*ways[:2])
    node.profile.modify(state=ONLINE)
    before = {e.value for e in node.profile.profile}
    node.profile.modify(ops=[EvReplace(ways[0], ways[2])])
    first, second = node.profile.profile
    assert first.dst == IPv6Address("fcbb:bbbb:3::")
    assert first.value not in before
    assert second.value in before
