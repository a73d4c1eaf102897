# SPDX-License-Identifier: BSD-2-Clause
"""The C PathTable beside the model: same feedback to both, every choice of the C side judged."""

from collections import deque
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from mrc.model.path import ALL_PLANES, Entry, Limits, PathTable, State
from tests.oracle.path_core import CorePath

PLANES = 4
TIMEOUT_NS = 3_000_000  # answers in the test come within half of it, so it does not adapt
EVENTS = 4
MASKS = st.just(ALL_PLANES) | st.integers(0, (1 << PLANES + 1) - 1)
ENTRY = st.builds(Entry, plane=st.integers(1, PLANES), backup=st.booleans())


class PathMachine(RuleBasedStateMachine):
    """Numbers of entries are drawn large and taken modulo the table's size."""

    core: CorePath
    model: PathTable

    @initialize(
        entries=st.lists(ENTRY, min_size=1, max_size=12).filter(
            lambda es: not all(e.backup for e in es)
        ),
        floor=st.integers(0, 12),
        successes=st.integers(1, 3),
        seed=st.integers(0, 1 << 64 - 1),
        reverse=st.integers(0, 2),
    )
    def start(
        self, entries: list[Entry], floor: int, successes: int, seed: int, reverse: int
    ) -> None:
        limits = Limits(floor % (len(entries) + 1), successes)
        self.model = PathTable(entries, limits)
        self.core = CorePath(
            entries,
            limits,
            seed=seed,
            probe_timeout_ns=TIMEOUT_NS,
            event_ring=EVENTS,
            reverse=reverse,
        )
        self.reflect = reverse == self.core.lib.MRC_REVERSE_REFLECT
        self.now = 1_000
        self.events: deque[tuple[int, State, State, int]] = deque()
        self.drops = self.seen = 0

    # ---- helpers ----

    def entry(self, number: int) -> int:
        return number % len(self.model.entries)

    def promoted(self, condemned: int) -> int | None:
        """Return who took that entry's place: in its plane, a backup no longer."""
        plane, now = self.model.entries[condemned].plane, self.core.roles()
        entries = enumerate(self.model.entries)
        found = [i for i, e in entries if e.plane == plane and e.backup and not now[i][1]]
        return found[0] if found else None

    def settle(self) -> None:
        """Verdicts held back may be carried out when there is room; the C side says which."""
        for i in reversed(list(self.model.suspects)):
            if self.core.state_of()[i] is State.ASSUMED_BAD:
                self.model.on_deferred_verdict(i, self.promoted(i), self.now)

    def collect(self) -> None:
        """What the model saw becomes events, in a queue that can be full (C.6)."""
        for change in self.model.changes[self.seen :]:
            if not change.reported:
                continue
            if len(self.events) == EVENTS:
                self.drops += 1
                continue
            ev = CorePath.wire_value(change.entry)
            self.events.append((ev, change.before, change.after, self.drops))
            self.drops = 0
        self.seen = len(self.model.changes)

    # ---- feedback ----

    @rule(number=st.integers(0, 99), mark=st.integers(0, 3))
    def mark(self, number: int, mark: int) -> None:
        i = self.entry(number)
        self.core.on_mark(i, mark, self.now)
        if mark == 1:
            self.model.on_congestion(i, self.now)
        elif mark == 2:
            self.model.on_verdict(i, self.promoted(i), self.now)

    @rule(number=st.integers(0, 99))
    def trim(self, number: int) -> None:
        self.core.on_trim(self.entry(number), self.now)
        self.model.on_congestion(self.entry(number), self.now)

    @rule(number=st.integers(0, 99), age=st.sampled_from([0, 0, 1, 10_000_000]))
    def loss(self, number: int, age: int) -> None:
        i, sent = self.entry(number), max(self.now - age, 0)
        self.core.on_loss(i, self.core.lib.MRC_EV_R_LOSS, sent, self.now)
        self.model.on_loss(i, sent, self.promoted(i), self.now)

    @rule(order=st.randoms(use_true_random=False))
    def lose_everything(self, order: Random) -> None:
        """Down to the floor, with verdicts held back in this order."""
        numbers = list(range(len(self.model.entries)))
        order.shuffle(numbers)
        for number in numbers:
            self.loss(number, 0)

    @precondition(lambda self: self.bad_and_up())
    @rule(which=st.integers(0, 99), age=st.sampled_from([0, 1]))
    def heal_and_lose_again(self, which: int, age: int) -> None:
        """Its probes are answered; then it loses a packet sent right before or after that (F.2)."""
        bad = self.bad_and_up()
        i = bad[which % len(bad)]
        for _ in range(60):
            self.wait(100_000)
            for probe_id, probe in list(self.model.probes.items()):
                if probe.entry == i and self.now - probe.sent_ns < TIMEOUT_NS // 2:
                    self.core.on_probe(probe_id, 0, self.now)
                    self.model.on_probe_answer(probe_id, 0, self.now)
                    self.settle()
            if self.model.entries[i].state is not State.ASSUMED_BAD:
                break
            self.probe()
        self.loss(i, age)

    def bad_and_up(self) -> list[int]:
        entries = enumerate(self.model.entries)
        return [i for i, e in entries if e.state is State.ASSUMED_BAD and self.model.up(i)]

    @rule(number=st.integers(0, 99))
    def delivered(self, number: int) -> None:
        self.core.on_rtt(self.entry(number), 100_000)
        self.model.on_delivered(self.entry(number))

    @rule(number=st.integers(0, 99), state=st.sampled_from(list(State)))
    def control(self, number: int, state: State) -> None:
        i = self.entry(number)
        done = self.core.set_state(i, self.core.numbers[state], self.now)
        assert (done == 0) == (state in (State.GOOD, State.DENIED))
        if done == 0:
            self.model.set_state(i, state, self.now)
            self.settle()

    @rule(local=MASKS, remote=MASKS)
    def planes(self, local: int, remote: int) -> None:
        self.core.set_planes(local, remote)
        self.model.set_planes(local, remote)
        self.tick()  # a probe that fell due while the plane was down

    # ---- selection ----

    @rule(
        cursor=st.integers(0, 1),
        mask=MASKS,
        avoid=st.none() | st.integers(0, 99),
        times=st.integers(1, 3),
    )
    def select(self, cursor: int, mask: int, avoid: int | None, times: int) -> None:
        for _ in range(times):
            without = None if avoid is None else self.entry(avoid)
            self.judge(self.core.select(cursor, mask, without, self.now), mask, without)

    def judge(self, chosen: int | None, mask: int, avoid: int | None) -> None:
        states = self.core.state_of()
        restored = [i for i, e in enumerate(self.model.entries) if e.state is not states[i]]
        assert all(states[i] is State.GOOD for i in restored)
        self.model.on_select(chosen, restored, mask=mask, avoid=avoid, now_ns=self.now)

    @precondition(lambda self: self.model.active())
    @rule(cursor=st.integers(0, 1), rounds=st.integers(1, 4))
    def burst(self, cursor: int, rounds: int) -> None:
        """First serve what is skipped, then count a long run (D.6, D.7)."""
        for _ in range(2 * len(self.model.entries) * PLANES):
            if all(self.model.entries[i].state is State.GOOD for i in self.model.active()):
                break
            self.judge(self.core.select(cursor, ALL_PLANES, None, self.now), ALL_PLANES, None)
        assert all(self.model.entries[i].state is State.GOOD for i in self.model.active())
        run = []
        for _ in range(rounds * len(self.model.active())):
            chosen = self.core.select(cursor, ALL_PLANES, None, self.now)
            assert chosen is not None
            run.append(chosen)
        self.model.check_even(run, ALL_PLANES)

    @rule(plane=st.integers(0, PLANES))
    def select_control(self, plane: int) -> None:
        self.model.on_select_control(self.core.select_control(plane), plane)

    # ---- the way back ----

    @rule(number=st.none() | st.integers(0, 99), times=st.integers(1, 4))
    def answer_peer(self, number: int | None, times: int) -> None:
        """A request came on one of our EVs, or on one we do not have."""
        request = None if number is None else self.entry(number)
        for _ in range(times):
            self.model.on_answer(self.core.reverse(request), request, reflect=self.reflect)

    @rule(number=st.integers(0, 99))
    def reached(self, number: int) -> None:
        """An EV probe of ours was answered."""
        self.core.on_reverse(self.entry(number), 100_000)
        self.model.on_reached(self.entry(number))

    # ---- probes and time ----

    @rule()
    def probe(self) -> None:
        self.model.expire_probes(self.now, TIMEOUT_NS)
        due = self.core.probe_due(self.now)
        if due is not None:
            assert due[1] < 0x8000
            self.model.on_probe_sent(*due, self.now)

    @precondition(lambda self: self.model.probes)
    @rule(
        which=st.integers(0, 99),
        delay=st.integers(0, TIMEOUT_NS // 3),
        mark=st.sampled_from([0, 0, 0, 1, 2, 3]),
    )
    def answer(self, which: int, delay: int, mark: int) -> None:
        """Soon enough to leave the timeout alone, which follows the longest RTT seen."""
        probe_id = sorted(self.model.probes)[which % len(self.model.probes)]
        probe = self.model.probes[probe_id]
        if self.now + delay - probe.sent_ns > TIMEOUT_NS // 2:
            return
        self.wait(delay)
        answered = self.core.on_probe(probe_id, mark, self.now)
        assert answered == self.model.on_probe_answer(probe_id, mark, self.now) == probe.entry
        self.settle()

    @rule(probe_id=st.integers(0, 0xFFFF))
    def strange_answer(self, probe_id: int) -> None:
        if probe_id not in self.model.probes:
            assert self.core.on_probe(probe_id, 0, self.now) == 0xFFFF

    @rule(delay=st.integers(1, 2_000_000) | st.integers(1, 200_000_000))
    def wait(self, delay: int) -> None:
        """Tick at each deadline on the way, as the engine does."""
        end = self.now + delay
        while self.core.deadline() <= end:
            assert self.core.deadline() >= self.now
            self.now = max(self.now, self.core.deadline())
            self.tick()
        self.now = end
        self.tick()

    def tick(self) -> None:
        self.core.tick(self.now)
        self.model.expire_probes(self.now, TIMEOUT_NS)
        assert self.core.deadline() > self.now

    @rule()
    def poll_events(self) -> None:
        self.collect()
        assert self.core.events() == list(self.events)
        self.events.clear()

    # ---- always ----

    @invariant()
    def same_states(self) -> None:
        assert self.core.roles() == [(e.state, e.backup) for e in self.model.entries]
        assert self.core.active() == len(self.model.active())
        self.collect()

    def teardown(self) -> None:
        """Networks heal: with every probe answered, all bad paths come back (F.2)."""
        if not hasattr(self, "model"):
            return
        self.planes(ALL_PLANES, ALL_PLANES)
        end = self.now + 200_000_000 + TIMEOUT_NS
        while any(e.state is State.ASSUMED_BAD for e in self.model.entries):
            assert self.now < end, "a path that answers every probe is back within 200 ms"
            self.wait(100_000)
            while (due := self.core.probe_due(self.now)) is not None:
                self.model.on_probe_sent(*due, self.now)
                self.core.on_probe(due[1], 0, self.now)
                self.model.on_probe_answer(due[1], 0, self.now)
                self.settle()
        self.same_states()
        self.poll_events()


def test_a_late_answer_still_counts() -> None:
    """A slow path is not a dead one; and the next probe may take as long."""
    limits = Limits(min_active=0, probe_successes=1)
    core = CorePath([Entry(1), Entry(1)], limits, probe_timeout_ns=TIMEOUT_NS)
    core.on_loss(0, core.lib.MRC_EV_R_LOSS, 0, 0)
    due = core.probe_due(0)
    assert due is not None
    core.tick(10 * TIMEOUT_NS)
    assert core.on_probe(due[1], 0, 10 * TIMEOUT_NS) == due[0] == 0
    assert core.roles()[0] == (State.GOOD, False)
    assert core.on_probe(due[1], 0, 10 * TIMEOUT_NS) == 0xFFFF, "each counts once"


def test_ids_come_round() -> None:
    """Many unanswered probes of one path: ids are used again, the newest answer still heals."""
    model = PathTable([Entry(1), Entry(1)], Limits(min_active=0, probe_successes=1))
    core = CorePath(model.entries, model.limits, probe_timeout_ns=TIMEOUT_NS)
    core.on_loss(0, core.lib.MRC_EV_R_LOSS, 0, 0)
    model.on_loss(0, 0, None, 0)
    now = 0
    ids: list[int] = []
    while len(ids) < 20:
        model.expire_probes(now, TIMEOUT_NS)
        due = core.probe_due(now)
        if due is not None:
            model.on_probe_sent(*due, now)
            ids.append(due[1])
        now += 1_000_000
    assert len(set(ids)) < len(ids)
    assert core.on_probe(ids[-1], 0, now) == model.on_probe_answer(ids[-1], 0, now) == 0
    assert core.roles()[0] == (State.GOOD, False)


TestPath: Any = PathMachine.TestCase
TestPath.settings = settings(
    max_examples=100, stateful_step_count=30, deadline=None, report_multiple_bugs=False
)
