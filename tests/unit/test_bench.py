# SPDX-License-Identifier: BSD-2-Clause
"""The arithmetic of the bench: medians, ratios within a round, targets, and what did not run."""

import json

import pytest

from tools.bench import run as bench_run
from tools.bench.__main__ import _arguments, _join
from tools.bench.groups import groups
from tools.bench.link import BenchError
from tools.bench.meter import Meter, Reading, steady
from tools.bench.method import Cores, Group, Method, Sample, Target, Unit
from tools.bench.ours import once
from tools.bench.peers import rate_of
from tools.bench.report import group_document, number, show, target_table
from tools.bench.run import Plan, carry_out, estimate_s


def sample(gbps):
    return Sample({Unit.GBPS: float(gbps)})


def group(*targets, runs=None):
    runs = runs or {"mrc": lambda _: sample(8), "bare": lambda _: sample(10)}
    methods = tuple(Method(name, f"what {name} is", run) for name, run in runs.items())
    return Group("some", "Some group", None, methods, (Unit.GBPS,), targets)


RATIO = Target("mrc / bare", Unit.GBPS, "mrc", "bare", 0.8)


def rounds(*pairs):
    return [{"mrc": sample(a), "bare": sample(b)} for a, b in pairs]


def test_a_ratio_is_taken_within_a_round():
    # The machine halves its speed in the second round: both do, and the ratio does not move.
    doc = group_document(group(RATIO), rounds((8, 10), (4, 5), (8, 10)), {}, {})
    assert doc["targets"][0]["measured"] == {"median": 0.8, "min": 0.8, "max": 0.8}
    assert doc["targets"][0]["met"]
    assert doc["rows"]["mrc"]["figures"][Unit.GBPS] == {"median": 8.0, "min": 4.0, "max": 8.0}


def test_a_target_may_be_a_limit_from_above_and_stand_alone():
    most = Target("mrc", Unit.GBPS, "mrc", None, 7.9, at_least=False)
    doc = group_document(group(most), rounds((8, 10)), {}, {})
    assert not doc["targets"][0]["met"]
    assert "<= 7.90" in target_table({"groups": {"some": doc}})
    assert "MISSED" in target_table({"groups": {"some": doc}})
    for number_of_rounds in (1, 5):
        told = target_table({"groups": {"some": doc}, "start": {"rounds": number_of_rounds}})
        assert ("they judge nothing" in told) == (number_of_rounds == 1)


def test_a_target_without_its_peer_is_no_row():
    doc = group_document(group(RATIO), [{"mrc": sample(8)}], {"bare": "not there"}, {})
    assert doc["targets"] == []
    assert doc["missing"] == {"bare": "not there"}


def test_a_peer_that_moved_nothing_does_not_divide_by_zero():
    doc = group_document(group(RATIO), rounds((8, 0)), {}, {})
    assert doc["targets"] == []
    assert json.loads(json.dumps(doc, allow_nan=False)) == doc


def test_rows_are_shown_as_ratios_to_others():
    against = Group("some", "", None, group().methods, (Unit.GBPS,), against=("bare", "gone"))
    doc = group_document(against, rounds((8, 10), (4, 5), (9, 10)), {}, {})
    assert doc["rows"]["mrc"]["ratios"] == {"bare": {"median": 0.8, "min": 0.8, "max": 0.9}}
    assert doc["rows"]["bare"]["ratios"]["bare"]["median"] == 1.0
    table = show({"groups": {"some": doc}, "interrupted": False})
    assert "/ bare" in table
    assert "gone" not in table


def test_what_is_measured_once_is_compared_all_the_same():
    target = Target("bytes", Unit.BYTES, "mrc", None, 5)
    first = {"mrc": Sample({Unit.BYTES: 5.0})}
    doc = group_document(group(target), [first, {}, {}], {}, {})
    assert doc["targets"][0]["met"]


def test_who_fails_is_named_and_left_out():
    calls = []

    def fail(_):
        calls.append(1)
        raise BenchError("peer gone")

    plan = Plan([group(RATIO, runs={"mrc": fail, "bare": lambda _: sample(1)})], 3, 1)
    doc = carry_out(plan, lambda _: None)
    found = doc["groups"]["some"]
    assert found["wrong"] == {"mrc": "peer gone"}
    assert calls == [1]
    assert set(found["rows"]) == {"bare"}
    assert "peer gone" in show(doc)


def test_rounds_begin_with_another_method():
    order = []

    def note(name):
        order.append(name)
        return sample(1)

    runs = {name: lambda _, n=name: note(n) for name in ("a", "b", "c")}
    carry_out(Plan([group(runs=runs)], 3, 1), lambda _: None)
    assert "".join(order) == "abcbcacab"


def test_ctrl_c_keeps_the_groups_that_were_complete():
    def interrupt(_):
        raise KeyboardInterrupt

    second = group(runs={"mrc": interrupt})
    plan = Plan([group(), Group("other", "", None, second.methods, ())], 1, 1)
    doc = carry_out(plan, lambda _: None)
    assert doc["interrupted"]
    assert set(doc["groups"]) == {"some"}


def test_a_link_that_cannot_be_is_named_for_every_method(monkeypatch):
    def refuse(kind):
        raise BenchError(f"no {kind}")

    monkeypatch.setattr(bench_run, "open_link", refuse)
    plan = Plan([Group("some", "", "fabric", group().methods, ())], 1, 1)
    doc = carry_out(plan, lambda _: None)
    assert doc["groups"]["some"]["wrong"] == {"mrc": "no fabric", "bare": "no fabric"}


def test_the_estimate_counts_rounds_once_and_links():
    one = Method("a", "", lambda _: sample(1), once=True)
    two = Method("b", "", lambda _: sample(1))
    gone = Method("c", "", lambda _: sample(1), missing=lambda: "not there")
    there = Group("some", "", "veth", (one, two, gone), (), overhead_s=1.0)
    assert estimate_s(Plan([there], 5, 2)) == pytest.approx(3 + 15 + bench_run.LINK_S)


def test_a_busy_machine_is_pointed_out(monkeypatch):
    used = iter([0.0, 1000.0])
    monkeypatch.setattr(bench_run, "others_s", lambda: next(used))
    doc = carry_out(Plan([group()], 1, 1), lambda _: None)
    assert doc["groups"]["some"]["others"] > 0
    assert "measure again" in show(doc)


# -- processor time ----------------------------------------------------------------------------


def readings(rates, busy):
    """One reading each 50 ms: bytes a second, and how busy the sending core was."""
    found, rx, used = [], 0.0, 0.0
    for i, (rate, share) in enumerate(zip(rates, busy, strict=True)):
        found.append(Reading(i * 0.05, used, used / 2, int(rx)))
        rx, used = rx + rate * 0.05, used + share * 0.05
    return found


def test_only_the_time_in_which_bytes_came_counts():
    rates = [0] * 20 + [1e9] * 30 + [0] * 20
    window = steady(readings(rates, [0.5] * 70))
    assert window is not None
    first, last = window
    assert (last.rx_bytes - first.rx_bytes) / (last.t_s - first.t_s) == pytest.approx(1e9)


def test_too_short_a_time_says_nothing():
    assert steady(readings([0] * 5 + [1e9] * 6 + [0] * 5, [1] * 16)) is None
    assert steady(readings([0] * 50, [1] * 50)) is None
    assert steady([]) is None


def test_cost_is_processor_time_for_each_gigabyte(tmp_path):
    meter = Meter(Cores(0, 1), tmp_path)
    meter._readings = readings([1e9] * 60, [0.5] * 60)
    cost = meter.cost(gbps=8)
    assert cost[Unit.SEND] == pytest.approx(0.5)
    assert cost[Unit.RECV] == pytest.approx(0.25)
    assert cost[Unit.CPU] == pytest.approx(0.75)


def test_the_rate_of_a_peer_is_that_of_its_last_seconds():
    second = 10**9
    slow = [[i * second, i * 10**8] for i in range(4)]
    fast = [[(4 + i) * second, 3 * 10**8 + (i + 1) * 10**9] for i in range(3)]
    assert rate_of([*slow, *fast, [7 * second, fast[-1][1]]], 2) == pytest.approx(8.0)


@pytest.mark.parametrize("samples", [[], [[0, 0]], [[0, 0], [1, 0]], [[0, 0], [1, 5]]])
def test_a_peer_that_did_nothing_has_no_rate(samples):
    with pytest.raises(BenchError):
        rate_of(samples, 1)


# -- the command -------------------------------------------------------------------------------


def test_names_are_unique_and_targets_name_rows():
    found = groups()
    assert len({g.name for g in found}) == len(found)
    for g in found:
        names = [m.name for m in g.methods]
        assert len(set(names)) == len(names), g.name
        for target in g.targets:
            assert target.ours in names, target
            assert target.peer is None or target.peer in names, target
        assert set(g.against) <= set(names), g.name


def test_groups_and_rows_can_be_chosen(capsys):
    options = _arguments(["--only", "latency,bulk", "--rows", "mrc,tcp", "--quick"])
    assert options.only == ["bulk", "latency"]
    assert (options.rounds, options.time) == (1, 1)
    with pytest.raises(SystemExit):
        _arguments(["--only", "bulk,no-such"])
    assert "no-such" in capsys.readouterr().err
    plan = Plan(groups(), 1, 1, frozenset(options.rows))
    assert [m.name for m in plan.methods(groups()[0])] == ["mrc", "tcp"]


def test_of_several_results_the_last_one_of_a_group_counts():
    def document(name, title):
        return {"groups": {name: {"title": title}}, "interrupted": False}

    joined = _join([document("raw", "old"), document("bulk", "x"), document("raw", "new")])
    assert list(joined["groups"]) == ["bulk", "raw"]
    assert joined["groups"]["raw"]["title"] == "new"


@pytest.mark.parametrize(
    ("value", "text"),
    [(105364.0, "105,364"), (134.2, "134"), (22.361, "22.36"), (0.5, "0.50"), (0.0123, "0.0123"),
     (0, "0")],
)  # fmt: skip
def test_numbers_are_read_at_a_glance(value, text):
    assert number(value) == text


def test_a_program_that_prints_nonsense_is_named():
    run = once(["echo", "no json"], lambda _: {Unit.NS: 1.0})
    plan = Plan([group(runs={"echo": run})], 1, 1)
    assert "made no report" in carry_out(plan, lambda _: None)["groups"]["some"]["wrong"]["echo"]
