# SPDX-License-Identifier: BSD-2-Clause
"""The fabric on paper: numbers, addresses, commands. Nothing here touches a namespace."""

import tomllib
from ipaddress import IPv6Address
from typing import Any

import pytest

from mrc.lab import (
    FabricSpec,
    Mode,
    Role,
    carrier,
    ev_profile,
    paths_between,
    spine_of,
    usid,
)
from mrc.lab.config import links, namespace_lines, namespaces, rule_lines, sysctls
from mrc.lab.links import drop_program
from mrc.lab.plan import WINDOW_BYTES, fitting_window


def test_usid_numbers_follow_role_plane_number():
    """The worked example of MRC D.9: T1 0xA3 of plane 5."""
    assert usid(Role.T1, 5, 0xA3) == 0x25A3


def test_a_carrier_is_block_then_usids_then_zeros():
    assert carrier(0x1101, 0x2102) == IPv6Address("fcbb:bbbb:1101:2102::")
    assert carrier(1, 2, 3, 4, 5, 6) == IPv6Address("fcbb:bbbb:1:2:3:4:5:6")
    for count in (0, 7):
        with pytest.raises(ValueError, match="1 to 6"):
            carrier(*range(1, count + 1))


def test_paths_use_all_planes_before_a_second_spine():
    paths = paths_between(FabricSpec(), 0, 1)
    assert [p.plane for p in paths] == [1, 2, 3, 4] * 4
    assert [p.spine for p in paths] == [s for s in (1, 2, 3, 4) for _ in range(4)]
    assert len({spine_of(p) for p in paths}) == 16
    assert [p.sport for p in paths] == list(range(49152, 49168))
    assert len({p.ev for p in paths}) == 16


def test_carriers_of_one_path():
    path = paths_between(FabricSpec(), 0, 1)[6]
    assert spine_of(path) == (3, 2)
    assert str(path.kernel_carrier) == "fcbb:bbbb:1301:2302:1302:3302::"
    assert str(path.raw_carrier) == "fcbb:bbbb:1301:2302:1302:4302::"
    assert str(path.srh_carrier) == "fcbb:bbbb:1301:2302::"
    assert str(path.srh_raw_entry) == "fcbb:bbbb:1302:4302::"
    assert path.ev == 0x0302C006


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"planes": 0}, "planes"),
        ({"planes": 15}, "planes"),
        ({"spines": 201}, "spines"),
        ({"hosts": 1}, "hosts"),
        ({"sport_base": 65530}, "sport_base"),
        ({"mtu": 1280}, "mtu"),
        ({"rate_mbit": 0}, "rate_mbit"),
    ],
)
def test_what_cannot_be_numbered_is_refused(wrong: dict[str, Any], says: str):
    with pytest.raises(ValueError, match=says):
        FabricSpec(**wrong)


def test_no_usid_reaches_the_local_space():
    """0xE000 and above are for local adjacencies (MRC A.13.1)."""
    wide, deep = FabricSpec(planes=1, spines=200), FabricSpec(planes=14, spines=140)
    for path in (*paths_between(wide, 0, 1), *paths_between(deep, 0, 1)):
        words = path.raw_carrier.exploded.split(":")[2:]
        assert all(int(w, 16) < 0xE000 for w in words)


def test_every_namespace_has_all_its_links():
    spec = FabricSpec(planes=3, spines=2, hosts=2)
    assert len(namespaces(spec)) == 2 + 1 + 3 * 2 + 3 * 2
    made = links(spec)
    assert len(made) == 2 + 3 * 2 + 3 * 2 * 2
    macs = [end.mac for link in made for end in (link.a, link.b)]
    assert len(set(macs)) == len(macs)
    assert len({(e.ns, e.dev) for link in made for e in (link.a, link.b)}) == len(macs)
    assert all(len(e.dev) < 16 for link in made for e in (link.a, link.b))
    assert set(namespace_lines(spec)) == set(namespaces(spec))


def test_each_source_port_has_a_rule_and_each_rule_a_table():
    spec = FabricSpec(planes=2, spines=2)
    rules = rule_lines(spec)
    assert rules[3] == "rule add pref 1003 ipproto 17 sport 49155 lookup 1003"
    assert len(rules) == 5
    lines = namespace_lines(spec)["h1"]
    for path in paths_between(spec, 0, 1):
        wanted = f"segs {path.kernel_carrier} dev plane{path.plane}"
        found = [t for t in lines if t.endswith(f"table {1000 + path.index}")]
        assert len(found) == 1
        assert wanted in found[0]


def test_a_window_fits_into_the_queues_where_the_default_would_not():
    """10 ms at 100 Mbit/s are 125 kB: four ports hold less than a sender begins with."""
    room = 4 * 125_000
    fits = fitting_window(FabricSpec(rate_mbit=100))
    assert fits is not None
    assert room // 2 < fits < room < WINDOW_BYTES
    assert fitting_window(FabricSpec(rate_mbit=100, queue_bytes=50_000)) == 4 * 30_000
    assert fitting_window(FabricSpec(planes=2, rate_mbit=100)) == fits // 2
    slow_up = fitting_window(FabricSpec(rate_mbit=100, t1_rate_mbit=5))
    assert slow_up is not None
    assert slow_up < fits


def test_a_window_is_no_smaller_than_what_is_under_way():
    """A path is four cables, and each holds the packet it sends."""
    fits = fitting_window(FabricSpec(rate_mbit=8))
    assert fits is not None
    assert fits > 4 * 4 * 4096


@pytest.mark.parametrize(
    "spec",
    [
        FabricSpec(),
        FabricSpec(rate_mbit=500),
        FabricSpec(rate_mbit=100, queue_bytes=1 << 20),
        FabricSpec(rate_mbit=100, delay_ns=10**6),
        FabricSpec(rate_mbit=100, trim=True),
    ],
)
def test_a_sender_is_told_no_window_where_its_own_fits_or_nobody_knows(spec: FabricSpec):
    assert fitting_window(spec) is None


def test_only_switches_forward():
    assert not any("forwarding" in name for name in sysctls("h1"))
    assert sysctls("p1t0-1")["net/ipv6/conf/default/forwarding"] == "1"


@pytest.mark.parametrize("mode", list(Mode))
def test_profiles_are_toml_with_an_entry_per_path(mode: Mode):
    spec = FabricSpec()
    found = tomllib.loads(ev_profile(spec, 1, 0, mode))
    paths = paths_between(spec, 1, 0)
    assert found["format"] == {Mode.SRV6_SRH_COPY: "srv6-srh"}.get(mode, mode.value)
    assert [e["port"] for e in found["ev"]] == [p.plane for p in paths]
    carriers = [(plane["number"], plane["interface"]) for plane in found["plane"]]
    assert carriers == [(p, f"plane{p}") for p in range(1, spec.planes + 1)]
    values = [p.sport if mode is Mode.UDP else p.ev for p in paths]
    assert [e["value"] for e in found["ev"]] == values
    first = {
        Mode.UDP: (None, None),
        Mode.SRV6: (paths[0].raw_carrier, None),
        Mode.SRV6_SRH: (paths[0].srh_carrier, paths[0].srh_raw_entry),
        Mode.SRV6_SRH_COPY: (paths[0].raw_carrier, paths[0].raw_carrier),
    }[mode]
    entry = found["ev"][0]
    got = tuple(IPv6Address(entry[k]) if k in entry else None for k in ("dst", "srh"))
    assert got == first


def test_drop_programs_compare_a_random_number():
    assert drop_program(1.0) == ((6, 0, 0, 2),)
    program = drop_program(0.25)
    assert len(program) == 4
    assert program[1] == (53, 0, 1, 3 * 2**30)
    assert drop_program(1e-12)[1] == (53, 0, 1, 2**32 - 1)
    for wrong in (0.0, -0.1, 1.5):
        with pytest.raises(ValueError, match="probability"):
            drop_program(wrong)
