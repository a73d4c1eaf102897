# SPDX-License-Identifier: BSD-2-Clause
"""The checker of traces: what is right passes, and each rule catches what it is there for."""

import pytest

from mrc.model.rules import RULES
from mrc.model.trace import read
from mrc.model.wire import NackReason
from tests.unit import checker_requestor, checker_responder
from tests.unit.checker_story import EVS, MTU, TRIMMED, A, B, N, Story, sent

BROKEN = checker_requestor.BROKEN | checker_responder.BROKEN


def test_each_rule_has_a_story() -> None:
    assert BROKEN.keys() == RULES.keys()


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_catches_what_it_forbids(rule: str) -> None:
    found = {v.rule for v in BROKEN[rule]().verdicts}
    assert rule in found, f"found {found}"


def test_what_is_right_is_allowed() -> None:
    s = Story()
    s.post(3 * MTU - 5)
    s.post(MTU, imm=True)
    s.post(0, signaled=False)
    first, second, third = (s.data(N + i, EVS[i]) for i in range(3))
    s.arrive_and_answer(second)  # overtakes
    s.arrive_and_answer(first)
    s.turn(B)
    s.arrives(third, TRIMMED)
    refused = s.nack(third, NackReason.TRIMMED)
    s.turn(A)
    s.arrives(refused)
    again = s.data(N + 2, EVS[3], rtx=1)
    s.arrive_and_answer(again)
    s.done(0)
    s.exchange(N + 3)
    s.receive(0)
    s.done(1)
    s.arrive_and_answer(s.data(N + 4))
    asked = s.request()
    s.turn(B)
    s.arrives(asked)
    s.response()
    probe = s.probe()
    s.turn(B)
    s.arrives(probe)
    s.sack(probe)
    assert s.verdicts == []


def test_a_path_that_heals_by_a_probe_is_allowed() -> None:
    s = sent(N)
    s.event(0, 2, 5)
    probe = s.probe()
    s.turn(B)
    s.arrives(probe)
    answer = s.sack(probe)
    s.turn(A)
    s.arrives(answer)
    s.event(2, 0, 6)
    s.data(N + 1)
    assert s.verdicts == []


def test_a_verdict_names_rule_section_and_place() -> None:
    (verdict,) = checker_requestor.psn_gap().verdicts
    assert str(verdict).startswith("forbidden: a first transmission does not have the next PSN (B")
    assert "102 follows 100" in str(verdict)


def test_a_line_that_is_none() -> None:
    with pytest.raises(ValueError, match="no such record: nonsense"):
        list(read(["trace 1", "nonsense 1"]))
