# SPDX-License-Identifier: BSD-2-Clause
"""Numbers as typed and as printed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc.units import (
    format_bytes,
    format_rate,
    parse_count,
    parse_seconds,
    parse_size,
    parse_size_range,
    powers_of_two,
    rate,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("4096", 4096),
        ("64k", 65536),
        ("64K", 65536),
        ("1M", 1 << 20),
        ("1m", 1 << 20),
        ("2MiB", 2 << 20),
        ("1.5G", 3 << 29),
        ("1MB", 1 << 20),
        ("2T", 2 << 40),
        ("0", 0),
    ],
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "k", "-1", "1x", "1e6", "nan", "0x10", "1.3", "1 2", "1.5b"])
def test_what_is_no_size(text):
    with pytest.raises(ValueError, match=r"size|whole"):
        parse_size(text)


@pytest.mark.parametrize(("text", "count"), [("1", 1), ("10k", 10_000), ("2M", 2_000_000)])
def test_counts(text, count):
    assert parse_count(text) == count


@pytest.mark.parametrize("text", ["0", "-3", "1.5", "", "many"])
def test_what_is_no_count(text):
    with pytest.raises(ValueError, match="not a count"):
        parse_count(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10", 10), ("0.5", 0.5), (".5", 0.5), ("500ms", 0.5), ("2m", 120), ("1h", 3600), ("3s", 3)],
)
def test_seconds(text, seconds):
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "nan", "inf", "-1", "1d", "."])
def test_what_is_no_time(text):
    with pytest.raises(ValueError, match="not a time"):
        parse_seconds(text)


@pytest.mark.parametrize("text", ["64", "0:5", "5:4", "a:b", ":", "1:2:3"])
def test_what_is_no_range(text):
    with pytest.raises(ValueError, match=r"."):
        parse_size_range(text)


@given(low=st.integers(1, 1 << 31), high=st.integers(1, 1 << 31))
def test_powers_of_two_are_sorted_unique_and_hold_both_ends(low, high):
    low, high = sorted((low, high))
    sizes = powers_of_two(low, high)
    assert sizes == sorted(set(sizes))
    assert (sizes[0], sizes[-1]) == (low, high)
    assert all(size & (size - 1) == 0 for size in sizes[1:-1])
    assert all(b <= 2 * a for a, b in pairwise(sizes))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.00 Bytes"),
        (1023, "1023 Bytes"),
        (1024, "1.00 KBytes"),
        (1 << 30, "1.00 GBytes"),
        (11.5 * 2**20, "11.5 MBytes"),
        (5 << 50, "5120 TBytes"),
    ],
)
def test_bytes_for_people(value, text):
    assert format_bytes(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.00 bits/sec"),
        (999, "999 bits/sec"),
        (1000, "1.00 Kbits/sec"),
        (9.87e9, "9.87 Gbits/sec"),
        (0.3, "0.30 bits/sec"),
    ],
)
def test_rates_for_people(value, text):
    assert format_rate(value) == text


def test_no_time_is_no_rate():
    assert rate(1000, 0.0) == 0.0
    assert rate(1000, 2.0) == 4000.0
