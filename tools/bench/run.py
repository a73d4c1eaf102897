# SPDX-License-Identifier: BSD-2-Clause
"""Rounds: every method of a group in turn, again and again."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mrc.lab import FabricError
from tools.bench.link import BenchError, Link, open_link
from tools.bench.method import Cores, Group, Method, Place, Sample
from tools.bench.report import group_document
from tools.scorecard.process import PlayError, others_s
from tools.scorecard.runs import commit

SCHEMA = 2
LINK_S = 3.0
"""What a link takes to come and go, for the estimate."""

Say = Callable[[str], None]
Rounds = list[dict[str, Sample]]
"""One mapping a round: the name of a method to what it gave."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done."""

    groups: Sequence[Group]
    rounds: int
    seconds: int
    rows: frozenset[str] = frozenset()
    """Only these methods; empty: all."""

    def methods(self, group: Group) -> list[Method]:
        """Those of a group that were asked for."""
        return [m for m in group.methods if not self.rows or m.name in self.rows]


def pinning() -> Cores:
    """Sender and receiver on a core each, when we may use two."""
    usable = sorted(os.sched_getaffinity(0))
    return Cores(usable[0], usable[1]) if len(usable) > 1 else Cores(None, None)


def estimate_s(plan: Plan) -> float:
    """About how long all of it takes."""
    total = 0.0
    for group in plan.groups:
        methods = [m for m in plan.methods(group) if not m.missing()]
        each = plan.seconds + group.overhead_s
        total += sum(each * (1 if m.once else plan.rounds) for m in methods)
        total += LINK_S if group.link else 0.0
    return total


def carry_out(plan: Plan, say: Say) -> dict[str, Any]:
    """All groups. Interrupted, it gives what was complete by then, and says so."""
    cores = pinning()
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "start": {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "kernel": platform.release(),
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "cores_used": [cores.sender, cores.receiver],
            "rounds": plan.rounds,
            "seconds": plan.seconds,
        },
        "groups": {},
        "interrupted": False,
    }
    try:
        for group in plan.groups:
            say(f"{group.name}: {group.title}")
            document["groups"][group.name] = _group(plan, group, cores, say)
    except KeyboardInterrupt:
        document["interrupted"] = True
    return document


def _group(plan: Plan, group: Group, cores: Cores, say: Say) -> dict[str, Any]:
    methods = plan.methods(group)
    turns = _Turns({m.name: why for m in methods if (why := m.missing())}, say)
    for name, why in turns.missing.items():
        say(f"  {name} is missing: {why}")
    rounds: Rounds = []
    begin, others = time.monotonic(), others_s()
    try:
        with _net(group.link) as net:
            place = Place(cores, plan.seconds, net)
            for number in range(plan.rounds):
                rounds.append(turns.take(methods, number, place))
    except (BenchError, FabricError) as bad:
        turns.wrong |= {m.name: str(bad) for m in methods if m.name not in turns.missing}
        say(f"  {bad}")
    document = group_document(group, rounds, turns.missing, turns.wrong)
    taken = max(0.01, time.monotonic() - begin) * (os.cpu_count() or 1)
    document["run"] = {
        "time": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "commit": commit(),
        "rounds": plan.rounds,
        "seconds": plan.seconds,
    }
    document["others"] = max(0.0, (others_s() - others) / taken)
    return document


@contextmanager
def _net(kind: str | None) -> Iterator[Link | None]:
    if kind is None:
        yield None
    else:
        with open_link(kind) as link:
            yield link


class _Turns:
    """Who is still in. A method that fails is left out from then on, and named with its reason."""

    def __init__(self, missing: dict[str, str], say: Say) -> None:
        self.missing = missing
        self.wrong: dict[str, str] = {}
        self._say = say

    def take(self, methods: list[Method], number: int, place: Place) -> dict[str, Sample]:
        """A round. Each begins with another method: no one always runs on a warm machine."""
        samples: dict[str, Sample] = {}
        start = number % max(1, len(methods))
        for method in methods[start:] + methods[:start]:
            if method.name in self.missing | self.wrong or (method.once and number):
                continue
            try:
                sample = method.run(place)
            except (BenchError, PlayError) as bad:
                self.wrong[method.name] = str(bad)
                self._say(f"  round {number + 1}: {method.name}: {bad}")
                continue
            samples[method.name] = sample
            shown = [f"{value:.4g} {unit}" for unit, value in sample.figures.items()][:3]
            self._say(f"  round {number + 1}: {method.name:16} {'  '.join(shown)}")
        return samples
