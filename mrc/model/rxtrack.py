# SPDX-License-Identifier: BSD-2-Clause
"""Which packets have arrived at a responder, and its SACKs (MRC B.3, B.4)."""

from dataclasses import dataclass, field
from enum import Enum

from mrc.model import psn, sack
from mrc.model.path import forbid

OOR_SPAN = 1 << 22  # farther beyond the window is no packet of this flow (H8)


class Verdict(Enum):
    """What to do with a packet, by its PSN alone (B.3)."""

    NEW = "new"
    DUPLICATE = "duplicate"  # SACK, nothing else
    OOR_WINDOW = "beyond the window"  # NACK PSN_OOR_WINDOW
    STALE = "far away"  # drop silently


@dataclass(frozen=True, slots=True)
class Advance:
    """What the arrival of a packet let cack pass."""

    psns: int
    messages: int  # last packets of messages
    ar_passed: bool  # a packet that asked for an acknowledgement (B.6)


@dataclass(slots=True)
class Receiver:
    """The receive side of one QP; sequence numbers inside are unbounded."""

    first: int
    window: int  # PSNs above cack: MPR x 128
    cack: int = field(init=False)
    max_rcv: int = field(init=False)
    got: dict[int, tuple[bool, bool]] = field(init=False, default_factory=dict)  # A, last
    unreported: set[int] = field(init=False, default_factory=set)  # above cack
    rcvd_bytes: int = field(init=False, default=0)
    edge: int = field(init=False)  # the farthest PSN that the peer has been told it may send

    def __post_init__(self) -> None:
        self.cack = self.max_rcv = self.first - 1
        self.edge = self.cack + self.window

    @property
    def ooo_count(self) -> int:
        """How many packets arrived above cack (A.8, B.3)."""
        return len(self.got)

    def verdict(self, wire_psn: int) -> Verdict:
        """Judge a PSN as it is on the wire (B.3, H8); far below is as far as far above."""
        e = psn.diff(wire_psn, self.cack)
        if e < -OOR_SPAN:
            return Verdict.STALE
        if e <= 0 or self.cack + e in self.got:
            return Verdict.DUPLICATE
        room = max(self.window, self.edge - self.cack)
        if e <= room:
            return Verdict.NEW
        return Verdict.OOR_WINDOW if e - room < OOR_SPAN else Verdict.STALE

    def resize(self, window: int) -> None:
        """Offer another window (B.12). It never takes back the room that packets may be using."""
        self.edge = max(self.edge, self.cack + self.window)
        self.window = window

    def accept(self, wire_psn: int, nominal_bytes: int, *, ar: bool, last: bool) -> Advance:
        """Take in a NEW packet (B.3, E.1)."""
        number = psn.unwrap(wire_psn, self.cack)
        self.got[number] = ar, last
        self.unreported.add(number)
        self.rcvd_bytes += nominal_bytes
        self.max_rcv = max(self.max_rcv, number)
        passed = []
        while self.cack + 1 in self.got:
            self.cack += 1
            passed.append(self.got.pop(self.cack))
        self.unreported = {n for n in self.unreported if n > self.cack}
        return Advance(len(passed), sum(last for _, last in passed), any(ar for ar, _ in passed))

    @property
    def rcvd_units(self) -> int:
        """CC_STATE.rcvd_bytes: rounded up, 256-byte units, wrapping (B.4)."""
        return psn.wrap(-(-self.rcvd_bytes // 256))

    def expected_sack(self) -> sack.SackMap:
        """Return the map by the letter of the choice in B.4."""
        lowest = min(self.unreported, default=None)
        base = sack.base_of(self.cack, self.max_rcv, lowest)
        return sack.place(self.cack, base, self.got.keys())

    def on_sack(self, said: sack.SackMap, *, more: bool) -> None:
        """Check a SACK that leaves now; what it covers counts as reported.

        more: unreported packets remain, so that another SACK would say something new.
        """
        expected = self.expected_sack()
        forbid(said != expected, f"expected {expected}")
        self.unreported -= said.psns(self.cack)
        forbid(more != bool(self.unreported), f"{len(self.unreported)} unreported, said {more}")
