# SPDX-License-Identifier: BSD-2-Clause
"""What follows from the fabric of a scenario: paths of a profile, round trip, timers."""

from __future__ import annotations

import pytest

from mrc.fabric import FabricError
from mrc.fabric.scenario import parse_scenario
from mrc.sim.setup import _mpr, _profile, _timeout, base_rtt_ns, path_numbers
from mrc.sim.traffic import make_traffic


def case(work='kind="bulk"', **changes):
    text = f'name = "x"\n[fabric]\nhosts = 4\nt0 = 2\nplanes = 2\nt1 = 8\n[[work]]\n{work}\n'
    return parse_scenario(text, "x", changes).main


def numbers(made, pair=0, **kwargs):
    return path_numbers(made, make_traffic(made).pairs[pair], **kwargs)


CROSS = 'kind="bulk"\ndst="h3"'


def test_all_paths_in_their_order():
    assert numbers(case(CROSS)) == list(range(16))
    assert numbers(case()) == [0, 1]  # one T0: a path is a plane


def test_a_part_of_the_paths_is_as_many_of_each_plane():
    found = numbers(case(CROSS, transport={"evs": 6}))
    assert [n % 2 for n in found] == [0, 1] * 3
    assert len(set(found)) == 6
    others = [numbers(case(CROSS, transport={"evs": 6}, run={"seed": s})) for s in range(2, 9)]
    assert any(found != other for other in others)


def test_more_evs_than_paths_go_round():
    assert numbers(case(transport={"evs": 5})) == [0, 1, 0, 1, 0]


def test_paths_of_a_work_are_as_it_says():
    assert numbers(case(CROSS + "\npaths=[3,5]")) == [3, 5]
    with pytest.raises(FabricError, match="no path 16 from h1 to h3"):
        numbers(case(CROSS + "\npaths=[16]"))


def test_denied_paths_are_not_in_the_profile():
    assert numbers(case(CROSS, transport={"deny": ["p1.t1.1", "plane2"]})) == list(range(2, 16, 2))
    assert numbers(case(transport={"deny": ["h2.port1"]})) == [1]
    with pytest.raises(FabricError, match="no path is left from h1 to h2"):
        numbers(case(transport={"deny": ["all"]}))


def test_one_path_for_go_back_n_drawn_for_each_queue_pair():
    made = case(CROSS, transport={"mode": "rc", "qps": 16})
    drawn = [numbers(made, k) for k in range(16)]
    assert {len(n) for n in drawn} == {1}
    assert len({n[0] for n in drawn}) > 4
    forced = case(CROSS + "\npaths=[3,5]", transport={"mode": "rc", "qps": 2})
    assert [numbers(forced, k) for k in (0, 1)] == [[3], [5]]


def test_reserves_are_the_last_of_each_plane():
    made = case(CROSS, transport={"evs": 8, "backups": 4})
    evs = _profile(made, make_traffic(made).pairs[0], 1)
    assert [ev.backup for ev in evs] == [False] * 4 + [True] * 4
    assert [ev.ev >> 24 for ev in evs] == [1, 2] * 4
    assert len({ev.ev for ev in evs}) == 8


def test_the_round_trip_of_an_idle_fabric():
    made = case(fabric={"rate": "1gbit", "t1_rate": "10gbit", "delay": "100us"})
    packet, sack = 4096 + 84 + 40 + 4, 40 + 84 + 36
    wire = (packet + sack) * 8 * (2 / 1e9 + 2 / 1e10)
    assert base_rtt_ns(made) == pytest.approx(8 * 100_000 + wire * 1e9 + 1000, abs=4)


def test_the_timer_is_the_next_power_above():
    for wanted, exponent in (("1us", 0), ("1.025us", 1), ("262us", 8), ("263us", 9), ("1h", 24)):
        assert _timeout(case(transport={"timeout": wanted})) == exponent


def test_the_window_of_packets_is_twice_the_controllers():
    made = case()
    assert [_mpr(made, n << 20) for n in (0, 1, 4, 100)] == [8, 8, 16, 64]
