# SPDX-License-Identifier: BSD-2-Clause
"""The core's requestor beside the model's; between it and a model receiver, a bad network."""

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from mrc.model import psn, wire
from mrc.model.ends import Arrival, Ends, Memory, Region
from mrc.model.responder import Responder
from mrc.model.responder import Setup as Receiving
from mrc.model.wire import NackReason, Op, Packet, Syndrome
from tests.oracle import unit as unit_module
from tests.oracle.budget import budget
from tests.oracle.engine_core import DSCP_CONTROL, Options, Wired
from tests.oracle.sending import Judged

PEER = 0x654321
START, KEY = 1 << 40, 0xABCD
FATES = st.sampled_from(
    ["arrives"] * 8 + ["lost", "lost", "marked", "trimmed", "twice", "last hop"]
)
ENTROPY = 0xC000
CONTROL = DSCP_CONTROL << 2


@dataclass(frozen=True, slots=True)
class Answer:
    """What the receiver said, and the EV it answers."""

    packet: Packet
    ev: int


class RequestorMachine(RuleBasedStateMachine):
    """The network holds packets and answers, and loses, delays and repeats both."""

    me: Judged
    peer: Responder

    @initialize(
        first=st.integers(0, 0xFFFFFF) | st.integers(0xFFFFF0, 0xFFFFFF),
        window=st.sampled_from([0, 0, 1000, 5000, 30000]),
        wimm=st.integers(1, 3),
        retry=st.sampled_from([(8, 3, 5), (6, 0, 2), (10, 7, 0), (8, 2, 25), (5, 0, 0)]),
        evs=st.sampled_from([(1, 1), (2, 1), (4, 2), (6, 3)]),
        classes=st.booleans(),
        timestamps=st.booleans(),
        dynamic=st.booleans(),
        hostile=st.sampled_from([False, False, False, True]),
    )
    def start(
        self,
        *,
        first: int,
        window: int,
        wimm: int,
        retry: tuple[int, int, int],
        evs: tuple[int, int],
        classes: bool,
        timestamps: bool,
        dynamic: bool,
        hostile: bool,
    ) -> None:
        cap = unit_module.module().lib.MRC_QP_CAP_DYNAMIC_MPR if dynamic else 0
        o = Options(0, sq_psn=first, window=window, max_wimm=wimm, retx_class=classes, cap=cap)
        o = replace(o, timeout=retry[0], linear_cnt=retry[1], exp_cnt=retry[2])
        o = replace(o, evs=evs[0], planes=evs[1], timestamps=timestamps)
        self.me = Judged(o, 1_000_000)
        self.me.connect(PEER, (START, KEY))
        self.region = Region(KEY, START, bytearray(1 << 14))
        ends = Ends(PEER, self.me.core.qpn, o.mtu)
        receiving = Receiving(ends, first, o.mpr, wimm, dynamic_mpr=dynamic)
        self.peer = Responder(receiving, Memory({KEY: self.region}))
        self.network: list[Wired] = []
        self.answers: list[Answer] = []
        self.immediates, self.hostile = 0, hostile

    # ---- the application -----------------------------------------------------------------------

    @rule(
        length=st.integers(0, 2000) | st.sampled_from([0, 1, 256, 257, 12000]),
        offset=st.integers(0, 4000),
        kind=st.sampled_from(["write", "write", "imm", "solicited"]),
        signaled=st.booleans(),
        times=st.integers(1, 3),
    )
    def post(self, length: int, offset: int, kind: str, signaled: bool, times: int) -> None:
        for _ in range(times):
            if self.me.model.error is None:
                self.immediates += kind != "write"
                imm = None if kind == "write" else 0xF0000000 + self.immediates
                solicited = kind == "solicited"
                self.me.post(length, offset, imm, signaled=signaled, solicited=solicited)

    @rule()
    def send(self) -> None:
        self.network += self.me.send()

    @rule(rounds=st.integers(1, 4), fates=st.lists(FATES, max_size=12), time=st.integers(1, 50_000))
    def go(self, rounds: int, fates: list[str], time: int) -> None:
        """Rounds in which nothing is held up; the first packets meet these fates."""
        for _ in range(rounds):
            self.send()
            self.me.wait(self.me.core.now + time)
            now, self.network = self.network, []
            for i, w in enumerate(now):
                self.carry(w, fates[i] if i < len(fates) else "arrives")
                if i % 3 == 0 or i == len(now) - 1:
                    self.answers += [Answer(p, w.ev) for p in self.peer.acking.answers()]
            heard, self.answers = self.answers, []
            for answer in heard:
                self.me.hear(Wired(answer.packet, answer.ev, CONTROL))
            fates = fates[len(now) :]

    @rule(times=st.integers(1, 12))
    def silence(self, times: int) -> None:
        """Whatever leaves is lost; time goes from timer to timer (B.9)."""
        for _ in range(times):
            self.me.send()
            if self.me.core.deadline < self.me.core.now + 2_000_000_000:
                self.me.wait(self.me.core.deadline)
        self.network.clear()

    @rule(times=st.integers(1, 60))
    def only_probes_arrive(self, times: int) -> None:
        """Data is lost, however often it leaves; probes and their answers are not (B.11)."""
        for _ in range(times):
            for w in self.me.send():
                if w.packet.peth is not None:
                    self.carry(w, "arrives")
            for p in self.peer.acking.answers():
                self.me.hear(Wired(p, ENTROPY, CONTROL))
            if self.me.core.deadline < self.me.core.now + 2_000_000_000:
                self.me.wait(self.me.core.deadline)
        self.network.clear()

    @rule(times=st.integers(1, 30))
    def no_transport_ack_arrives(self, times: int) -> None:
        """SACKs do, and what is newly written arrives as well (B.6, H16)."""
        for _ in range(times):
            for w in self.me.send():
                self.carry(w, "arrives")
            for p in self.peer.acking.answers():
                if p.bth.opcode != Op.ACK:
                    self.me.hear(Wired(p, ENTROPY, CONTROL))
            if self.me.core.deadline < self.me.core.now + 2_000_000_000:
                self.me.wait(self.me.core.deadline)

    # ---- the network ---------------------------------------------------------------------------

    def carry(self, w: Wired, fate: str) -> None:
        """One packet meets its fate; the receiver answers in time."""
        if fate == "lost":
            return
        trims = {"trimmed": NackReason.TRIMMED, "last hop": NackReason.TRIMMED_LASTHOP}
        trim = trims.get(fate) if w.packet.bth.opcode != Op.PROBE else None
        self.peer.post_recv(1)
        a = Arrival(w.packet, w.ev, w.nominal, fate == "marked", trim)
        self.peer.arrive(replace(a, packet=replace(w.packet, payload=b"")) if trim else a)
        if fate == "twice":
            self.peer.arrive(a)

    @precondition(lambda self: self.network)
    @rule(
        fates=st.lists(FATES, min_size=1, max_size=40),
        step=st.sampled_from([1, 1, 3, 7]),
        gaps=st.integers(1, 5),
    )
    def deliver(self, fates: list[str], step: int, gaps: int) -> None:
        """Some packets arrive, or not, in an order of their own; answers leave now and then."""
        now, self.network = self.network[: len(fates)], self.network[len(fates) :]
        order = sorted(range(len(now)), key=lambda i: i * step % len(now))
        for k, i in enumerate(order):
            self.carry(now[i], fates[i])
            if k % gaps == 0 or k == len(order) - 1:
                self.answers += [Answer(p, now[i].ev) for p in self.peer.acking.answers()]

    @precondition(lambda self: self.answers)
    @rule(fates=st.lists(st.sampled_from("rrrrrrlltw"), min_size=1, max_size=30))
    def hear(self, fates: list[str]) -> None:
        """Answers arrive: read, lost, twice, or later than others."""
        now, self.answers = self.answers[: len(fates)], self.answers[len(fates) :]
        for fate, answer in zip(fates, now, strict=False):
            if fate == "w":
                self.answers.append(answer)
            for _ in range({"r": 1, "t": 2}.get(fate, 0)):
                self.me.hear(Wired(answer.packet, answer.ev, CONTROL))

    @rule(
        time=st.integers(0, 300_000)
        | st.sampled_from([1_000, 20_000, 262_144, 3_000_000, 9_000_000])
    )
    def wait(self, time: int) -> None:
        self.me.wait(self.me.core.now + time)

    # ---- a hostile peer ------------------------------------------------------------------------

    def near(self, distance: int) -> int:
        """A PSN relative to the highest that was sent, as on the wire."""
        return psn.wrap(self.me.model.track.max_sent + distance)

    @precondition(lambda self: self.hostile)
    @rule(
        cack=st.integers(-60, 4) | st.integers(-(1 << 23), 1 << 22),
        ack=st.integers(-80, 80),
        offset=st.integers(-70, 70),
        bitmap=st.integers(0, (1 << 64) - 1) | st.sampled_from([0, 1, (1 << 64) - 1]),
        m=st.integers(0, 3),
        pr=st.booleans(),
        rtx=st.booleans(),
        bytes_=st.integers(0, 60),
        rest=st.tuples(st.integers(0, 255), st.integers(0, 0x7FFF), st.integers(0, 0xFFFF)),
    )
    def forged_sack(
        self,
        *,
        cack: int,
        ack: int,
        offset: int,
        bitmap: int,
        m: int,
        pr: bool,
        rtx: bool,
        bytes_: int,
        rest: tuple[int, int, int],
    ) -> None:
        """Any field may be anything (B.5)."""
        number = self.near(cack)
        seth = wire.Seth(
            m=m,
            pr=int(pr),
            ack_psn_offset=ack,
            entropy=ENTROPY,
            cack_psn=number,
            mpr=rest[0],
            sack_offset=offset,
            sack_bitmap=bitmap,
        )
        state = wire.CcState(
            tx_timestamp=rest[2],
            ooo_count=rest[1],
            rcvd_bytes=psn.wrap(self.me.model.rcvd + bytes_),
        )
        ends = self.peer.setup.ends
        p = Packet(ends.bth(Op.SACK, number, rtx=int(rtx)), seth=seth, cc_state=state)
        self.me.hear(Wired(p, ENTROPY, CONTROL))

    @precondition(lambda self: self.hostile)
    @rule(
        distance=st.integers(-60, 3) | st.integers(-(1 << 23), 1 << 22),
        reason=st.sampled_from([1, 2, 6, 7, 0x0A, 0x0B, 3, 0xFF]),
        times=st.integers(1, 4),
        right=st.booleans(),
    )
    def forged_nack(self, distance: int, reason: int, times: int, right: bool) -> None:
        """Recoverable and unknown reasons, for any PSN (B.7, H10)."""
        number, track = self.near(distance), self.me.model.track
        sent = track.packets.get(track.max_sent + distance)
        ev = sent.ev if right and sent else ENTROPY
        neth = wire.Neth(nack_reason=reason, entropy=ev, nack_psn=number)
        for _ in range(times):
            self.me.hear(
                Wired(
                    Packet(self.peer.setup.ends.bth(Op.NACK, number), neth=neth), ENTROPY, CONTROL
                )
            )

    @precondition(lambda self: self.hostile)
    @rule(
        distance=st.integers(-60, 3) | st.integers(1, 1 << 22),
        syndrome=st.sampled_from([0x1F, 0x1F, 0x00, 0x20, 0x60, 0x7F]),
        msn=st.integers(0, (1 << 24) - 1),
    )
    def forged_ack(self, distance: int, syndrome: int, msn: int) -> None:
        """Transport ACKs of anything, with syndromes that MRC does not use (B.6)."""
        bth = self.peer.setup.ends.bth(Op.ACK, self.near(distance))
        self.me.hear(Wired(Packet(bth, aeth=wire.Aeth(syndrome, msn)), ENTROPY, CONTROL))

    @precondition(lambda self: self.hostile)
    @rule(
        distance=st.integers(-20, 3),
        what=st.sampled_from([Syndrome.NAK_INVALID_REQUEST, Syndrome.NAK_REMOTE_ACCESS,
                              Syndrome.NAK_REMOTE_OPERATION, NackReason.UNEXP_EVENT]),
        dice=st.integers(0, 9),
    )  # fmt: skip
    def the_end(self, distance: int, what: int, dice: int) -> None:
        """NAK, UNEXP_EVENT (B.13, B.14)."""
        if dice:
            return
        number, ends = self.near(distance), self.peer.setup.ends
        if what == NackReason.UNEXP_EVENT:
            neth = wire.Neth(nack_reason=what, nack_psn=number)
            self.me.hear(Wired(Packet(ends.bth(Op.NACK, number), neth=neth), ENTROPY, CONTROL))
        else:
            self.me.hear(
                Wired(Packet(ends.bth(Op.ACK, number), aeth=wire.Aeth(what)), ENTROPY, CONTROL)
            )


TestRequestor: Any = RequestorMachine.TestCase
TestRequestor.settings = budget(200, 40)
