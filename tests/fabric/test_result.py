# SPDX-License-Identifier: BSD-2-Clause
"""What a run comes to: figures of records made by hand, expectations, sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mrc.fabric.expression import evaluate
from mrc.fabric.result import checked, names_of, result_of, sentence
from mrc.fabric.scenario import Expectation

from .records import LINE, mark, record

STALL = [(0.5, LINE), (0.1, 0), (0.4, 0.75 * LINE), (0.5, LINE)]
MARKS = [mark(0.5, on=True, capacity_bps=0.75 * LINE), mark(1.0, on=False)]


def test_a_quiet_run():
    result = record([(1, LINE)]).result
    assert result["goodput_bps"] == pytest.approx(LINE)
    assert result["share_of_capacity"] == pytest.approx(1)
    assert (result["gap_ms"], result["to95_ms"]) == (pytest.approx(10), None)
    assert (result["jain"], result["messages"], result["errors"]) == (1, 10, 0)


def test_a_fault_and_its_end():
    result = record(STALL, MARKS).result
    assert result["gap_ms"] == pytest.approx(110)
    assert result["to70_ms"] == result["to95_ms"] == pytest.approx(100)
    assert result["back_ms"] == 0
    assert result["share_of_capacity"] == pytest.approx((1.0 + 0.3) / (1.0 + 0.375))


def test_the_worst_of_several_faults_counts():
    parts = [(0.5, LINE), (0.05, 0), (0.45, LINE), (0.2, 0), (0.8, LINE)]
    result = record(parts, [mark(0.5, on=True), mark(1.0, on=True)]).result
    assert result["to95_ms"] == pytest.approx(200)
    never = record([*parts, (0.5, 0)], [*(mark(t, on=True) for t in (0.5, 1.0, 2.0))]).result
    assert never["to95_ms"] is None


def test_faults_at_one_time_are_one():
    marks = [mark(0.5, on=True, capacity_bps=bps * LINE) for bps in (0.75, 0.5)]
    result = record([(0.5, LINE), (0.5, LINE / 2)], marks).result
    assert result["to95_ms"] == 0
    assert result["share_of_capacity"] == pytest.approx(1)


def test_a_fault_too_short_to_be_told_is_left_out():
    marks = [mark(0.5, on=True), mark(0.52, on=False)]
    assert record([(0.5, LINE), (0.5, 0)], marks).result["to95_ms"] is None
    assert record([(0.5, LINE), (0.5, 0)], marks[:1]).result["to95_ms"] is None


def test_a_path_is_in_use_again():
    marks = [mark(0.2, on=True, paths=(1,)), mark(0.5, on=False, paths=(1,))]
    assert record([(1, LINE)], marks).result["reuse_ms"] == pytest.approx(10)
    assert record([(0.5, LINE), (0.5, 0)], marks).result["reuse_ms"] is None


def test_counters_are_those_of_the_end():
    result = record([(1, LINE)], sent_bytes=130_000_000, sent=1000, spurious=5, lost=7).result
    assert result["sent_per_delivered"] == pytest.approx(1.04)
    assert result["spurious_share"] == pytest.approx(0.005)
    assert (result["lost"], result["timeouts"]) == (7, None)


def test_works_apart():
    made = record([(1, LINE)], flows=2)
    first, second = made.flows
    samples = tuple(
        replace(s, flow={"h1>h2#1": "bulk", "h1>h2#2": "late"}.get(s.flow, s.flow))
        for s in made.samples
    )
    late = replace(second, work="late", start_s=0.5, bytes=second.bytes // 2)
    made = replace(made, flows=(first, late), samples=samples)
    works = result_of(made)["works"]
    assert works["bulk"]["goodput_bps"] == pytest.approx(LINE / 2)
    assert works["late"]["goodput_bps"] == pytest.approx(LINE / 2)
    assert names_of(replace(made, result={"works": works}))["late"]["jain"] == 1


def test_names_of_expressions():
    rc = record([(1, LINE / 4)], case="rc", name="one path")
    names = names_of(replace(record(STALL, MARKS), compare=(rc,)))
    for text, value in (
        ("rc.goodput_bps", LINE / 4),
        ("bulk.goodput_bps == goodput_bps", True),
        ("goodput(0.1, 0.4)", LINE),
        ("goodput(0.1, 0.4, 'h1>h2#1')", LINE),
        ("share(0.6, 1)", 1),
        ("gap(0, 0.4)", 10),
        ("plane(2, 0.1, 0.4)", LINE / 2),
        ("ev(1, 0.1, 0.4)", LINE / 2),
        ("back(0.5, 0.7 * capacity_bps)", 100),
        ("rc.share(0, 1)", 0.25),
        ("count('delivered_bytes', 0, 0.1)", LINE / 80),
    ):
        assert evaluate(text, names) == pytest.approx(value), text


def test_expectations_and_sentences():
    made = record(STALL, MARKS)
    expect = (Expectation("no long gap", "gap_ms <= 20"), Expectation("back", "back_ms <= 20"))
    checks = checked(expect, made)
    assert [check.met for check in checks] == [False, True]
    assert checks[0].values == {"gap_ms": pytest.approx(110)}
    made = replace(made, expect=checks)
    words = sentence(made, "a gap of {gap_ms:.0f} ms", "figure 9")
    assert words == "not met (no long gap): a gap of 110 ms. Published: figure 9"
    assert sentence(replace(made, expect=checks[1:]), "so", "") == "met: so"
    assert sentence(replace(made, expect=()), "", "").startswith("measured: 0.8")


def test_a_run_is_not_lost_for_an_expectation_that_fails():
    made = record(STALL)
    (check,) = checked((Expectation("x", "ev(9, 0, 1) <= 3"),), made)
    assert not check.met
    assert "no such samples of 'h1>h2#1'" in check.values["why"]
    assert sentence(made, "{ev(9, 0, 1):.0f}", "").startswith("measured: no such samples")


def test_the_only_work_is_all_of_it_by_every_function():
    names = names_of(record([(1, LINE)]))
    for text in ("goodput(0.1, 0.4, 'bulk')", "2 * plane(1, 0.1, 0.4, 'bulk')"):
        assert evaluate(text, names) == pytest.approx(LINE), text
