# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of planes (C.4): what is refused, and where they go in profiles, headers and tables."""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import IPv6Address, IPv6Network

import pytest

import mrc
from mrc._core import MemWire
from mrc.evrows import Row, RowTable
from mrc.headers import outer_templates
from mrc.oob import ConnectionInfo, FrameError, QpInfo
from mrc.options import ConnectionOptions
from mrc.planes import pair_up, plane_addresses

INFO = ConnectionInfo(QpInfo(IPv6Address("fd00::1"), 0x123456, 0xABCDEF, 4792))
OWN = plane_addresses({2: "fd00:2::1", 1: IPv6Address("fd00:1::1")})
NO_PLANE_ADDRESS = ["ff02::1", "::", "::ffff:10.0.0.1", "fe80::1", "fd00::1%eth0"]


# ---- what a peer says ----------------------------------------------------------------------


def told(*listed):
    return {**INFO.to_dict(), "plane_addresses": list(listed)}


def one(plane=1, gid="fd00:1::1"):
    return {"plane": plane, "gid": gid}


def test_the_exchange_carries_them():
    info = replace(INFO, plane_addresses=OWN)
    assert ConnectionInfo.from_dict(json.loads(json.dumps(info.to_dict()))) == info
    turned = ConnectionInfo.from_dict(told(one(2, "fd00:2::1"), one()))
    assert turned.plane_addresses == OWN


def test_who_says_none_has_one_for_all():
    plain = INFO.to_dict()
    del plain["plane_addresses"]
    assert ConnectionInfo.from_dict(plain) == ConnectionInfo.from_dict(told()) == INFO


@pytest.mark.parametrize(
    "listed",
    [
        [one(0)],
        [one(32)],
        [one(True)],
        [one("1")],
        [one(), one(1, "fd00:2::1")],
        [one(n % 32, f"fd00:{n}::1") for n in range(1, 33)],
        [5],
        [[1, "fd00:1::1"]],
        [{"plane": 1}],
        [{"gid": "fd00:1::1"}],
        [one(1, 5)],
        [one(1, "10.0.0.1")],
        [one(1, "::1")],
        *([one(1, gid)] for gid in NO_PLANE_ADDRESS),
    ],
)
def test_a_hostile_list_is_refused(listed):
    with pytest.raises(FrameError, match=r"plane|gid"):
        ConnectionInfo.from_dict(told(*listed))


def test_a_peer_on_the_loopback_may_have_its_planes_there():
    here = {**INFO.to_dict()["qp"], "gid": "::1"}
    info = ConnectionInfo.from_dict({**told(one(1, "::1")), "qp": here})
    assert info.plane_addresses == ((1, IPv6Address("::1")),)


def test_more_than_there_are_planes():
    assert ConnectionInfo.from_dict(told(*(one(n) for n in range(1, 32)))).plane_addresses
    with pytest.raises(FrameError, match="at most 31"):
        ConnectionInfo.from_dict(told(*(one(n) for n in range(1, 33))))


# ---- what we say ---------------------------------------------------------------------------


@pytest.mark.parametrize("address", [*NO_PLANE_ADDRESS, "10.0.0.1", "eth0", ""])
def test_own_addresses_are_checked(address):
    with pytest.raises(mrc.MrcUsageError, match="plane 1"):
        ConnectionOptions(plane_addresses={1: address})


@pytest.mark.parametrize("plane", [0, 32, 17])
def test_only_planes_there_are(plane):
    """The last one has no EV: there are 16."""
    given = {n: f"fd00:{n}::1" for n in range(1, 17)}
    with pytest.raises(mrc.MrcUsageError, match=f"plane {plane} "):
        ConnectionOptions(plane_addresses={**given, plane: "fd00::9"})


def test_evs_take_turns_on_the_planes_that_have_one():
    options = ConnectionOptions(plane_addresses={4: "fd00:4::1", 2: "fd00:2::1"}, evs=4)
    assert [e.plane for e in options.profile(4, 50000)] == [2, 4, 2, 4]
    assert [e.plane for e in ConnectionOptions().profile(4, 50000)] == [1] * 4


def test_the_option_is_over_the_profile():
    profile = replace(mrc.EvProfile.udp(4, planes=2), sources=OWN)
    options = ConnectionOptions(ev_profile=profile, plane_addresses={2: "fd00:2::9"})
    assert options.sources == (OWN[0], (2, IPv6Address("fd00:2::9")))
    assert ConnectionOptions(ev_profile=profile).sources == OWN
    with pytest.raises(mrc.MrcUsageError, match="plane 3 has an address, but no EV"):
        ConnectionOptions(ev_profile=profile, plane_addresses={3: "fd00:3::1"})


PLANE_FILE = 'format = "udp"\n[[ev]]\nvalue = 5\n[[ev]]\nvalue = 6\nport = 2\n'


def test_a_profile_names_them(tmp_path):
    path = tmp_path / "evs.toml"
    path.write_text(
        PLANE_FILE + '[[plane]]\nnumber = 2\nsource = "fd00:2::1"\n'
        '[[plane]]\nnumber = 1\ninterface = "eth0"\nsource = "fd00:1::1"\n'
    )
    profile = mrc.EvProfile.load(path)
    assert (profile.sources, profile.interfaces) == (OWN, ((1, "eth0"),))


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ('number = 3\nsource = "fd00:3::1"\n', "plane 3 has an address, but no EV"),
        ('number = 1\nsource = "fe80::1"\n', r"\[\[plane\]\] 1: source: fe80::1 is link-local"),
        ('number = 1\nsource = "ff02::1"\n', "no unicast"),
        ("number = 1\nsource = 5\n", "source: 5 is not an IPv6 address"),
        ('number = 0\nsource = "fd00:1::1"\n', "number: 0 is not in 1..31"),
        (
            'number = 1\nsource = "fd00::1"\n[[plane]]\nnumber = 1\nsource = "fd00::2"\n',
            r"\[\[plane\]\] 2: source: plane 1 has fd00::1 already",
        ),
    ],
)
def test_mistakes_in_a_profile(tmp_path, tables, words):
    path = tmp_path / "evs.toml"
    path.write_text(PLANE_FILE + "[[plane]]\n" + tables)
    with pytest.raises(mrc.MrcProfileError, match=words):
        mrc.EvProfile.load(path)


def test_addresses_of_planes_by_hand():
    with pytest.raises(mrc.MrcProfileError, match="plane 1: source: "):
        replace(mrc.EvProfile.udp(4), sources=((1, IPv6Address("fe80::1")),))
    with pytest.raises(mrc.MrcProfileError, match="no EV"):
        replace(mrc.EvProfile.udp(4), sources=(OWN[0], OWN[0]))


# ---- where they go -------------------------------------------------------------------------


def test_who_has_none_in_a_plane_uses_the_one_for_all():
    peer = ((2, IPv6Address("fd00:2::2")), (3, IPv6Address("fd00:3::2")))
    src, dst = IPv6Address("fd00::1"), IPv6Address("fd00::2")
    assert pair_up(OWN, peer, src, dst) == (
        (1, OWN[0][1], dst),
        (2, OWN[1][1], peer[0][1]),
        (3, src, peer[1][1]),
    )
    assert pair_up((), (), src, dst) == ()


def test_outer_headers_come_from_the_address_of_their_plane():
    """A.13.1: and what was written for one plane is not left in the next."""
    entries = tuple(mrc.EvEntry(n, n, dst=IPv6Address(f"fcbb::{n}")) for n in (1, 3, 2))
    profile = mrc.EvProfile(mrc.EvFormat.SRV6, entries)
    headers = outer_templates(profile, IPv6Address("fd00::1"), dict(OWN))
    expected = [OWN[0][1], IPv6Address("fd00::1"), OWN[1][1]]
    assert [IPv6Address(h[8:24]) for h in headers] == expected


def test_rows_lead_to_the_address_of_the_plane():
    """D.9: the downlink number is that of the peer's address in the EV's plane."""
    template = IPv6Address("fcbb:bbbb:1007:2000:1015:3000::")
    rows = RowTable((Row(IPv6Network("fd00::/16"), template),))
    evs = (0x0101C000, 0x0201C000, 0x0301C000)
    entries = tuple(mrc.EvEntry(ev, ev >> 24) for ev in evs)
    profile = mrc.EvProfile(mrc.EvFormat.SRV6, entries, rows=rows)
    planes = {1: IPv6Address("fd00:1::11"), 3: IPv6Address("fd00:3::33")}
    towards = profile.towards(IPv6Address("fd00::22"), planes)
    assert [e.dst for e in towards] == [
        IPv6Address(f"fcbb:bbbb:1{n}07:2{n}01:1{n}15:3{n}{n}{n}::") for n in (1, 2, 3)
    ]


def test_a_table_between_addresses_of_planes():
    wire = MemWire()
    profile = mrc.EvProfile.udp(4, planes=2)
    pairs = pair_up(OWN, (), IPv6Address("fd00::a"), IPv6Address("fd00::b"))
    with mrc.Context(seed=1) as ctx:
        port = mrc.Port(ctx, mrc.Backend.MEM, wire=wire, mem_end=0)
        dst, src = IPv6Address("fd00::b"), IPv6Address("fd00::a")
        path = mrc.PathTable(port, profile, dst, 4791, src=src, planes=pairs)
        assert path.src == src
        path.replace(49152, mrc.EvEntry(50000, 1))
        with pytest.raises(mrc.MrcUsageError, match="addresses of a plane occur twice"):
            mrc.PathTable(port, profile, dst, 4791, src=src, planes=(pairs[0], pairs[0]))


def test_a_port_of_one_address_would_not_hear_the_answers():
    with mrc.Context(seed=1) as ctx:
        port = mrc.Port(ctx, mrc.Backend.UDP, addr="::1", udp_port=47910, udp_port_tries=100)
        here = IPv6Address("::1")
        with pytest.raises(mrc.MrcUsageError, match="not the one the port receives on"):
            mrc.PathTable(port, mrc.EvProfile.udp(1), here, 4791, planes=((1, OWN[0][1], here),))
