# SPDX-License-Identifier: BSD-2-Clause
"""Scenarios on the emulated fabric, whole: figures, faults, records."""

from __future__ import annotations

import pytest

from mrc.errors import MrcUsageError
from mrc.fabric.record import TOTAL, dump, load
from mrc.fabric.scenario import parse_scenario
from mrc.sim.run import Progress, run_case, run_scenario

BASE = """\
name = "small"
verdict = "{goodput_bps / 1e6:.0f} Mbit/s"
claim = "nothing"
[fabric]
planes = 2
t1 = 2
hosts = 2
rate = "100mbit"
delay = "1ms"
[[work]]
kind = "bulk"
bytes = "64KB"
[run]
duration = "400ms"
sample = "5ms"
skip = "50ms"
"""


def ran(more="", **changes):
    return run_scenario(parse_scenario(BASE + more, "x.toml", changes))


FAIL = '[[fault]]\ndo = "fail"\ntarget = "p1.t1.1"\nat = "100ms"\nuntil = "250ms"\n'


def test_a_quiet_run_fills_the_line():
    record = ran()
    assert record.result["share_of_capacity"] >= 0.97
    assert (record.result["errors"], record.result["lost"]) == (0, 0)
    assert record.run["packets"]["sent"] == (
        record.run["packets"]["delivered"] + record.run["packets"]["in_flight"]
    )
    (flow,) = record.flows
    assert flow.bytes == record.samples[-1].delivered_bytes
    assert record.samples[-1].planes[0] == pytest.approx(record.samples[-1].planes[1], rel=0.02)
    assert record.verdict.startswith("measured: 19")


def test_the_same_seed_is_the_same_record_and_another_is_not():
    first = dump(ran(FAIL))
    assert first == dump(ran(FAIL))
    assert first != dump(ran(FAIL, run={"seed": 2}))
    assert dump(load(first)) == first


def test_a_fault_is_marked_struck_and_undone():
    record = ran(FAIL)
    begin, end = record.faults
    assert (begin.t_s, begin.on, begin.what, begin.paths) == (0.1, True, "fail p1.t1.1", (0,))
    assert (end.t_s, end.on, end.capacity_bps) == (0.25, False, record.run["capacity_bps"])
    assert record.run["packets"]["dropped"]["cut"] > 0
    path = record.ev_series("h1>h2", 0)
    assert path.at(0.24) - path.at(0.15) < 0.02 * (path.at(0.09) - path.at(0.0))
    assert record.result["reuse_ms"] <= 100
    assert {e.after for e in record.events} >= {"assumed_bad", "good"}
    states = {s.t_s: s.ev_states for s in record.samples if s.flow == "h1>h2"}
    assert (states[0.09][0], states[0.2][0]) == ("g", "b")


@pytest.mark.parametrize(
    ("fault", "drop"),
    [
        ('do = "loss"\ntarget = "p1.t1.1"\nvalue = "10%"', "loss"),
        ('do = "down"\ntarget = "h1.port1"', "down"),
        ('do = "reboot"\ntarget = "p2.t1.1"\nvalue = "100ms"', "down"),
        ('do = "flap"\ntarget = "p2.t0.a"\nvalue = "50ms"\nsilent = true', "cut"),
    ],
)
def test_packets_end_where_the_fault_says(fault, drop):
    record = ran(f'[[fault]]\n{fault}\nat = "100ms"\n')
    dropped = record.run["packets"]["dropped"]
    assert dropped.pop(drop) > 0
    assert not any(n for name, n in dropped.items() if name not in ("cut", "down"))
    assert record.result["errors"] == 0


def test_corruption_is_found_and_made_good():
    record = ran('[[fault]]\ndo = "corrupt"\ntarget = "all"\nvalue = "1%"\n')
    assert record.result["lost"] > 0
    assert record.result["goodput_bps"] > 0.7 * record.run["capacity_bps"]


def test_cuts_are_told():
    record = ran(
        '[[fault]]\ndo = "trim"\ntarget = "p1.t1.1"\nvalue = "5%"\n', fabric={"trim": True}
    )
    assert record.result["trimmed"] > 0
    assert record.result["timeouts"] == 0


def test_delay_and_rate():
    slow = ran('[[fault]]\ndo = "rate"\ntarget = "h1.port1"\nvalue = "25mbit"\n')
    assert slow.run["capacity_bps"] == ran().run["capacity_bps"]
    assert slow.faults[0].capacity_bps == pytest.approx(slow.run["capacity_bps"] * 125 / 200)
    assert slow.result["goodput_bps"] < 0.7 * slow.run["capacity_bps"]
    late = ran('[[fault]]\ndo = "delay"\ntarget = "all"\nvalue = "20ms"\n')
    assert late.result["goodput_bps"] < 0.3 * late.run["capacity_bps"]


def test_a_collective_ends_when_it_is_done():
    text = BASE.replace('"bulk"', '"ring-allreduce"').replace("hosts = 2", "hosts = 4")
    record = run_scenario(parse_scenario(text.replace("skip", 'until = "done"\nskip'), "x"))
    assert record.run["messages_left"] == 0
    assert record.run["finish_s"] == record.result["finish_s"]
    assert 0 < record.result["finish_s"] <= record.samples[-1].t_s < 0.4
    assert record.result["messages"] == 4 * 2 * 3


def test_what_does_not_finish_says_so():
    text = BASE.replace('kind = "bulk"', 'kind = "pair"\ncount = 1000')
    record = run_scenario(parse_scenario(text.replace("skip", 'until = "done"\nskip'), "x"))
    assert record.run["messages_left"] > 0
    assert record.result["finish_s"] is None


def test_comparisons_are_runs_of_their_own():
    record = ran(
        '[[compare]]\nid = "one"\nname = "one plane"\nfabric.planes = 1\n'
        '[expect]\n"two carry more" = "goodput_bps > 1.8 * one.goodput_bps"\n'
    )
    (one,) = record.compare
    assert (one.run["case"], one.run["name"]) == ("one", "one plane")
    assert [check.met for check in record.expect] == [True]
    assert record.verdict.startswith("met: ")


def test_many_flows_are_sampled_together():
    text = BASE.replace("hosts = 2", "hosts = 20\nt0 = 2").replace('"bulk"', '"permutation"')
    record = run_scenario(parse_scenario(text, "x", {"run": {"duration": "60ms", "skip": "5ms"}}))
    assert {s.flow for s in record.samples} == {TOTAL}
    assert len(record.flows) == 20
    assert record.result["jain"] > 0.5


def test_progress_is_told_in_order():
    told: list[Progress] = []
    run_scenario(parse_scenario(BASE, "x.toml"), told.append)
    assert [p.now_ns for p in told] == [n * 5_000_000 for n in range(1, 81)]
    assert {(p.number, p.cases) for p in told} == {(0, 1)}


def test_a_case_that_cannot_be_is_a_sentence():
    case = parse_scenario(BASE, "x.toml", {"fabric": {"planes": 16}})
    with pytest.raises(MrcUsageError, match="cannot be made"):
        run_case("x", case.main)
