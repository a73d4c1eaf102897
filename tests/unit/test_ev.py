# SPDX-License-Identifier: BSD-2-Clause
"""EV profiles: the worked examples of D.4, the checks of D.3, and files with mistakes in them."""

from __future__ import annotations

from ipaddress import IPv6Address

import pytest

import mrc
from mrc.ev import EvEntry, EvField, EvProfile, expand, split_value

F = EvField
USID = (32, 16, 16, 16, 16, 16, 16)


# ---- expansion (D.4) -----------------------------------------------------------------------


def test_worked_example_1_stev():
    fields = [F(16, 0x4000, mask=0x00F3), F(16, 0x8001, mask=0x0FF0)]
    values = split_value(fields, bytes.fromhex("B728"))
    assert values == [0b101101, 0b11001010]
    assert expand(fields, (16, 16), values, 32) == 0x40B18CA1


def test_worked_example_2_srv6():
    fields = [
        F(32, 0xFCBBBBBB),
        F(16, 0x1007, mask=0x0700),
        F(16, 0x2000, mask=0x07FF),
        F(16, 0x1015, mask=0x0700),
        F(16, 0x302C, mask=0x0700),
    ]
    bits = "101" + "101" + "10100011" + "101" + "101"
    ev = int(bits.ljust(24, "0"), 2).to_bytes(3, "big")
    path = expand(fields, (32, 16, 16, 16, 16), split_value(fields, ev), 128)
    assert IPv6Address(path) == IPv6Address("fcbb:bbbb:1507:25a3:1515:352c::")


def test_worked_example_3_srv6_srh():
    fields = [
        F(32, 0xCAFECAFE),
        F(4, 0, mask=0xF),
        F(8, 0x10, mask=0x0F),
        F(16, 0x0300, mask=0x003F),
        F(16, 0x0400),
        F(16, 0x0500),
        F(16, 0x0600),
        F(32, 0xDECAFBAD),
        F(12, 0x700, mask=0x0FF),
        F(16, 0x0E00, mask=0x00FF),
    ]
    bits = "1001" + "0110" + "101011" + "00001111" + "11000011"
    ev = int(bits.ljust(32, "0"), 2).to_bytes(4, "big")
    path = expand(fields, (*USID, 32, 16, 16), split_value(fields, ev), 256)
    assert IPv6Address(path >> 128) == IPv6Address("cafe:cafe:9:16:32b:400:500:600")
    assert IPv6Address(path & (1 << 128) - 1) == IPv6Address("deca:fbad:70f:ec3::")


def test_ev_bits_beyond_the_fields_must_be_zero():
    fields = [F(8, mask=0x0F)]
    assert split_value(fields, b"\x50") == [5]
    with pytest.raises(mrc.MrcProfileError, match="beyond"):
        split_value(fields, b"\x51")
    with pytest.raises(mrc.MrcProfileError, match="shorter"):
        split_value([F(16, mask=0xFFFF)], b"\x01")


def test_mask_replaces_bits_of_init():
    assert F(8, 0xFF, mask=0x0F).deposit(0) == 0xF0
    assert F(8, 0x00, mask=0x81).deposit(0b10) == 0x80


# ---- plain source ports --------------------------------------------------------------------


def test_udp_profile():
    profile = EvProfile.udp(16, 49152, planes=4)
    assert [e.source_port for e in profile] == list(range(49152, 49168))
    assert [e.plane for e in profile] == [1, 2, 3, 4] * 4
    assert all(e.flow_label == 0 for e in profile)
    assert profile.min_active == 4
    assert profile == EvProfile.udp(16, 49152, planes=4)
    assert len({profile, EvProfile.udp(16, 49152, planes=4)}) == 1


@pytest.mark.parametrize(
    "args", [(0,), (4097,), (16, 0), (16, 65521), (16, 65535), (4, 49152, 0), (4, 49152, 32)]
)
def test_udp_profile_limits(args):
    with pytest.raises(mrc.MrcProfileError):
        EvProfile.udp(*args)


def test_udp_profile_at_the_edge():
    assert EvProfile.udp(16, 65520).entries[-1].source_port == 65535
    assert EvProfile.udp(1).min_active == 1


@pytest.mark.parametrize(
    ("fmt", "entries", "words"),
    [
        (mrc.EvFormat.UDP, [], "0 EVs"),
        (mrc.EvFormat.UDP, [EvEntry(0x10001)], "does not fit format udp"),
        (mrc.EvFormat.STEV, [EvEntry(0x10000)], "source port 0"),
        (mrc.EvFormat.UDP, [EvEntry(5), EvEntry(5)], "[[ev]] 2: value: 0x5 is [[ev]] 1 too"),
        (mrc.EvFormat.UDP, [EvEntry(5, backup=True)], "all EVs are backups"),
        (mrc.EvFormat.UDP, [EvEntry(5, plane=32)], "port: 32"),
        (mrc.EvFormat.SRV6, [EvEntry(5)], "dst: is needed"),
        (mrc.EvFormat.UDP, [EvEntry(5, dst=IPv6Address("::1"))], "dst: is not possible"),
        (mrc.EvFormat.SRV6_SRH, [EvEntry(5, dst=IPv6Address("fc00::1"))], "srh: belongs"),
        (mrc.EvFormat.SRV6, [EvEntry(5, dst=IPv6Address("ff02::1"))], "no destination"),
    ],
)
def test_profile_rules(fmt, entries, words):
    with pytest.raises(mrc.MrcProfileError) as caught:
        EvProfile(fmt, tuple(entries))
    assert words in str(caught.value)


# ---- files ---------------------------------------------------------------------------------


@pytest.fixture
def load(tmp_path):
    def read(text):
        path = tmp_path / "paths.toml"
        path.write_text(text)
        return EvProfile.load(path)

    return read


def test_explicit_file(load):
    profile = load(
        """
        format = "srv6-srh"
        min_active = 1
        [[ev]]
        value = 0x0005C001
        port = 2
        dst = "fcbb:0:a00:b00::"
        srh = "fcbb:0:c00::"
        [[ev]]
        value = 0xC002
        dst = "fcbb:0:a10:b00::"
        srh = "fcbb:0:c00::"
        backup = true
        """
    )
    first, second = profile
    assert (first.flow_label, first.source_port, first.plane) == (5, 0xC001, 2)
    assert first.dst == IPv6Address("fcbb:0:a00:b00::")
    assert (second.plane, second.backup) == (1, True)


def test_interfaces_of_planes(load):
    planes = "".join(f'[[plane]]\nnumber = 1\ninterface = "eth{i}"\n' for i in (0, 1))
    profile = load('format = "udp"\n' + ONE_EV + planes)
    assert profile.interfaces == ((1, "eth0"), (1, "eth1"))


def test_generated_srv6_covers_all_combinations(load):
    profile = load(
        """
        format = "srv6"
        plane_field = 1
        sport_base = 50000
        [[field]]
        width = 32
        init = 0xfcbb0000
        [[field]]
        init = 0x0a00
        mask = 0x0030
        max = 3
        [[field]]
        init = 0x0b00
        mask = 0x0003
        min = 1
        max = 2
        """
    )
    assert len(profile) == 8
    assert len({e.dst for e in profile}) == 8
    assert sorted(e.source_port for e in profile) == list(range(50000, 50008))
    for entry in profile:
        plane_bits = entry.dst.packed[5] >> 4
        assert entry.plane == plane_bits + 1
        assert entry.dst.packed[7] in (1, 2)
        assert entry.dst.packed[:4] == bytes.fromhex("fcbb0000")
    assert [sum(e.plane == p for e in profile) for p in (1, 2, 3, 4)] == [2, 2, 2, 2]


def test_generated_subset_is_even_and_repeatable(load):
    text = """
        format = "stev"
        count = 64
        planes = 4
        [[field]]
        init = 0x0000
        mask = 0x00FF
        [[field]]
        init = 0xC000
        mask = 0x00FF
        """
    profile = load(text)
    assert profile.entries == load(text).entries
    assert len({e.value for e in profile}) == 64
    assert len({e.flow_label for e in profile}) > 32
    assert len({e.source_port for e in profile}) > 32
    assert [sum(e.plane == p for e in profile) for p in (1, 2, 3, 4)] == [16] * 4


def test_generated_udp(load):
    profile = load('format = "udp"\n[[field]]\ninit = 0xC000\nmask = 0x000F\n')
    assert sorted(e.value for e in profile) == list(range(0xC000, 0xC010))


GOOD_FIELD = "[[field]]\ninit = 1\n"
ONE_EV = "[[ev]]\nvalue = 1\n"
MISTAKES = {
    "syntax": ('format = "udp"\n[[ev]\n', ["line 2"]),
    "no format": ("[[ev]]\nvalue = 1\n", ["format: is missing", "srv6-srh"]),
    "bad format": ('format = "mpls"\n[[ev]]\nvalue = 1\n', ["format: 'mpls' is not known"]),
    "neither": ('format = "udp"\n', ["either [[ev]] tables or [[field]]"]),
    "both": ('format = "udp"\n[[ev]]\nvalue = 1\n[[field]]\nmask = 1\n', ["either [[ev]]"]),
    "not tables": ('format = "udp"\nev = 5\n', ["ev: must be [[ev]] tables"]),
    "empty": ('format = "udp"\nev = []\n', ["ev: has no [[ev]] table"]),
    "unknown key": ('format = "udp"\n[[ev]]\nvalue = 1\nprot = 2\n', ["[[ev]] 1: prot: unknown"]),
    "unknown top key": ('format = "udp"\ncount = 3\n[[ev]]\nvalue = 1\n', ["count: unknown key"]),
    "no value": ('format = "udp"\n[[ev]]\nport = 1\n', ["[[ev]] 1: value: is missing"]),
    "value type": ('format = "udp"\n[[ev]]\nvalue = "1"\n', ["value: '1' is not an integer"]),
    "value bool": ('format = "udp"\n[[ev]]\nvalue = true\n', ["value: true is not an integer"]),
    "second port": (
        'format = "udp"\n[[ev]]\nvalue = 1\n[[ev]]\nvalue = 2\nport = 40\n',
        ["[[ev]] 2: port: 40 is not in 1..31"],
    ),
    "dst type": ('format = "srv6"\n[[ev]]\nvalue = 1\ndst = 5\n', ["dst: 5 is not an IPv6"]),
    "dst short": (
        'format = "srv6"\n[[ev]]\nvalue = 1\ndst = "1::2:"\n',
        ["[[ev]] 1: dst: '1::2:' is not an IPv6 address$"],
    ),
    "dst list": ('format = "srv6"\n[[ev]]\nvalue = 1\ndst = [true]\n', ["dst: [true] is not"]),
    "value table": ('format = "udp"\n[[ev]]\nvalue = {a = 1}\n', ["value: a table is not an"]),
    "no toml": ("[[ev]\n", [": is not TOML: ", "line 1"]),
    "dst text": ('format = "srv6"\n[[ev]]\nvalue = 1\ndst = "1.2.3.4"\n', ["dst: '1.2.3.4'"]),
    "backup": ('format = "udp"\n[[ev]]\nvalue = 1\nbackup = 1\n', ["backup: 1 is not true"]),
    "min_active": ('format = "udp"\nmin_active = 2\n[[ev]]\nvalue = 1\n', ["min_active: 2"]),
    "min_active 0": ('format = "udp"\nmin_active = 0\n[[ev]]\nvalue = 1\n', ["min_active: 0"]),
    "init": ('format = "udp"\n[[field]]\nwidth = 4\ninit = 16\n', ["[[field]] 1: init: 0x10"]),
    "mask": ('format = "udp"\n[[field]]\nwidth = 4\nmask = 0x10\n', ["[[field]] 1: mask: 0x10"]),
    "max": ('format = "udp"\n[[field]]\nmask = 3\nmax = 4\n', ["[[field]] 1: max: 4"]),
    "min": ('format = "udp"\n[[field]]\nmask = 3\nmin = 3\nmax = 2\n', ["[[field]] 1: min: 3"]),
    "width": ('format = "stev"\n[[field]]\nwidth = 17\n', ["more than the format field's 16"]),
    "width 0": ('format = "stev"\n[[field]]\nwidth = 0\n', ["width: 0 is not in 1..32"]),
    "fields": ('format = "udp"\n' + GOOD_FIELD * 2, ["field: 2 fields, the format has 1"]),
    "widths": ('format = "udp"\nwidths = [8, 9]\n' + GOOD_FIELD, ["widths: 17 bits"]),
    "widths type": ('format = "udp"\nwidths = 3\n' + GOOD_FIELD, ["widths: 3 is not a list"]),
    "widths zero": ('format = "udp"\nwidths = [0]\n' + GOOD_FIELD, ["widths: [0] is not a list"]),
    "count": ('format = "udp"\ncount = 3\n[[field]]\ninit=9\nmask = 1\n', ["only 2 combinations"]),
    "plane_field": ('format = "udp"\nplane_field = 1\n' + GOOD_FIELD, ["plane_field: 1 is not"]),
    "planes twice": (
        'format = "udp"\nplanes = 2\nplane_field = 0\n' + GOOD_FIELD,
        ["plane_field: cannot be given together"],
    ),
    "too many planes": (
        'format = "udp"\nplane_field = 0\n[[field]]\ninit = 0x100\nmask = 0x3F\n',
        ["plane_field: gives plane 32"],
    ),
    "sport_base": (
        'format = "srv6"\nsport_base = 65535\n[[field]]\n[[field]]\nmask = 3\n',
        ["sport_base: 65535 + 4"],
    ),
    "plane type": ('format = "udp"\nplane = 1\n' + ONE_EV, ["plane: must be [[plane]] tables"]),
    "plane key": (
        'format = "udp"\n' + ONE_EV + '[[plane]]\nnumber = 1\nnic = "a"\n',
        ["[[plane]] 1: nic: unknown key"],
    ),
    "plane number": (
        'format = "udp"\n' + ONE_EV + '[[plane]]\ninterface = "a"\n',
        ["[[plane]] 1: number: is missing"],
    ),
    "plane without EV": (
        'format = "udp"\n' + ONE_EV + '[[plane]]\nnumber = 2\ninterface = "a"\n',
        ["[[plane]] 1: number: no EV is in plane 2"],
    ),
    "no interface": (
        'format = "udp"\n' + ONE_EV + "[[plane]]\nnumber = 1\n",
        ["[[plane]] 1: interface: None is not an interface name"],
    ),
    "long interface": (
        'format = "udp"\n' + ONE_EV + '[[plane]]\nnumber = 1\ninterface = "sixteen-letters-"\n',
        ["[[plane]] 1: interface: 'sixteen-letters-' is no interface name"],
    ),
    "interface twice": (
        'format = "udp"\n' + ONE_EV + '[[plane]]\nnumber = 1\ninterface = "a"\n' * 2,
        ["[[plane]] 2: interface: 'a' occurs twice"],
    ),
    "port 0": ('format = "udp"\n[[field]]\nmask = 3\n', ["source port 0"]),
}


@pytest.mark.parametrize(("text", "words"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_named(load, text, words):
    with pytest.raises(mrc.MrcProfileError) as caught:
        load(text)
    message = str(caught.value)
    assert "paths.toml: " in message
    for word in words:
        assert word in f"{message}$"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            'format = "udp"\n# a path\n[[ev]]\nvalue = 1\n\n[[ ev ]] # two\nprot = 2\nvalue = 2\n',
            "line 7: [[ev]] 2: prot: unknown key; did you mean port; known here: ",
        ),
        (
            'format = "udp"\nmin_activ = 2\n' + ONE_EV,
            "line 2: min_activ: unknown key; did you mean ",
        ),
        ('format = "udp"\n' + ONE_EV + "[[plan]]\nnumber = 1\n", "line 4: plan: unknown key; did "),
        ('format = "udp"\n' + ONE_EV + "[[ev]]\nport = 2\n", "line 4: [[ev]] 2: value: is missing"),
        (
            'format = "udp"\nev = [{value = 1, prot = 2}]\n',
            "paths.toml: [[ev]] 1: prot: unknown key",
        ),
        ('format = "udp"\n"zzz" = 1\n' + ONE_EV, "line 2: zzz: unknown key; known here"),
    ],
)
def test_mistakes_name_the_line_and_what_was_meant(load, text, words):
    with pytest.raises(mrc.MrcProfileError) as caught:
        load(text)
    assert words in str(caught.value)


def test_a_profile_of_which_all_is_denied_is_refused():
    with pytest.raises(mrc.MrcProfileError, match="EV profile: deny: no EV is left"):
        EvProfile.udp(1).denying([49152])
    with pytest.raises(mrc.MrcProfileError, match="deny: no EV is left"):
        EvProfile(mrc.EvFormat.UDP, (EvEntry(1), EvEntry(2)), deny=(1, 2, 2))
    assert EvProfile.udp(2).denying([49152]).deny == (49152,)


def test_a_file_that_is_no_text_names_the_line(tmp_path):
    (tmp_path / "p.toml").write_bytes(b'format = "udp"\n\xff\n')
    with pytest.raises(mrc.MrcProfileError, match=r"p\.toml: line 2: is not UTF-8 text$"):
        EvProfile.load(tmp_path / "p.toml")


def test_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        EvProfile.load(tmp_path / "none.toml")


def test_file_that_is_not_text(tmp_path):
    path = tmp_path / "paths.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(mrc.MrcProfileError, match=r"paths\.toml"):
        EvProfile.load(path)
