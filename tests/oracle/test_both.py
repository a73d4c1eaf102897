# SPDX-License-Identifier: BSD-2-Clause
"""Two cores and a lossy network between them; each is judged by its model."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mrc.model.ends import Status
from mrc.model.wire import NackReason, Op
from tests.oracle.answering import Answerer
from tests.oracle.budget import budget
from tests.oracle.engine_core import CE, Options, Wired
from tests.oracle.sending import Judged

SIZE = 1 << 14
FATES = st.sampled_from(
    ["arrives"] * 9 + ["lost", "lost", "marked", "trimmed", "last hop", "twice"]
)
TRIMS = {"trimmed": NackReason.TRIMMED, "last hop": NackReason.TRIMMED_LASTHOP}
TURN_NS = 30_000


class BothMachine(RuleBasedStateMachine):
    """A writes to B."""

    a: Judged
    b: Answerer

    @initialize(
        first=st.integers(0xFFFFE0, 0xFFFFFF) | st.integers(0, 0xFFFFFF),
        window=st.sampled_from([0, 2000, 20000]),
        mpr=st.integers(1, 2),
        threshold=st.sampled_from([1024, 4096, 16384]),
        pools=st.tuples(st.sampled_from([0, 0, 10]), st.sampled_from([0, 0, 1])),
        dynamic=st.booleans(),
        timestamps=st.booleans(),
        evs=st.sampled_from([(1, 1), (4, 2), (9, 3)]),
    )
    def start(
        self,
        *,
        first: int,
        window: int,
        mpr: int,
        threshold: int,
        pools: tuple[int, int],
        dynamic: bool,
        timestamps: bool,
        evs: tuple[int, int],
    ) -> None:
        o = Options(0, sq_psn=first, rq_psn=first, mpr=mpr, window=window, sack_threshold=threshold)
        o = replace(o, evs=evs[0], planes=evs[1], timestamps=timestamps, exp_cnt=25)
        self.b = Answerer(
            replace(o, side=1, ooo_max=pools[0], imm_max=pools[1]), 1_000_000, dynamic=dynamic
        )
        target = self.b.core.register(SIZE)
        o = replace(o, cap=self.b.core.o.cap)
        self.a = Judged(o, 1_000_000, self.b.core.qpn, (target.start, target.key))
        self.b.connect(self.a.core.qpn, target)
        self.target, self.expected = target, bytearray(SIZE)
        self.there: list[Wired] = []
        self.back: list[Wired] = []
        self.immediates = 0
        self.broken = False

    # ---- the application -----------------------------------------------------------------------

    @rule(
        length=st.integers(0, 2000) | st.sampled_from([0, 1, 256, 257, 9000]),
        offset=st.integers(0, 4000),
        kind=st.sampled_from(["write", "write", "imm", "solicited"]),
        signaled=st.booleans(),
        times=st.integers(1, 4),
    )
    def post(self, *, length: int, offset: int, kind: str, signaled: bool, times: int) -> None:
        for _ in range(times):
            self.immediates += kind != "write"
            imm = None if kind == "write" else self.immediates
            solicited = kind == "solicited"
            if self.a.post(length, offset, imm, signaled=signaled, solicited=solicited):
                data = self.a.source.data[offset : offset + length]
                self.expected[offset : offset + length] = data

    @rule(paused=st.sampled_from([False, False, True]))
    def pause(self, paused: bool) -> None:
        """B takes nothing for now."""
        self.b.core.pause(paused=paused)
        self.b.model.paused = paused

    # ---- the network ---------------------------------------------------------------------------

    def leave(self) -> None:
        """Both send what they want to."""
        self.there += self.a.send()
        self.back += self.b.drain()

    def carry(self, w: Wired, fate: str) -> None:
        """A packet of A arrives at B, or not."""
        if fate == "lost":
            return
        self.b.receives(16)
        trim = TRIMS.get(fate) if w.packet.bth.opcode != Op.PROBE else None
        if trim:
            self.b.give(w.packet, w.ev, trim=trim, keep=36)
            return
        for _ in range(2 if fate == "twice" else 1):
            self.b.give(w.packet, w.ev, ce=fate == "marked")

    def turn(self, there: Iterator[str], back: Iterator[str], time: int) -> None:
        """Everything leaves, time passes, everything arrives or meets its fate."""
        self.broken = True
        self.leave()
        now, self.there = self.there, []
        self.a.wait(self.a.core.now + time)
        self.b.core.tick(self.a.core.now)
        for w in now:
            self.carry(w, next(there, "arrives"))
        self.back += self.b.drain()
        answers, self.back = self.back, []
        self.a.wait(self.a.core.now + time)
        self.b.core.tick(self.a.core.now)
        for w in answers:
            fate = next(back, "arrives")
            for _ in range({"lost": 0, "twice": 2}.get(fate, 1)):
                self.a.hear(w.packet, w.ev, tclass=w.tclass | CE * (fate == "marked"))
        self.broken = False

    @rule(
        there=st.lists(FATES, max_size=30),
        back=st.lists(FATES, max_size=12),
        time=st.integers(1, TURN_NS) | st.sampled_from([400_000]),
        turns=st.integers(1, 3),
    )
    def turns(self, *, there: list[str], back: list[str], time: int, turns: int) -> None:
        fates, answers = iter(there), iter(back)
        for _ in range(turns):
            self.turn(fates, answers, time)

    @rule(share=st.integers(0, 100), swap=st.booleans())
    def out_of_order(self, share: int, swap: bool) -> None:
        """A part of what is under way arrives, the last first; the rest stays under way."""
        self.broken = True
        self.leave()
        count = len(self.there) * share // 100
        now, self.there = self.there[:count], self.there[count:]
        for w in reversed(now) if swap else now:
            self.carry(w, "arrives")
        self.back += self.b.drain()
        self.broken = False

    @precondition(lambda self: self.there or self.back)
    @rule()
    def cut(self) -> None:
        """All that is under way is lost."""
        self.there, self.back = [], []

    @rule(time=st.sampled_from([1000, 100_000, 1_000_000, 9_000_000]))
    def wait(self, time: int) -> None:
        self.broken = True
        self.a.wait(self.a.core.now + time)
        self.b.core.tick(self.a.core.now)
        self.broken = False

    @invariant()
    def same(self) -> None:
        if hasattr(self, "target") and not self.broken:
            self.b.check()

    def teardown(self) -> None:
        """Faults are over: everything completes in time (house rule of liveness)."""
        if not hasattr(self, "target") or self.broken:
            return
        self.pause(paused=False)
        limit = self.a.core.now + 2_000_000_000
        while self.a.model.messages or self.a.model.waiting:
            assert self.a.core.now < limit, "does not come to an end"
            assert self.a.model.error is None
            self.turn(iter(()), iter(()), TURN_NS)
            if not self.a.core.lib.mrc_engine_tx_pending(self.a.core.e):
                self.a.wait(min(self.a.core.deadline, limit))
                self.b.core.tick(self.a.core.now)
        self.b.check()
        assert self.target.data == self.expected
        assert self.b.model.error is None
        assert all(c.status is Status.SUCCESS for c in self.b.model.completions)


TestBoth: Any = BothMachine.TestCase
TestBoth.settings = budget(120, 25)
