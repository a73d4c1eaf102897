# SPDX-License-Identifier: BSD-2-Clause
"""Scripts as changes in order of time, and what they make of links."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc.fabric import (
    FabricError,
    FabricShape,
    FaultKind,
    LinkState,
    link_states,
    parse_fault,
    parse_script,
    settle,
    steps,
)

from .strategies import faults

SHAPE = FabricShape(planes=2, t0=2, t1=3, hosts=4)
S = 10**9


def settled(text):
    return [str(f) for f in settle(parse_script(text), SHAPE)]


def played(text, seconds=10):
    script = settle(parse_script(text), SHAPE)
    return [(s.at_ns / S, "on" if s.on else "off", s.index) for s in steps(script, seconds * S)]


def states(*lines):
    return {link.name: s for link, s in link_states(map(parse_fault, lines), SHAPE).items()}


@pytest.mark.parametrize(
    ("script", "left"),
    [
        ("fail p1.t1.2@3s; heal @5s", ["fail p1.t1.2@3s..5s"]),
        ("fail p1.t1.2@3s..9s; heal @5s", ["fail p1.t1.2@3s..5s"]),
        ("fail p1.t1.2@3s..4s; heal @5s", ["fail p1.t1.2@3s..4s"]),
        ("fail p1.t1.2@3s; heal p1.t1.2@5s; heal @6s", ["fail p1.t1.2@3s..5s"]),
        ("fail p1.t1.2@3s; heal p1.t1.1@5s", ["fail p1.t1.2@3s"]),
        ("fail p1.t1.2@3s; fail p1.t1.1@3s; heal p1.t1.1@5s",
         ["fail p1.t1.2@3s", "fail p1.t1.1@3s..5s"]),
        ("fail p1.t0.a--t1.2@3s; heal p1.t1.2@5s", ["fail p1.t0.a--t1.2@3s..5s"]),
        ("fail p1.t1.2@3s; heal p1.t0.a--t1.2@5s", ["fail p1.t1.2@3s"]),
        ("loss ev1=5%; heal plane2@1s", ["loss ev1=5%@0s..1s"]),
        ("heal @1s; fail h1.port1@2s", ["fail h1.port1@2s"]),
        ("fail h1.port1@2s; heal @2s", ["fail h1.port1@2s"]),
        ("reboot p1.t1.1=3s@1s; heal @2s", ["reboot p1.t1.1=3s@1s"]),
        ("flap h1.port1=1s@1s; heal h1@3s", ["flap h1.port1=1s@1s..3s"]),
    ],
)  # fmt: skip
def test_heals_become_ends(script, left):
    assert settled(script) == left


def test_a_script_for_another_fabric():
    with pytest.raises(FabricError, match="no spine 4"):
        settled("fail p1.t1.4@3s; heal @5s")
    with pytest.raises(FabricError, match="no plane 3"):
        settled("heal plane3@5s")


def test_order_of_time_ends_first():
    assert played("fail ev0@2s..4s; fail ev1@4s; down h1@1s..2s") == [
        (1.0, "on", 2),
        (2.0, "off", 2),
        (2.0, "on", 0),
        (4.0, "off", 0),
        (4.0, "on", 1),
    ]


def test_a_flap_is_down_first_and_ends_up():
    assert played("flap h1.port1=2s@1s..4500ms") == [
        (1.0, "on", 0),
        (2.0, "off", 0),
        (3.0, "on", 0),
        (4.0, "off", 0),
    ]
    assert played("flap h1.port1=2s@1s..3500ms")[-1] == (3.5, "off", 0)


def test_a_reboot_comes_back():
    assert played("reboot p1.t1.1=3s@1s") == [(1.0, "on", 0), (4.0, "off", 0)]


@given(st.lists(faults(), max_size=4))
def test_begins_and_ends_take_turns(script):
    script = [f for f in script if f.kind is not FaultKind.HEAL]
    forced: set[int] = set()
    before = -1
    for number, step in enumerate(steps(script, 10**12)):
        assert before <= step.at_ns < 10**12
        before = step.at_ns
        assert step.on == (step.index not in forced)
        (forced.add if step.on else forced.discard)(step.index)
        if number > 500:
            return


def test_marks_have_words():
    begin, end = steps(settle(parse_script("loss p1.t1.1=5%@1s..2s"), SHAPE), 10 * S)
    assert (begin.what, end.what) == ("loss p1.t1.1=5%", "end of loss p1.t1.1=5%")


def test_silent_or_seen():
    assert states("fail h1.port1->") == {"h1.port1->": LinkState(cut=True)}
    assert states("down ->h1.port1") == {"->h1.port1": LinkState(cut=True, down=True)}
    assert states("flap ->h1.port1=1s silent") == {"->h1.port1": LinkState(cut=True)}
    assert states("flap ->h1.port1=1s") == {"->h1.port1": LinkState(cut=True, down=True)}


def test_a_switch_is_its_cables():
    found = states("reboot p1.t1.2=1s")
    assert set(found) == {
        "p1.t0.a->t1.2", "p1.t1.2->t0.a", "p1.t0.b->t1.2", "p1.t1.2->t0.b",
    }  # fmt: skip
    assert set(found.values()) == {LinkState(cut=True, down=True)}
    assert len(states("fail p1.t0.a")) == 2 * (2 + 3)


def test_loss_strikes_once_whatever_the_target():
    assert set(states("loss p1.t1.2=5%")) == {"p1.t0.a->t1.2", "p1.t0.b->t1.2"}
    assert set(states("loss plane1=5%")) == {f"h{n}.port1->" for n in (1, 2, 3, 4)}


def test_faults_that_meet():
    found = states("loss plane1=50%", "loss h1.port1->=50%", "delay h1=3us", "delay h1.port1=4us")
    assert found["h1.port1->"] == LinkState(loss_ppm=750_000, delay_ns=7000)
    found = states("rate h1.port1=1gbit", "rate h1=100mbit", "rate h1.port1=10gbit")
    assert found["h1.port1->"].rate_bps == 10**8
    found = states("corrupt h1.port1=1%", "trim h1.port1=2%", "fail h1.port1")
    assert found["->h1.port1"] == LinkState(cut=True, corrupt_ppm=10_000, trim_ppm=20_000)
