# SPDX-License-Identifier: BSD-2-Clause
"""Faults as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc.fabric import FabricError, Fault, FaultKind, fault, parse_fault, parse_script, parse_target
from mrc.fabric.fault import parse_spot, shifted

from .strategies import faults

S = 10**9


@given(faults())
def test_every_fault_is_read_back(one):
    assert parse_fault(str(one)) == one
    assert str(parse_fault(str(one))) == str(one)


@given(st.lists(faults(), max_size=5), st.sampled_from(["\n", " ; ", "  # why\n"]))
def test_a_script_is_its_faults(script, between):
    assert parse_script(between.join(map(str, script))) == tuple(script)


@given(st.text(max_size=40))
def test_any_text_is_a_fault_or_an_error(text):
    try:
        parse_fault(text)
    except FabricError as error:
        assert str(error)  # noqa: PT017 - either is right


def test_the_lines_of_the_documentation_are_faults():
    lines = [x.strip() for x in (fault.__doc__ or "").splitlines() if x.startswith("    ")]
    kinds = [parse_fault(line.partition("  ")[0].partition("mbit the")[0]).kind
             for line in lines if "100mbit" not in line]  # fmt: skip
    assert {*kinds, FaultKind.RATE} == set(FaultKind)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("fail p1.t1.2@3s..5s", "fail p1.t1.2@3s..5s"),
        ("  loss   ev7:5% ", "loss ev7=5%"),
        ("loss all=500ppm@1500ms", "loss all=500ppm@1500ms"),
        ("loss all=1000ppm@1.5s", "loss all=0.1%@1500ms"),
        ("down h1.port1@2..4", "down h1.port1@2s..4s"),
        ("flap plane1=1s@2s..62s silent", "flap plane1=1s@2s..62s silent"),
        ("rate p1.t0.a->t1.1=0.1gbit", "rate p1.t0.a->t1.1=100mbit"),
        ("heal@5s", None),
        ("heal @5s", "heal all@5s"),
        ("heal", "heal all"),
        ("fail p1.t1.1@0s", "fail p1.t1.1"),
        ("fail p1.t1.1@0s..1s", "fail p1.t1.1@0s..1s"),
    ],
)
def test_the_short_form(text, written):
    if written is None:
        with pytest.raises(FabricError, match="did you mean heal"):
            parse_fault(text)
    else:
        assert str(parse_fault(text)) == written


def test_the_options_of_a_command():
    assert parse_spot(FaultKind.HEAL, "@5s") == Fault(FaultKind.HEAL, parse_target("all"), 0, 5 * S)
    assert parse_spot(FaultKind.HEAL, "p1.t1.2@5s").target == parse_target("p1.t1.2")
    assert parse_spot(FaultKind.LOSS, "ev7:5%").value == 50_000
    assert parse_spot(FaultKind.FLAP, "h1.port1:1s", silent=True).silent


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is no fault"),
        ("fial p1.t1.2", "did you mean fail"),
        ("zzz p1.t1.2", "known: fail, down, loss"),
        ("fail", "fail what"),
        ("fail p1.t1.2 soon", "is no fault"),
        ("fail p1.t1.2=3", "fail takes no value"),
        ("loss ev1", "loss needs a value: loss TARGET=5%"),
        ("loss ev1=", "'' is not a share"),
        ("loss ev1=5", "'5' is not a share"),
        ("loss ev1=101%", "more than 100%"),
        ("loss ev1=0%", "needs a value above 0"),
        ("fail ev1@", "behind @"),
        ("fail ev1@..3s", "behind @"),
        ("fail ev1@3s..", r"behind \.\."),
        ("fail ev1@5s..3s", "ends before it begins"),
        ("fail ev1@3s..3s", "ends before it begins"),
        ("fail ev1@soon", "'soon' is not a time"),
        ("fail ev1@0.1ns", "whole number of nanoseconds"),
        ("fail nowhere", "names nothing"),
        ("fail ev1@1s silent", "only a flap can be silent"),
        ("heal @3s..5s", "a heal has a time, no end"),
        ("reboot ev1=2s", "only switches reboot"),
        ("reboot p1.t1.1=2s@3s..9s", "a reboot ends after its value"),
        ("flap p1.t1.1=10us", "a period is 1ms at least"),
        ("delay ev1=99999999999999999999s", "too large"),
    ],
)
def test_what_is_no_fault(text, reason):
    with pytest.raises(FabricError, match=reason):
        parse_fault(text)


def test_a_script_names_the_line():
    with pytest.raises(FabricError, match="line 3: 'fial'"):
        parse_script("# first\nfail ev1\nfail ev2; fial ev3\n")


def test_later():
    assert str(shifted(parse_fault("fail ev1@1s..2s"), S)) == "fail ev1@2s..3s"
    assert str(shifted(parse_fault("fail ev1"), S)) == "fail ev1@1s"
