# SPDX-License-Identifier: BSD-2-Clause
"""Exact numbers with units: times, rates, shares, and sizes written back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc.units import (
    parse_bps,
    parse_ns,
    parse_ppm,
    parse_size,
    ppm_text,
    rate_text,
    size_text,
    time_text,
)


@given(st.integers(0, 2**62))
def test_numbers_are_read_back(value):
    assert parse_ns(time_text(value)) == value
    assert parse_bps(rate_text(value)) == value


@given(st.integers(0, 2**50))
def test_sizes_are_read_back(value):
    assert parse_size(size_text(value)) == value


@given(st.integers(0, 10**6))
def test_shares_are_read_back(value):
    assert parse_ppm(ppm_text(value)) == value


@pytest.mark.parametrize(
    ("text", "ns"),
    [("3s", 3 * 10**9), ("1.5s", 15 * 10**8), ("20ms", 2 * 10**7), ("500us", 500_000), ("7ns", 7),
     ("3", 3 * 10**9), (".5s", 5 * 10**8), ("2min", 120 * 10**9), ("2m", 120 * 10**9),
     (" 1 ms ", 10**6),
     ("0", 0), ("1h", 3600 * 10**9), ("0.1us", 100)],
)  # fmt: skip
def test_times(text, ns):
    assert parse_ns(text) == ns


@pytest.mark.parametrize(
    ("text", "bps"),
    [("500mbit", 5 * 10**8), ("1.5Gbit/s", 15 * 10**8), ("8bit", 8), ("2Tbps", 2 * 10**12)],
)
def test_rates(text, bps):
    assert parse_bps(text) == bps


@pytest.mark.parametrize(
    ("text", "ppm"), [("5%", 50_000), ("0.1%", 1000), ("500ppm", 500), ("0%", 0)]
)
def test_shares(text, ppm):
    assert parse_ppm(text) == ppm


@pytest.mark.parametrize(
    ("value", "text"),
    [(3 * 10**9, "3s"), (15 * 10**8, "1500ms"), (1, "1ns"), (0, "0s"), (20_000, "20us")],
)
def test_times_are_written_short(value, text):
    assert time_text(value) == text


def test_others_are_written_short():
    assert (rate_text(5 * 10**8), rate_text(0), rate_text(1)) == ("500mbit", "0bit", "1bit")
    assert (size_text(204800), size_text(4097), size_text(0)) == ("200KB", "4097", "0")
    assert [ppm_text(p) for p in (50_000, 1000, 999, 12_500, 10**6)] == [
        "5%", "0.1%", "999ppm", "1.25%", "100%",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["", "s", "-1s", "1 day", "1e3", "nan", "1.5ns", "9" * 19 + "s", "1..2"]
)
def test_what_is_no_time(text):
    with pytest.raises(ValueError, match=r"is not a time|nanoseconds|too large"):
        parse_ns(text)


@pytest.mark.parametrize("text", ["5", "101%", "-1%", "0.00001%", "1000001ppm", "%"])
def test_what_is_no_share(text):
    with pytest.raises(ValueError, match=r"share|millionths|more than"):
        parse_ppm(text)


@pytest.mark.parametrize("text", ["5", "5m", "1.0001kbit", "-1mbit", "99999999999999999999tbit"])
def test_what_is_no_rate(text):
    with pytest.raises(ValueError, match=r"is not a rate|bits per second|too large"):
        parse_bps(text)
