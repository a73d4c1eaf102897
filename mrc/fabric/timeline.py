# SPDX-License-Identifier: BSD-2-Clause
"""A script of faults as changes in order of time, and what they make of each link together.

Every fabric plays the same script: it takes `steps`, and after each one sets the links of that
fault to `link_states` of all faults in force. So faults that meet on one link mean the same
everywhere: losses are independent, delays add up, the lowest rate holds, and one cut is enough.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from mrc.units import MILLION

from .fault import Fault, FaultKind
from .shape import FabricShape, Link, Switch

__all__ = ["LinkState", "Step", "link_states", "settle", "steps", "struck"]


@dataclass(frozen=True, slots=True)
class Step:
    """A fault begins (on) or ends at a time. A flap is many steps."""

    at_ns: int
    on: bool
    fault: Fault
    index: int
    """Of the fault in the settled script."""

    @property
    def what(self) -> str:
        """`fail p1.t1.2`, `end of fail p1.t1.2`: for marks in a figure and in a record."""
        text = str(replace(self.fault, at_ns=0, until_ns=None))
        return text if self.on else f"end of {text}"


@dataclass(frozen=True, slots=True)
class LinkState:
    """What all faults together make of one direction of a cable."""

    cut: bool = False
    """Packets vanish."""
    down: bool = False
    """The carrier is lost, too: both ends see it."""
    loss_ppm: int = 0
    corrupt_ppm: int = 0
    trim_ppm: int = 0
    delay_ns: int = 0
    """On top of the link's own."""
    rate_bps: int | None = None
    """None: its own."""


def settle(
    faults: Iterable[Fault],
    shape: FabricShape,
    pair: tuple[int, int] = (0, 1),
) -> tuple[Fault, ...]:
    """The script without heals: each fault ends by itself. FabricError: a target does not exist.

    A heal ends what has begun by then and lies wholly within the heal's target.
    """
    script = list(faults)
    for fault in script:
        fault.check(shape, pair)
    heals = sorted((f for f in script if f.kind is FaultKind.HEAL), key=lambda f: f.at_ns)
    covers = [(h.at_ns, _reach(h.target.parts(shape, pair), shape)) for h in heals]
    settled = []
    for fault in script:
        if fault.kind is FaultKind.HEAL:
            continue
        own = _reach(struck(fault, shape, pair), shape)
        ends = [at_ns for at_ns, cover in covers if at_ns > fault.at_ns and own <= cover]
        if fault.until_ns is not None:
            ends.append(fault.until_ns)
        if ends and fault.kind is not FaultKind.REBOOT:
            fault = replace(fault, until_ns=min(ends))  # noqa: PLW2901 - the same fault, ended
        settled.append(fault)
    return tuple(settled)


def _reach(parts: Iterable[Link | Switch], shape: FabricShape) -> frozenset[Link]:
    return frozenset(_links(parts, shape))


def struck(
    fault: Fault, shape: FabricShape, pair: tuple[int, int] = (0, 1)
) -> tuple[Link | Switch, ...]:
    """The links, and for FAIL, DOWN, FLAP and REBOOT the switches, that a fault strikes."""
    if fault.kind in (FaultKind.LOSS, FaultKind.CORRUPT, FaultKind.TRIM, FaultKind.DELAY):
        return fault.target.gate(shape, pair)
    return fault.target.parts(shape, pair)


def steps(settled: Sequence[Fault], duration_ns: int) -> Iterator[Step]:
    """Every begin and end before `duration_ns`, in order of time, lazily; ends before begins."""
    return heapq.merge(
        *(_steps_of(fault, index, duration_ns) for index, fault in enumerate(settled)),
        key=lambda s: (s.at_ns, s.on, s.index),
    )


def _steps_of(fault: Fault, index: int, duration_ns: int) -> Iterator[Step]:
    end = duration_ns if fault.until_ns is None else min(fault.until_ns, duration_ns)
    away = fault.value if fault.kind is FaultKind.REBOOT else None
    period = fault.value if fault.kind is FaultKind.FLAP else None
    if period is not None:
        away = period // 2
    begin = fault.at_ns
    while begin < end:
        yield Step(begin, True, fault, index)
        stop = fault.until_ns if away is None else begin + away
        if stop is not None and fault.until_ns is not None:
            stop = min(stop, fault.until_ns)
        if stop is not None and stop < duration_ns:
            yield Step(stop, False, fault, index)
        if period is None:
            return
        begin += period


def link_states(
    active: Iterable[Fault],
    shape: FabricShape,
    pair: tuple[int, int] = (0, 1),
) -> dict[Link, LinkState]:
    """The state of each link that some fault in force strikes; others are as new.

    A switch that is gone is all its links, both directions.
    """
    found: dict[Link, LinkState] = {}
    for fault in active:
        for link in _links(struck(fault, shape, pair), shape):
            found[link] = _joined(found.get(link, LinkState()), fault)
    return found


def _links(parts: Iterable[Link | Switch], shape: FabricShape) -> Iterator[Link]:
    seen: dict[Link, None] = {}
    for part in parts:
        if isinstance(part, Link):
            seen[part] = None
        else:
            for link in shape.links_of(part):
                seen[link] = None
    yield from seen


def _joined(state: LinkState, fault: Fault) -> LinkState:
    value = fault.value
    match fault.kind:
        case FaultKind.FAIL:
            return replace(state, cut=True)
        case FaultKind.FLAP if fault.silent:
            return replace(state, cut=True)
        case FaultKind.DOWN | FaultKind.FLAP | FaultKind.REBOOT:
            return replace(state, cut=True, down=True)
        case FaultKind.LOSS:
            return replace(state, loss_ppm=_either(state.loss_ppm, value))
        case FaultKind.CORRUPT:
            return replace(state, corrupt_ppm=_either(state.corrupt_ppm, value))
        case FaultKind.TRIM:
            return replace(state, trim_ppm=_either(state.trim_ppm, value))
        case FaultKind.DELAY:
            return replace(state, delay_ns=state.delay_ns + value)
        case FaultKind.RATE:
            lowest = value if state.rate_bps is None else min(state.rate_bps, value)
            return replace(state, rate_bps=lowest)
        case FaultKind.HEAL:
            return state


def _either(a_ppm: int, b_ppm: int) -> int:
    return a_ppm + b_ppm - a_ppm * b_ppm // MILLION
