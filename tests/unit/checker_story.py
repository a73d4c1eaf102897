# SPDX-License-Identifier: BSD-2-Clause
"""Small runs told by hand, for the tests of the checker: right unless told otherwise."""

from dataclasses import dataclass, field, replace
from typing import Any

from mrc.model import psn
from mrc.model.checker import Checker
from mrc.model.rules import Verdict
from mrc.model.trace import Done, Event, Flow, In, Note, Out, Path, Post, Turn, World
from mrc.model.wire import (
    Aeth,
    Bth,
    CcState,
    Eeth,
    Erth,
    ImmDt,
    Meth,
    Neth,
    Op,
    Packet,
    Peth,
    Reth,
    Seth,
    Tseth,
)

MTU = 256
FIRST = 100
WINDOW = 256
N = FIRST
EVS = (0x00010001, 0x00010002, 0x00020003, 0x00020004)
PLANES = (1, 1, 2, 2)
A, B = 0, 1
QPN_A, QPN_B = 10, 20
RADDR = 1 << 20
DATA, CONTROL = 2, 46 << 2
TRIMMED, TRIMMED_LASTHOP = 12 << 2, 16 << 2


def _flow(number: int, **changes: Any) -> Flow:
    hosts = (A, B, QPN_A, QPN_B) if number == 0 else (B, A, QPN_B, QPN_A)
    flow = Flow(
        number,
        *hosts,
        psn=FIRST,
        mtu=MTU,
        window=WINDOW,
        peer_window=WINDOW,
        dynamic=False,
        wimm=2,
        t0_ns=262144,
        threshold=16384,
        tseth=False,
        reverse=1 - number,
        msn=0,
        rqmsn=0,
        rcvd=0,
        done=0,
    )
    return replace(flow, **changes)


@dataclass
class Story:
    """Host A sends to host B; what each call says happens at the next microsecond."""

    flow: dict[str, Any] = field(default_factory=dict)
    world: dict[str, Any] = field(default_factory=dict)
    checker: Checker = field(default_factory=Checker)
    now: int = 1_000_000
    count: int = 0
    plan: list[tuple[Post, int, int]] = field(default_factory=list)  # request, index, of
    got: set[int] = field(default_factory=set)  # PSNs at B
    bytes: int = 0

    def __post_init__(self) -> None:
        facts: dict[str, Any] = {"hosts": 2, "paths": 4, "min_active": 1, "trims": True}
        facts |= {"service": False, "skip": False}
        self.checker.take(World(**(facts | self.world)))
        for host in (A, B):
            for ev, plane in zip(EVS, PLANES, strict=True):
                self.checker.take(Path(host, ev, plane, backup=False))
        self.checker.take(_flow(0, **self.flow))
        self.checker.take(_flow(1))
        self.turn(A)

    @property
    def verdicts(self) -> list[Verdict]:
        """What the checker says, after the last turn."""
        self.turn(A)
        self.turn(B)
        self.checker.finish(self.now)
        return self.checker.verdicts

    def _tick(self) -> int:
        self.now += 1000
        return self.now

    # ---- what applications do ----

    def post(self, length: int = MTU, *, imm: bool = False, signaled: bool = True) -> None:
        """Post a work request at A."""
        wr = self.plan[-1][0].wr + 1 if self.plan else 0
        raddr = RADDR + 0x10000 * wr
        post = Post(self._tick(), 0, wr, length, imm, signaled, raddr)
        packets = max(1, -(-length // MTU))
        self.plan += [(post, i, packets) for i in range(packets)]
        self.checker.take(post)

    def done(self, n: int, status: int = 0) -> None:
        """Work request n completes at A."""
        self.checker.take(Done(self._tick(), 0, n, status, receive=False))

    def receive(self, n: int, status: int = 0) -> None:
        """Immediate n is delivered at B."""
        self.checker.take(Done(self._tick(), 0, n, status, receive=True))

    # ---- turns, events ----

    def turn(self, host: int) -> None:
        """A host looks."""
        self.checker.take(Turn(self._tick(), host))

    def event(self, was: int, becomes: int, reason: int, ev: int = EVS[0]) -> None:
        """An EV of A changes."""
        self.checker.take(Event(self._tick(), A, B, ev, was, becomes, reason))

    def note(self, what: str, *args: int) -> None:
        """Something is done from outside."""
        self.checker.take(Note(self._tick(), what, args))

    # ---- packets ----

    def _out(self, host: int, packet: Packet, ev: int, tclass: int, **size: int) -> Out:
        self.count += 1
        out = Out(
            now=self._tick(),
            id=self.count,
            host=host,
            peer=1 - host,
            tclass=tclass,
            label=ev >> 16,
            sport=ev & 0xFFFF,
            payload_len=size.get("payload_len", 0),
            nominal=100 + size.get("payload_len", 0),
            digest=size.get("digest", 0),
            packet=packet,
        )
        self.checker.take(out)
        return out

    def data(self, number: int = FIRST, ev: int = EVS[0], **odd: Any) -> Out:
        """A sends that PSN, as its work request wants it, but for what is odd."""
        post, index, packets = self.plan[min(number - FIRST, len(self.plan) - 1)]
        last = index + 1 == packets
        size = post.length - index * MTU if last else MTU
        payload = odd.pop("payload_len", size)
        bth = Bth(
            opcode=odd.pop("opcode", _opcode(index, packets, imm=post.imm)),
            pad=odd.pop("pad", -payload % 4),
            dqp=QPN_B,
            psn=psn.wrap(number),
            a=odd.pop("a", int(last)),
            rtx=odd.pop("rtx", 0),
        )
        wimms = len({p.wr for p, _, _ in self.plan[: number - FIRST + 1] if p.imm})
        stamp = odd.pop("stamp", None)
        packet = Packet(
            bth,
            meth=Meth(odd.pop("rqmsn", wimms if post.imm else 0), odd.pop("msn", post.wr + 1)),
            tseth=None if stamp is None else Tseth(stamp),
            reth=Reth(odd.pop("va", post.raddr + index * MTU), 7, odd.pop("dmalen", post.length)),
            immdt=ImmDt(5) if post.imm and last else None,
        )
        tclass = odd.pop("tclass", DATA)
        out = self._out(A, packet, ev, tclass, payload_len=payload, digest=odd.pop("digest", 1))
        assert not odd
        return out

    def probe(self, number: int = 1, at: int = 0) -> Out:
        """A sends a reliability probe."""
        packet = Packet(Bth(opcode=Op.PROBE, dqp=QPN_B, psn=at), peth=Peth(probe_id=number))
        return self._out(A, packet, EVS[0], DATA)

    def arrives(self, out: Out, tclass: int | None = None, *, intact: bool = True) -> None:
        """A packet is handed to the other host."""
        tclass = out.tclass if tclass is None else tclass
        intact = intact and tclass not in (TRIMMED, TRIMMED_LASTHOP)
        self.checker.take(In(self._tick(), 1 - out.host, tclass, intact, out.host, out))
        if out.packet.meth is not None and intact and out.packet.bth.psn not in self.got:
            self.got.add(out.packet.bth.psn)
            self.bytes += out.nominal

    @property
    def cack(self) -> int:
        """All up to here is at B."""
        n = FIRST - 1
        while n + 1 in self.got:
            n += 1
        return n

    def sack(self, about: Out, **odd: Any) -> Out:
        """B answers that packet with a SACK, as it should, but for what is odd."""
        cack = odd.pop("cack", self.cack)
        above = {n for n in self.got if n > self.cack}
        bitmap = sum(1 << (n - cack - 1) for n in above if 0 < n - cack <= 64)
        pr = about.packet.peth is not None
        offset = about.packet.peth.probe_id if about.packet.peth else about.packet.bth.psn - cack
        stamp = about.packet.tseth.tx_timestamp if about.packet.tseth else 0
        seth = Seth(
            m=odd.pop("m", 0),
            pr=int(pr),
            ack_psn_offset=odd.pop("ack_offset", offset),
            entropy=odd.pop("entropy", about.ev),
            cack_psn=cack,
            mpr=odd.pop("mpr", 0),
            sack_offset=odd.pop("offset", 1),
            sack_bitmap=odd.pop("bitmap", bitmap),
        )
        state = CcState(
            tx_timestamp=odd.pop("stamp", stamp),
            ooo_count=odd.pop("ooo", len(above)),
            rcvd_bytes=odd.pop("rcvd", -(-self.bytes // 256)),
        )
        bth = Bth(
            opcode=Op.SACK,
            dqp=QPN_A,
            psn=odd.pop("psn", cack),
            rtx=odd.pop("rtx", about.packet.bth.rtx),
        )
        out = self._out(
            B, Packet(bth, seth=seth, cc_state=state), EVS[0], odd.pop("tclass", CONTROL)
        )
        assert not odd
        return out

    def ack(self, number: int | None = None, done: int = 1, syndrome: int = 0x1F) -> Out:
        """B sends a transport ACK."""
        bth = Bth(opcode=Op.ACK, dqp=QPN_A, psn=self.cack if number is None else number)
        return self._out(B, Packet(bth, aeth=Aeth(syndrome, done)), EVS[0], CONTROL)

    def nack(self, about: Out, reason: int, number: int | None = None) -> Out:
        """B refuses that packet."""
        number = about.packet.bth.psn if number is None else number
        neth = Neth(nack_reason=reason, entropy=about.ev, nack_psn=number)
        bth = Bth(opcode=Op.NACK, dqp=QPN_A, psn=number)
        return self._out(B, Packet(bth, neth=neth), EVS[0], CONTROL)

    def request(self, number: int = 9) -> Out:
        """A sends an endpoint request."""
        packet = Packet(Bth(opcode=Op.EP_REQ, dqp=2, psn=number), erth=Erth(op=1))
        return self._out(A, packet, EVS[0], CONTROL)

    def response(self, number: int = 9) -> Out:
        """B answers one."""
        packet = Packet(Bth(opcode=Op.EP_RSP, dqp=2, psn=number), eeth=Eeth(op=1))
        return self._out(B, packet, EVS[0], CONTROL)

    # ---- passages that many stories have ----

    def exchange(self, *numbers: int) -> None:
        """These PSNs leave, arrive, are reported and acknowledged, and A hears of it."""
        for number in numbers:
            self.arrive_and_answer(self.data(number))

    def arrive_and_answer(self, out: Out) -> None:
        """That packet arrives, and B answers as it should."""
        self.turn(B)
        self.arrives(out)
        answers = [self.sack(out)]
        if out.packet.bth.a and self.cack >= out.packet.bth.psn:
            done = sum(1 for p, i, n in self.plan[: self.cack - FIRST + 1] if i + 1 == n)
            answers.append(self.ack(done=done))
        self.turn(A)
        for answer in answers:
            self.arrives(answer)


def _opcode(index: int, packets: int, *, imm: bool) -> int:
    if packets == 1:
        return Op.WRITE_ONLY_IMM if imm else Op.WRITE_ONLY
    if index == 0:
        return Op.WRITE_FIRST
    if index + 1 < packets:
        return Op.WRITE_MIDDLE
    return Op.WRITE_LAST_IMM if imm else Op.WRITE_LAST


# ---- beginnings of stories ----


def sent(*numbers: int, length: int = 4 * MTU) -> Story:
    """A message whose packets have left."""
    s = Story()
    s.post(length)
    for number in numbers:
        s.data(number)
    return s


def answering(out_of: Story, number: int = N, tclass: int | None = None) -> Story:
    """That PSN leaves and arrives in a turn of B that is still open."""
    out = out_of.data(number)
    out_of.turn(B)
    out_of.arrives(out, tclass)
    return out_of


def one(**kinds: bool) -> Story:
    s = Story()
    s.post(**kinds)
    return s
