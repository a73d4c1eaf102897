# SPDX-License-Identifier: BSD-2-Clause
"""The C send tracker beside the model, between it and the model's receiver a bad network."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mrc.model import psn, sack
from mrc.model.rxtrack import Receiver, Verdict
from mrc.model.txtrack import Sender, State
from mrc.model.wire import Seth
from tests.oracle.txtrack_core import CoreSender

EVS = 3


class TxMachine(RuleBasedStateMachine):
    """The network holds transmissions and SACKs, and loses, delays and repeats both."""

    core: CoreSender
    model: Sender
    peer: Receiver

    @initialize(
        first=st.integers(0, 0xFFFFFF) | st.integers(0xFFFFC0, 0xFFFFFF), units=st.integers(1, 3)
    )
    def start(self, first: int, units: int) -> None:
        self.model = Sender(first, units * 128)
        self.core = CoreSender(first, units * 128, EVS)
        self.peer = Receiver(first, units * 128)
        self.now = 0
        self.data: list[tuple[int, bool]] = []  # PSN, BTH.rtx
        self.sacks: list[tuple[Seth, int | None]] = []  # with the PSN it answers, if it has rtx set

    def send(self, number: int, ev: int, cls: int) -> None:
        self.now += 100
        self.core.sent(number, ev, cls, self.now)
        self.model.on_sent(number, ev, cls, self.now)
        self.data.append((number, self.model.packets[number].rtx > 0))

    @rule(evs=st.lists(st.integers(0, EVS - 1), min_size=1, max_size=40))
    def send_new(self, evs: list[int]) -> None:
        for ev in evs:
            if self.model.may_send_new():
                self.send(self.model.max_sent + 1, ev, 0)

    @precondition(lambda self: self.model.next_lost() is not None)
    @rule(evs=st.lists(st.integers(0, EVS - 1), min_size=1, max_size=10), cls=st.integers(0, 1))
    def send_again(self, evs: list[int], cls: int) -> None:
        for ev in evs:
            number = self.model.next_lost()
            if number is not None:
                self.send(number, ev, cls)

    @precondition(lambda self: self.data)
    @rule(which=st.integers(0, 999), times=st.integers(1, 10), keep=st.booleans())
    def deliver(self, which: int, times: int, keep: bool) -> None:
        """Some packets arrive, each answered by a SACK; kept ones will arrive again."""
        for _ in range(min(times, len(self.data))):
            place = which % len(self.data)
            number, rtx = self.data[place] if keep else self.data.pop(place)
            if self.peer.verdict(psn.wrap(number)) is Verdict.NEW:
                self.peer.accept(psn.wrap(number), 1064, ar=False, last=False)
            self.answer(number, rtx=rtx)

    def answer(self, number: int, *, rtx: bool) -> None:
        said = self.peer.expected_sack()
        self.peer.unreported -= said.psns(self.peer.cack)
        seth = Seth(
            ack_psn_offset=number - self.peer.cack,
            cack_psn=psn.wrap(self.peer.cack),
            sack_offset=said.offset,
            sack_bitmap=said.bitmap,
        )
        self.sacks.append((seth, number if rtx else None))

    @precondition(lambda self: self.data)
    @rule(which=st.integers(0, 999))
    def drop(self, which: int) -> None:
        self.data.pop(which % len(self.data))

    @precondition(lambda self: self.sacks)
    @rule(which=st.integers(0, 999), lose=st.booleans())
    def hear(self, which: int, lose: bool) -> None:
        """SACKs come in any order, some never."""
        seth, echoed = self.sacks.pop(which % len(self.sacks))
        if not lose:
            self.read(seth, echoed)

    def read(self, seth: Seth, echoed: int | None) -> None:
        told = sack.read(seth, self.model.unack)
        news = self.core.sack(told, echoed)
        assert news == self.model.on_sack(told, echoed)

    @precondition(lambda self: self.model.in_state(State.INFLIGHT))
    @rule(which=st.integers(0, 999))
    def time_out(self, which: int) -> None:
        waiting = self.model.in_state(State.INFLIGHT)
        number = waiting[which % len(waiting)]
        self.core.lose(number)
        self.model.on_lost(number)

    @rule()
    def infer(self) -> None:
        """The per-path rule, by the C side's own figures (B.10)."""
        proven = set()
        for ev in range(EVS):
            known = self.core.tracker.ev[ev]
            for cls in (0, 1):
                for number in self.core.in_flight_on(ev, cls):
                    slot = self.core.lib.mrc_txtrack_find(self.core.tracker, {"v": number})
                    if known.acked_any[cls] and known.acked_order[cls] > slot.order:
                        proven.add(number)
        assert proven == {psn.wrap(n) for n in self.model.overtaken()}
        for number in self.model.overtaken():
            self.core.lose(number)
            self.model.on_lost(number)

    @invariant()
    def same_state(self) -> None:
        tracker, model = self.core.tracker, self.model
        assert (tracker.unack.v, tracker.max_sent.v) == (
            psn.wrap(model.unack),
            psn.wrap(model.max_sent),
        )
        waiting = model.in_state(State.INFLIGHT)
        assert self.core.in_flight() == [psn.wrap(n) for n in waiting]
        for ev in range(EVS):
            for cls in (0, 1):
                mine = [
                    n for n in waiting if (model.packets[n].ev, model.packets[n].cls) == (ev, cls)
                ]
                assert self.core.in_flight_on(ev, cls) == [psn.wrap(n) for n in mine]
        lost = model.next_lost()
        assert self.core.next_lost() == (None if lost is None else psn.wrap(lost))
        assert tracker.inflight_count == len(waiting)
        assert tracker.lost_count == len(model.in_state(State.LOST))
        newest = max((sent.time_ns for sent in model.arrived), default=0)
        assert tracker.newest_acked_ns == newest

    @invariant()
    def nothing_is_believed_that_is_not_so(self) -> None:
        believed = {n for n, sent in self.model.packets.items() if sent.state is State.ACKED}
        assert believed <= set(self.peer.got) | {n for n in believed if n <= self.peer.cack}
        assert self.model.unack <= self.peer.cack

    def teardown(self) -> None:
        """Whatever was lost, sending again what is unknown ends with all known received."""
        if not hasattr(self, "model"):
            return
        for _ in range(3):
            for number in self.model.in_state(State.INFLIGHT):
                self.core.lose(number)
                self.model.on_lost(number)
            while (again := self.model.next_lost()) is not None:
                self.send(again, 0, 1)
            for number, rtx in self.data:
                if self.peer.verdict(psn.wrap(number)) is Verdict.NEW:
                    self.peer.accept(psn.wrap(number), 1064, ar=False, last=False)
                self.answer(number, rtx=rtx)
            self.data.clear()
            for seth, echoed in self.sacks:
                self.read(seth, echoed)
            self.sacks.clear()
            self.same_state()
        assert self.model.unack == self.model.max_sent
        assert self.core.lib.mrc_txtrack_outstanding(self.core.tracker) == 0


TestTxTrack: Any = TxMachine.TestCase
TestTxTrack.settings = settings(
    max_examples=80, stateful_step_count=40, deadline=None, report_multiple_bugs=False
)
