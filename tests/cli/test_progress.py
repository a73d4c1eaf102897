# SPDX-License-Identifier: BSD-2-Clause
"""When bytes came: the longest silence, and how exactly it is known."""

from __future__ import annotations

import pytest

from mrc.cli.measure import Progress


class Clock:
    """time.monotonic_ns by hand."""

    def __init__(self) -> None:
        self.ms = 1000

    def __call__(self) -> int:
        return self.ms * 1_000_000


async def test_longest_gap_counts_from_sight_to_sight(monkeypatch):
    clock, count = Clock(), 0
    monkeypatch.setattr("mrc.cli.measure.time.monotonic_ns", clock)
    progress = Progress(lambda: count)
    for ms, total in (
        (1010, 0),
        (1014, 5),
        (1018, 9),
        (1022, 9),
        (1068, 9),
        (1072, 10),
        (1076, 12),
        (1150, 12),
    ):
        clock.ms, count = ms, total
        progress.look()
    progress.stop()
    assert progress.longest_gap_ns == (1072 - 1018) * 1_000_000
    assert progress.resolution_ns == (1150 - 1076) * 1_000_000
    assert progress.seconds == pytest.approx((1076 - 1010) / 1000)
    assert progress.bytes == 12


@pytest.mark.parametrize(("aborted", "gap_ms"), [(False, 10), (True, 500)])
async def test_silence_at_the_end_counts_after_an_abort(monkeypatch, aborted, gap_ms):
    clock, count = Clock(), 0
    monkeypatch.setattr("mrc.cli.measure.time.monotonic_ns", clock)
    progress = Progress(lambda: count)
    for count in (1, 2):  # noqa: B007 - read by the progress
        clock.ms += 10
        progress.look()
    clock.ms += 500
    progress.stop(aborted)
    assert progress.longest_gap_ns == gap_ms * 1_000_000


@pytest.mark.parametrize("aborted", [False, True])
@pytest.mark.parametrize(("first_ms", "gap_ms"), [(2000, 2000), (None, 3000)])
async def test_silence_from_the_start_counts(monkeypatch, aborted, first_ms, gap_ms):
    """An outage that was there before the first byte: until that came, or until the end."""
    clock, count = Clock(), 0
    monkeypatch.setattr("mrc.cli.measure.time.monotonic_ns", clock)
    progress = Progress(lambda: count)
    for ms in range(4, 3004, 4):
        clock.ms, count = 1000 + ms, 0 if first_ms is None or ms < first_ms else ms
        progress.look()
    clock.ms = 4000
    progress.stop(aborted)
    assert progress.longest_gap_ns == gap_ms * 1_000_000
    assert progress.resolution_ns == 4_000_000
