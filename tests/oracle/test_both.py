# SPDX-License-Identifier: BSD-2-Clause
"""Two cores that write to each other through a lossy network; each is judged by its model."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from mrc.model.wire import NackReason, Op
from tests.oracle import unit as unit_module
from tests.oracle.budget import budget
from tests.oracle.engine_core import Options, Wired
from tests.oracle.sending import Judged, is_answer

FATES = st.sampled_from(
    ["arrives"] * 9 + ["lost", "lost", "marked", "trimmed", "last hop", "twice"]
)
TRIMS = {"trimmed": NackReason.TRIMMED, "last hop": NackReason.TRIMMED_LASTHOP}
TURN_NS = 30_000
SIDE = st.integers(0, 1)


class BothMachine(RuleBasedStateMachine):
    """Everything that is under way towards a side lies in its list."""

    sides: list[Judged]

    @initialize(
        firsts=st.tuples(st.integers(0xFFFFE0, 0xFFFFFF), st.integers(0, 0xFFFFFF)),
        window=st.sampled_from([0, 2000, 20000]),
        mpr=st.integers(1, 2),
        threshold=st.sampled_from([1024, 4096, 16384]),
        pools=st.tuples(st.sampled_from([0, 0, 10]), st.sampled_from([0, 0, 1])),
        dynamic=st.booleans(),
        timestamps=st.booleans(),
        evs=st.sampled_from([(1, 1), (4, 2), (9, 3)]),
        starved=st.sampled_from([False, False, False, True]),
    )
    def start(
        self,
        *,
        firsts: tuple[int, int],
        window: int,
        mpr: int,
        threshold: int,
        pools: tuple[int, int],
        dynamic: bool,
        timestamps: bool,
        evs: tuple[int, int],
        starved: bool,
    ) -> None:
        cap = unit_module.module().lib.MRC_QP_CAP_DYNAMIC_MPR if dynamic else 0
        o = Options(0, mpr=mpr, window=window, sack_threshold=threshold, exp_cnt=25, cap=cap)
        o = replace(o, evs=evs[0], planes=evs[1], timestamps=timestamps)
        o = replace(o, ooo_max=pools[0], imm_max=pools[1])
        self.sides = [
            Judged(replace(o, side=i, sq_psn=firsts[i], rq_psn=firsts[1 - i]), 1_000_000)
            for i in range(2)
        ]
        for me, other in (self.sides, self.sides[::-1]):
            me.connect(other.core.qpn, (other.inbox.start, other.inbox.key))
        self.to: list[list[Wired]] = [[], []]
        self.expected = [bytearray(1 << 14), bytearray(1 << 14)]
        self.starved, self.immediates, self.broken = starved, 0, False

    # ---- the application -----------------------------------------------------------------------

    @rule(
        side=SIDE,
        length=st.integers(0, 2000) | st.sampled_from([0, 1, 256, 257, 9000]),
        offset=st.integers(0, 4000),
        kind=st.sampled_from(["write", "write", "imm", "solicited"]),
        signaled=st.booleans(),
        times=st.integers(1, 4),
    )
    def post(
        self, *, side: int, length: int, offset: int, kind: str, signaled: bool, times: int
    ) -> None:
        me = self.sides[side]
        for _ in range(times * (not me.pair.failed)):
            self.immediates += kind != "write"
            imm = None if kind == "write" else self.immediates
            solicited = kind == "solicited"
            if me.post(length, offset, imm, signaled=signaled, solicited=solicited):
                data = me.source.data[offset : offset + length]
                self.expected[1 - side][offset : offset + length] = data

    @rule(side=SIDE, paused=st.sampled_from([False, False, True]))
    def pause(self, side: int, paused: bool) -> None:
        """A side takes nothing for now."""
        me = self.sides[side]
        me.core.pause(paused=paused)
        me.pair.responder.paused = paused

    # ---- the network ---------------------------------------------------------------------------

    def leave(self) -> None:
        """Both send what they want to."""
        for side, me in enumerate(self.sides):
            self.to[1 - side] += me.send()

    def carry(self, side: int, w: Wired, fate: str) -> None:
        """A packet arrives at a side, or not."""
        me = self.sides[side]
        if not self.starved:
            me.receives(16)
        trim = TRIMS.get(fate) if not is_answer(w) and w.packet.bth.opcode != Op.PROBE else None
        if trim:
            me.hear(w, trim=trim, keep=36)
            return
        for _ in range({"lost": 0, "twice": 2}.get(fate, 1)):
            me.hear(w, ce=fate == "marked")

    def pass_time(self, time: int) -> None:
        """Time passes at both."""
        now = self.sides[0].core.now + time
        for me in self.sides:
            me.wait(now)

    def turn(self, fates: Iterator[str], time: int) -> None:
        """Everything leaves, time passes, everything arrives or meets its fate."""
        self.broken = True
        self.leave()
        now, self.to = self.to, [[], []]
        self.pass_time(time)
        for side, packets in enumerate(now):
            for w in packets:
                self.carry(side, w, next(fates, "arrives"))
        self.leave()
        self.broken = False

    @rule(
        fates=st.lists(FATES, max_size=50),
        time=st.integers(1, TURN_NS) | st.sampled_from([400_000]),
        turns=st.integers(1, 6),
    )
    def turns(self, fates: list[str], time: int, turns: int) -> None:
        meet = iter(fates)
        for _ in range(turns):
            self.turn(meet, time)

    @rule(side=SIDE, share=st.integers(0, 100), swap=st.booleans())
    def out_of_order(self, side: int, share: int, swap: bool) -> None:
        """A part of what is under way arrives, the last first; the rest stays under way."""
        self.broken = True
        self.leave()
        count = len(self.to[side]) * share // 100
        now, self.to[side] = self.to[side][:count], self.to[side][count:]
        for w in reversed(now) if swap else now:
            self.carry(side, w, "arrives")
        self.broken = False

    @rule(side=SIDE)
    def cut(self, side: int) -> None:
        """All that is under way to a side is lost."""
        self.to[side] = []

    @rule(time=st.sampled_from([1000, 100_000, 1_000_000, 9_000_000]))
    def wait(self, time: int) -> None:
        self.broken = True
        self.pass_time(time)
        self.broken = False

    # ---- the end -------------------------------------------------------------------------------

    def busy(self) -> bool:
        """Whether work is outstanding somewhere."""
        return any(me.model.messages or me.model.waiting for me in self.sides)

    def teardown(self) -> None:
        """Faults are over: all that was posted ends in time, well or with a reason."""
        if not hasattr(self, "to") or self.broken:
            return
        limit = self.sides[0].core.now + 3_000_000_000
        for side in range(2):
            self.pause(side, False)
        while self.busy():
            assert self.sides[0].core.now < limit, "does not come to an end"
            self.turn(iter(()), TURN_NS)
            if not any(self.to):
                soon = min(me.core.deadline for me in self.sides)
                self.pass_time(max(0, min(soon, limit) - self.sides[0].core.now))
        failed = [me.pair.failed for me in self.sides]
        assert self.starved or not any(failed)
        for me, expected in zip(self.sides, self.expected, strict=True):
            me.check()
            assert any(failed) or me.inbox.data == expected


TestBoth: Any = BothMachine.TestCase
TestBoth.settings = budget(80, 25)
