# SPDX-License-Identifier: BSD-2-Clause
"""What a profile file says beside its paths: row templates, denylist, way back, events."""

from __future__ import annotations

from ipaddress import IPv6Address

import pytest

import mrc
from mrc.ev import EventMask, EvProfile, LossRule, ReverseRule, SkipRule
from mrc.headers import outer_templates

ROWS = """
[[row]]
prefix = "fd00:15::/64"
template = "fcbb:bbbb:1007:2000:1015:3000::"

[[row]]
prefix = "fd00::/16"
template = "fcbb:bbbb:1007:2000:1099:3000::"

[[row]]
prefix = "fd00:7::/64"
template = "fcbb:bbbb:1007:3000::"
uplink = -1
"""
TEMPLATE = '[template]\nrows = "rows.toml"\n'
MADE = 'format = "srv6"\nplanes = 4\nuplinks = [1, 8]\n' + TEMPLATE


@pytest.fixture
def load(tmp_path):
    def read(text, rows=ROWS, **more):
        (tmp_path / "paths.toml").write_text(text)
        (tmp_path / "rows.toml").write_text(rows)
        for name, content in more.items():
            (tmp_path / f"{name}.txt").write_text(content)
        return EvProfile.load(tmp_path / "paths.toml")

    return read


# ---- row templates (D.9) -------------------------------------------------------------------


def test_evs_say_plane_and_uplink(load):
    profile = load(MADE)
    assert len(profile) == 32
    assert [e.plane for e in profile][:8] == [1, 2, 3, 4, 1, 2, 3, 4]
    assert all(e.value >> 24 == e.plane and e.dst is None for e in profile)
    assert sorted(e.value & 0xFFFF for e in profile) == list(range(49152, 49152 + 32))
    pairs = {(e.plane, e.value >> 16 & 0xFF) for e in profile}
    assert pairs == {(p, u) for p in range(1, 5) for u in range(1, 9)}


def test_more_evs_than_links_differ_in_their_ports(load):
    profile = load("count = 128\n" + MADE)
    assert len({e.value for e in profile}) == 128
    assert [sum(e.plane == p for e in profile) for p in range(1, 5)] == [32] * 4


def test_destinations_come_from_the_row_of_the_longest_prefix(load):
    profile = load('format = "srv6"\n[[ev]]\nvalue = 0x05A3C41F\n' + TEMPLATE)
    assert profile.entries[0].plane == 5
    for dst, outer in (
        ("fd00:15::2c", "fcbb:bbbb:1507:25a3:1515:352c::"),
        ("fd00:16::2c", "fcbb:bbbb:1507:25a3:1599:352c::"),
        ("fd00:7::01", "fcbb:bbbb:1507:3501::"),
    ):
        towards = profile.towards(IPv6Address(dst))
        assert towards.entries[0].dst == IPv6Address(outer)
        (header,) = outer_templates(towards, IPv6Address("fd00:7::1"))
        assert header[24:40] == IPv6Address(outer).packed
    with pytest.raises(mrc.MrcProfileError, match="no row template for 2001:db8::1"):
        profile.towards(IPv6Address("2001:db8::1"))


def test_other_number_schemes(load):
    """uSID = number(8) plane(2) role(6); EV = uplink in bits 31:24, plane in 23:22."""
    rows = """
        plane = [6, 2]
        number = [8, 8]
        [[row]]
        prefix = "fd00::/16"
        template = "fcbb:bbbb:0701:0002:1501:0003::"
        host = 3
        downlink = [16, 8]
        """
    profile = load(
        'format = "srv6"\n[[ev]]\nvalue = 0xA340C41F\n[template]\nrows = "rows.toml"\n'
        "ev_plane = [22, 2]\nev_uplink = [24, 8]\n",
        rows,
    )
    towards = profile.towards(IPv6Address("fd00::2c:0"))
    assert towards.entries[0].dst == IPv6Address("fcbb:bbbb:0741:a342:1541:2c43::")


def test_a_number_that_does_not_fit_is_an_error(load):
    profile = load(MADE, ROWS + "downlink = [0, 16]\n")
    with pytest.raises(mrc.MrcProfileError, match="downlink 256 of fd00:7::100"):
        profile.towards(IPv6Address("fd00:7::100"))
    wide = load('format = "srv6"\n[[ev]]\nvalue = 0x1101C000\n' + TEMPLATE)
    with pytest.raises(mrc.MrcProfileError, match="plane 17 of EV 0x1101c000"):
        wide.towards(IPv6Address("fd00:15::1"))


ROW = '[[row]]\nprefix = "fd00::/16"\ntemplate = "fcbb:bbbb:1007:2000:1015:3000::"\n'
ROW_MISTAKES = {
    "no rows": ("", ["row: has no [[row]] table"]),
    "no toml": ("[[row]\n", ["rows: ", "rows.toml: is not TOML"]),
    "key": (
        ROW + "uplnk = 1\n",
        ["rows.toml: line 4: [[row]] 1: uplnk: unknown key; did you mean uplink"],
    ),
    "prefix": (
        '[[row]]\nprefix = "fd00::1/16"\ntemplate = "::1"\n',
        ["prefix: 'fd00::1/16' is no"],
    ),
    "no prefix": ('[[row]]\ntemplate = "::1"\n', ["prefix: None is not"]),
    "no template": ('[[row]]\nprefix = "fd00::/16"\n', ["template: is missing"]),
    "zero uSID": (ROW.replace("2000", "0"), ["a zero uSID before its end"]),
    "empty": (ROW.replace("1007:2000:1015:3000::", ":"), ["has no uSID"]),
    "uplink": (ROW + "uplink = 4\n", ["[[row]] 1: uplink: 4 is not in 0..3"]),
    "host": (ROW + "host = 9\n", ["host: 9 is not in 0..3"]),
    "same": (ROW + "host = 1\n", ["uplink and host are both uSID 1"]),
    "downlink": (ROW + "downlink = [0]\n", ["downlink: [0] is not [lowest bit, number"]),
    "downlink bits": (ROW + "downlink = [120, 16]\n", ["downlink is bits of an address"]),
    "twice": (ROW + ROW, ["[[row]] 2: prefix: fd00::/16 is that of [[row]] 1 too"]),
    "overlap": ("plane = [4, 8]\n" + ROW, ["plane and number share bits"]),
    "outside": ("plane = [12, 8]\n" + ROW, ["are bits of a uSID of 16"]),
    "block": ("block = 127\n" + ROW, ["block and uSID are not parts"]),
}


@pytest.mark.parametrize(("rows", "words"), ROW_MISTAKES.values(), ids=ROW_MISTAKES.keys())
def test_mistakes_in_the_rows_are_named(load, rows, words):
    with pytest.raises(mrc.MrcProfileError) as caught:
        load(MADE, rows)
    for word in words:
        assert word in str(caught.value)


TEMPLATE_MISTAKES = {
    "format": (MADE.replace('"srv6"', '"stev"'), ["format srv6 only, not stev"]),
    "no file": (MADE.replace("rows.toml", "none.toml"), ["rows: ", "none.toml: No such file"]),
    "no name": ('format = "srv6"\n[template]\n', ["[template]: rows: is missing"]),
    "not a table": ('format = "srv6"\ntemplate = 5\n', ["template: must be a [template] table"]),
    "key": (MADE + "x = 1\n", ["[template]: x: unknown key"]),
    "dst": (
        'format = "srv6"\n[[ev]]\nvalue = 0x0101C000\ndst = "fc00::1"\n' + TEMPLATE,
        ["[[ev]] 1: dst: comes from the row templates"],
    ),
    "plane": (
        'format = "srv6"\n[[ev]]\nvalue = 0x0101C000\nport = 2\n' + TEMPLATE,
        ["port: 2 is not plane 1, which 0x101c000 says"],
    ),
    "no plane": (
        'format = "srv6"\n[[ev]]\nvalue = 0xC000\n' + TEMPLATE,
        ["port: 0 is not in 1..31"],
    ),
    "uplinks": (MADE.replace("[1, 8]", "[8, 1]"), ["uplinks: [8, 1] is not [first, last]"]),
    "wide uplinks": (MADE.replace("[1, 8]", "[0, 256]"), ["uplinks: [0, 256] is not"]),
    "ev bits": (MADE + "ev_plane = [16, 8]\n", ["plane and uplink share bits"]),
    "ev outside": (MADE + "ev_plane = [30, 8]\n", ["are bits of a 32-bit EV"]),
    "plane width": (
        'format = "srv6"\n' + TEMPLATE + "ev_plane = [22, 9]\nev_uplink = [16, 4]\n",
        ["at most 8 bits"],
    ),
    "low bits": (MADE + "ev_uplink = [8, 8]\n", ["with the source port in the low 16 bits"]),
    "sport": ("sport_base = 65530\n" + MADE, ["sport_base: 65530 + 32"]),
    "fields": ("[[field]]\nwidth = 16\n" + MADE, ["field: unknown key"]),
}


@pytest.mark.parametrize(
    ("text", "words"), TEMPLATE_MISTAKES.values(), ids=TEMPLATE_MISTAKES.keys()
)
def test_mistakes_in_the_template_are_named(load, text, words):
    lines = text.splitlines(keepends=True)
    head = [line for line in lines if line.startswith("format")]
    with pytest.raises(mrc.MrcProfileError) as caught:
        load("".join(head) + "".join(line for line in lines if line not in head))
    for word in words:
        assert word in str(caught.value)


# ---- denylist (D.7) ------------------------------------------------------------------------

FOUR = 'format = "udp"\n' + "".join(f"[[ev]]\nvalue = {49152 + i}\n" for i in range(4))


def test_denied_from_the_start(load):
    assert load("deny = [49153, 0xC003]\n" + FOUR).deny == (49153, 49155)
    listed = load(
        'deny = [49152]\ndeny_file = "bad.txt"\n' + FOUR,
        bad="# links out of order\n0xC001  # spine 3\n\n70000\n49152\n",
    )
    assert listed.deny == (49152, 49153), "others than ours are not our business"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("deny = [1]\n" + FOUR, "deny: no EV is 0x1"),
        ('deny = ["x"]\n' + FOUR, "deny: ['x'] is not a list of EVs"),
        ("deny = [49152, 49153, 49154, 49155]\n" + FOUR, "deny: no EV is left"),
        ('deny_file = "bad.txt"\n' + FOUR, "bad.txt: line 1: 'spine' is not an EV"),
        ('deny_file = "none.txt"\n' + FOUR, "none.txt: No such file"),
        ("deny_file = 5\n" + FOUR, "deny_file: 5 is not a file name"),
    ],
)
def test_mistakes_in_the_denylist(load, text, words):
    with pytest.raises(mrc.MrcProfileError) as caught:
        load(text, bad="spine\n")
    assert words in str(caught.value)


def test_what_a_loss_says_is_a_setting(load):
    assert load(FOUR).loss is LossRule.COMPARED
    assert load('loss = "first"\n' + FOUR).loss is LossRule.FIRST
    with pytest.raises(mrc.MrcProfileError, match="loss: 'any' is not known; one of compared"):
        load('loss = "any"\n' + FOUR)


def test_how_long_a_mark_counts_is_a_setting(load):
    assert load(FOUR).skip is SkipRule.COMPARED
    assert load('skip = "turn"\n' + FOUR).skip is SkipRule.TURN
    with pytest.raises(mrc.MrcProfileError, match="skip: 'any' is not known; one of compared"):
        load('skip = "any"\n' + FOUR)


# ---- way back (D.8), events (C.6) ----------------------------------------------------------


def test_the_way_back_suits_the_format(load):
    assert EvProfile.udp(4).reverse_rule is ReverseRule.REFLECT
    assert load(MADE).reverse_rule is ReverseRule.OWN
    for name, rule in (
        ("reflect", ReverseRule.REFLECT),
        ("own", ReverseRule.OWN),
        ("own-random", ReverseRule.OWN_RANDOM),
    ):
        assert load(f'reverse = "{name}"\n' + MADE).reverse_rule is rule
        assert load(f'reverse = "{name}"\n' + FOUR).reverse_rule is rule
    with pytest.raises(mrc.MrcProfileError, match="reverse: 'back' is not known; one of reflect"):
        load('reverse = "back"\n' + FOUR)


def test_events_of_a_profile(load):
    assert load(FOUR).events is EventMask.ALL
    assert load("events = []\n" + FOUR).events is EventMask.NONE
    both = load('events = ["good", "assumed-bad"]\n' + FOUR).events
    assert both == EventMask.GOOD | EventMask.ASSUMED_BAD
    with pytest.raises(mrc.MrcProfileError, match="events: 'skip' is not known; any of good"):
        load('events = ["skip"]\n' + FOUR)
    with pytest.raises(mrc.MrcProfileError, match="events: 'good' is not a list"):
        load('events = "good"\n' + FOUR)


# ---- automatic (D.3) -----------------------------------------------------------------------


def test_a_number_is_enough(load):
    profile = load('format = "udp"\ncount = 6\nplanes = 2\n')
    assert [(e.value, e.plane) for e in profile] == [(49152 + i, 1 + i % 2) for i in range(6)]
    text = 'format = "stev"\ncount = 128\n'
    assert len({e.value for e in load(text)}) == 128
    assert load(text + "seed = 7\n").entries == load(text + "seed = 7\n").entries
    assert load(text).entries != load(text).entries


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('format = "srv6"\ncount = 4\n', "format: format srv6 cannot be automatic"),
        ('format = "udp"\ncount = 0\n', "count: 0 is not in 1..4096"),
        ('format = "udp"\ncount = 4\nsport_base = 1\n', "sport_base: unknown key"),
    ],
)
def test_mistakes_in_an_automatic_profile(load, text, words):
    with pytest.raises(mrc.MrcProfileError) as caught:
        load(text)
    assert words in str(caught.value)
