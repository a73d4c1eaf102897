# SPDX-License-Identifier: BSD-2-Clause
"""What has been seen so far: the state behind the view and the summary. No input, no output."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mrc.lab import Spine

HISTORY = 120
USABLE = ("GOOD", "SKIP")


def is_turn(event: Mapping[str, Any]) -> bool:
    """Whether the event takes a path out of use, or back: a congestion mark does neither."""
    before, after = event["from"], event["to"]
    return before != after and not (before in USABLE and after in USABLE)


@dataclass
class PathRow:
    """One path as the sender reports it; the state is None before the first report."""

    ev: int
    state: str | None = None
    bytes: int = 0
    bits_per_second: float = 0.0


@dataclass
class SenderClock:
    """Maps the sender's times (seconds from its start) to the monotonic clock.

    A report tells its own end in the sender's time and arrives a little later; the earliest arrival
    ever seen, relative to that, is the offset. What remains is the delay of the fastest report,
    well below a millisecond. A time once told stays as it was told, though a later report may set
    the clock better: the log and the summary give one figure for one event.
    """

    offset: float = float("inf")
    _told: dict[float, float] = field(default_factory=dict)

    def seen(self, sender_s: float, arrival: float) -> None:
        """A report that ended at ``sender_s`` has arrived."""
        self.offset = min(self.offset, arrival - sender_s)

    def monotonic(self, sender_s: float) -> float:
        """The sender's time on the monotonic clock."""
        return self._told.setdefault(sender_s, self.offset + sender_s)


@dataclass
class Story:
    """Everything known. Times are on the monotonic clock, ``begin`` is zero for people."""

    evs: Sequence[int]
    title: str
    places: Mapping[int, Spine]
    """Where each EV goes; empty where there are no switches."""
    begin: float = field(default_factory=time.monotonic)
    phase: str = "starting"
    log: list[tuple[float, str]] = field(default_factory=list)
    goodput: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY))
    peak: float = 0.0
    clock: SenderClock = field(default_factory=SenderClock)
    cut_spine: Spine | None = None
    cut_at: float | None = None
    heal_at: float | None = None
    steady: dict[int, int] = field(default_factory=dict)
    """Bytes per EV in the whole intervals before the cut."""
    flowing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the transfer of this phase has moved its first bytes."""
    paths: dict[int, PathRow] = field(init=False)
    _answered: set[str] = field(default_factory=set)
    """Which of "cut" and "heal" the cut path has answered."""

    def __post_init__(self) -> None:
        """One row per path, in the order of the EVs."""
        self.paths = {ev: PathRow(ev) for ev in sorted(self.evs)}

    def say(self, text: str, at: float | None = None) -> None:
        """Add a line to the log."""
        self.log.append((time.monotonic() if at is None else at, text))

    @property
    def usable(self) -> int:
        """How many paths carry data, as the sender last reported."""
        return sum(row.state in USABLE for row in self.paths.values())

    @property
    def cut_ev(self) -> int | None:
        """The EV whose spine was cut."""
        found = [ev for ev, place in self.places.items() if place == self.cut_spine]
        return found[0] if found else None

    def new_transfer(self, phase: str) -> None:
        """The next program run begins: its clock and its counters are new."""
        self.phase = phase
        self.clock = SenderClock()
        self.goodput.clear()
        self.flowing.clear()
        for row in self.paths.values():
            row.bytes, row.bits_per_second, row.state = 0, 0.0, None

    def interval(self, data: Mapping[str, Any], arrival: float) -> None:
        """One report of the sender."""
        total = data["sum"]
        self.clock.seen(total["end"], arrival)
        self.goodput.append(total["bits_per_second"])
        self.peak = max(self.peak, total["bits_per_second"])
        seconds = total["seconds"]
        if total["bytes"]:
            self.flowing.set()
        for path in data["paths"]:
            row = self.paths.get(path["ev"])
            if row is None:
                continue
            row.state = path["state"]
            row.bytes += path["bytes_sent"]
            row.bits_per_second = path["bytes_sent"] * 8 / seconds if seconds else 0.0
            if self.cut_at is None:
                self.steady[row.ev] = self.steady.get(row.ev, 0) + path["bytes_sent"]
        self._events(data["mrc"]["ev_events"])

    def _events(self, events: Sequence[Mapping[str, Any]]) -> None:
        """One line for the path whose spine was cut, one for all others that changed alike."""
        groups: dict[tuple[str, str, str, bool], list[Mapping[str, Any]]] = {}
        for event in events:
            # Every congestion mark makes a SKIP; the view shows the state, the log need not.
            if is_turn(event):
                key = event["from"], event["to"], event["reason"], event["ev"] == self.cut_ev
                groups.setdefault(key, []).append(event)
        for (before, after, reason, _), alike in sorted(groups.items(), key=_first_time):
            at = self.clock.monotonic(alike[0]["t"])
            evs = {event["ev"] for event in alike}
            who = self.name(alike[0]["ev"]) if len(evs) == 1 else f"{len(evs)} paths"
            since = self._since(alike[0]["ev"], at, after) if len(evs) == 1 else ""
            self.say(f"{who} {before} -> {after} ({reason}){since}", at)

    def _since(self, ev: int, at: float, after: str) -> str:
        """How long after the cut, or the heal, the first change of the cut path came."""
        told = {
            "ASSUMED_BAD": (self.cut_at, "cut"),
            **dict.fromkeys(USABLE, (self.heal_at, "heal")),
        }
        since, what = told.get(after, (None, ""))
        if ev != self.cut_ev or what in self._answered or since is None or at < since:
            return ""
        self._answered.add(what)
        return f", {(at - since) * 1e3:.1f} ms after the {what}"

    def name(self, ev: int) -> str:
        """A path in words."""
        if ev not in self.places:
            return f"path {ev}"
        plane, spine = self.places[ev]
        return f"path {ev} (plane {plane}, spine {spine})"


def _first_time(group: tuple[Any, list[Mapping[str, Any]]]) -> float:
    return float(group[1][0]["t"])
