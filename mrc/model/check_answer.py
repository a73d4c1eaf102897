# SPDX-License-Identifier: BSD-2-Clause
"""The responder of one flow, watched: what it may answer, and must (MRC B.3 to B.8).

Judged by turns: packets are handed in, then answers leave. `sure` is true while every packet that
was handed in must have been taken; after a NACK for want of room only limits are known: no more
than arrived, no less than was reported.
"""

from dataclasses import dataclass, field

from mrc.model import psn
from mrc.model.rules import Report
from mrc.model.trace import Flow, In, Out, World
from mrc.model.wire import NackReason, Op, Seth, Syndrome

DSCP_TRIMMED = 12
DSCP_TRIMMED_LASTHOP = 16
_FLOOR = 1024  # bytes a packet counts at least, trigger 1
_MANY = 16  # packets of one turn; more may share what they call for
FAR = 1 << 22  # H8
_SHORTAGE = (NackReason.NO_BITMAP, NackReason.NO_PKT_BUFFER, NackReason.NO_RESOURCE)
_LASTS = (Op.WRITE_LAST, Op.WRITE_LAST_IMM, Op.WRITE_ONLY, Op.WRITE_ONLY_IMM)
_DSCP_OF = {
    NackReason.TRIMMED: DSCP_TRIMMED,
    NackReason.TRIMMED_LASTHOP: DSCP_TRIMMED_LASTHOP,
}
_NAKS = (
    Syndrome.NAK_INVALID_REQUEST,
    Syndrome.NAK_REMOTE_ACCESS,
    Syndrome.NAK_REMOTE_OPERATION,
)


@dataclass(slots=True)
class _Turn:
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
    turn: _Turn = field(default_factory=lambda: _Turn(0))

    def __post_init__(self) -> None:
        self.cack = self.top = self.told = self.flow.psn - 1
        self.rcvd = self.flow.rcvd
        self.done = self.flow.done
        self.window = self.flow.peer_window
        self.turn = _Turn(self.cack)

    def arrived(self, number: int) -> bool:
        """Whether that PSN has come, whole."""
        return number <= self.cack or number in self.above

    # ---- what comes in ----

    def gets(self, got: In) -> None:
        """Take a data packet or probe handed in; broken ones do not exist."""
        assert got.out is not None
        p = got.out.packet
        trimmed = got.dscp in (DSCP_TRIMMED, DSCP_TRIMMED_LASTHOP)
        if not self.open or not (got.intact or trimmed):
            return
        self.turn.arrivals += 1
        if p.peth is not None:
            self.turn.probes.append(got)
        elif trimmed and self.world.trims:
            self._gets_trimmed(got, psn.unwrap(p.bth.psn, self.cack))
        elif not trimmed:
            self._gets_data(got, psn.unwrap(p.bth.psn, self.cack))

    def _gets_trimmed(self, got: In, number: int) -> None:
        self.turn.trimmed.setdefault(number, []).append(got)
        if self.arrived(number):
            self._wants("a trimmed duplicate", number)
        elif number - self.cack - self.window < FAR:
            self.turn.wants_nack.add(number)

    def _gets_data(self, got: In, number: int) -> None:
        assert got.out is not None
        bth = got.out.packet.bth
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
        assert got.out is not None
        bth = got.out.packet.bth
        self.above.add(number)
        self.turn.accepted.add(number)
        self.asking[number] = bool(bth.a)
        if bth.opcode in _LASTS:
            self.lasts.add(number)
        self.rcvd += got.out.nominal
        self.top = max(self.top, number)
        self._advance()
        self.counter += max(got.out.payload_len, _FLOOR)
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

    def end_turn(self, now: int) -> None:
        """Judge the turn that is over and begin another."""
        turn = self.turn
        if not (turn.arrivals or turn.sacks or turn.acks or turn.nacks):
            return
        self.turn = _Turn(self.cack)
        for out in turn.acks:
            assert out.packet.aeth is not None
            self.open = self.open and out.packet.aeth.syndrome == Syndrome.ACK
        for out in turn.nacks:
            assert out.packet.neth is not None
            reason = out.packet.neth.nack_reason
            self.open = self.open and reason != NackReason.UNEXP_EVENT
            self.sure = self.sure and reason not in _SHORTAGE
        check_acks(self, turn)
        if self.open:
            check_sacks(self, turn)
            check_nacks(self, turn)
            self._amplified(turn, now)
            if self.sure and not self.muted:
                check_missing(self, turn, now)

    def _amplified(self, turn: _Turn, now: int) -> None:
        answers = len(turn.sacks) + len(turn.acks) + len(turn.nacks)
        walk = (self.top - self.cack) // 64 + 2  # SACKs that walk over a wide window, B.4
        if answers > 2 * turn.arrivals + walk and not self.muted:
            self.report("amplified", now, f"{answers} answers to {turn.arrivals} packets")


# ---- the answers of one turn ----


def check_acks(r: Receiver, turn: _Turn) -> None:
    """Judge the transport ACKs (A.6, B.6)."""
    for out in turn.acks:
        aeth = out.packet.aeth
        assert aeth is not None
        number = psn.unwrap(out.packet.bth.psn, r.cack)
        if aeth.syndrome in _NAKS:
            continue
        if aeth.syndrome != Syndrome.ACK:
            r.report("ack-syndrome", out.now, f"{aeth.syndrome:#x}")
        if number > r.cack:
            r.report("ack-hole", out.now, f"{number}, cack {r.cack}")
        if not r.open or not r.sure:
            continue
        if not turn.may_ack and not r.muted:
            r.report("ack-unasked", out.now, f"psn {number}")
        if aeth.msn != psn.wrap(r.done):
            r.report("ack-msn", out.now, f"{aeth.msn}, not {psn.wrap(r.done)}")


def check_sacks(r: Receiver, turn: _Turn) -> None:
    """Judge the SACKs (A.7, A.8, B.4)."""
    for out in turn.sacks:
        seth = out.packet.seth
        assert seth is not None
        cack = psn.unwrap(seth.cack_psn, r.cack)
        if out.packet.bth.psn != seth.cack_psn:
            r.report("sack-psn", out.now, f"{out.packet.bth.psn}, cack {seth.cack_psn}")
        if cack > r.cack:
            r.report("sack-hole", out.now, f"{cack}, but {r.cack + 1} is missing")
        if cack < r.told:
            r.report("sack-retreat", out.now, f"{cack} after {r.told}")
        r.told = max(r.told, cack)
        for i in range(64):
            if seth.sack_bitmap >> i & 1 and not r.arrived(cack + seth.sack_offset + i):
                r.report("sack-bitmap", out.now, f"psn {cack + seth.sack_offset + i}")
        if seth.pr:
            _probe_answer(r, turn, out, seth)
        else:
            _reflection(r, turn, out, seth, cack + seth.ack_psn_offset)
        if (seth.mpr != 0) != r.flow.dynamic:
            r.report("sack-mpr", out.now, f"{seth.mpr}")
        if r.sure:
            _state(r, out, seth, cack)


def _state(r: Receiver, out: Out, seth: Seth, cack: int) -> None:
    state = out.packet.cc_state
    assert state is not None
    if cack < r.cack:
        r.report("sack-lags", out.now, f"{cack}, not {r.cack}")
    low = high = 1
    if r.top - cack > 64:
        high = r.top - 63 - cack
    if not low <= seth.sack_offset <= high:
        r.report("sack-base", out.now, f"{seth.sack_offset} is not in {low}..{high}")
    if state.ooo_count != min(len(r.above), 0x7FFF):
        r.report("sack-ooo", out.now, f"{state.ooo_count}, not {len(r.above)}")
    units = psn.wrap(-(-r.rcvd // 256))
    if state.rcvd_bytes != units:
        r.report("sack-rcvd", out.now, f"{state.rcvd_bytes}, not {units}")
    if r.flow.dynamic and seth.mpr * 128 != r.window:
        r.report("sack-mpr", out.now, f"{seth.mpr}, not {r.window // 128}")


def _same(r: Receiver, out: Out, got: In, entropy: int) -> bool:
    """Whether EV and timestamp of an answer are those of the packet (B.4); H11 moves the latter."""
    assert got.out is not None
    p = got.out.packet
    stamp = p.tseth.tx_timestamp if p.tseth else p.peth.tx_timestamp if p.peth else 0
    said = out.packet.cc_state or out.packet.neth
    assert said is not None
    return entropy == got.out.ev and (r.world.service or said.tx_timestamp == stamp)


def _reflection(r: Receiver, turn: _Turn, out: Out, seth: Seth, number: int) -> None:
    if turn.arrivals == 0:
        if not r.muted:
            r.report("sack-unasked", out.now, f"ack_psn {number}")
        return
    about = turn.about(number)
    if not about:
        # Farther back than the field reaches, cack stands for the packet.
        if number != psn.unwrap(seth.cack_psn, number) and not r.muted:
            r.report("sack-trigger", out.now, f"ack_psn {number}")
        return
    fits = [got for got in about if _same(r, out, got, seth.entropy)]
    if seth.m == 1:
        fits = [got for got in fits if got.ce]
    if out.packet.bth.rtx:
        fits = [got for got in fits if got.out and got.out.packet.bth.rtx]
    if (not fits and not r.muted) or (seth.m > 1 and not r.world.skip):
        r.report("sack-reflects", out.now, f"psn {number}, EV {seth.entropy:08x}, m {seth.m}")


def _probe_answer(r: Receiver, turn: _Turn, out: Out, seth: Seth) -> None:
    asked = [g for g in turn.probes if g.out and g.out.packet.peth]
    fits = [
        got
        for got in asked
        if got.out
        and got.out.packet.peth
        and got.out.packet.peth.probe_id == seth.probe_id
        and _same(r, out, got, seth.entropy)
        and (got.ce or seth.m != 1)
    ]
    if not fits and not r.muted:
        r.report("probe-unasked", out.now, f"id {seth.probe_id}")


def check_nacks(r: Receiver, turn: _Turn) -> None:
    """Judge the NACKs (B.3, B.7)."""
    for out in turn.nacks:
        neth = out.packet.neth
        assert neth is not None
        number = psn.unwrap(neth.nack_psn, r.cack)
        about = turn.about(number)
        if r.muted:
            continue
        if not any(_same(r, out, got, neth.entropy) for got in about):
            r.report("nack-unasked", out.now, f"psn {number}")
            continue
        if number <= r.told or (r.sure and r.arrived(number) and number not in turn.accepted):
            r.report("nack-received", out.now, f"psn {number}")
        if neth.nack_reason in _DSCP_OF and not any(
            got.dscp == _DSCP_OF[neth.nack_reason] for got in turn.trimmed.get(number, [])
        ):
            r.report("nack-trimmed", out.now, f"psn {number}, reason {neth.nack_reason}")
        beyond = number - turn.cack - r.window
        if neth.nack_reason == NackReason.PSN_OOR_WINDOW and r.sure and not 0 < beyond < FAR:
            r.report("nack-window", out.now, f"psn {number}, {beyond} beyond the window")


def check_missing(r: Receiver, turn: _Turn, now: int) -> None:
    """Judge what a turn should have brought and did not."""
    said = [out.packet.seth for out in turn.sacks if out.packet.seth]
    plain = [seth for seth in said if not seth.pr]
    if turn.sack and not plain:
        r.report("sack-missing", now, turn.sack)
    if turn.wants_ack and not turn.acks:
        r.report("ack-missing", now, f"cack {r.cack}")
    if turn.acks and plain and turn.acks[0].id < min(o.id for o in turn.sacks):
        r.report("ack-first", now, f"cack {r.cack}")
    if turn.arrivals > _MANY:
        return
    if turn.marked and not any(seth.m for seth in said):
        r.report("sack-missing", now, "a marked packet, and no m")
    if turn.echoed and not any(o.packet.bth.rtx for o in turn.sacks):
        r.report("sack-missing", now, "a retransmission, and no rtx")
    ids = {seth.probe_id for seth in said if seth.pr}
    for got in turn.probes:
        assert got.out is not None
        assert got.out.packet.peth is not None
        if got.out.packet.peth.probe_id not in ids:
            r.report("probe-missing", now, f"id {got.out.packet.peth.probe_id}")
    refused = {psn.unwrap(o.packet.neth.nack_psn, r.cack) for o in turn.nacks if o.packet.neth}
    for number in turn.wants_nack - refused:
        if not r.arrived(number):
            r.report("nack-missing", now, f"psn {number}")
