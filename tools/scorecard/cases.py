# SPDX-License-Identifier: BSD-2-Clause
"""What happens to the fabric, and when: the same script for every peer. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

PLANES = 4
VICTIM = 1
"""The plane that suffers; protocols with one path have it there."""

NEXT_TO_NO_LOSS = 1e-9
"""The fabric does all it does for loss, a draw for each packet too, but for the loss."""


@dataclass(frozen=True, slots=True)
class Event:
    """One change of the fabric, ``at_s`` seconds after the measured time began."""

    at_s: float
    do: str
    """``fail`` and ``heal``: packets vanish, carrier stays; ``down`` and ``up``: carrier is lost;
    ``loss``: from now on that share of packets."""
    planes: tuple[int, ...] = (VICTIM,)
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class Case:
    """A script. What ``before`` lists is in force before anybody sends."""

    key: str
    title: str
    seconds: float
    """Measured time; ``warm_s`` of traffic come before it and do not count."""
    events: tuple[Event, ...] = ()
    before: tuple[Event, ...] = ()
    warm_s: float = 2.0

    @property
    def fault(self) -> Event | None:
        """The first thing to go wrong while we look, if there is one to recover from."""
        return next((e for e in self.events if e.do in ("fail", "down", "loss")), None)

    @property
    def mend(self) -> Event | None:
        """The last thing mended."""
        return next((e for e in reversed(self.events) if e.do in ("heal", "up")), None)


def usable_planes(case: Case, planes: frozenset[int]) -> list[tuple[float, int]]:
    """(from when, how many of these planes can carry), in order, beginning at 0 s.

    A plane that loses a few packets counts: what it costs is the question.
    """
    gone: set[int] = set()
    steps = [(0.0, len(planes))]
    for event in case.events:
        if event.do in ("fail", "down"):
            gone |= set(event.planes)
        elif event.do in ("heal", "up"):
            gone -= set(event.planes)
        steps.append((event.at_s, len(planes - gone)))
    return steps


def mean_planes(case: Case, planes: frozenset[int]) -> float:
    """Planes that can carry, averaged over the measured time."""
    steps = [*usable_planes(case, planes), (case.seconds, 0)]
    total = sum(n * (steps[i + 1][0] - t) for i, (t, n) in enumerate(steps[:-1]))
    return total / case.seconds


def _flap(seconds: int) -> tuple[Event, ...]:
    """Every second the port is gone for half of it."""
    return tuple(
        e for k in range(seconds) for e in (Event(k + 0.25, "down"), Event(k + 0.75, "up"))
    )


def _all() -> tuple[int, ...]:
    return tuple(range(1, PLANES + 1))


CASES = (
    Case("clean", "clean", 5.0),
    Case(
        "single",
        "clean, trains cut up",
        5.0,
        before=(Event(0, "loss", _all(), NEXT_TO_NO_LOSS),),
    ),
    Case("loss", "1 % loss on every path", 5.0, before=(Event(0, "loss", _all(), 0.01),)),
    Case("loss-one", "5 % loss on one path", 6.0, (Event(1.0, "loss", value=0.05),)),
    Case("hole", "one path silently black-holed", 7.0, (Event(1.0, "fail"), Event(4.0, "heal"))),
    Case("port", "one port visibly down", 7.0, (Event(1.0, "down"), Event(4.0, "up"))),
    Case("flap", "one port flaps every second", 60.0, _flap(60)),
    Case(
        "reorder",
        "delays 1:2:4:8",
        5.0,
        before=tuple(Event(0, "delay", (p,), 2 ** (p - 1)) for p in _all()),
    ),
)


def quick(case: Case) -> Case:
    """The same in little time: to see that it runs, not how fast."""
    if case.key == "flap":
        return replace(case, seconds=3.0, events=_flap(3), warm_s=0.7)
    events = tuple(replace(e, at_s=e.at_s / 4 + 0.25) for e in case.events)
    return replace(case, seconds=max(case.seconds / 3, 1.5), events=events, warm_s=0.7)
