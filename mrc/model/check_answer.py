# SPDX-License-Identifier: BSD-2-Clause
"""The responder of one flow, watched: what it may answer, and must (MRC B.3 to B.8).

Judged by turns: packets are handed in, then answers leave. `sure` is true while every packet that
was handed in must have been taken; after a NACK for want of room only limits are known: no more
than arrived, no less than was reported.
"""

from dataclasses import dataclass, field

from mrc.model import psn
from mrc.model.rules import Report
from mrc.model.trace import Flow, In, Out, World, there
from mrc.model.wire import NackReason, Op, Syndrome

DSCP_TRIMMED = 12
DSCP_TRIMMED_LASTHOP = 16
_FLOOR = 1024  # bytes a packet counts at least, trigger 1
FAR = 1 << 22  # H8
_SHORTAGE = (NackReason.NO_BITMAP, NackReason.NO_PKT_BUFFER, NackReason.NO_RESOURCE)
_LASTS = (Op.WRITE_LAST, Op.WRITE_LAST_IMM, Op.WRITE_ONLY, Op.WRITE_ONLY_IMM)


@dataclass(slots=True)
class TurnRecord:
    """What one turn brought and what was said in it."""

    cack: int  # at its beginning
    data: dict[int, list[In]] = field(default_factory=dict)
    trimmed: dict[int, list[In]] = field(default_factory=dict)
    probes: list[In] = field(default_factory=list)
    accepted: set[int] = field(default_factory=set)
    arrivals: int = 0
    sack: str = ""  # why one must leave
    marked: bool = False  # and one with m = 1
    echoed: bool = False  # and one with rtx
    wants_ack: bool = False
    may_ack: bool = False
    wants_nack: set[int] = field(default_factory=set)
    sacks: list[Out] = field(default_factory=list)
    acks: list[Out] = field(default_factory=list)
    nacks: list[Out] = field(default_factory=list)

    def about(self, number: int) -> list[In]:
        """The packets of this turn with that PSN, whole or trimmed."""
        return self.data.get(number, []) + self.trimmed.get(number, [])


@dataclass(slots=True)
class Receiver:
    """One flow's responder."""

    flow: Flow
    world: World
    report: Report
    cack: int = 0  # all up to here has arrived
    above: set[int] = field(default_factory=set)  # arrived above cack
    top: int = 0  # highest that has arrived
    told: int = 0  # cack of the last SACK
    rcvd: int = 0  # bytes
    done: int = 0  # messages
    window: int = 0
    asking: dict[int, bool] = field(default_factory=dict)  # A of what arrived above cack
    lasts: set[int] = field(default_factory=set)
    second: bool = False  # trigger 6: an A waits for the gap before it to close
    counter: int = 0  # bytes of trigger 1, at least
    first: bool = True
    sure: bool = True
    open: bool = True  # neither failed nor gone
    muted: bool = False  # paths to answer on may be missing
    immediates: int = 0  # delivered
    turn: TurnRecord = field(default_factory=lambda: TurnRecord(0))

    def __post_init__(self) -> None:
        self.cack = self.top = self.told = self.flow.psn - 1
        self.rcvd = self.flow.rcvd
        self.done = self.flow.done
        self.window = self.flow.peer_window
        self.turn = TurnRecord(self.cack)

    def arrived(self, number: int) -> bool:
        """Whether that PSN has come, whole."""
        return number <= self.cack or number in self.above

    # ---- what comes in ----

    def gets(self, got: In) -> None:
        """Take a data packet or probe handed in; broken ones do not exist."""
        p = there(got.out).packet
        trimmed = got.dscp in (DSCP_TRIMMED, DSCP_TRIMMED_LASTHOP)
        if not self.open or not (got.intact or trimmed):
            return
        self.turn.arrivals += 1
        if p.peth is not None:
            self.turn.probes.append(got)
            self.counter = 0  # its SACK is one too
        elif trimmed and self.world.trims:
            self._gets_trimmed(got, psn.unwrap(p.bth.psn, self.cack))
        elif not trimmed:
            self._gets_data(got, psn.unwrap(p.bth.psn, self.cack))

    def _gets_trimmed(self, got: In, number: int) -> None:
        self.turn.trimmed.setdefault(number, []).append(got)
        if self.arrived(number):
            self._wants("a trimmed duplicate", number)
            self.turn.may_ack |= bool(got.out and got.out.packet.bth.a)
        elif number - self.cack - self.window < FAR:
            self.turn.wants_nack.add(number)

    def _gets_data(self, got: In, number: int) -> None:
        out = there(got.out)
        bth = out.packet.bth
        self.turn.data.setdefault(number, []).append(got)
        beyond = number - self.cack - self.window
        if beyond > 0:
            if beyond < FAR:
                self.turn.wants_nack.add(number)
            return
        near = number > self.cack - self.window  # H35: few far behind are answered
        if self.arrived(number):
            self._wants("a duplicate", number)
            self.turn.may_ack |= bool(bth.a)
            self.turn.wants_ack |= bool(bth.a) and near and number <= self.cack
        else:
            self._accept(got, number)
        self.turn.marked |= got.ce and near
        self.turn.echoed |= bool(bth.rtx) and near

    def _accept(self, got: In, number: int) -> None:
        out = there(got.out)
        bth = out.packet.bth
        self.above.add(number)
        self.turn.accepted.add(number)
        self.asking[number] = bool(bth.a)
        if bth.opcode in _LASTS:
            self.lasts.add(number)
        self.rcvd += out.nominal
        self.top = max(self.top, number)
        self._advance()
        self.counter += max(out.payload_len, _FLOOR)
        reasons = {
            "A": bth.a,
            "a mark": got.ce,
            "a retransmission": bth.rtx,
            "the first packet": self.first,
            "the threshold": self.counter >= self.flow.threshold,
            "the gap behind an A closing": self.second and not self.above,
        }
        self.second = bool(self.above) and (self.second or bool(bth.a))
        self.first = False
        for why, true in reasons.items():
            if true:
                self._wants(why, number)

    def _advance(self) -> None:
        while self.cack + 1 in self.above:
            self.cack += 1
            self.above.discard(self.cack)
            self.done += self.cack in self.lasts
            self.lasts.discard(self.cack)
            if self.asking.pop(self.cack):
                self.turn.wants_ack = self.turn.may_ack = True

    def _wants(self, why: str, number: int) -> None:
        if number > self.cack - self.window:
            self.turn.sack = f"{why}, psn {number}"
            self.counter = 0

    def offers(self, window: int) -> None:
        """Take another window, in PSNs; what it takes of packets on their way is its choice."""
        self.window = max(self.window, window)
        self.sure = False

    # ---- what goes out ----

    def answers(self, out: Out) -> None:
        """Take a control packet; all of a turn are judged when it is over."""
        p = out.packet
        if out.tclass & 3:
            self.report("ecn-control", out.now, f"opcode {p.bth.opcode:#x}")
        if p.seth is not None:
            self.turn.sacks.append(out)
        elif p.neth is not None:
            self.turn.nacks.append(out)
        else:
            self.turn.acks.append(out)

    def delivers(self, now: int, n: int, number: int | None) -> None:
        """Judge the delivery of the n-th immediate, whose PSN is `number` if it has left."""
        if n != self.immediates:
            self.report("imm-order", now, f"{n}, not {self.immediates}")
        self.immediates = n + 1
        if number is None or number > self.cack:
            self.report("imm-early", now, f"immediate {n}, psn {number}, cack {self.cack}")

    def close_turn(self) -> TurnRecord:
        """End the turn: what it brought and what was said in it. Another begins."""
        turn = self.turn
        self.turn = TurnRecord(self.cack)
        if turn.sacks:
            self.counter = 0
        for out in turn.acks:
            self.open = self.open and there(out.packet.aeth).syndrome == Syndrome.ACK
        for out in turn.nacks:
            reason = there(out.packet.neth).nack_reason
            self.open = self.open and reason != NackReason.UNEXP_EVENT
            self.sure = self.sure and reason not in _SHORTAGE
        return turn
