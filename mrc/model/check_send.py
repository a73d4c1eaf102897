# SPDX-License-Identifier: BSD-2-Clause
"""The requestor of one flow, watched: what it may send, when, and what completes (MRC B.2 to B.10).

Knows of the peer only what was handed in. PSNs are unbounded numbers here.
"""

from dataclasses import dataclass, field

from mrc.model import psn
from mrc.model.rules import Report
from mrc.model.trace import Done, Flow, In, Out, Post, there
from mrc.model.wire import WITH_IMM, NackReason, Op, Syndrome


@dataclass(slots=True)
class _Message:
    post: Post
    packets: int
    first: int | None = None  # PSN
    rqmsn: int = 0

    @property
    def last(self) -> int:
        return there(self.first) + self.packets - 1


@dataclass(slots=True)
class _Sent:
    last: Out
    message: _Message
    index: int  # of the packet in the message
    seq: int  # news the requestor had when it left
    nack_ev: int | None = None  # EV of a NACK of the last transmission


@dataclass(slots=True)
class Sender:
    """One flow's requestor."""

    flow: Flow
    report: Report
    next_psn: int = 0
    unack: int = 0
    done_to: int = 0  # PSN covered by transport ACKs
    window: int = 0
    rcvd: int = 0  # newest rcvd_bytes, unbounded
    received: set[int] = field(default_factory=set)
    sent: dict[int, _Sent] = field(default_factory=dict)
    news: int = 0  # packets heard, paths lost
    messages: list[_Message] = field(default_factory=list)
    imms: list[_Message] = field(default_factory=list)
    cutting: int = 0  # message being cut
    cut: int = 0  # packets of it that have left
    rqmsn: int = 0
    begun: int = 0  # immediates
    completed: int = 0  # work requests, index of the next
    failed: bool = False

    def __post_init__(self) -> None:
        self.next_psn = self.flow.psn
        self.unack = self.done_to = self.flow.psn - 1
        self.window = self.flow.window
        self.rqmsn = self.flow.rqmsn
        self.rcvd = -(-self.flow.rcvd // 256)

    # ---- what it is told ----

    def posted(self, post: Post) -> None:
        """Take a work request."""
        packets = max(1, -(-post.length // self.flow.mtu))
        message = _Message(post, packets)
        self.messages.append(message)
        if post.imm:
            self.imms.append(message)

    def heard(self, got: In) -> None:
        """Take a control packet for this requestor (B.5, B.6, B.7)."""
        p = there(got.out).packet
        if p.aeth is not None:
            self._heard_ack(psn.unwrap(p.bth.psn, self.next_psn), p.aeth.syndrome)
        elif p.neth is not None:
            number = psn.unwrap(p.neth.nack_psn, self.next_psn)
            self._heard_nack(number, p.neth.entropy, p.neth.nack_reason)
        else:
            self._heard_sack(got)
        self.news += 1

    def _heard_ack(self, number: int, syndrome: int) -> None:
        if syndrome != Syndrome.ACK:  # what has arrived before the request refused was fine
            number = min(number - 1, self.unack)
        if number < self.next_psn:
            for n in range(self.done_to + 1, number + 1):
                self.sent.pop(n, None)
            self.done_to = max(self.done_to, number)
            self._received_to(number)

    def _heard_nack(self, number: int, ev: int, reason: int) -> None:
        s = self.sent.get(number)
        if s is not None and s.last.ev == ev and reason != NackReason.UNEXP_EVENT:
            s.nack_ev = ev

    def _heard_sack(self, got: In) -> None:
        p = there(got.out).packet
        seth, state = there(p.seth), there(p.cc_state)
        cack = psn.unwrap(seth.cack_psn, self.next_psn)
        if cack >= self.next_psn:
            return  # acknowledges what was never sent
        rcvd = psn.unwrap(state.rcvd_bytes, self.rcvd)
        if cack >= self.unack and rcvd >= self.rcvd:
            self.rcvd = rcvd
            if self.flow.dynamic and seth.mpr:
                self.window = min(seth.mpr * 128, self.flow.window)
        also = {cack + seth.sack_offset + i for i in range(64) if seth.sack_bitmap >> i & 1}
        if not seth.pr:
            also.add(cack + seth.ack_psn_offset)
        self.received |= {n for n in also if self.unack < n < self.next_psn}
        self._received_to(cack)

    def _received_to(self, cack: int) -> None:
        if cack > self.unack:
            for n in range(self.unack + 1, cack + 1):
                self.received.discard(n)
            self.unack = cack

    def lane_failed(self) -> None:
        """Some path of this host refused packets: what it carried may leave again at once."""
        self.news += 1

    # ---- what it does ----

    def sends(self, out: Out, usable: frozenset[int]) -> None:
        """Judge a data packet; usable: the EVs that could have carried it."""
        number = psn.unwrap(out.packet.bth.psn, self.next_psn)
        if self.failed:
            self.report("dead", out.now, f"psn {number}")
        if number - self.unack > self.window:
            self.report("psn-window", out.now, f"{number} is beyond {self.unack} + {self.window}")
        if number > self.next_psn:
            self.report("psn-gap", out.now, f"{number} follows {self.next_psn - 1}")
        elif number == self.next_psn:
            self._first(out, number)
        else:
            self._again(out, number, usable)
        self._timestamp(out)

    def _timestamp(self, out: Out) -> None:
        tseth = out.packet.tseth
        now = psn.wrap(out.now // psn.TIMESTAMP_UNIT_NS, psn.TIMESTAMP_BITS)
        if (tseth is not None) != self.flow.tseth:
            self.report("timestamp", out.now, "there" if tseth else "missing")
        elif tseth is not None and tseth.tx_timestamp != now:
            self.report("timestamp", out.now, f"{tseth.tx_timestamp}, not {now}")

    def _first(self, out: Out, number: int) -> None:
        if out.packet.bth.rtx:
            self.report("rtx-bit", out.now, f"psn {number} leaves for the first time")
        if self.cutting >= len(self.messages):
            self.report("psn-unposted", out.now, f"psn {number}")
            return
        message, index = self.messages[self.cutting], self.cut
        if index == 0:
            self._begin(out, message, number)
        self.sent[number] = _Sent(out, message, index, self.news)
        self.next_psn += 1
        self.cut += 1
        if self.cut == message.packets:
            self.cutting, self.cut = self.cutting + 1, 0
        self._fields(out, message, index)
        self._asks(out, message, index)

    def _begin(self, out: Out, message: _Message, number: int) -> None:
        message.first = number
        if not message.post.imm:
            return
        self.rqmsn = psn.wrap(self.rqmsn + 1, psn.MSN_BITS)
        message.rqmsn = self.rqmsn
        self.begun += 1
        latest = self.imms[max(0, self.begun - self.flow.wimm - 1) : self.begun]
        count = sum(1 for m in latest if m.last > self.done_to)
        if count > self.flow.wimm:
            self.report("wimm-limit", out.now, f"{count} of {self.flow.wimm}")

    def _fields(self, out: Out, message: _Message, index: int) -> None:
        p, post = out.packet, message.post
        meth, reth = there(p.meth), there(p.reth)
        last = index + 1 == message.packets
        size = post.length - index * self.flow.mtu if last else self.flow.mtu
        where = f"packet {index} of work request {post.wr}"
        if p.bth.opcode != _opcode(index, message.packets, imm=post.imm):
            self.report("opcode", out.now, f"{where}: {p.bth.opcode:#x}")
        if out.payload_len != size or (out.payload_len + p.bth.pad) % 4:
            self.report("packet-size", out.now, f"{where}: {out.payload_len} and {p.bth.pad} bytes")
        if reth.va != post.raddr + index * self.flow.mtu or reth.dmalen != post.length:
            self.report("address", out.now, f"{where}: {reth}")
        if meth.msn != psn.wrap(self.flow.msn + 1 + post.wr, psn.MSN_BITS):
            self.report("msn", out.now, f"{where}: {meth.msn}")
        if meth.rqmsn != message.rqmsn:
            self.report("rqmsn", out.now, f"{where}: {meth.rqmsn}")

    def _asks(self, out: Out, message: _Message, index: int) -> None:
        last = index + 1 == message.packets
        if last and message.post.signaled and not out.packet.bth.a:
            self.report("ask-last", out.now, f"work request {message.post.wr}")
        if last and self.cutting == len(self.messages) and not out.packet.bth.a:
            self.report("ask-idle", out.now, f"work request {message.post.wr}")

    def _again(self, out: Out, number: int, usable: frozenset[int]) -> None:
        bth = out.packet.bth
        if not bth.rtx:
            self.report("rtx-bit", out.now, f"psn {number} left before")
        if number <= self.done_to:
            self.report("rtx-acked", out.now, f"psn {number}")
            return
        s = self.sent[number]
        known = number <= self.unack or number in self.received
        # B.6: of all that has arrived, only the packet that asks for a transport ACK again.
        if known and not (number <= self.unack and bth.a):
            self.report("rtx-received", out.now, f"psn {number}")
        # What asks for a transport ACK again may be early: it repeats one packet at most (H16).
        if not known and s.seq == self.news and out.now - s.last.now < self.flow.t0_ns:
            self.report("rtx-baseless", out.now, f"psn {number}, {out.now - s.last.now} ns later")
        if s.nack_ev == out.ev and usable - {out.ev}:
            self.report("rtx-same-ev", out.now, f"psn {number}, EV {out.ev:08x}")
        if _repeated(out) != _repeated(s.last):
            self.report("rtx-differs", out.now, f"psn {number}")
        self.sent[number] = _Sent(out, s.message, s.index, self.news)

    def completes(self, done: Done) -> None:
        """Judge a completion; unsignalled work requests in front complete with it."""
        if done.n < self.completed or done.n >= len(self.messages):
            self.report("done-order", done.now, f"{done.n} after {self.completed - 1}")
            return
        self.completed = done.n + 1
        if done.status:
            self.failed = True
            return
        message = self.messages[done.n]
        if message.first is None or message.last > self.done_to:
            self.report("done-early", done.now, f"work request {done.n}")

    def immediate_psn(self, n: int) -> int | None:
        """The PSN that carries the n-th immediate, None while it has not begun."""
        return self.imms[n].last if n < self.begun else None


def _opcode(index: int, packets: int, *, imm: bool) -> int:
    if packets == 1:
        return Op.WRITE_ONLY_IMM if imm else Op.WRITE_ONLY
    if index == 0:
        return Op.WRITE_FIRST
    if index + 1 < packets:
        return Op.WRITE_MIDDLE
    return Op.WRITE_LAST_IMM if imm else Op.WRITE_LAST


def _repeated(out: Out) -> tuple[object, ...]:
    """What a retransmission repeats."""
    p = out.packet
    imm = p.immdt if p.bth.opcode in WITH_IMM else None
    bth = (p.bth.opcode, p.bth.pad, p.bth.solicited, p.bth.dqp)
    return (bth, p.meth, p.reth, imm, out.payload_len, out.digest)
