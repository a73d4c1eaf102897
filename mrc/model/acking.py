# SPDX-License-Identifier: BSD-2-Clause
"""What a responder owes its peer: SACKs, NACKs, transport ACKs (MRC B.4, B.6, B.7).

Told what makes an answer due and each answer that leaves; raises ForbiddenError for an answer that
is wrong or that nothing asked for, and, when nothing more leaves, for one that is still owed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from enum import Enum

from mrc.model import psn, wire
from mrc.model.ends import Arrival, Ends, differences, header_of, stamp
from mrc.model.path import ForbiddenError, forbid
from mrc.model.rxtrack import Receiver
from mrc.model.wire import NackReason, Op, Packet, Syndrome

FLOOR = 1024  # what a small packet counts for the threshold (B.4, trigger 1)
OLD_DUPLICATES = 64  # duplicates from far behind, of which one is answered (H35)
REMEMBERED = 16  # answers of one burst that an implementation must be able to owe
OOO_MAX = 0x7FFF  # A.8


class Why(Enum):
    """Triggers of a SACK, by their number in B.4."""

    THRESHOLD = 1
    ASKED = 2
    MARKED = 3
    ECHO = 4
    PROBE = 5
    GAP_CLOSED = 6
    DUPLICATE = 7
    FIRST = 8
    OLD_DUPLICATE = 9  # trigger 7 within H35


SINGLE = frozenset({Why.MARKED, Why.ECHO, Why.PROBE})  # each says something of its own packet


@dataclass(frozen=True, slots=True)
class Trigger:
    """A packet that makes a SACK due, or (must not set) may."""

    why: frozenset[Why]
    number: int  # its PSN, or the probe's id
    entropy: int
    timestamp: int  # 0: it had none
    ce: bool
    rtx: bool
    must: bool = True

    @property
    def single(self) -> bool:
        """Whether no SACK for another packet can stand for it."""
        return self.must and bool(self.why & SINGLE)


@dataclass(frozen=True, slots=True)
class Taken:
    """What the tracker did with an accepted packet."""

    number: int
    fresh: bool  # nothing had arrived before
    ooo_before: int
    ar_passed: bool


@dataclass(slots=True)
class Acking:
    """The answers of one responder. completed: messages, kept by the responder."""

    ends: Ends
    track: Receiver
    threshold: int
    mpr_most: int = 0  # dynamic MPR: the largest offer, units; 0: off
    penalty: int = 0  # E.6
    completed: int = 0
    failed: bool = False
    ar_passed: int = field(init=False)  # newest packet with A that cack has passed
    ar_waits: bool = field(init=False, default=False)  # table 7-5: prev_ar
    counter: tuple[int, int] = field(init=False, default=(0, 0))  # sack_trigger_cnt: least, most
    old: tuple[int, int] = field(init=False, default=(0, 0))  # duplicates from far behind, answered
    old_quiet: int = field(init=False, default=0)  # of them since a SACK
    triggers: list[Trigger] = field(init=False, default_factory=list)
    since: int = field(init=False, default=0)  # SACKs since the last settling
    last: Trigger | None = field(init=False, default=None)
    acks: int = field(init=False, default=0)  # transport ACKs that may leave
    ack_owed: bool = field(init=False, default=False)
    nacks: list[Packet] = field(init=False, default_factory=list)
    refused: int = field(init=False, default=0)  # NACKs since the last settling
    cause: tuple[int, Syndrome] | None = field(init=False, default=None)  # PSN; what the NAK says
    naks: int = field(init=False, default=0)  # NAKs that may leave
    nak_owed: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.ar_passed = self.track.cack

    # ---- what becomes due ----------------------------------------------------------------------

    def accepted(self, a: Arrival, taken: Taken) -> None:
        """A new packet: triggers 1 to 4, 6 and 8 (B.4), transport ACK (B.6).

        It has arrived even if its delivery has failed: then a SACK may still say so (B.3).
        """
        bth, why = a.packet.bth, set()
        least, most = self.counter  # what "packet bytes" are is open: payload, or nominal size
        least += max(len(a.packet.payload), FLOOR)
        most += max(a.nominal, FLOOR)
        self.counter = least, most
        if taken.fresh:
            why.add(Why.FIRST)
        if bth.a:
            why.add(Why.ASKED)
            self.ar_waits = True
        if self.ar_waits and self.track.ooo_count == 0:
            if taken.ooo_before or not bth.a:
                why.add(Why.GAP_CLOSED)
            self.ar_waits = False
        if least >= self.threshold:
            why.add(Why.THRESHOLD)
        if why or a.ce or bth.rtx:
            self._trigger(a, taken.number, why, stamp(a.packet))
        elif most >= self.threshold:
            self._trigger(a, taken.number, {Why.THRESHOLD}, stamp(a.packet), must=False)
        if taken.ar_passed and not self.failed:
            self.ar_passed = self.track.cack
            self.ack_owed = True
            self.acks += 1

    def duplicate(self, a: Arrival) -> None:
        """B.3, B.4 trigger 7, B.6. From farther behind than a window, one in 64 is answered (H35).

        Not so with BTH.A: that is how a lost transport ACK is asked for again (H16).
        """
        bth, track = a.packet.bth, self.track
        number, asks = psn.unwrap(bth.psn, track.cack), bool(bth.a) and a.trim is None
        self.acks += bth.a  # may leave: it covers nothing new, but harms nobody
        why, must = {Why.DUPLICATE}, True
        if number < track.cack - track.window and not asks:
            self.old = self.old[0] + 1, self.old[1]
            self.old_quiet += 1
            why, must = {Why.OLD_DUPLICATE}, self.old_quiet >= OLD_DUPLICATES
        self._trigger(a, number, why, stamp(a.packet), must=must)
        if asks and number > track.cack:  # due when cack passes a packet that had A
            track.got[number] = True, track.got[number][1]
        self.ack_owed |= asks and number <= track.cack

    def probe(self, a: Arrival) -> None:
        """B.11."""
        peth = header_of(a.packet.peth)
        self._trigger(a, peth.probe_id, {Why.PROBE}, peth.tx_timestamp)

    def refuse(self, a: Arrival, reason: NackReason) -> None:
        """B.7."""
        number, time = a.packet.bth.psn, stamp(a.packet)
        said = {"nack_reason": reason, "nack_psn": number, "tx_timestamp": time}
        neth = wire.Neth(entropy=a.ev, **said, **self.ends.ids)
        self.nacks.append(Packet(self.ends.bth(Op.NACK, number), neth=neth))

    def repeat(self, a: Arrival) -> None:
        """The queue pair has failed, the peer goes on: it may be told again, or for the first time.

        Here the text leaves the choice between the NAK and UNEXP_EVENT, which ends the peer's too.
        """
        self.naks += self.cause is not None
        if self.cause is None:
            probe = a.packet.peth is not None
            number = psn.wrap(self.track.cack) if probe else a.packet.bth.psn
            bth = replace(a.packet.bth, psn=number)
            self.refuse(replace(a, packet=replace(a.packet, bth=bth)), NackReason.UNEXP_EVENT)

    def fail(self, nak: tuple[int, Syndrome] | None) -> None:
        """The queue pair failed: nothing is owed any more but a NAK (B.6, B.14).

        What was due before may still leave.
        """
        self.failed, self.cause, self.naks = True, nak, int(nak is not None)
        self.nak_owed, self.ack_owed = nak is not None, False
        self.triggers = [replace(t, must=False) for t in self.triggers]

    def _trigger(
        self, a: Arrival, number: int, why: set[Why], timestamp: int, *, must: bool = True
    ) -> None:
        rtx = bool(a.packet.bth.rtx)
        reasons = why | ({Why.MARKED} if a.ce else set()) | ({Why.ECHO} if rtx else set())
        must = must and not self.failed
        self.triggers.append(
            Trigger(frozenset(reasons), number, a.ev, timestamp, a.ce, rtx, must=must)
        )

    # ---- what leaves ---------------------------------------------------------------------------

    def sack_for(self, t: Trigger, mpr: int = 0) -> Packet:
        """Return the SACK that t causes now (B.4). mpr: the window offered, 0: the largest."""
        probe, track = Why.PROBE in t.why, self.track
        offset = psn.diff(t.number, 0, 16) if probe else t.number - track.cack
        said = track.expected_sack()
        seth = wire.Seth(
            m=int(t.ce),
            pr=int(probe),
            ack_psn_offset=offset if offset >= -(1 << 15) else 0,  # cack has arrived as well
            entropy=t.entropy,
            cack_psn=psn.wrap(track.cack),
            mpr=mpr or self.mpr_most,
            sack_offset=said.offset,
            sack_bitmap=said.bitmap,
            **self.ends.ids,
        )
        state = wire.CcState(
            tx_timestamp=t.timestamp,
            ooo_count=min(track.ooo_count, OOO_MAX),
            rcv_cwnd_pen=self.penalty,
            restore_cwnd=int(self.penalty > 0),
            rcvd_bytes=track.rcvd_units,
        )
        bth = self.ends.bth(Op.SACK, track.cack, rtx=int(t.rtx))
        return Packet(bth, seth=seth, cc_state=state)

    def emit(self, p: Packet) -> None:
        """Check a packet of the responder that leaves now."""
        kinds = {Op.SACK: self._on_sack, Op.ACK: self._on_ack, Op.NACK: self._on_nack}
        forbid(p.bth.opcode not in kinds, f"a responder does not send {p.bth.opcode:#x}")
        kinds[Op(p.bth.opcode)](p)

    def _on_sack(self, p: Packet) -> None:
        mpr = header_of(p.seth).mpr
        forbid(mpr > self.mpr_most or (self.mpr_most and not mpr), f"offers a window of {mpr}")
        goes_on = self.last is not None and p in [
            self.sack_for(t, mpr) for t in self._rest(self.last)
        ]
        for t in sorted(self.triggers, key=lambda t: not t.must):  # of two alike the one owed
            if p == self.sack_for(t, mpr) and (t.single or not goes_on):
                self.triggers.remove(t)
                self._answered_old(t)
                self._told(t, mpr)
                return
        if goes_on and self.last is not None:
            self._told(self.last, mpr)
            return
        forbid(not self.triggers, "a SACK that nothing asked for")
        expected = self.sack_for(self.triggers[-1], mpr)
        parts = [(getattr(p, n), getattr(expected, n)) for n in ("bth", "seth", "cc_state")]
        wrong = "; ".join(differences(a, b, [f.name for f in fields(a)]) for a, b in parts)
        forbid(True, f"SACK that fits none of {len(self.triggers)} triggers: {wrong}")

    def _rest(self, t: Trigger) -> list[Trigger]:
        """Return what the next SACK of a walk over a wide window may name; B.4 is silent.

        The same packet, with its mark or without; after a probe, any packet that has arrived.
        """
        if not self.track.unreported:
            return []
        if Why.PROBE in t.why:
            why = t.why - {Why.PROBE}
            return [replace(t, number=n, why=why, ce=False) for n in self.track.got]
        return [t, replace(t, ce=False), replace(t, ce=False, rtx=False)]

    def _told(self, t: Trigger, mpr: int) -> None:
        if mpr:
            self.track.resize(128 * mpr)
        said = self.track.expected_sack()
        self.track.unreported -= said.psns(self.track.cack)
        self.last, self.since = t, self.since + 1
        self.counter, self.old_quiet = (0, 0), 0

    def _answered_old(self, t: Trigger) -> None:
        if Why.OLD_DUPLICATE in t.why:
            self.old = self.old[0], self.old[1] + 1
            often = self.old[1] > 1 + self.old[0] // OLD_DUPLICATES
            forbid(often, f"{self.old[1]} SACKs for {self.old[0]} duplicates from far behind (H35)")

    def _on_ack(self, p: Packet) -> None:
        aeth = header_of(p.aeth)
        if aeth.syndrome != Syndrome.ACK:
            self._on_nak(p, aeth.syndrome)
            return
        forbid(not self.acks, "a transport ACK that nothing asked for")
        covered = psn.diff(p.bth.psn, self.ar_passed)
        forbid(self.ack_owed and covered < 0, f"transport ACK {-covered} before what asked for it")
        forbid(psn.after(p.bth.psn, self.track.cack), "transport ACK of what is not complete")
        forbid(p.bth != self.ends.bth(Op.ACK, p.bth.psn), f"transport ACK with {p.bth}")
        expected = wire.Aeth(Syndrome.ACK, psn.wrap(self.completed))
        at_cack = p.bth.psn == psn.wrap(self.track.cack)
        forbid(at_cack and aeth != expected, f"{aeth}, expected {expected}")
        forbid(self._sacks_owed(), "transport ACK before the SACK (H15)")
        self.acks, self.ack_owed = self.acks - 1, False

    def _on_nak(self, p: Packet, said: int) -> None:
        if self.cause is None or not self.naks:
            raise ForbiddenError("a NAK without a reason, or once too often")
        number, syndrome = self.cause
        forbid(p.bth != self.ends.bth(Op.ACK, number), f"NAK {p.bth}, not of {number}")
        forbid(said != syndrome, f"syndrome {said:#x}, not {syndrome:#x}")
        self.naks, self.nak_owed = self.naks - 1, False

    def _sacks_owed(self) -> list[Trigger]:
        """One SACK tells what all plain triggers of a burst want told; single ones do not share."""
        if self.since == 0:
            return [t for t in self.triggers if t.must]
        return [t for t in self.triggers if t.single] if self.since < REMEMBERED else []

    def _on_nack(self, p: Packet) -> None:
        forbid(p not in self.nacks, f"NACK {p.bth} {p.neth}, owed {self.nacks[:1]}")
        self.nacks.remove(p)
        self.refused += 1

    def settle(self) -> None:
        """Nothing more wants to leave: check that nothing is still owed."""
        forbid(self._sacks_owed(), f"no SACK for {self._sacks_owed()}")
        forbid(self.ack_owed, "no transport ACK")
        missing = self.nacks and not self.failed and self.refused < REMEMBERED
        forbid(missing, f"{len(self.nacks)} NACKs did not leave, {self.nacks[:1]}")
        forbid(self.nak_owed, f"no NAK {self.cause}")
        self.triggers, self.nacks = [], []
        self.since = self.acks = self.naks = self.refused = 0

    # ---- a responder that answers at once ------------------------------------------------------

    def answers(self) -> list[Packet]:
        """Return what leaves now, if everything does, and no more than must."""
        found = []
        for p in self._due():
            self.emit(p)
            found.append(p)
        self.settle()
        return found

    def _due(self) -> Iterator[Packet]:
        if self.nak_owed and self.cause is not None:
            number, syndrome = self.cause
            yield Packet(self.ends.bth(Op.ACK, number), aeth=wire.Aeth(syndrome))
        due = [t for t in self.triggers if t.must]
        nacks = [] if self.failed else list(self.nacks)
        plain = [t for t in due if not t.single]
        for t in [t for t in due if t.single] + plain[-1:]:
            yield self.sack_for(t)
        self.triggers = []
        if self.ack_owed:
            aeth = wire.Aeth(Syndrome.ACK, psn.wrap(self.completed))
            yield Packet(self.ends.bth(Op.ACK, self.track.cack), aeth=aeth)
        yield from nacks
