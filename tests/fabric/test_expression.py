# SPDX-License-Identifier: BSD-2-Clause
"""Expressions in files of others: what they can say, and that they can do nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc.fabric import FabricError
from mrc.fabric.expression import evaluate, fill, names_in

NAMES = {
    "gap_ms": 12.5,
    "back_ms": None,
    "rc": {"share": 0.25, "victim": {"jain": 0.9}},
    "share": 0.98,
    "goodput": lambda begin, end: (end - begin) * 10,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("gap_ms <= 20", True),
        ("10 < gap_ms <= 12", False),
        ("share > 2 * rc.share and rc.victim.jain < 1", True),
        ("share < 0.5 or not gap_ms > 20", True),
        ("(share - rc.share) / 2 + 1", (0.98 - 0.25) / 2 + 1),
        ("-gap_ms", -12.5),
        ("min(gap_ms, 3)", 3),
        ("goodput(1, 3)", 20),
        ("back_ms <= 20", False),
        ("back_ms > 20", False),
        ("back_ms == never", True),
        ("gap_ms != never", True),
        ("back_ms + 1 == never", True),
        ("1 / 0", None),
    ],
)
def test_values(text, value):
    assert evaluate(text, NAMES) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is no expression"),
        ("gap_ms <=", "is no expression"),
        ("gap = 3", "is no expression"),
        ("gap_mss <= 3", "did you mean gap_ms"),
        ("rc.shape", "did you mean share"),
        ("gap_ms.real", "has no members"),
        ("gap_ms()", "is no function"),
        ("goodput(1)", "argument"),
        ("gap_ms ** 9", "is not possible here"),
        ("[1, 2]", "is not possible here"),
        ("(lambda: 1)()", "is not possible here"),
        ("goodput(begin=1, end=2)", "is not possible here"),
        ("'a' < 3", "not supported"),
        ("__import__('os')", "__import__ is not known"),
        ("().__class__", "is not possible here"),
        ("goodput.__globals__", "has no members"),
        ("1" * 501, "500 at most"),
        ("gap_ms in rc", "not possible here"),
    ],
)
def test_what_is_refused(text, reason):
    with pytest.raises(FabricError, match=reason):
        evaluate(text, NAMES)


@given(st.text(max_size=30))
def test_any_text_is_a_value_or_an_error(text):
    try:
        evaluate(text, NAMES)
    except FabricError as error:
        assert str(error)  # noqa: PT017 - either is right


def test_names_are_found_before_it_runs():
    assert names_in("rc.share + min(share, 3)") == {"rc", "share", "min"}


def test_what_never_happened_stays_so_in_a_function():
    assert evaluate("min(back_ms, 3) == never", NAMES)
    assert evaluate("goodput(back_ms, 3)", NAMES) is None


def test_a_number_of_digits_is_rounded_where_whole_ones_are_wanted():
    assert fill("{gap_ms:d} ms, {back_ms:d} ms", NAMES) == "12 ms, never"


def test_sentences_are_filled():
    assert fill("gap {gap_ms:.0f} ms, {share:.1%}", NAMES) == "gap 12 ms, 98.0%"
    assert (
        fill("{share / rc.share:.2f} times, back {back_ms:.0f}", NAMES) == "3.92 times, back never"
    )
    assert fill("back {back_ms:.0f} ms after it", NAMES) == "back never after it"
    assert fill("nothing {{in}} braces", NAMES) == "nothing {in} braces"


@pytest.mark.parametrize("template", ["{gap", "{nothing}", "{gap_ms:q}", "{gap_ms * 1e999:d}"])
def test_sentences_that_cannot_be(template):
    with pytest.raises(FabricError):
        fill(template, NAMES)
