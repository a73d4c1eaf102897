# SPDX-License-Identifier: BSD-2-Clause
"""The C receive tracker beside the model."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mrc.model import psn
from mrc.model.rxtrack import Receiver, Verdict
from mrc.model.sack import SackMap
from tests.oracle.rxtrack_core import CoreReceiver

NOMINAL = st.integers(84, 4264)  # E.1
# Anywhere near the window, and often where a bitmap of 64 begins and ends.
DISTANCE = st.integers(-70, 1100) | st.sampled_from([1, 2, 3, 63, 64, 65, 66, 67, 128, 129])


class RxMachine(RuleBasedStateMachine):
    """Packets arrive in any order; SACKs leave at any time."""

    core: CoreReceiver
    model: Receiver

    @initialize(
        first=st.integers(0, 0xFFFFFF) | st.integers(0xFFFF00, 0xFFFFFF),
        units=st.integers(1, 8),
        spare=st.integers(0, 3),
    )
    def start(self, first: int, units: int, spare: int) -> None:
        self.model = Receiver(first, units * 128)
        self.core = CoreReceiver(first, units * 128, (units + spare) * 128)

    def arrive(self, number: int, nominal: int, *, ar: bool, last: bool) -> None:
        verdict = self.core.verdict(number)
        assert verdict is self.model.verdict(psn.wrap(number))
        if verdict is Verdict.NEW:
            moved = self.core.accept(number, nominal, ar=ar, last=last)
            assert moved == self.model.accept(psn.wrap(number), nominal, ar=ar, last=last)

    @rule(e=DISTANCE, nominal=NOMINAL, ar=st.booleans(), last=st.booleans())
    def packet(self, e: int, nominal: int, ar: bool, last: bool) -> None:
        self.arrive(self.model.cack + e, nominal, ar=ar, last=last)

    @rule(e=st.integers(-(1 << 23), (1 << 23) - 1), near=st.sampled_from([0, 1 << 22, -(1 << 22)]))
    def far_packet(self, e: int, near: int) -> None:
        """Judged only: most are outside the window."""
        for number in (self.model.cack + e, self.model.cack + self.model.window + near + e % 3 - 1):
            assert self.core.verdict(number) is self.model.verdict(psn.wrap(number))

    @rule(
        start=st.integers(1, 1000),
        length=st.integers(1, 200),
        holes=st.sets(st.integers(0, 200), max_size=8),
        nominal=NOMINAL,
        ends=st.integers(1, 20),
    )
    def burst(self, start: int, length: int, holes: set[int], nominal: int, ends: int) -> None:
        """A run of packets with holes; every ends-th closes a message."""
        cack = self.model.cack
        for i in range(length):
            if i not in holes:
                last = (cack + i) % ends == 0
                self.arrive(cack + start + i, nominal, ar=last, last=last)

    @rule(times=st.integers(1, 12), nominal=NOMINAL)
    def fill_holes(self, times: int, nominal: int) -> None:
        for _ in range(times):
            self.arrive(self.model.cack + 1, nominal, ar=False, last=True)

    @rule()
    def sack(self) -> None:
        said, more = self.core.sack()
        self.model.on_sack(said, more=more)

    @rule()
    def sack_until_all_is_told(self) -> None:
        """A walk over the whole window takes no more SACKs than it has maps, and one (B.4)."""
        for _ in range(self.model.window // 64 + 1):
            said, more = self.core.sack()
            self.model.on_sack(said, more=more)
            if not more:
                return
        raise AssertionError("more and more")

    @invariant()
    def same_counters(self) -> None:
        m = self.model
        assert self.core.counters == (
            psn.wrap(m.cack),
            psn.wrap(m.max_rcv),
            m.ooo_count,
            m.rcvd_units,
        )


TestRxTrack: Any = RxMachine.TestCase
TestRxTrack.settings = settings(
    max_examples=120, stateful_step_count=30, deadline=None, report_multiple_bugs=False
)


def test_worked_example() -> None:
    """B.4: PSN 0..11 sent, 5 and 8 missing (vector sack-gaps)."""
    model, core = Receiver(0, 1024), CoreReceiver(0, 1024, 1024)
    for number in set(range(12)) - {5, 8}:
        model.accept(number, 1064, ar=False, last=False)
        core.accept(number, 1064, ar=False, last=False)
    assert core.sack() == (SackMap(1, 0x76), False)
    assert model.expected_sack() == SackMap(1, 0x76)
    assert core.counters[2] == model.ooo_count == 5


def test_received_bytes_wrap() -> None:
    """24 bits of 256 bytes are 4 GiB; the tracker counts on."""
    model, core = Receiver(0, 128), CoreReceiver(0, 128, 128)
    for number in range(70_000):
        model.accept(psn.wrap(number), 65_535, ar=False, last=False)
        core.accept(number, 65_535, ar=False, last=False)
    assert model.rcvd_bytes > 1 << 32
    assert core.counters[3] == model.rcvd_units


@pytest.mark.parametrize("first", [0, 0xFFFFC0])
def test_every_pair_of_arrivals(first: int) -> None:
    """All distances up to two bitmaps: SACKs are right, and tell everything before they stop."""
    core = CoreReceiver(first, 256, 256)
    for low in range(1, 140):
        for high in range(low + 1, 140, 1 if low < 5 else 3):
            model = Receiver(first, 256)
            core.restart(first, 256)
            for number in (first - 1 + low, first - 1 + high):
                model.accept(psn.wrap(number), 84, ar=False, last=False)
                core.accept(number, 84, ar=False, last=False)
            more = True
            while more:
                said, more = core.sack()
                model.on_sack(said, more=more)
            assert not model.unreported
