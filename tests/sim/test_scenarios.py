# SPDX-License-Identifier: BSD-2-Clause
"""The quicker ones of the scenarios that come with the package: they go as their files expect.

All of them: make scenarios. Field report 16 (reordering) and those of group C (paths) in the large.
"""

from __future__ import annotations

import pytest

from mrc.fabric import library
from mrc.fabric.record import dump
from mrc.fabric.scenario import load_scenario
from mrc.sim.run import run_scenario

QUICK = (
    *("ev-loss", "nic-links-four-of-eight", "reordering", "t1-switch-reboot"),
    "two-flows-one-plane",
)


@pytest.mark.parametrize("name", QUICK)
def test_what_is_published_is_reached(name):
    record = run_scenario(load_scenario(library.find(name)).only(["main"]))
    assert record.expect or name == "ev-loss"  # whose first one is about its comparisons, too
    assert [check.words for check in record.expect if not check.met] == []


def test_marks_are_compared_or_a_turn_is_all():
    """D.6 with two paths: a turn is over before what it was for has been reported (ADR 96)."""
    turn = {"transport": {"skip_rule": "turn"}}
    scenario = load_scenario(library.find("two-flows-one-plane"), turn).only(["main"])
    assert {check.met for check in run_scenario(scenario).expect} == {False}


def test_the_same_seed_is_the_same_record():
    changes = {"run": {"duration": "700ms"}, "expect": {}}
    scenario = load_scenario(library.find("ev-loss"), changes).only(["main"])
    assert dump(run_scenario(scenario)) == dump(run_scenario(scenario))
