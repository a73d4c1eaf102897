# SPDX-License-Identifier: BSD-2-Clause
"""The record of a run: one JSON object with the same keys whichever fabric it was.

They are listed in docs/reference/records.md.

Counters of samples grow from the start of the run; times are seconds from there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from .errors import FabricError, near
from .measure import Series

__all__ = [
    "COUNTERS",
    "SCHEMA",
    "TOTAL",
    "Check",
    "EvChange",
    "FaultMark",
    "FlowSum",
    "Record",
    "Sample",
    "dump",
    "load",
]

SCHEMA = 1
TOTAL = "total"
"""The flow of a sample that is the sum of all."""

COUNTERS = (
    *("delivered_bytes", "sent_bytes", "sent", "retransmitted", "spurious"),
    *("lost", "timeouts", "marked", "trimmed"),
)
"""Of a sample, what never falls."""

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class FlowSum:
    """One direction of one queue pair, over the whole run."""

    flow: str
    """`h1>h2`, `h1>h2#2`: its name in samples, too."""
    work: str
    src: int
    """Hosts count from 1 here, as in names."""
    dst: int
    bytes: int
    """Delivered into the receiver's memory."""
    start_s: float
    end_s: float
    """When its last byte arrived, or the run's end."""
    goodput_bps: float
    completions: int
    """Messages that arrived."""
    errors: int


@dataclass(frozen=True, slots=True)
class Sample:
    """Counters of one flow, of a piece of work, or of all, at a time."""

    t_s: float
    flow: str
    """TOTAL, the name of a piece of work, or of a flow."""
    delivered_bytes: int
    sent_bytes: int | None = None
    """Payload that left, again or for the first time."""
    sent: int | None = None
    """Packets, as all counters below."""
    retransmitted: int | None = None
    spurious: int | None = None
    """Arrived although they had arrived before: sent for nothing."""
    lost: int | None = None
    """As the sender inferred."""
    timeouts: int | None = None
    marked: int | None = None
    trimmed: int | None = None
    cwnd_bytes: int | None = None
    """Of one flow; None without congestion control."""
    planes: tuple[int, ...] | None = None
    """Bytes sent over each plane."""
    evs: tuple[int, ...] | None = None
    """Bytes sent over each EV of the profile, in its order."""
    ev_states: str | None = None
    """One letter for each EV: g good, s skip, b assumed bad, d denied; capital: a backup."""


@dataclass(frozen=True, slots=True)
class FaultMark:
    """Something went wrong, or right again."""

    t_s: float
    what: str
    on: bool
    capacity_bps: float
    """Payload the fabric can carry for this work from now on, at best."""
    paths: tuple[int, ...] = ()
    """EVs of the first flow that the fault strikes."""


@dataclass(frozen=True, slots=True)
class EvChange:
    """An EV changed its state at a host."""

    t_s: float
    host: int
    peer: int
    ev: int
    plane: int
    before: str
    after: str
    reason: str


@dataclass(frozen=True, slots=True)
class Check:
    """An expectation, and whether it was met."""

    words: str
    expression: str
    met: bool
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """A run."""

    scenario: str
    on: Literal["sim", "lab"]
    run: dict[str, Any]
    """seed, version, case, shape, transport, duration_s, capacity_bps, and what the fabric adds."""
    flows: tuple[FlowSum, ...] = ()
    samples: tuple[Sample, ...] = ()
    faults: tuple[FaultMark, ...] = ()
    events: tuple[EvChange, ...] = ()
    result: dict[str, Any] = field(default_factory=dict)
    expect: tuple[Check, ...] = ()
    verdict: str = ""
    compare: tuple[Record, ...] = ()
    schema: int = SCHEMA

    def series(self, flow: str = TOTAL) -> Series:
        """Bytes delivered over time. FabricError: nobody of that name was sampled."""
        return self.counter("delivered_bytes", flow)

    def ev_series(self, flow: str, ev: int) -> Series:
        """Bytes sent over one EV of a flow. FabricError."""
        rows = [
            (s.t_s, s.evs[ev])
            for s in self.samples
            if s.flow == flow and s.evs is not None and ev < len(s.evs)
        ]
        return self._series(rows, flow)

    def plane_series(self, plane: int, flow: str = TOTAL) -> Series:
        """Bytes sent over one plane (from 0). FabricError."""
        flow = self._sampled(flow)
        rows = [
            (s.t_s, s.planes[plane])
            for s in self.samples
            if s.flow == flow and s.planes is not None and plane < len(s.planes)
        ]
        return self._series(rows, flow)

    def counter(self, name: str, flow: str = TOTAL) -> Series:
        """Another counter over time. FabricError."""
        flow = self._sampled(flow)
        rows = [
            (s.t_s, int(getattr(s, name)))
            for s in self.samples
            if s.flow == flow and getattr(s, name) is not None
        ]
        return self._series(rows, flow)

    def _sampled(self, flow: str) -> str:
        """The only work there is, is all."""
        return TOTAL if {one.work for one in self.flows} == {flow} else flow

    def _series(self, rows: list[tuple[float, int]], flow: str) -> Series:
        if not rows:
            known = dict.fromkeys(s.flow for s in self.samples)
            raise FabricError(f"no such samples of {flow!r}; {near(flow, known)}")
        return Series.of(rows)


def dump(record: Record) -> str:
    """JSON, the same text for the same record. FabricError: a number is not finite."""
    try:
        return json.dumps(_bare(asdict(record)), allow_nan=False, separators=(",", ":")) + "\n"
    except ValueError as error:
        raise FabricError(f"a record cannot hold that: {error}") from None


def _bare(value: Any) -> Any:
    """Without keys whose value is None: counters that a fabric does not have."""
    if isinstance(value, dict):
        return {k: _bare(v) for k, v in value.items() if v is not None or k in _KEPT}
    if isinstance(value, list | tuple):
        return [_bare(v) for v in value]
    return value


_KEPT = frozenset(
    ("gap_ms", "to70_ms", "to95_ms", "back_ms", "reuse_ms", "finish_s", "spurious_share")
)
"""Results that are null when something never happened: that says something, too."""


def load(text: str) -> Record:
    """A record out of JSON. FabricError: it is none, or of another schema."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FabricError(f"is not JSON: {error}") from None
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise FabricError(f"is no record of schema {SCHEMA}")
    return _read(Record, value, "record")


def _read(cls: type[R], value: Any, where: str) -> R:
    if not isinstance(value, Mapping):
        raise FabricError(f"{where}: must be an object")
    hints = get_type_hints(cls)
    names = [f.name for f in fields(cls)]  # type: ignore[arg-type]
    for key in value:
        if key not in names:
            raise FabricError(f"{where}: unknown key {key}; {near(key, names)}")
    try:
        return cls(**{k: _typed(hints[k], v, f"{where}.{k}") for k, v in value.items()})
    except TypeError as error:
        raise FabricError(f"{where}: {str(error).partition('()')[2].strip()}") from None


def _typed(hint: Any, value: Any, where: str) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if origin is tuple:
        if not isinstance(value, list):
            raise FabricError(f"{where}: must be a list")
        return tuple(_typed(args[0], v, f"{where}[{i}]") for i, v in enumerate(value))
    if origin is Literal:
        if value not in args:
            raise FabricError(f"{where}: {value!r} is none of {', '.join(args)}")
        return value
    if origin is dict:
        if not isinstance(value, dict):
            raise FabricError(f"{where}: must be an object")
        return value
    if args:  # X | None
        return None if value is None else _typed(args[0], value, where)
    return _plain(hint, value, where) if hint in _PLAIN else _read(hint, value, where)


_PLAIN = (bool, int, float, str)


def _plain(hint: type, value: Any, where: str) -> Any:
    if hint is float and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    if type(value) is not hint:
        raise FabricError(f"{where}: {value!r:.40} is not of type {hint.__name__}")
    return value
