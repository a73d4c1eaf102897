# SPDX-License-Identifier: BSD-2-Clause
"""A script of faults as marks of a record: what each step strikes, and what capacity it leaves."""

from __future__ import annotations

from collections.abc import Mapping

from .capacity import framing, work_capacity_bps
from .fault import Fault
from .record import FaultMark
from .scenario import Case
from .shape import Link
from .timeline import LinkState, Step, link_states, settle
from .ways import Pair, path_numbers

__all__ = ["Marks"]


class Marks:
    """The faults of a case, step by step, whoever carries them out."""

    def __init__(self, case: Case, first: Pair, src: int, dst: int) -> None:
        """`first` is the queue pair of the first flow, which goes from `src` to `dst`."""
        self._case = case
        self.pair = (src, dst)
        """The hosts whose paths an `evN` counts."""
        shape = case.shape
        numbers = path_numbers(case, first)
        self._routes = [shape.route(src, dst, shape.path(src, dst, n)) for n in numbers]
        self.settled = settle(case.faults, shape, self.pair)
        """Without heals; `Step.index` counts in it."""
        self._active: dict[int, Fault] = {}
        self.states: dict[Link, LinkState] = {}
        """Of every link that is not as new."""

    def capacity_bps(self) -> float:
        """Payload the fabric can carry for the work of this case now, at best."""
        transport = self._case.transport
        share = framing(transport.path_mtu, timestamps=transport.timestamps)
        return share * work_capacity_bps(self._case.shape, self._case.works, self.states)

    def step(self, step: Step, at_s: float | None = None) -> FaultMark:
        """Take a step, in force at `at_s` (s; default: when it was due)."""
        if step.on:
            self._active[step.index] = step.fault
        else:
            self._active.pop(step.index, None)
        shape = self._case.shape
        self.states = link_states(self._active.values(), shape, self.pair)
        struck = link_states([step.fault], shape, self.pair)
        return FaultMark(
            t_s=step.at_ns / 1e9 if at_s is None else at_s,
            what=step.what,
            on=step.on,
            capacity_bps=self.capacity_bps(),
            paths=self._paths_through(struck),
        )

    def _paths_through(self, struck: Mapping[Link, LinkState]) -> tuple[int, ...]:
        return tuple(i for i, route in enumerate(self._routes) if any(x in struck for x in route))
