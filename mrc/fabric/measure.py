# SPDX-License-Identifier: BSD-2-Clause
"""What a series of samples says: goodput, the longest gap, when a rate was reached. Pure.

One implementation for the emulated fabric, the fabric of namespaces and the scorecard, so that
their figures mean the same. A sample is the time in seconds and the bytes counted until then.

Between two samples bytes are taken to have come evenly; nothing here is finer than the samples, and
`resolution_s` says how fine they were.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

__all__ = [
    "HOLD_S",
    "PROBES_BYTES",
    "WINDOW_S",
    "Series",
    "goodput_bps",
    "jain",
    "longest_gap_s",
    "median",
    "resolution_s",
    "reuse_s",
    "time_below_s",
    "time_to_s",
]

WINDOW_S = 0.05
"""A rate counts as reached when it is held, on average, for so long."""

HOLD_S = 0.5
"""And for so long, on average, it must not be lost again: a pause may begin late."""

PROBES_BYTES = 64 << 10
"""A path is in use again when it has carried more than this: probes of a dead path carry less."""


@dataclass(frozen=True, slots=True)
class Series:
    """A counter over time. Times rise; the count never falls."""

    t_s: tuple[float, ...]
    count: tuple[int, ...]

    def __post_init__(self) -> None:
        """ValueError: no samples, or a time or count that falls."""
        if not self.t_s or len(self.t_s) != len(self.count):
            raise ValueError("a series needs samples: a time and a count each")
        if any(b <= a for a, b in pairwise(self.t_s)):
            raise ValueError("times of samples must rise")
        if any(b < a for a, b in pairwise(self.count)):
            raise ValueError("a counter does not fall")

    @classmethod
    def of(cls, samples: Iterable[tuple[float, int]]) -> Self:
        """From (time, count) pairs in order; of samples with equal times the last counts."""
        merged = dict(samples)
        return cls(tuple(merged), tuple(merged.values()))

    def at(self, t_s: float) -> float:
        """The count at a time: even between two samples, constant outside of all."""
        i = bisect_right(self.t_s, t_s)
        if i == 0:
            return self.count[0]
        if i == len(self.t_s):
            return self.count[-1]
        before, after = self.t_s[i - 1], self.t_s[i]
        share = (t_s - before) / (after - before)
        return self.count[i - 1] + share * (self.count[i] - self.count[i - 1])


def goodput_bps(series: Series, begin_s: float, end_s: float) -> float:
    """Mean rate between two times, in bit/s. ValueError: the period is empty."""
    if end_s <= begin_s:
        raise ValueError(f"a period from {begin_s} to {end_s} s is empty")
    return (series.at(end_s) - series.at(begin_s)) * 8 / (end_s - begin_s)


def longest_gap_s(series: Series, begin_s: float, end_s: float) -> float:
    """The longest time without new bytes within a period, its edges included, in s.

    From a sample that brought bytes to the next one that did: a steady flow has a gap of one step.
    """
    inside = [
        now
        for (now, count), before in zip(
            zip(series.t_s[1:], series.count[1:], strict=True), series.count, strict=False
        )
        if count > before and begin_s <= now <= end_s
    ]
    return max((b - a for a, b in pairwise([begin_s, *inside, end_s])), default=0.0)


def resolution_s(series: Series, begin_s: float, end_s: float) -> float:
    """The longest step between two samples of a period: the error of what is computed, in s."""
    first = max(bisect_right(series.t_s, begin_s) - 1, 0)
    last = bisect_left(series.t_s, end_s) + 1
    return max((b - a for a, b in pairwise(series.t_s[first:last])), default=0.0)


def time_to_s(
    series: Series,
    after_s: float,
    rate_bps: float,
    *,
    until_s: float | None = None,
    window_s: float = WINDOW_S,
    hold_s: float = HOLD_S,
) -> float | None:
    """How long after `after_s` this rate was reached for good; None if never before `until_s`.

    Reached: from then on the mean over `window_s` is at least `rate_bps`, and so it is up to the
    next sample and over `hold_s`, or what is left of it until `until_s`. Without the former a stall
    shorter than the window, which packets on their way hide at first, would not be seen; without
    the latter one that begins after the window, when a receiver's buffer is empty. 0 if the rate
    never was lower.
    """
    enough = rate_bps * (1 - 1e-9)

    def holds(start_s: float, next_s: float, end_s: float) -> bool:
        ends = next_s, start_s + window_s, min(start_s + hold_s, end_s)
        return all(goodput_bps(series, start_s, to_s) >= enough for to_s in ends)

    return _first_start(series, after_s, until_s, window_s, holds)


def reuse_s(path: Series, healed_s: float, *, more_than: int = PROBES_BYTES) -> float | None:
    """How long after a heal a path had carried more than probes; None: it did not."""
    base = path.at(healed_s)
    for t_s, count in zip(path.t_s, path.count, strict=True):
        if t_s >= healed_s and count - base > more_than:
            return t_s - healed_s
    return None


def time_below_s(
    series: Series,
    after_s: float,
    rate_bps: float,
    *,
    until_s: float | None = None,
    window_s: float = WINDOW_S,
) -> float | None:
    """How long after `after_s` the mean over `window_s` fell to `rate_bps` or less; None: never."""

    def holds(start_s: float, next_s: float, end_s: float) -> bool:
        del next_s, end_s
        return goodput_bps(series, start_s, start_s + window_s) <= rate_bps

    return _first_start(series, after_s, until_s, window_s, holds)


def jain(rates: Sequence[float]) -> float:
    """Jain's index of fairness: 1 when all are equal, 1/n when one has all; 0 of nothing."""
    squares = sum(r * r for r in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else 0.0


def median(values: Iterable[float | None]) -> float | None:
    """The median of several runs; None (it never happened) is later than any number."""
    known = sorted(float("inf") if v is None else float(v) for v in values)
    if not known:
        return None
    middle = len(known) // 2
    value = known[middle] if len(known) % 2 else (known[middle - 1] + known[middle]) / 2
    return None if value == float("inf") else value


def _first_start(
    series: Series,
    after_s: float,
    until_s: float | None,
    window_s: float,
    holds: Callable[[float, float, float], bool],
) -> float | None:
    """The first of `after_s` and the samples after it that fulfils a condition.

    The condition is given the start, the next sample and the end of the period, which is at least
    `window_s` after the start.
    """
    end_s = series.t_s[-1] if until_s is None else min(until_s, series.t_s[-1])
    starts = (after_s, *series.t_s[bisect_right(series.t_s, after_s) :])
    for start_s, next_s in pairwise(starts):
        if start_s + window_s > end_s + 1e-9:
            return None
        if holds(start_s, next_s, end_s):
            return start_s - after_s
    return None
