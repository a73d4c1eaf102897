# SPDX-License-Identifier: BSD-2-Clause
"""The address and EV plan: the published one holds, a spoilt one is caught, C agrees."""

from collections import Counter
from dataclasses import dataclass
from ipaddress import IPv6Address

import pytest

from mrc.errors import MrcUsageError
from mrc.lab import plan as lab_plan
from mrc.sim._fab import Emulation
from mrc.sim._tables import Config
from mrc.sim.plan import (
    AddressPlan,
    PlanError,
    Role,
    Switch,
    check_pair,
    check_switches,
    main,
    sample_pairs,
)

SMALL = AddressPlan(planes=3, t0=4, t1=5, hosts_per_t0=3, number_bits=8)


def test_the_published_design_is_what_was_published():
    plan = AddressPlan()
    assert plan.hosts == 131_072  # MRC G.1
    assert plan.planes * plan.t1 == 2048
    for switch in (Switch(Role.T0, 7, 511), Switch(Role.T1, 0, 255)):
        assert plan.ports(switch) == 512
        assert len(plan.routes(switch)) == 512
    assert check_pair(plan, 0, 131_071) == 2048  # all EVs, walked by the tables
    assert check_pair(plan, 300, 511) == 8


@pytest.mark.slow
def test_every_route_of_the_published_design():
    assert check_switches(AddressPlan()) == {Role.T0: 512, Role.T1: 512}


@pytest.mark.parametrize("bits", [8, 9])
def test_a_small_plan_holds_for_all_pairs(bits):
    plan = AddressPlan(planes=3, t0=4, t1=5, hosts_per_t0=3, number_bits=bits)
    assert check_switches(plan) == {Role.T0: 8, Role.T1: 4}
    for a in range(plan.hosts):
        for b in range(plan.hosts):
            if a != b:
                assert check_pair(plan, a, b) == (3 if a // 3 == b // 3 else 15)


def test_the_worked_example_of_the_specification():
    plan = AddressPlan(planes=8, t0=32, t1=200, hosts_per_t0=48, number_bits=8)
    src, dst = 6 * 48, 0x14 * 48 + 0x2B  # under T0 07; downlink 2c under T0 15: from 1
    carrier = IPv6Address(plan.carrier(src, dst, 0x05A3C41F))
    assert carrier == IPv6Address("fcbb:bbbb:1507:25a3:1515:352c::")  # MRC D.9
    tables: dict[Switch, dict[int, int]] = {}
    assert [h.port for h in plan.walk(src, dst, 0x05A3C41F, tables)] == [48 + 0xA2, 0x14, 0x2B]


@pytest.mark.parametrize("bits", [8, 9])
def test_the_emulation_has_the_same_addresses(bits):
    plan = AddressPlan(planes=3, t0=4, t1=5, hosts_per_t0=3, number_bits=bits)
    config = Config(planes=3, t0=4, t1=5, hosts=12, rate_bps=10**9, number_bits=bits)
    with Emulation(config, ev_sets=[], ccs=[], qps=[]) as emu:
        assert emu.sizes().routes_t0 == 8
        assert emu.sizes().routes_t1 == 4
        for a in range(12):
            for b in range(12):
                for p in range(3):
                    ev = plan.ev(p, (a + b) % 5, 0xC000 + a)
                    assert int(emu.address(a, b, ev)) == plan.carrier(a, b, ev)
        with pytest.raises(MrcUsageError, match="no host"):
            emu.address(0, 12, 0)


def test_the_lab_has_the_same_switch_numbers():
    """The fabric of namespaces numbers by D.9 as well: switches and EVs are named alike."""
    spec = lab_plan.FabricSpec(planes=3, spines=5, hosts=4)
    plan = AddressPlan(planes=3, t0=4, t1=5, hosts_per_t0=1, number_bits=8)
    for path in lab_plan.paths_between(spec, 1, 3):
        ev = plan.ev(path.plane - 1, path.spine - 1, path.sport)
        assert ev == path.ev
        ours, theirs = plan.carrier(1, 3, ev), int(path.kernel_carrier)
        assert ours >> 48 == theirs >> 48  # all but the last uSID: a host of its own there


def test_profiles_are_even_and_distinct():
    plan = AddressPlan()
    evs = plan.profile(256, seed=3)
    assert len(set(evs)) == 256
    assert set(Counter(ev >> 24 for ev in evs).values()) == {32}
    assert evs == plan.profile(256, seed=3)
    assert evs != plan.profile(256, seed=4)
    assert [ev >> 24 for ev in evs[:8]] == list(range(1, 9))  # the first few use all planes
    for count in (0, 7, 2056):
        with pytest.raises(MrcUsageError, match="in each plane"):
            plan.profile(count, seed=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoilt(AddressPlan):
    """One route of one switch goes elsewhere."""

    where: Switch
    usid_of: tuple[Role, int, int]
    port: int | None

    def routes(self, switch: Switch) -> dict[int, int]:
        table = AddressPlan.routes(self, switch)
        if switch == self.where:
            usid = self.usid(*self.usid_of)
            if self.port is None:
                del table[usid]
            else:
                table[usid] = self.port
        return table


@pytest.mark.parametrize(
    ("where", "usid_of", "port", "says"),
    [
        (Switch(Role.T0, 1, 0), (Role.T1, 1, 2), None, "no route for 2203"),
        (Switch(Role.T0, 1, 0), (Role.T1, 1, 2), 3, "no route"),  # one T1 for two: not of its own
        (Switch(Role.T1, 0, 4), (Role.T0, 0, 3), 2, "no route|goes round"),
        (Switch(Role.T0, 2, 3), (Role.HOST, 2, 2), 1, "ends at 10"),
        (Switch(Role.T0, 2, 3), (Role.HOST, 2, 2), 5, "no route"),
    ],
)
def test_a_wrong_route_is_found(where, usid_of, port, says):
    plan = Spoilt(
        planes=3,
        t0=4,
        t1=5,
        hosts_per_t0=3,
        number_bits=8,
        where=where,
        usid_of=usid_of,
        port=port,
    )
    with pytest.raises(PlanError, match=str(where.number)):
        check_switches(plan)
    with pytest.raises(PlanError, match=says):
        check_pair(plan, 0, 11)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"number_bits": 10}, "8 or 9"),
        ({"planes": 9}, "planes is 1 to 8"),
        ({"t0": 513}, "t0 is 1 to 512"),
        ({"t1": 257}, "t1 is 1 to 256"),
        ({"hosts_per_t0": 0}, "hosts_per_t0"),
        ({"number_bits": 8}, "t0 is 1 to 255"),
    ],
)
def test_what_cannot_be_numbered_is_refused(change, says):
    with pytest.raises(MrcUsageError, match=says):
        AddressPlan(**change)


def test_pairs_are_drawn_from_a_seed():
    pairs = sample_pairs(AddressPlan(), 50, 1)
    assert pairs == sample_pairs(AddressPlan(), 50, 1)
    assert len(pairs) > 40
    assert all(a != b for a, b in pairs)


def test_the_command_prints_table_sizes(capsys):
    shape = ["--planes", "3", "--t0", "4", "--t1", "5", "--hosts-per-t0", "3"]
    assert main([*shape, "--pairs", "3"]) == 0
    out = capsys.readouterr().out
    assert "T0 8 routes of /48, T1 4; 156 in all switches" in out
    assert "NICs            12" in out
    assert main(["--planes", "99"]) == 2
    assert "planes is 1 to 8" in capsys.readouterr().err
