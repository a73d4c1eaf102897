# SPDX-License-Identifier: BSD-2-Clause
"""The requestor of a queue pair (MRC B.2, B.5 to B.10, B.12 to B.14).

Twin for what arrives: what is known received, what completes, how. Checker for what leaves: it is
told each packet and raises ForbiddenError when the text does not allow it now.
"""

from collections import deque
from dataclasses import dataclass, field, replace

from mrc.model import psn, sack, wire
from mrc.model.agreed import Setup
from mrc.model.cutting import Message, Work, packet_of
from mrc.model.ends import DATA_HEADERS, Completion, Drop, Status, header_of, nominal_bytes
from mrc.model.flight import Flight
from mrc.model.losses import Losses, Now
from mrc.model.path import ForbiddenError, forbid
from mrc.model.retry import Budget
from mrc.model.txtrack import Sender
from mrc.model.txtrack import State as Known
from mrc.model.wire import NackReason, Op, Packet, Syndrome

NOTHING: frozenset[Drop] = frozenset()
FORMER_LIFE = 1 << 16  # so far behind two windows, nothing that is still out can be meant
TRIMS = {NackReason.TRIMMED, NackReason.TRIMMED_LASTHOP}
PROBE_FLOOR_NS = 100_000
NAKS: dict[int, Status] = {
    Syndrome.NAK_INVALID_REQUEST: Status.REM_INV_REQ_ERR,
    Syndrome.NAK_REMOTE_ACCESS: Status.REM_ACCESS_ERR,
    Syndrome.NAK_REMOTE_OPERATION: Status.REM_OP_ERR,
}


@dataclass(slots=True)
class Requestor:
    """One send side."""

    setup: Setup
    now: int
    track: Sender = field(init=False)
    losses: Losses = field(init=False)
    flight: Flight = field(init=False)
    budget: Budget = field(init=False)
    mpr: int = field(init=False)  # the most that may be in force
    mpr_least: int = field(init=False)
    error: Status | None = field(init=False, default=None)
    completions: list[Completion] = field(init=False, default_factory=list)
    waiting: deque[Work] = field(init=False, default_factory=deque)  # nothing of it was sent
    messages: deque[Message] = field(init=False, default_factory=deque)  # sent, no transport ACK
    next_psn: int = field(init=False)  # where the next message begins
    counts: tuple[int, int] = field(init=False, default=(0, 0))  # messages, immediates begun
    acked: int = field(init=False)  # a transport ACK covered it
    first_sent: dict[int, int] = field(init=False, default_factory=dict)
    asked: dict[int, int] = field(init=False, default_factory=dict)  # sent with A: last time
    clock_ns: int = field(init=False, default=0)  # since then a transport ACK is waited for
    recoveries: int = field(init=False, default=0)  # since a transport ACK said something new
    careful: bool = field(init=False, default=False)  # the peer was short of something
    heard_ns: int = field(init=False, default=0)  # last SACK
    probed_ns: int = field(init=False, default=0)  # last tail probe
    rcvd: int = field(init=False, default=0)  # rcvd_bytes of the newest SACK, unbounded

    def __post_init__(self) -> None:
        setup = self.setup
        self.track = Sender(setup.sq_psn, 128 * setup.mpr)
        self.losses = Losses(self.track, setup.schedule, setup.ends.mtu)
        self.flight = Flight()
        self.budget = Budget(setup.schedule, self.now)
        self.mpr = self.mpr_least = setup.mpr
        self.next_psn, self.acked = setup.sq_psn, setup.sq_psn - 1

    def post(self, work: Work) -> None:
        """The application posts a work request."""
        self.waiting.append(work)

    # ---- what leaves ---------------------------------------------------------------------------

    def emit(self, p: Packet, ev: int, *, again_class: bool, here: Now) -> None:
        """Check a Write packet that leaves. again_class: it has the class of retransmissions."""
        forbid(self.error, "data after the queue pair failed")
        number = psn.unwrap(p.bth.psn, self.track.max_sent)
        new = number == self.track.max_sent + 1
        forbid(not self.acked < number <= self.track.max_sent + 1, f"PSN {number} out of turn")
        if new:
            self._begin(number)
        expected = packet_of(self.setup.ends, self._message(number), number)
        plain = replace(p, bth=replace(p.bth, a=0, rtx=0, ts=0), tseth=None)
        forbid(plain != expected, f"is {plain}, not {expected}")
        forbid(bool(p.tseth) != self.setup.timestamps, "TSETH, or none, against the setting")
        stamp = here.now // psn.TIMESTAMP_UNIT_NS % (1 << 16)
        forbid(p.tseth and p.tseth != wire.Tseth(stamp), f"timestamp {p.tseth}, not {stamp}")
        forbid(p.bth.rtx == new, "rtx says otherwise (B.2)")
        forbid(again_class != (not new and self.setup.two_classes), "wrong class (A.13.5)")
        forbid(ev not in here.usable, f"EV {ev:#x} is not active (D.6)")
        edge = self.track.unack + 128 * self.mpr
        forbid(number > edge, f"{number - edge} beyond the window (B.2, B.12)")
        size = nominal_bytes(len(wire.encode(p)))
        if not new and self._arrived(number):
            self._recovery(number, p, here)  # outside the window, as a probe is (ADR 72)
            self.flight.repeated(size)
        else:
            forbid(not self.flight.allows(size, here.cwnd), f"window: {self.flight} of {here.cwnd}")
            if new:
                self._new(number, here)
            else:
                self._again(number, ev, here)
            self.flight.sent(number, size)
        self._sent(number, p, ev, here)

    def _begin(self, number: int) -> None:
        """A new packet may begin the next message (B.2-1)."""
        if number < self.next_psn:
            return
        forbid(not self.waiting, "nothing is posted")
        work = self.waiting.popleft()
        begun, immediates = self.counts
        if work.imm is not None:
            flying = sum(m.work.imm is not None for m in self.messages)
            forbid(flying >= self.setup.max_wimm, f"{flying} immediates in flight (B.8)")
            immediates += 1
        self.counts = begun + 1, immediates
        rqmsn = immediates if work.imm is not None else 0  # H18
        message = Message(work, number, begun + 1, rqmsn, self.setup.ends.mtu)
        self.messages.append(message)
        self.next_psn = message.last + 1

    def _message(self, number: int) -> Message:
        return next(m for m in self.messages if m.first <= number <= m.last)

    def _new(self, number: int, here: Now) -> None:
        due = self.losses.must()
        forbid(due, f"new data before retransmission of {sorted(due)[:3]} (B.2)")
        self.first_sent[number] = here.now
        if len(self.first_sent) == 1:
            self.budget.progress(here.now)

    def _arrived(self, number: int) -> bool:
        """Return whether a packet that was sent is known received."""
        sent = self.track.packets.get(number)
        return sent is None or sent.state is Known.ACKED

    def _again(self, number: int, ev: int, here: Now) -> None:
        """B.2-3, B.6, B.9, B.10: it needs a reason, its turn, and a new EV."""
        sent = self.track.packets[number]
        why = self.losses.reason(number, here)
        forbid(not why, f"retransmission of {number} without a reason")
        due = [n for n in self.losses.must() if n < number]
        forbid(due, f"{number} before {due[:3]}: oldest gap first (B.2)")
        others = here.usable - {sent.ev}
        forbid(ev == sent.ev and others, f"retransmitted on the same EV {ev:#x} (B.2)")
        refused = self.losses.refused.get(number)
        forbid(ev == refused and here.usable - {refused}, "on the EV that the NACK named (B.7)")

    def _recovery(self, number: int, p: Packet, here: Now) -> None:
        """B.6, H16: it has arrived, but no transport ACK says so."""
        # The reference asks with the oldest packet that had A. The last one of the oldest request
        # brings the same cumulative ACK, and names what would complete (ADR 89).
        oldest = min((n for n in self.asked if n > self.acked), default=None)
        last = self.messages[0].last
        if oldest is None:
            raise ForbiddenError(f"{number} has arrived, and nothing asked for a transport ACK")
        forbid(number not in (oldest, last), f"{number} has arrived; not {oldest} or {last}")
        forbid(not p.bth.a, "asks for a transport ACK without A")
        timer = self.setup.schedule.timer_ns(0)
        asked = max(self.asked.get(n, 0) for n in (oldest, last))
        waited, timed = here.now - asked, here.now - self.clock_ns
        # The reference chooses the timer of B.9. To ask sooner as well, as seldom as a tail probe
        # would, is an implementation's choice that costs the peer nothing more (ADR 89).
        soon = max(PROBE_FLOOR_NS, here.base_rtt_ns + here.target_ns) << min(self.recoveries, 8)
        forbid(waited < soon and timed < timer, f"asked again after {waited} ns (B.6, B.9)")
        self.clock_ns = here.now if waited < soon else self.clock_ns
        self.recoveries += 1

    def _sent(self, number: int, p: Packet, ev: int, here: Now) -> None:
        if number == self.track.max_sent + 1 or not self._arrived(number):
            self.losses.sent(number, here)
            cls = int(number in self.track.packets and self.setup.two_classes)
            self.track.on_sent(number, ev, cls, here.now)
        self._check_ar(number, p, here)
        if p.bth.a or number in self.asked:
            self.asked[number] = here.now
            if not p.bth.rtx:
                self.clock_ns = here.now if len(self.asked) == 1 else self.clock_ns

    def _check_ar(self, number: int, p: Packet, here: Now) -> None:
        """B.2-4, E.3: when A must be set."""
        message = self._message(number)
        last = number == message.last
        idle = number == self.track.max_sent and last and not self.waiting
        closes = number >= self.track.unack + 128 * self.mpr
        full = self.flight.full(self.setup.ends.mtu, here.cwnd)
        small = here.cwnd is not None and here.cwnd < self.setup.sack_threshold
        must = idle or closes or full or small or (last and message.work.signaled)
        forbid(must and not p.bth.a, f"no A: {idle=} {closes=} {full=} {small=} {last=} (B.2)")

    def settle(self, here: Now) -> None:
        """Nothing more leaves: check that nothing could have.

        Who was told of a shortage may be as careful as he likes.
        """
        if self.error is not None or not here.usable or self.careful:
            return
        edge = self.track.unack + 128 * self.mpr_least
        room = self.flight.surely(nominal_bytes(DATA_HEADERS + self.setup.ends.mtu), here.cwnd)
        due = [n for n in self.losses.must() if n <= edge]
        forbid(due and room, f"lazy: {due[:3]} could be sent again")
        number = self.track.max_sent + 1
        if number >= self.next_psn:
            flying = sum(m.work.imm is not None for m in self.messages)
            held = not self.waiting or (
                self.waiting[0].imm is not None and flying >= self.setup.max_wimm
            )
            if held:
                return
        forbid(room and number <= edge, "lazy: new data could be sent")

    # ---- what arrives --------------------------------------------------------------------------

    def arrive(self, p: Packet, counted: frozenset[Drop], here: Now, *, failed: bool) -> bool:
        """Take in a SACK, NACK or transport ACK; return whether it is not to be ignored.

        failed: the other side is in the error state now.
        """
        if self.error is not None:
            forbid(counted != {Drop.QP_STATE}, f"failed before, yet counted {counted}")
            return False
        kinds = {Op.SACK: self._on_sack, Op.NACK: self._on_nack, Op.ACK: self._on_ack}
        taken = kinds[Op(p.bth.opcode)](p, counted, here, failed=failed)
        if not self.track.packets or not self.track.in_state(Known.INFLIGHT):
            self.flight.idle()
        self._patience(here)
        return taken

    def _on_sack(self, p: Packet, counted: frozenset[Drop], here: Now, *, failed: bool) -> bool:
        """B.5."""
        forbid(failed, "a SACK ended the queue pair")
        seth, state = header_of(p.seth), header_of(p.cc_state)
        told = sack.read(seth, self.track.max_sent)
        beyond = [n for n in told.also if n > self.track.max_sent]
        if told.cack > self.track.max_sent or Drop.SACK_RANGE in counted:
            forbid(counted != {Drop.SACK_RANGE}, f"a SACK of the future counted as {counted}")
            lies = told.cack > self.track.max_sent or beyond
            past = told.cack < self.track.unack - FORMER_LIFE
            forbid(not lies and not past, "a SACK rejected that claims nothing that was not sent")
            return False
        forbid(counted, f"a SACK counted as {counted}")
        self.heard_ns = here.now
        old = told.cack < self.track.unack
        echoed = told.cack + seth.ack_psn_offset if p.bth.rtx and not seth.pr else None
        if seth.pr:
            self.losses.probe_answered(seth.probe_id, here)
        self._received(told, echoed, here)
        if not old:
            delta = psn.diff(state.rcvd_bytes, psn.wrap(self.rcvd))
            if delta > 0:
                self.rcvd += delta
                self.flight.received(256 * delta)
            if self.setup.dynamic_mpr and seth.mpr:
                self._offered(min(seth.mpr, self.setup.mpr_max), late=delta < 0)
        self.losses.reported(state.ooo_count, here)
        return True

    def _offered(self, mpr: int, *, late: bool) -> None:
        """B.12. late: an older SACK overtaken by a newer one; whether its offer counts is open."""
        self.mpr_least = min(self.mpr_least, mpr) if late else mpr
        self.mpr = max(self.mpr, mpr) if late else mpr

    def _received(self, told: sack.Told, echoed: int | None, here: Now) -> None:
        """These are known to have arrived."""
        before = self.track.unack
        known = {n: s.time_ns for n, s in self.track.packets.items()}
        once = {n for n, s in self.track.packets.items() if s.rtx == 0}
        news = self.track.on_sack(told, echoed)
        for number in news:
            took = here.now - self.first_sent[number]
            self.budget.reported(took, here.now, once=number in once)
            self.losses.arrived(number, known[number])
            self.flight.known(number)
        if news or self.track.unack > before:
            self.budget.progress(here.now)
            self.losses.news_ns = here.now

    def _on_nack(self, p: Packet, counted: frozenset[Drop], here: Now, *, failed: bool) -> bool:
        """B.7."""
        neth = header_of(p.neth)
        number = psn.unwrap(neth.nack_psn, self.track.max_sent)
        sent = self.track.packets.get(number)
        open_ = sent is not None and sent.state is not Known.ACKED
        forbid(counted - {Drop.NACK_RANGE}, f"a NACK counted as {counted}")
        forbid(counted and open_, "a NACK of an outstanding packet dropped")
        if neth.nack_reason == NackReason.UNEXP_EVENT:
            forbid(open_ and not failed, "UNEXP_EVENT is fatal")
            if failed:
                self.fail(Status.REM_OP_ERR)
            return False
        if open_ and not counted and sent is not None:
            # One copy only, and the EV it left on: then it is the copy that was refused.
            certain = sent.rtx == 0 and sent.ev == neth.entropy
            # A trim asks for the packet at once; a shortage may be given time, a window its turn.
            soon = certain and neth.nack_reason in TRIMS
            self.careful |= neth.nack_reason not in TRIMS
            once = self.losses.nacked(number, neth.entropy, certain=soon)
            self.flight.refused(number, certain=certain)
            self.budget.nacked += once
            self.budget.quiet_ns = here.now  # it has spoken, and is paid for otherwise
        if failed:
            self._exhausted(here)
        return open_

    def _on_ack(self, p: Packet, counted: frozenset[Drop], here: Now, *, failed: bool) -> bool:
        """B.6, B.13."""
        number = psn.unwrap(p.bth.psn, self.track.max_sent)
        syndrome, known = header_of(p.aeth).syndrome, number > self.acked
        kind = syndrome >> 5 & 3  # 0 ACK, 3 NAK; the others never occur (A.6)
        forbid(counted - {Drop.ACK_RANGE}, f"an ACK counted as {counted}")
        if number > self.track.max_sent:
            forbid(not counted, "an ACK of the future not counted")
            forbid(failed, "an ACK of the future ended the queue pair")
        elif kind == 3:
            forbid(known and syndrome in NAKS and not failed, f"NAK {syndrome:#x} is fatal")
            if failed:
                # Cumulative as an ACK is; but it may be of a packet that came early.
                self._covered(min(number - 1, self.track.unack), here)
                self.fail(NAKS.get(syndrome, Status.REM_OP_ERR))
        elif kind == 0:
            forbid(failed or (counted and known), f"ACK counted as {counted}, {failed=}")
            self._covered(number, here)
        else:
            forbid(failed, f"syndrome {syndrome:#x} ended the queue pair")
        return False

    def _covered(self, number: int, here: Now) -> None:
        """A transport ACK: all up to it has arrived and is done."""
        if number <= self.acked:
            return
        self.acked, self.recoveries, self.clock_ns = number, 0, here.now
        self._received(sack.Told(max(number, self.track.unack), frozenset()), None, here)
        self.asked = {n: t for n, t in self.asked.items() if n > number}
        while self.messages and self.messages[0].last <= number:
            work = self.messages.popleft().work
            if work.signaled:
                self.completions.append(Completion(work.wr_id))

    # ---- probes (B.11) -------------------------------------------------------------------------

    def probe(self, p: Packet, ev: int, here: Now) -> None:
        """Check a reliability probe: on an EV in use it looks after the tail, else after the EV."""
        peth = header_of(p.peth)
        forbid(self.error, "a probe after the queue pair failed")
        forbid(p.bth != self.setup.ends.bth(Op.PROBE, 0), f"probe with {p.bth}")
        stamp = here.now // psn.TIMESTAMP_UNIT_NS % (1 << 16)
        expected = wire.Peth(probe_id=peth.probe_id, tx_timestamp=stamp, **self.setup.ends.ids)
        forbid(peth != expected, f"probe {peth}, not {expected}")
        self.losses.probe_sent(peth.probe_id, here)
        if ev not in here.usable:
            return
        forbid(not self.first_sent or max(self.first_sent) <= self.acked, "nothing to probe for")
        since = here.now - max(self.heard_ns, self.probed_ns)
        least = min(here.base_rtt_ns + here.target_ns, 3 * here.base_rtt_ns)
        least = 5 * here.base_rtt_ns if self.probed_ns > self.heard_ns else least
        least = max(least, PROBE_FLOOR_NS)
        forbid(since < least, f"tail probe after {since} ns, not {least}")
        self.probed_ns = here.now

    # ---- time, errors --------------------------------------------------------------------------

    def passed(self, here: Now, *, failed: bool) -> None:
        """Time has passed."""
        self.losses.look(here)
        if failed and self.error is None:
            self._exhausted(here)
        if self.error is None:
            self._patience(here)

    def _patience(self, here: Now) -> None:
        """B.9, ADR 72: neither silence nor a missing transport ACK is borne for ever."""
        late = self.budget.overdue(here.now)
        forbid(late, f"still waits {late}")
        last = self.messages[0].last if self.messages else None
        due = last is not None and any(last <= n <= self.track.unack for n in self.asked)
        self.budget.waits(last if due else None, here.now)
        out = any(s.state is not Known.ACKED for s in self.track.packets.values())
        self.budget.look(here.now, out=out, may_leave=bool(here.usable) and not self.careful)

    def _exhausted(self, here: Now) -> None:
        """B.9: the counter went beyond linear_cnt + exp_cnt."""
        waiting = [n for n in self.first_sent if n > self.acked]
        oldest = min((self.first_sent[n] for n in waiting), default=here.now)
        forbid(not self.budget.may_fail(oldest, here.now), f"gave up early: {self.budget}")
        self.fail(Status.RETRY_EXC_ERR)

    def fail(self, cause: Status) -> None:
        """B.13: outstanding work is flushed, the first with the cause."""
        if self.error is not None:
            return
        self.error = cause
        for work in [m.work for m in self.messages] + list(self.waiting):
            self.completions.append(Completion(work.wr_id, cause))
            cause = Status.WR_FLUSH_ERR
        self.messages.clear()
        self.waiting.clear()
