# SPDX-License-Identifier: BSD-2-Clause
"""Timers and the retry budget (MRC B.9)."""

from dataclasses import dataclass

UNIT_NS = 1024
TIMEOUT_MAX = 24
FOREVER = 25  # exp_cnt


@dataclass(frozen=True, slots=True)
class Schedule:
    """timeout 0..24, linear_cnt 0..7, exp_cnt 0..25."""

    timeout: int
    linear: int
    exponential: int

    def timer_ns(self, attempt: int) -> int:
        """Return T(i), the timer of attempt i; attempts count timeout retries."""
        doublings = max(0, attempt - self.linear)
        return UNIT_NS << min(self.timeout + doublings, TIMEOUT_MAX)

    @property
    def retries(self) -> int | None:
        """How many timeout retries there are; None: without end."""
        return None if self.exponential == FOREVER else self.linear + self.exponential

    def span_ns(self, first: int, last: int) -> int:
        """Return the time that attempts first..last wait together."""
        return sum(self.timer_ns(i) for i in range(first, last + 1))


@dataclass(slots=True)
class Budget:
    """The retry counter of a queue pair, as far as the outside can know it.

    How several timers that end at the same time count, and what a round trip is for the rule that
    a packet's NACKs count once in it, is open: so this gives bounds.
    """

    schedule: Schedule
    progress_ns: int  # last news of a packet, or the first transmission
    nacked: int = 0  # transmissions refused since: each may have counted once

    def progress(self, now: int) -> None:
        """Take note that unack_psn advanced or a PSN is newly known received: the counter is 0."""
        self.progress_ns, self.nacked = now, 0

    def may_fail(self, oldest_ns: int, now: int) -> bool:
        """Return whether "retry counter exceeded" is possible now.

        oldest_ns: when the oldest packet not known received left for the first time.
        """
        retries = self.schedule.retries
        if retries is None:
            return False
        timers = retries - self.nacked  # the rest of the budget must have gone to timers
        since_news = now - self.progress_ns >= self.schedule.span_ns(1, timers)
        return since_news and (self.nacked > 0 or now - oldest_ns >= self._whole(timers))

    def _whole(self, timers: int) -> int:
        return self.schedule.span_ns(0, timers)
