# SPDX-License-Identifier: BSD-2-Clause
"""What is wrong with expressions and sentences is known before anything has run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc.fabric import FabricError, library
from mrc.fabric.expression import evaluate, fill
from mrc.fabric.grammar import (
    Function,
    Kind,
    check_expectation,
    check_figure,
    check_sentence,
)
from mrc.fabric.result import names_of
from mrc.fabric.scenario import load_scenario, parse_scenario
from mrc.fabric.vocabulary import known_in, known_of

from .records import LINE, record

TEXT = """\
name = "x"
fabric = { planes = 2, t1 = 4 }
[[work]]
kind = "bulk"
[[work]]
kind = "pair"
name = "two-words"
[[compare]]
id = "rc"
name = "one path"
transport.mode = "rc"
[[compare]]
id = "alone"
name = "one work"
work = [{ kind = "bulk" }]
"""
SCENARIO = parse_scenario(TEXT, "x.toml")
KNOWN = known_of(SCENARIO.main, SCENARIO.compare)


@pytest.mark.parametrize(
    "text",
    [
        "gap_ms <= 20",
        "10 < gap_ms <= 12 or not errors",
        "finish_s == never or rc.finish_s >= 2 * finish_s",
        "goodput(0.1, 2) > -0.5 and goodput(0, finish_s, 'bulk') > 1",
        "count('lost', 0, 1) < 3 and count('sent', 0, 1, 'two-words') > 1",
        "plane(2, 0, 1) > 1 and ev(7, 0, 1) > 1 and rc.ev(0, 0, 1) > 1",
        "ev(1, 0, 1, 'h1>h2') > 1 and gap(0, 1, 'two-words:h2>h1#1') < 1",
        "two_words.jain >= 0.9 and alone.bulk.errors == 0",
        "back(0.5, 0.7 * capacity_bps) / rtt_s <= max(1, 2, 3) + abs(-3)",
    ],
)
def test_what_can_be_evaluated(text):
    check_expectation(text, KNOWN)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("gapms <= 20", "gapms is not known; did you mean gap_ms"),
        ("rc.gapms <= 20", "gapms is not known; did you mean gap_ms"),
        ("gap_ms <= 20 or errrors", "did you mean errors"),
        ("alone.two_words.jain > 0", "two_words is not known"),
        ("two-words.jain > 0", "two is not known"),
        ("bulk.lost == 0", "lost is not known; known: goodput_bps"),
        ("gap_ms =< 20", r"is no expression, .*comparisons are < <= > >= == !="),
        ("gap_ms = 20", "is no expression"),
        ("gap_ms <= 20ms", "is no expression"),
        ("gap_ms is 20", "comparisons are"),
        ("gap_ms in (1, 2)", "not possible here"),
        ("gap_ms", "'gap_ms' is a number, no comparison"),
        ("rc", "rc has many figures, such as rc.goodput_bps"),
        ("rc < 3", "rc has many figures"),
        ("gap <= 20", r"gap is a function: gap\(from, to\[, work or flow\]\)"),
        ("gap_ms.max < 3", "gap_ms has no members"),
        ("gap_ms(1, 2) < 3", "gap_ms is no function"),
        ("gap_ms <= '20'", "gap_ms is a number, '20' is a word in quotes"),
        ("gap_ms < never", "never is never: not to be compared so"),
        ("(1 < 2) < 3", "is true or false"),
        ("'a' + 1 < 3", "'a' is a word, no number"),
        ("goodput(1) > 3", r"goodput\(from, to\[, work or flow\]\) is given 1 arguments"),
        ("share(0, 1, 'bulk') > 0", "is given 3 arguments"),
        ("min(3) < 4", r"min\(a, b, \.\.\) is given 1"),
        ("goodput('bulk', 0, 1) > 3", "from of goodput.* is a number"),
        ("goodput(0, 1, bulk) > 3", "bulk has many figures"),
        ("goodput(0, 1, errors) > 3", "work or flow of goodput.* is a word in quotes"),
        ("goodput(2, 1) > 3", "from 2 to 1 s there is nothing"),
        ("goodput(0, -1) > 3", "from 0 to -1 s there is nothing"),
        ("goodput(0, 1, 'bulkk') > 3", "bulkk is sampled nowhere; did you mean bulk"),
        ("goodput(0, 1, 'h1>h3') > 3", "no flow h1>h3: hosts are h1 to h2"),
        ("goodput(0, 1, 'h1>h2#2') > 3", "no flow h1>h2#2: #1 to #1"),
        ("count('losst', 0, 1) < 3", "losst is not counted; did you mean lost"),
        ("count('cwnd_bytes', 0, 1) < 3", "cwnd_bytes is not counted"),
        ("plane(3, 0, 1) > 0", "there is no plane 3: 1 to 2"),
        ("plane(0, 0, 1) > 0", "there is no plane 0"),
        ("ev(8, 0, 1) > 0", "there is no EV 8: 0 to 7"),
        ("ev(1.5, 0, 1) > 0", "there is no EV 1.5"),
        ("rc.ev(1, 0, 1) > 0", "there is no EV 1: 0 to 0"),
        ("ev(1, 0, 1, 'bulk') > 0", "bulk is sampled nowhere"),
        ("gap(begin=1, end=2) < 3", "is not possible here"),
        ("(lambda: 1)()", "is not possible here"),
        ("().__class__ == 1", "is not possible here"),
        ("-" * 450 + "1 < 2", "is nested too deeply"),
    ],
)
def test_what_cannot(text, reason):
    with pytest.raises(FabricError, match=reason):
        check_expectation(text, KNOWN)


def test_bars_are_numbers():
    check_figure("gap_ms / 2", KNOWN)
    with pytest.raises(FabricError, match="is true or false, no number"):
        check_figure("gap_ms < 2", KNOWN)
    with pytest.raises(FabricError, match="is never, no number"):
        check_figure("never", KNOWN)


def test_sentences():
    check_sentence("{gap_ms:.0f} of {{3}}, {errors}, {errors:d}, {rc.jain:.1%} {finish_s}", KNOWN)
    for wrong, reason in (
        ("{gapms}", "did you mean gap_ms"),
        ("{gap_ms", "expected '}'"),
        ("}", "Single '}'"),
        ("{}", "is no expression"),
        ("{gap_ms:.0q}", "a number is not written so"),
        ("{gap_ms!r}", "a number is not written so"),
        ("{gap_ms:{errors}}", "a number is not written so"),
        ("{gap_ms:4000000000}", "a number is not written so"),
        ("{gap_ms:.1000000000f}", "a number is not written so"),
        ("{rc}", "rc has many figures"),
    ):
        with pytest.raises(FabricError, match=reason):
            check_sentence(wrong, KNOWN)


def shape_of(names):
    """Names as the vocabulary has them: kinds of figures, functions, groups."""
    found = {}
    for name, value in names.items():
        if isinstance(value, dict):
            found[name] = shape_of(value)
        else:
            found[name] = "function" if callable(value) or isinstance(value, Function) else "figure"
    return found


def test_the_vocabulary_is_what_a_record_has():
    one = parse_scenario("name='x'\n[[work]]\nkind='bulk'\n", "x.toml")
    made = record([(1, LINE)])
    assert shape_of(known_in(one.main)) == shape_of(names_of(made))
    other = replace(made, run={**made.run, "case": "rc"})
    both = names_of(replace(made, compare=(other,)))
    rc = replace(one.main, id="rc")
    assert shape_of(known_of(one.main, [rc])) == shape_of(both)


@given(st.text("gap_ms<=>20 rclostjain().,'-+*/andornot", max_size=30))
def test_what_is_let_pass_can_be_evaluated(text):
    names = names_of(record([(0.1, LINE)], lost=3))
    known = known_in(parse_scenario("name='x'\n[[work]]\nkind='bulk'\n", "x.toml").main)
    for check, run in ((check_expectation, evaluate), (check_sentence, fill)):
        try:
            check(text, known)
        except FabricError:
            continue
        run(text, names)


@pytest.mark.parametrize("fabric", ["sim", "lab"])
def test_the_scenarios_of_the_package_name_what_there_is(fabric):
    for name in library.names():
        load_scenario(library.find(name), fabric=fabric)


def test_kinds_have_words_for_people():
    assert {kind.value for kind in Kind} == {
        "a number", "true or false", "a word in quotes", "never",
    }  # fmt: skip
