# SPDX-License-Identifier: BSD-2-Clause
"""Which packets a requestor may take for lost, and which it must (MRC B.7, B.9, B.10, B.11).

The rule of the specification (7.4.5) is not public; the reference lists rules that are known or
chosen. A packet may be sent again when one of them holds; it must be when it was refused.
"""

from dataclasses import dataclass, field

from mrc.model.ends import DATA_HEADERS, nominal_bytes
from mrc.model.retry import Schedule
from mrc.model.txtrack import Sender, Sent, State

PROBE_COPIES = 4


@dataclass(frozen=True, slots=True)
class Now:
    """The moment, and what the other parts of the requestor say in it."""

    now: int
    cwnd: int | None  # bytes; None: no limit
    base_rtt_ns: int
    target_ns: int  # target queueing delay
    usable: frozenset[int]  # EVs that are active


@dataclass(slots=True)
class Losses:
    """Of one queue pair."""

    track: Sender
    schedule: Schedule
    mtu: int
    refused: dict[int, int] = field(
        default_factory=dict
    )  # by NACK, since the last transmission: EV
    surely: set[int] = field(default_factory=set)  # of these: to be sent again at once
    attempts: dict[int, int] = field(default_factory=dict)  # timeouts of a packet in a row
    newest_ns: int = -1  # send time of the newest packet known received
    probes: dict[int, tuple[int, int]] = field(default_factory=dict)  # id: order, time
    probed_order: int = 0  # what left before this and is missing is lost (B.11)
    news_ns: int = -1  # when something was last newly known received
    recovery: set[int] = field(default_factory=set)  # wide gap: missing below recovery_psn
    allowed: set[int] = field(default_factory=set)  # was in its present transmission
    expired: set[int] = field(default_factory=set)  # of these: by the timer

    def sent(self, number: int, here: Now) -> None:
        """A packet leaves, anew or for the first time."""
        overtaken = self.track.overtaken() if number in self.expired else set()
        by_timer = number in self.expired and not self._otherwise(number, here, overtaken)
        self.attempts[number] = self.attempts.get(number, 0) + 1 if by_timer else 0
        self.refused.pop(number, None)
        for group in (self.surely, self.recovery, self.allowed, self.expired):
            group.discard(number)

    def arrived(self, number: int, sent_ns: int) -> None:
        """A packet is known received; sent_ns: when its last copy left."""
        self.newest_ns = max(self.newest_ns, sent_ns)
        self.refused.pop(number, None)
        for group in (self.surely, self.recovery, self.allowed, self.expired):
            group.discard(number)

    def nacked(self, number: int, ev: int, *, certain: bool) -> bool:
        """B.7. certain: it is due now. Return whether it is the first NACK of this copy."""
        first = number not in self.refused
        self.refused[number] = ev
        if certain:
            self.surely.add(number)
        return first

    def probe_sent(self, probe_id: int, here: Now) -> None:
        """A reliability probe leaves (B.11)."""
        self.probes[probe_id] = self.track.order, here.now

    def probe_answered(self, probe_id: int, here: Now) -> None:
        """B.11: nothing can be queued any more that left before, if it came back without delay."""
        order, sent_ns = self.probes.pop(probe_id, (0, 0))
        if here.now - sent_ns - here.base_rtt_ns < here.target_ns:
            self.probed_order = max(self.probed_order, order)

    def reported(self, ooo_count: int, here: Now) -> None:
        """B.10, SLEEK: so much has arrived above the gap that the gap is a loss.

        maxwnd is the other side's, and no less than cwnd; half of the PSN window counts as one as
        well (ADR 70).
        """
        packet = nominal_bytes(DATA_HEADERS + self.mtu)
        most = self.track.window * packet // 2
        least = most if here.cwnd is None else min(here.cwnd, most)
        if ooo_count >= max(least // packet, 5):
            self.recovery |= set(self.track.in_state(State.INFLIGHT))
        self.look(here)

    def look(self, here: Now) -> None:
        """Take note of what may be declared lost now."""
        overtaken = self.track.overtaken()
        for number in self.track.in_state(State.INFLIGHT):
            if self._otherwise(number, here, overtaken):
                self.allowed.add(number)
            if self._timer(number, here):
                self.allowed.add(number)
                self.expired.add(number)

    def reason(self, number: int, here: Now) -> bool:
        """Return whether there is, or was since it left, a reason to send it again."""
        self.look(here)
        return number in self.allowed

    def _timer(self, number: int, here: Now) -> bool:
        # The attempt number is the queue pair's, and news takes it back to 0 for all (ADR 72).
        sent_ns = self.track.packets[number].time_ns
        attempt = 0 if self.news_ns >= sent_ns else self.attempts.get(number, 0)
        return here.now - sent_ns >= self.schedule.timer_ns(attempt)

    def _otherwise(self, number: int, here: Now, overtaken: set[int]) -> bool:
        sent = self.track.packets[number]
        return (
            number in self.refused
            or number in self.recovery
            or number in overtaken
            or self.newest_ns - sent.time_ns > here.base_rtt_ns + 4 * here.target_ns
            or (sent.order <= self.probed_order and self._probes_may(sent))
        )

    def _probes_may(self, sent: Sent) -> bool:
        """Choice (ADR 72): answered probes ask for four copies of a packet that nobody reports.

        Unless something arrived since the last one left: probes get through where data, which is
        larger, may not, and then it is the timer that ends it.
        """
        return sent.rtx < PROBE_COPIES or self.news_ns >= sent.time_ns

    def must(self) -> set[int]:
        """Return what has to be sent again before anything new (B.2, B.7)."""
        return {n for n in self.surely if n <= self.track.unack + self.track.window}
