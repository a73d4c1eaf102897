# SPDX-License-Identifier: BSD-2-Clause
"""What is measured while a test runs: when bytes arrived, the longest pause, processor time."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable

PERIOD_S = 0.004


class Progress:
    """Watches a byte counter every few milliseconds.

    The longest gap is the longest time between two looks that both saw new bytes, or from the
    beginning to the first that did; the true pause may be longer or shorter by at most
    `resolution_ns`, the longest step between two looks.
    """

    def __init__(
        self,
        read: Callable[[], int],
        on_progress: Callable[[], None] | None = None,
        period_s: float = PERIOD_S,
    ) -> None:
        self._period_s = period_s
        self._read = read
        self._on_progress = on_progress
        self._base = read()
        self._timer: asyncio.TimerHandle | None = None
        self._begin_ns = self._look_ns = time.monotonic_ns()
        self.bytes = 0
        self.first_ns = 0
        self.last_ns = 0
        self.longest_gap_ns = 0
        self.resolution_ns = 0
        self._arm()

    def _arm(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._period_s, self._tick)

    def _tick(self) -> None:
        self.look()
        self._arm()

    def look(self) -> None:
        """Read the counter now."""
        now = time.monotonic_ns()
        count = self._read() - self._base
        self.resolution_ns = max(self.resolution_ns, now - self._look_ns)
        if count > self.bytes:
            self._end_gap(now)
            if not self.first_ns:
                self.first_ns = self._look_ns  # the first byte came after the previous look
            self.bytes = count
            self.last_ns = now
            if self._on_progress is not None:
                self._on_progress()
        self._look_ns = now

    def _end_gap(self, now_ns: int) -> None:
        silent_ns = now_ns - (self.last_ns or self._begin_ns)
        self.longest_gap_ns = max(self.longest_gap_ns, silent_ns)

    def stop(self, aborted: bool = False) -> None:
        """Last look. The silence at the end counts after an abort, and where nothing came."""
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        self.look()
        if aborted or not self.first_ns:
            self._end_gap(self._look_ns)

    @property
    def idle_seconds(self) -> float:
        """How long ago the last new byte was seen."""
        return (time.monotonic_ns() - max(self.last_ns, self._begin_ns)) / 1e9

    @property
    def seconds(self) -> float:
        """From just before the first byte to the last."""
        return (self.last_ns - self.first_ns) / 1e9


class CpuClock:
    """Processor time of this process since construction, in percent of one core."""

    def __init__(self) -> None:
        self._start = time.monotonic(), *self._used()

    @staticmethod
    def _used() -> tuple[float, float]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime, usage.ru_stime

    def percent(self) -> tuple[float, float, float]:
        """(total, user, system)."""
        wall, user, system = self._start
        elapsed = max(time.monotonic() - wall, 1e-9)
        now_user, now_system = self._used()
        user_percent = max(0.0, 100 * (now_user - user) / elapsed)
        system_percent = max(0.0, 100 * (now_system - system) / elapsed)
        return (
            round(user_percent + system_percent, 2),
            round(user_percent, 2),
            round(system_percent, 2),
        )
