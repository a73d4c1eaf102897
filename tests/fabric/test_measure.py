# SPDX-License-Identifier: BSD-2-Clause
"""Figures of hand-made series, each worked out on paper."""

import pytest

from mrc.fabric.measure import (
    Series,
    goodput_bps,
    jain,
    longest_gap_s,
    median,
    resolution_s,
    reuse_s,
    time_below_s,
    time_to_s,
)

MBIT = 1e6


def flow(*parts: tuple[float, float], step_s: float = 0.01) -> Series:
    """A series of (seconds, bit/s) parts one after the other."""
    samples, t, count = [(0.0, 0)], 0, 0.0
    for seconds, bps in parts:
        for _ in range(round(seconds / step_s)):
            t += 1
            count += bps * step_s / 8
            samples.append((t * step_s, round(count)))
    return Series.of(samples)


def test_goodput_is_bytes_over_time_also_between_samples():
    series = Series.of([(0.0, 0), (1.0, 1000), (2.0, 1000)])
    assert goodput_bps(series, 0, 2) == 4000
    assert goodput_bps(series, 0.25, 0.75) == 8000
    assert goodput_bps(series, -1, 0) == 0
    assert goodput_bps(series, 1.5, 9) == 0


def test_an_empty_period_has_no_goodput():
    with pytest.raises(ValueError, match="empty"):
        goodput_bps(flow((1, MBIT)), 0.5, 0.5)


@pytest.mark.parametrize(
    "samples",
    [[], [(0.0, 1), (1.0, 0)], [(1.0, 0), (0.5, 1)]],
    ids=["none", "the count falls", "time falls"],
)
def test_what_is_no_counter_is_refused(samples):
    with pytest.raises(ValueError, match=r"samples|fall"):
        Series.of(samples)


def test_of_two_samples_at_one_time_the_later_counts():
    assert Series.of([(0.0, 0), (1.0, 5), (1.0, 9)]).at(1.0) == 9


def test_the_gap_lies_between_the_samples_that_brought_bytes():
    series = flow((0.5, MBIT), (0.2, 0), (0.3, MBIT))
    assert longest_gap_s(series, 0, 1) == pytest.approx(0.21)  # 0.50 was the last, 0.71 the next


def test_a_steady_flow_has_a_gap_of_one_step():
    assert longest_gap_s(flow((1, MBIT)), 0, 1) == pytest.approx(0.01)


def test_silence_at_the_edges_of_the_period_is_a_gap():
    series = flow((0.5, MBIT), (0.5, 0))
    assert longest_gap_s(series, 0.2, 1.0) == pytest.approx(0.5)
    assert longest_gap_s(series, 0.6, 0.9) == pytest.approx(0.3)  # nothing at all


def test_resolution_is_the_longest_step_of_the_period():
    series = Series.of([(0.0, 0), (0.1, 1), (0.15, 2), (0.55, 3), (0.6, 4)])
    assert resolution_s(series, 0.0, 0.15) == pytest.approx(0.1)
    assert resolution_s(series, 0.2, 0.5) == pytest.approx(0.4)
    assert resolution_s(series, 0.0, 1.0) == pytest.approx(0.4)


def test_time_to_a_rate_that_comes_back():
    series = flow((1, 100 * MBIT), (0.3, 0), (1, 75 * MBIT))
    assert time_to_s(series, 1.0, 71 * MBIT) == pytest.approx(0.3)
    assert time_to_s(series, 1.0, 70 * MBIT * 0.7) == pytest.approx(0.3)  # not 0.29: it stands yet
    assert time_to_s(series, 1.0, 80 * MBIT) is None


def test_time_to_a_rate_never_lost_is_zero():
    assert time_to_s(flow((2, MBIT)), 1.0, 0.95 * MBIT) == 0


def test_a_stall_that_packets_on_their_way_hide_is_seen():
    series = flow((1, MBIT), (0.02, MBIT), (0.01, 0), (1, MBIT))
    assert time_to_s(series, 1.0, 0.9 * MBIT) == pytest.approx(0.03)


def test_a_pause_that_begins_late_is_not_overlooked():
    series = flow((1, MBIT), (0.1, MBIT), (0.2, 0), (1, MBIT))
    assert time_to_s(series, 1.0, 0.95 * MBIT) == pytest.approx(0.3)
    assert time_to_s(series, 1.0, 0.55 * MBIT) == 0  # 60 % of the next half second came


def test_a_rate_held_until_the_end_of_the_period_is_reached():
    series = flow((1, MBIT), (0.1, 0), (0.1, MBIT), (1, 0))
    assert time_to_s(series, 1.0, 0.95 * MBIT, until_s=1.2) == pytest.approx(0.1)
    assert time_to_s(series, 1.0, 0.95 * MBIT) is None


def test_probes_are_no_re_use():
    path = flow((0.2, 8 * MBIT), (0.3, 0), (0.1, 0.8 * MBIT), (0.4, 8 * MBIT))
    assert reuse_s(path, 0.5) == pytest.approx(0.16)  # 10 KB of probes, then 10 KB a sample
    assert reuse_s(path, 0.5, more_than=0) == pytest.approx(0.01)
    assert reuse_s(flow((1, 0)), 0.5) is None


def test_a_short_burst_is_no_rate_reached():
    series = flow((1, MBIT), (0.2, 0), (0.02, MBIT), (0.2, 0), (1, MBIT))
    assert time_to_s(series, 1.0, 0.95 * MBIT) == pytest.approx(0.42)


def test_what_is_reached_too_late_is_not_reached():
    series = flow((1, MBIT), (0.5, 0), (1, MBIT))
    assert time_to_s(series, 1.0, 0.9 * MBIT, until_s=1.5) is None
    assert time_to_s(series, 1.0, 0.9 * MBIT, until_s=1.7) == pytest.approx(0.5)


def test_time_until_a_rate_is_left():
    series = flow((1, MBIT), (0.1, MBIT), (1, 0))
    assert time_below_s(series, 1.0, 0.05 * MBIT) == pytest.approx(0.1)
    assert time_below_s(flow((2, MBIT)), 1.0, 0.05 * MBIT) is None


@pytest.mark.parametrize(
    ("rates", "index"), [([5, 5, 5], 1.0), ([1, 0, 0, 0], 0.25), ([], 0.0), ([0, 0], 0.0)]
)
def test_jain(rates, index):
    assert jain(rates) == index


@pytest.mark.parametrize(
    ("values", "middle"),
    [([3, 1, 2], 2), ([1, 2], 1.5), ([1, None, 2], 2), ([1, None, None], None), ([], None)],
)
def test_median_knows_that_never_is_late(values, middle):
    assert median(values) == middle
