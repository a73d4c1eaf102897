# SPDX-License-Identifier: BSD-2-Clause
"""The core's responder beside the model's: arbitrary arrivals, every answer judged (B.3 to B.8)."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mrc.model import psn, wire
from mrc.model.responder import Responder
from mrc.model.rxtrack import Verdict
from mrc.model.wire import Bth, NackReason, Op, Packet, Peth
from tests.oracle.answering import Answerer
from tests.oracle.budget import budget
from tests.oracle.engine_core import ECT0, CoreEngine, Options, Wired
from tests.oracle.sending import TRIM_CLASSES
from tests.oracle.traffic import Shape, Stream, dressed

PEER = 0x654321
NOWHERE = 0xC777  # an EV that the core's own table does not have
SHAPES = st.builds(
    Shape,
    length=st.integers(0, 1300) | st.sampled_from([0, 1, 255, 256, 257, 512]),
    imm=st.booleans(),
    solicited=st.booleans(),
    asks=st.booleans(),
)
DISTANCE = st.integers(-40, 200) | st.sampled_from([1, 1, 1, 2, 3, 64, 65, 66, 127, 128, 129])
FAR = st.integers(-(1 << 23), (1 << 23) - 1) | st.sampled_from(
    [(1 << 22) + 128 + i for i in (-2, -1, 0, 1)] + [-(1 << 22) + i for i in (-2, -1, 0, 1)]
)
STAMP = st.none() | st.integers(0, 0xFFFF)
LOOKS = st.fixed_dictionaries(
    {"a": st.booleans(), "rtx": st.booleans(), "ce": st.booleans(), "timestamp": STAMP}
)


class ResponderMachine(RuleBasedStateMachine):
    """A peer that may be anything between faithful and hostile."""

    me: Answerer
    core: CoreEngine
    model: Responder

    @initialize(
        first=st.integers(0, 0xFFFFFF) | st.integers(0xFFFFC0, 0xFFFFFF),
        mpr=st.integers(1, 2),
        threshold=st.sampled_from([0, 1024, 4096, 32768]),
        shapes=st.lists(SHAPES, min_size=1, max_size=6),
        wimm=st.integers(1, 5),
        fatal=st.sampled_from([False, False, True]),
        pools=st.tuples(st.sampled_from([0, 0, 20]), st.sampled_from([0, 0, 2])),
        dynamic=st.booleans(),
        penalty=st.sampled_from([0xFF, 0, 64]),
    )
    def start(
        self,
        *,
        first: int,
        mpr: int,
        threshold: int,
        shapes: list[Shape],
        wimm: int,
        fatal: bool,
        pools: tuple[int, int],
        dynamic: bool,
        penalty: int,
    ) -> None:
        o = Options(0, rq_psn=first, mpr=mpr, sack_threshold=threshold, max_wimm_dest=wimm)
        o = replace(o, ooo_max=pools[0], imm_max=pools[1], penalty=penalty)
        self.me = Answerer(o, 1_000_000, dynamic=dynamic)
        self.core = self.me.core
        self.regions = [
            self.core.register(5000),
            self.core.register(600, writable=False),
            self.core.register(600, pd=8),
        ]
        self.me.connect(PEER, *self.regions)
        self.model = self.me.model
        self.stream = Stream(first, self.core.qpn, o.mtu, self.regions[0], shapes)
        self.fatal, self.broken = fatal, False

    # ---- giving --------------------------------------------------------------------------------

    def give(self, p: Packet, ev: int, **more: Any) -> None:
        """One packet to both."""
        self.broken = True
        if not self.fatal:
            self.me.receives(16)
        self.me.give(p, ev, **more)
        self.broken = False

    def at(self, e: int) -> int:
        """Return the number in the stream of the packet e after cack."""
        return self.model.track.cack + e - self.model.setup.rq_psn

    def tame(self, p: Packet) -> bool:
        """Whether a faithful peer could have this packet in flight (B.8)."""
        if self.fatal or p.immdt is None:
            return True
        meth = p.meth
        assert meth is not None
        ahead = psn.diff(meth.rqmsn, self.model.delivered, 16)
        return ahead <= self.model.setup.max_wimm_dest

    def data(self, e: int, looks: dict[str, Any], ev: int) -> None:
        """The packet e after cack, if the stream reaches back so far."""
        if self.at(e) < 0:
            return
        p = self.stream.packet(self.at(e))
        if self.tame(p):
            bits = {"a": int(looks["a"] or p.bth.a), "rtx": int(looks["rtx"])}
            self.give(dressed(p, timestamp=looks["timestamp"], **bits), ev, ce=looks["ce"])

    @rule(e=DISTANCE, looks=LOOKS, ev=st.integers(0, 4))
    def packet(self, e: int, looks: dict[str, Any], ev: int) -> None:
        self.data(e, looks, [*self.core.evs, NOWHERE][ev])

    @rule(
        start=st.integers(-5, 120),
        length=st.integers(1, 80),
        holes=st.sets(st.integers(0, 80), max_size=8),
        step=st.sampled_from([1, 7, 11]),
        timestamp=STAMP,
        ce=st.integers(0, 60),
    )
    def burst(
        self, *, start: int, length: int, holes: set[int], step: int, timestamp: int, ce: int
    ) -> None:
        """A run of packets with holes, in an order of its own, before anything is answered."""
        cack = self.model.track.cack
        numbers = [cack + start + i for i in range(length) if i not in holes]
        for k in range(len(numbers)):
            number = numbers[k * step % len(numbers)]
            looks = {"a": False, "rtx": False, "ce": k == ce, "timestamp": timestamp}
            self.data(number - self.model.track.cack, looks, self.core.evs[k % 4])

    @rule(times=st.integers(1, 30))
    def next_ones(self, times: int) -> None:
        """The packets right above cack."""
        for _ in range(times):
            self.data(1, {"a": False, "rtx": False, "ce": False, "timestamp": None}, 0xC000)

    @rule(e=st.integers(-3, 9), asks=st.booleans())
    def alone(self, e: int, asks: bool) -> None:
        """A packet whose answer, or silence, can be due to nothing else; then the gaps close."""
        for number in [e] + [1] * self.model.track.ooo_count * (e % 2):
            self.drain()
            looks = {"a": asks and number == e, "rtx": False, "ce": False, "timestamp": None}
            self.data(number, looks, 0xC000)
        self.drain()

    @rule(times=st.integers(1, 150), e=st.integers(-90, 0))
    def again(self, times: int, e: int) -> None:
        """The same old packet, over and over (H35)."""
        for _ in range(times):
            self.data(e, {"a": False, "rtx": False, "ce": False, "timestamp": 5}, 0xC000)

    @rule(e=FAR, looks=LOOKS)
    def far(self, e: int, looks: dict[str, Any]) -> None:
        """Anywhere in the PSN space (H8)."""
        p = self.stream.packet(3)
        number = psn.wrap(self.model.track.cack + e)
        if self.model.track.verdict(number) is not Verdict.NEW:
            self.give(dressed(p, timestamp=looks["timestamp"], psn=number), 0xC000, ce=looks["ce"])

    @rule(
        e=DISTANCE,
        looks=LOOKS,
        trim=st.sampled_from(list(TRIM_CLASSES)),
        keep=st.sampled_from([16, 20, 24, 32, 36, 40, 60]),
    )
    def trimmed(self, e: int, looks: dict[str, Any], trim: NackReason, keep: int) -> None:
        """A switch cut it (A.13.6)."""
        if self.at(e) < 0:
            return
        p = dressed(self.stream.packet(self.at(e)), timestamp=looks["timestamp"], a=looks["a"])
        if keep >= 16 + 4 * p.bth.ts:
            self.give(p, 0xC000, ce=looks["ce"], trim=trim, keep=keep)

    @rule(number=st.integers(0, 0xFFFF), time=st.integers(0, 0xFFFF), ce=st.booleans())
    def probe(self, number: int, time: int, ce: bool) -> None:
        bth = Bth(opcode=Op.PROBE, dqp=self.core.qpn)
        self.give(Packet(bth, peth=Peth(probe_id=number, tx_timestamp=time)), 0xC000, ce=ce)

    @rule(e=DISTANCE, length=st.sampled_from([0, 1, 255, 256, 257, 300]), op=st.sampled_from(Op))
    def wrong_length(self, e: int, length: int, op: Op) -> None:
        """A payload that the opcode cannot have (A.1)."""
        if self.at(e) < 0 or op not in wire.WRITES:
            return
        p = self.stream.packet(self.at(e))
        p = replace(p, payload=bytes(length), immdt=wire.ImmDt(1) if op in wire.WITH_IMM else None)
        p = dressed(p, opcode=op)
        if self.model._malformed(p):
            self.give(p, 0xC000)

    @precondition(lambda self: self.fatal)
    @rule(e=st.integers(1, 5), region=st.integers(0, 3), va=st.sampled_from([-1, 0, 600, 4900]))
    def no_access(self, e: int, region: int, va: int) -> None:
        """Wrong key, read-only, another domain, out of bounds (B.3)."""
        p = self.stream.packet(self.at(e))
        if p.payload and p.reth is not None:
            key = self.regions[region].key if region < 3 else 0xDEAD
            start = self.regions[region % 3].start
            self.give(replace(p, reth=replace(p.reth, r_key=key, va=start + va)), 0xC000)

    @rule(
        e=st.integers(1, 5),
        what=st.sampled_from(["spoil", "stranger", "dqp"]),
    )
    def not_for_us(self, e: int, what: str) -> None:
        """Counted by name, no state changed (B.15)."""
        p = self.stream.packet(self.at(e))
        if what == "dqp":
            counted = self.core.rx(Wired(dressed(p, dqp=self.core.qpn ^ 1), 0xC000, ECT0))
            assert counted == {"qpn"}
        else:
            counted = self.core.rx(Wired(p, 0xC000, ECT0), **{what: True})
            assert counted == {"spoil": {"icrc"}, "stranger": {"peer"}}[what]

    @rule(most=st.integers(0, 16))
    def post(self, most: int) -> None:
        self.me.receives(most)

    @rule(paused=st.booleans())
    def take_nothing(self, paused: bool) -> None:
        """The application is not ready: NO_RESOURCE (B.7)."""
        self.core.pause(paused=paused)
        self.model.paused = paused

    @precondition(lambda self: self.fatal)
    @rule(e=st.integers(1, 9), rqmsn=st.integers(0, 12) | st.integers(0, 0xFFFF))
    def misnumbered(self, e: int, rqmsn: int) -> None:
        """An immediate with another number (B.8)."""
        p = self.stream.packet(self.at(e))
        if p.immdt is not None and p.meth is not None:
            self.give(replace(p, meth=replace(p.meth, rqmsn=rqmsn)), 0xC000)

    # ---- what comes back -----------------------------------------------------------------------

    @rule(time=st.integers(0, 10_000_000))
    def pause(self, time: int) -> None:
        self.core.tick(self.core.now + time)

    @rule()
    def drain(self) -> None:
        """All answers leave."""
        self.broken = True  # until it is known better: no second failure on top of one
        self.me.drain()
        self.broken = False

    @invariant()
    def same(self) -> None:
        if hasattr(self, "model"):
            self.me.check()

    def teardown(self) -> None:
        """Nothing stays owed."""
        if hasattr(self, "model") and not self.broken:
            self.drain()
            self.same()


def test_a_lost_transport_ack_can_be_asked_for_from_far_behind() -> None:
    """H16 before H35: old duplicates are answered now and then, those with A always."""
    me = Answerer(Options(0, mpr=1, sack_threshold=32768), 1_000_000)
    region = me.core.register(5000)
    me.connect(PEER, region)
    stream = Stream(0, me.core.qpn, 256, region, [Shape(100, False, False, True)])
    for number in range(300):
        me.give(stream.packet(number), 0xC000)
        me.drain()
    for asks in (0, 0, 1, 1, 0, 1):
        me.give(dressed(stream.packet(1), rtx=1, a=asks), 0xC000)
        answers = [w.packet.bth.opcode for w in me.drain()]
        assert answers == [Op.SACK, Op.ACK] if asks else Op.ACK not in answers


def test_of_two_packets_that_look_alike_the_answer_is_for_the_one_that_must_have_it() -> None:
    """H35: from so far behind that no offset reaches there, cack stands for the packet."""
    me = Answerer(Options(0, mpr=1, sack_threshold=32768), 1_000_000)
    region = me.core.register(5000)
    me.connect(PEER, region)
    p = Stream(0, me.core.qpn, 256, region, [Shape(2000, False, False, True)]).packet(3)
    for behind, marked in ((129, False), (32769, True), (0, True)):
        number = psn.wrap(me.model.track.cack - behind)
        me.give(dressed(p, timestamp=5, psn=number), 0xC000, ce=marked)
    assert Op.SACK in [w.packet.bth.opcode for w in me.drain()]
    me.check()


def test_what_arrived_may_be_told_although_its_delivery_failed() -> None:
    """B.3: a SACK says that it has arrived; nothing says that it is done, for it is not."""
    me = Answerer(Options(0, mpr=1), 1_000_000)
    me.connect(PEER, me.core.register(5000))
    stream = Stream(0, me.core.qpn, 256, me.regions[0], [Shape(0, True, False, True)])
    me.give(stream.packet(0), 0xC000)  # no receive is posted
    sack, nak = (w.packet for w in me.drain())
    assert sack.bth.opcode == Op.SACK
    assert nak.aeth is not None
    assert nak.aeth.syndrome == wire.Syndrome.NAK_REMOTE_OPERATION
    me.check()


TestResponder: Any = ResponderMachine.TestCase
TestResponder.settings = budget(100, 30)
