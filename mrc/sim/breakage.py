# SPDX-License-Identifier: BSD-2-Clause
"""A script of faults played on the emulation, step by step, and what capacity it leaves."""

from __future__ import annotations

from mrc.fabric.record import FaultMark
from mrc.fabric.scenario import Case
from mrc.fabric.script import Marks
from mrc.fabric.shape import Link
from mrc.fabric.shape import Tier as Where
from mrc.fabric.timeline import LinkState, Step, steps

from ._fab import Emulation
from ._tables import Knob, Tier
from .traffic import Traffic

__all__ = ["Script"]

_AS_NEW = LinkState()


class Script:
    """The faults of a case. `next_ns`, then `play`, until nothing is left."""

    def __init__(self, case: Case, traffic: Traffic) -> None:
        flow = next(iter(traffic.flows.values()))
        self._marks = Marks(case, traffic.pairs[flow.index // 2], flow.src, flow.dst)
        self._steps = steps(self._marks.settled, case.run.duration_ns)
        self._next = next(self._steps, None)

    @property
    def next_ns(self) -> int | None:
        """When the next step is due."""
        return None if self._next is None else self._next.at_ns

    def capacity_bps(self) -> float:
        """Payload the fabric can carry for the work of this case now, at best."""
        return self._marks.capacity_bps()

    def play(self, emulation: Emulation, now_ns: int) -> list[FaultMark]:
        """Every step due by now."""
        marks = []
        while self._next is not None and self._next.at_ns <= now_ns:
            marks.append(self._step(emulation, self._next))
            self._next = next(self._steps, None)
        return marks

    def _step(self, emulation: Emulation, step: Step) -> FaultMark:
        was = self._marks.states
        mark = self._marks.step(step)
        states = self._marks.states
        for link in {**was, **states}:
            before, after = was.get(link, _AS_NEW), states.get(link, _AS_NEW)
            if before != after:
                _change(emulation, link, before, after)
        return mark


def _link_number(emulation: Emulation, link: Link) -> int:
    src, dst = link.src, link.dst
    if src.tier is Where.HOST:
        return emulation.link(Tier.HOST_UP, link.plane, src.number)
    if dst.tier is Where.HOST:
        return emulation.link(Tier.HOST_DOWN, link.plane, dst.number)
    if src.tier is Where.T0:
        return emulation.link(Tier.T0_T1, link.plane, src.number, dst.number)
    return emulation.link(Tier.T1_T0, link.plane, dst.number, src.number)


def _change(emulation: Emulation, link: Link, before: LinkState, after: LinkState) -> None:
    number = _link_number(emulation, link)
    for knob, old, new in (
        (Knob.DOWN, before.down, after.down),
        (Knob.CUT, before.cut and not before.down, after.cut and not after.down),
        (Knob.LOSS_PPM, before.loss_ppm, after.loss_ppm),
        (Knob.CORRUPT_PPM, before.corrupt_ppm, after.corrupt_ppm),
        (Knob.TRIM_PPM, before.trim_ppm, after.trim_ppm),
        (Knob.DELAY_NS, before.delay_ns, after.delay_ns),
        (Knob.RATE_BPS, before.rate_bps or 0, after.rate_bps or 0),
    ):
        if old != new:
            emulation.set_link(number, knob, int(new))
