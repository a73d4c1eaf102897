# SPDX-License-Identifier: BSD-2-Clause
"""The entropy values of one host towards one peer, watched (MRC D.5, D.6, F.2).

GOOD and SKIP look the same from outside: an event tells of ASSUMED_BAD and DENIED only (C.6).
"""

from dataclasses import dataclass, field
from enum import IntEnum

from mrc.model.rules import Report
from mrc.model.trace import Event, Out, Path


class State(IntEnum):
    """EV states by their number in the log."""

    GOOD = 0
    SKIP = 1
    ASSUMED_BAD = 2
    DENIED = 3


class Reason(IntEnum):
    """Why a state changed, by its number in the log."""

    ECN = 1
    TRIMMED = 2
    ALWAYS_SKIP = 3
    TIMEOUT = 4
    LOSS = 5
    PROBE = 6
    ROTATION = 7
    CONTROL = 8
    SEND_ERROR = 9
    MTU = 10


@dataclass(slots=True)
class PathWatch:
    """One table of EVs."""

    paths: dict[int, Path]  # by EV
    min_active: int
    report: Report
    state: dict[int, State] = field(default_factory=dict)
    skipped: set[int] = field(default_factory=set)  # told to skip, not used since
    fresh: set[int] = field(default_factory=set)  # of those: no packet has left since
    carried: set[int] = field(default_factory=set)  # have carried data
    narrow: set[int] = field(default_factory=set)  # were denied for their MTU
    answered: set[int] = field(default_factory=set)  # a probe answered since ASSUMED_BAD
    told_bad: set[int] = field(default_factory=set)  # a SACK said "always skip"
    refused: bool = False  # the host's sockets have refused packets
    swapped: bool = False  # an EV went bad: a reserve may have taken its place, and it that one's
    free: bool = True  # ports are up and the controller keeps out of it

    def __post_init__(self) -> None:
        self.state = dict.fromkeys(self.paths, State.GOOD)

    def usable(self) -> frozenset[int]:
        """Return the EVs that may surely carry data now; empty when that is not known."""
        if not self.free or (self.swapped and any(p.backup for p in self.paths.values())):
            return frozenset()
        good = (ev for ev, s in self.state.items() if s <= State.SKIP)
        return frozenset(ev for ev in good if not self.paths[ev].backup)

    def any_left(self) -> bool:
        """Whether some EV is neither bad nor denied."""
        return any(s <= State.SKIP for s in self.state.values())

    def skip(self, ev: int) -> None:
        """Take note of a SACK with m = 1 or a NACK TRIMMED for this EV."""
        if self.state.get(ev, State.DENIED) <= State.SKIP:
            self.skipped.add(ev)
            self.fresh.add(ev)

    def sends(self, out: Out) -> None:
        """Judge the EV of a data packet."""
        ev = out.ev
        if ev not in self.paths or out.label > 0xFFFF:
            self.report("ev-unknown", out.now, f"EV {ev:08x}, flow label {out.label:#x}")
            return
        if self.state[ev] > State.SKIP:
            self.report("ev-bad", out.now, f"EV {ev:08x} is {self.state[ev].name}")
        plane = self.paths[ev].plane
        others = {e for e in self.usable() - self.skipped if self.paths[e].plane == plane}
        # A retransmission has an EV of its own to avoid (B.2.3).
        if ev in self.fresh and others - {ev} and not out.packet.bth.rtx:
            self.report("ev-skip", out.now, f"EV {ev:08x}")
        self.fresh.clear()
        self.skipped.discard(ev)
        self.carried.add(ev)

    def changes(self, event: Event) -> None:
        """Judge an event."""
        ev, was, becomes = event.ev, State(event.was), State(event.becomes)
        details = f"EV {ev:08x}, {was.name} to {becomes.name}, reason {event.reason}"
        if was == becomes:  # a verdict held back for want of better ones
            return
        self.state[ev] = becomes
        self.swapped = True
        if becomes == State.DENIED and event.reason == Reason.MTU:
            if ev not in self.carried and not self.refused:
                self.report("ev-condemned", event.now, details)
            self.narrow.add(ev)
        elif was == State.DENIED and event.reason == Reason.MTU:  # tried again
            if ev not in self.narrow or becomes != State.GOOD:
                self.report("ev-denied", event.now, details)
        elif State.DENIED in (was, becomes):
            self.narrow.discard(ev)
            if event.reason != Reason.CONTROL:
                self.report("ev-denied", event.now, details)
        elif becomes == State.ASSUMED_BAD:
            self._condemned(event, details)
        elif ev not in self.answered:
            self.report("ev-healed", event.now, details)
        self.answered.discard(ev)

    def _condemned(self, event: Event, details: str) -> None:
        occurred = {
            Reason.ALWAYS_SKIP: event.ev in self.told_bad,
            Reason.SEND_ERROR: self.refused,
            Reason.TIMEOUT: event.ev in self.carried,
            Reason.LOSS: event.ev in self.carried,
        }
        if not occurred.get(Reason(event.reason), False):
            self.report("ev-condemned", event.now, details)
        left = sum(1 for s in self.state.values() if s <= State.SKIP)
        if left < self.min_active and self.free:
            self.report("ev-floor", event.now, f"{details}: {left} left")
