# SPDX-License-Identifier: BSD-2-Clause
"""Faults by the clock: which are in force now, what that makes of every link, what comes next.

Any number of scripts play at a time, each from a start of its own; faults that meet on a link act
as `mrc.fabric.link_states` says. Whoever owns the player asks `due`, waits, and calls `advance`.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from mrc.fabric.fault import Fault, FaultKind
from mrc.fabric.shape import FabricShape
from mrc.fabric.shape import Link as Way
from mrc.fabric.target import Target, TargetKind, parse_target
from mrc.fabric.timeline import LinkState, Step, link_states, settle, steps

FOREVER_NS = 1 << 62


@dataclass(frozen=True, slots=True)
class Happened:
    """A fault that began or ended."""

    number: int
    """Of the fault, unique in this player."""
    owner: int
    what: str
    on: bool
    due_ns: int
    """When it should have been; the clock of the player's owner."""
    done_ns: int
    """When it was in force."""


@dataclass(slots=True)
class Playing:
    """A fault that is in force or will be."""

    number: int
    what: str
    """As it was said, without times."""
    fault: Fault
    start_ns: int
    """Second 0 of its script."""
    owner: int
    on: bool
    rest: Iterator[Step]

    def begun(self, now_ns: int) -> bool:
        """Whether it is in force or has been: one that flaps has begun in either half."""
        return self.on or self.start_ns + self.fault.at_ns <= now_ns


@dataclass(frozen=True, slots=True)
class Healed:
    """What came of a heal."""

    ended: list[Happened]
    dropped: list[Playing]
    """Had not begun, and will not."""
    waiting: list[Playing]
    """Lie within the target, have not begun, and will."""


class Player:
    """The faults of one fabric. `apply` brings all links into the states given."""

    def __init__(
        self,
        shape: FabricShape,
        apply: Callable[[Mapping[Way, LinkState]], None],
        clock: Callable[[], int],
    ) -> None:
        self.shape = shape
        self._apply = apply
        self._clock = clock
        self._numbers = itertools.count(1)
        self._playing: dict[int, Playing] = {}
        self._next: list[tuple[int, bool, int, Step]] = []

    def __iter__(self) -> Iterator[Playing]:
        """In the order in which they were given."""
        return iter(tuple(self._playing.values()))

    def add(
        self,
        script: Iterable[Fault],
        *,
        owner: int = 0,
        pair: tuple[int, int] = (0, 1),
        start_ns: int | None = None,
    ) -> list[int]:
        """Play a script from now on, or from `start_ns`; the numbers of its faults.

        `pair` are the hosts whose paths an `evN` in it counts. mrc.fabric.FabricError: a target
        does not exist; then nothing of the script is played. What is due now is done by `advance`.
        """
        begin = self._clock() if start_ns is None else start_ns
        settled = settle(script, self.shape, pair)
        numbers = []
        for given in settled:
            fault = replace(given, target=self._placed(given.target, pair))
            number = next(self._numbers)
            rest = steps([fault], FOREVER_NS)
            self._playing[number] = Playing(
                number, described(given), fault, begin, owner, False, rest
            )
            self._schedule(number)
            numbers.append(number)
        return numbers

    def heal(self, target: Target, pair: tuple[int, int] = (0, 1)) -> Healed:
        """End all that has begun and lies within the target; with `all` what is to come, too."""
        cover = self._reach(Fault(FaultKind.FAIL, self._placed(target, pair)))
        every = target.kind is TargetKind.ALL
        meant = [p for p in self if every or self._reach(p.fault) <= cover]
        now = self._clock()
        begun = [p for p in meant if p.begun(now)]
        later = [p for p in meant if not p.begun(now)]
        ended = self._end([*begun, *later] if every else begun)
        return Healed(ended, later if every else [], [] if every else later)

    def forget(self, owner: int) -> list[Happened]:
        """End all faults of an owner who is gone."""
        return self._end([p for p in self if p.owner == owner])

    def due(self) -> int | None:
        """When `advance` is to be called; None: never, as it stands."""
        while self._next and self._next[0][2] not in self._playing:
            heapq.heappop(self._next)
        return self._next[0][0] if self._next else None

    def advance(self) -> list[Happened]:
        """Do what is due by now, all of one moment at a time."""
        done: list[Happened] = []
        while (at_ns := self.due()) is not None and at_ns <= self._clock():
            moment: list[tuple[int, bool]] = []
            while self.due() == at_ns:
                _, on, number, _ = heapq.heappop(self._next)
                moment.append((number, on))
                self._playing[number].on = on
                self._schedule(number)
            done += self._carry_out([(self._playing[n], on) for n, on in moment], at_ns)
            self._drop_ended(n for n, _ in moment)
        return done

    def _schedule(self, number: int) -> None:
        playing = self._playing[number]
        step = next(playing.rest, None)
        if step is not None:
            at_ns = playing.start_ns + step.at_ns
            heapq.heappush(self._next, (at_ns, step.on, number, step))

    def _drop_ended(self, numbers: Iterable[int]) -> None:
        waiting = {number for _, _, number, _ in self._next}
        for number in set(numbers):
            if not self._playing[number].on and number not in waiting:
                del self._playing[number]

    def _end(self, chosen: Iterable[Playing]) -> list[Happened]:
        ended = list(chosen)
        for playing in ended:
            del self._playing[playing.number]
        now = self._clock()
        begun = [(p, False) for p in ended if p.begun(now)]
        return self._carry_out(begun, now) if begun else []

    def _carry_out(self, changes: list[tuple[Playing, bool]], due_ns: int) -> list[Happened]:
        in_force = [p.fault for p in self._playing.values() if p.on]
        self._apply(link_states(in_force, self.shape))
        now = self._clock()
        return [Happened(p.number, p.owner, p.what, on, due_ns, now) for p, on in changes]

    def _placed(self, target: Target, pair: tuple[int, int]) -> Target:
        """A path as the link that no other path shares: later nobody need know the pair."""
        if target.kind is not TargetKind.EV:
            return target
        return parse_target(target.gate(self.shape, pair)[0].name)

    def _reach(self, fault: Fault) -> frozenset[Way]:
        return frozenset(link_states([fault], self.shape))


def described(fault: Fault) -> str:
    """`fail p1.t1.2`, without times."""
    return str(replace(fault, at_ns=0, until_ns=None))
