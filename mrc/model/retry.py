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

    def patience_ns(self, first: int, last: int, slowest_ns: int) -> int:
        """Return the most that attempts first..last may wait together.

        Choice (ADR 72): T(0) is not below one and a half times what the slowest report took.
        """
        most = UNIT_NS << TIMEOUT_MAX
        base = min(max(self.timer_ns(0), slowest_ns * 3 // 2), most)
        return sum(min(base << max(0, i - self.linear), most) for i in range(first, last + 1))


@dataclass(slots=True)
class Budget:
    """The retry counter of a queue pair, as far as the outside can know it.

    How several timers that end at the same time count, and what a round trip is for the rule that
    a packet's NACKs count once in it, is open: so this gives bounds.
    """

    schedule: Schedule
    progress_ns: int  # last news of a packet, or the first transmission
    nacked: int = 0  # transmissions refused since: each may have counted once
    slowest_ns: int = 0  # from the first transmission of a packet to the report of it
    once_ns: int = 0  # when a packet was reported last that had left once: T begins anew
    quiet_ns: int | None = None  # since then nothing has come of what is out; None: nothing is
    owed: int | None = None  # last PSN of the oldest request, when only its transport ACK lacks
    owed_ns: int = 0  # since when

    def progress(self, now: int) -> None:
        """Take note that unack_psn advanced or a PSN is newly known received: the counter is 0."""
        self.progress_ns, self.nacked, self.quiet_ns = now, 0, now

    def reported(self, took_ns: int, now: int, *, once: bool) -> None:
        """A packet is known received so long after it first left; once: it left once."""
        self.slowest_ns = max(self.slowest_ns, took_ns)
        self.once_ns = now if once else self.once_ns

    def waits(self, last: int | None, now: int) -> None:
        """Take note whose transport ACK is owed now. Its wait has a budget of its own (ADR 72)."""
        if last != self.owed:
            self.owed, self.owed_ns = last, now

    def look(self, now: int, *, out: bool, may_leave: bool) -> None:
        """Something is out, or not; while nothing may leave the wait for news does not run."""
        if not out or not may_leave:
            self.quiet_ns = None
        elif self.quiet_ns is None:
            self.quiet_ns = now

    def overdue(self, now: int) -> str | None:
        """Return what has been waited for too long; None: nothing, or for ever is agreed."""
        retries = self.schedule.retries
        if retries is None:
            return None
        patience = self.schedule.patience_ns(0, retries, self.slowest_ns)
        if self.owed is not None and now - self.owed_ns > patience:
            return f"for the transport ACK of {self.owed}, since {self.owed_ns}"
        if self.quiet_ns is None:
            return None
        first = self._backoff(self.quiet_ns)
        # A retry lasts an interval at least, and counts at the next timeout after that.
        most = 2 * self.schedule.patience_ns(first, first + retries + 1, self.slowest_ns)
        return f"for news, since {self.quiet_ns}" if now - self.quiet_ns > most else None

    def _backoff(self, now: int) -> int:
        """How far T may have grown: half of it lies between two timeouts that count apart."""
        attempt, left = 0, now - self.once_ns
        while attempt < TIMEOUT_MAX and left >= self.schedule.timer_ns(attempt) // 2:
            left -= self.schedule.timer_ns(attempt) // 2
            attempt += 1
        return attempt

    def may_fail(self, oldest_ns: int, now: int) -> bool:
        """Return whether "retry counter exceeded" is possible now.

        oldest_ns: when the oldest packet not known received left for the first time.
        """
        retries = self.schedule.retries
        if retries is None:
            return False
        if self.owed is not None and now - self.owed_ns >= self._whole(retries):
            return True
        timers = retries - self.nacked  # the rest of the budget must have gone to timers
        since_news = now - self.progress_ns >= self.schedule.span_ns(1, timers)
        return since_news and (self.nacked > 0 or now - oldest_ns >= self._whole(timers))

    def _whole(self, timers: int) -> int:
        return self.schedule.span_ns(0, timers)
