# SPDX-License-Identifier: BSD-2-Clause
"""A script of faults played on the emulation, step by step, and what capacity it leaves."""

from __future__ import annotations

from collections.abc import Mapping

from mrc.fabric.capacity import framing, work_capacity_bps
from mrc.fabric.fault import Fault
from mrc.fabric.record import FaultMark
from mrc.fabric.scenario import Case
from mrc.fabric.shape import Link
from mrc.fabric.shape import Tier as Where
from mrc.fabric.timeline import LinkState, Step, link_states, settle, steps

from ._fab import Emulation
from ._tables import Knob, Tier
from .setup import path_numbers
from .traffic import Traffic

__all__ = ["Script"]

_AS_NEW = LinkState()


class Script:
    """The faults of a case. `next_ns`, then `play`, until nothing is left."""

    def __init__(self, case: Case, traffic: Traffic) -> None:
        self._case = case
        flow = next(iter(traffic.flows.values()))
        self._pair = (flow.src, flow.dst)
        numbers = path_numbers(case, traffic.pairs[flow.index // 2])
        shape = case.shape
        self._routes = [shape.route(*self._pair, shape.path(*self._pair, n)) for n in numbers]
        self._steps = steps(settle(case.faults, shape, self._pair), case.run.duration_ns)
        self._next = next(self._steps, None)
        self._active: dict[int, Fault] = {}
        self._set: dict[Link, LinkState] = {}

    @property
    def next_ns(self) -> int | None:
        """When the next step is due."""
        return None if self._next is None else self._next.at_ns

    def capacity_bps(self) -> float:
        """Payload the fabric can carry for the work of this case now, at best."""
        transport = self._case.transport
        share = framing(transport.path_mtu, timestamps=transport.timestamps)
        return share * work_capacity_bps(self._case.shape, self._case.works, self._set)

    def play(self, emulation: Emulation, now_ns: int) -> list[FaultMark]:
        """Every step due by now."""
        marks = []
        while self._next is not None and self._next.at_ns <= now_ns:
            marks.append(self._step(emulation, self._next))
            self._next = next(self._steps, None)
        return marks

    def _step(self, emulation: Emulation, step: Step) -> FaultMark:
        if step.on:
            self._active[step.index] = step.fault
        else:
            del self._active[step.index]
        shape = self._case.shape
        states = link_states(self._active.values(), shape, self._pair)
        for link in {**self._set, **states}:
            before, after = self._set.get(link, _AS_NEW), states.get(link, _AS_NEW)
            if before != after:
                _change(emulation, link, before, after)
        self._set = states
        struck = link_states([step.fault], shape, self._pair)
        return FaultMark(
            t_s=step.at_ns / 1e9,
            what=step.what,
            on=step.on,
            capacity_bps=self.capacity_bps(),
            paths=self._paths_through(struck),
        )

    def _paths_through(self, struck: Mapping[Link, LinkState]) -> tuple[int, ...]:
        return tuple(i for i, route in enumerate(self._routes) if any(x in struck for x in route))


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
