# SPDX-License-Identifier: BSD-2-Clause
"""The names that expressions of a scenario may use, known before there is a record of it.

They are those of `mrc.fabric.result.names_of`, of which a test says that they are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .errors import near
from .grammar import Function, Kind, Known
from .record import COUNTERS, TOTAL

if TYPE_CHECKING:
    from .scenario import Case

__all__ = ["FIGURES", "WORK_FIGURES", "known_in", "known_of"]

WORK_FIGURES = (
    *("goodput_bps", "gap_ms", "messages", "errors", "jain", "slowest_bps", "fastest_bps"),
)
"""Of a piece of work."""

FIGURES = (
    *WORK_FIGURES,
    *("share_of_capacity", "to70_ms", "to95_ms", "back_ms", "reuse_ms", "finish_s"),
    *("retransmitted", "spurious", "lost", "timeouts", "marked", "trimmed"),
    *("sent_per_delivered", "spurious_share", "capacity_bps", "rtt_s"),
)
"""Of a run."""

_FLOW = re.compile(r"(?:[a-z][a-z0-9_-]*:)?h([1-9]\d{0,6})>h([1-9]\d{0,6})(?:#([1-9]\d{0,6}))?")
_FROM, _TO = ("from", Kind.NUMBER), ("to", Kind.NUMBER)
_WHO = ("work or flow", Kind.WORD)


def known_of(main: Case, compare: Sequence[Case]) -> Known:
    """All names: those of the scenario's own run, and each comparison with its own."""
    return {**known_in(main), **{case.id: known_in(case) for case in compare}}


def known_in(case: Case) -> Known:
    """The names of one run."""
    figures = dict.fromkeys(WORK_FIGURES, Kind.NUMBER)
    works: dict[str, Known] = {work.name: figures for work in case.works}
    return {
        **_functions(case),
        **{name.replace("-", "_"): found for name, found in works.items()},
        **dict.fromkeys(FIGURES, Kind.NUMBER),
        "works": works,
    }


def _functions(case: Case) -> dict[str, Function]:
    def period(first: int, then: Callable[[Sequence[Any]], str] = lambda _: "") -> Any:
        def wrong(given: Sequence[Any]) -> str:
            begin, end = given[first : first + 2]
            if begin is not None and end is not None and end <= begin:
                return f"from {begin} to {end} s there is nothing"
            return then(given)

        return wrong

    def who(place: int) -> Callable[[Sequence[Any]], str]:
        return lambda given: _who(case, given[place]) if len(given) > place else ""

    def counted(given: Sequence[Any]) -> str:
        if given[0] not in COUNTERS:
            return f"{given[0]} is not counted; {near(given[0], COUNTERS)}"
        return who(3)(given)

    def plane(given: Sequence[Any]) -> str:
        return _numbered(given[0], 1, case.shape.planes, "plane") or who(3)(given)

    def ev(given: Sequence[Any]) -> str:
        if wrong := _numbered(given[0], 0, _evs(case) - 1, "EV"):
            return wrong
        return _flow(case, given[3]) if len(given) > 3 else ""

    number = ("number", Kind.NUMBER)
    return {
        "goodput": Function((_FROM, _TO, _WHO), 2, wrong=period(0, who(2))),
        "share": Function((_FROM, _TO), 2, wrong=period(0)),
        "gap": Function((_FROM, _TO, _WHO), 2, wrong=period(0, who(2))),
        "count": Function((("counter", Kind.WORD), _FROM, _TO, _WHO), 3, wrong=period(1, counted)),
        "plane": Function((number, _FROM, _TO, _WHO), 3, wrong=period(1, plane)),
        "ev": Function((number, _FROM, _TO, ("flow", Kind.WORD)), 3, wrong=period(1, ev)),
        "back": Function((("at", Kind.NUMBER), ("rate", Kind.NUMBER)), 2),
    }


def _numbered(given: Any, low: int, high: int, what: str) -> str:
    if given is None or (type(given) is int and low <= given <= high):
        return ""
    return f"there is no {what} {given}: {low} to {high}"


def _evs(case: Case) -> int:
    """As many entries as a profile has, at most."""
    if case.transport.mode == "rc":
        return 1
    drawn = case.transport.evs or case.shape.planes * case.shape.t1
    return max(len(work.paths) or drawn for work in case.works)


def _who(case: Case, word: str) -> str:
    works = [work.name for work in case.works]
    return "" if word in (TOTAL, *works) else _flow(case, word, (TOTAL, *works))


def _flow(case: Case, word: str, also: Sequence[str] = ()) -> str:
    match = _FLOW.fullmatch(word)
    if match is None:
        return f"{word} is sampled nowhere; {near(word, [*also, 'h1>h2'])}"
    hosts = [int(match[1]), int(match[2])]
    if max(hosts) > case.shape.hosts or hosts[0] == hosts[1]:
        return f"there is no flow {word}: hosts are h1 to h{case.shape.hosts}"
    qps = max(work.qps or case.transport.qps for work in case.works)
    if match[3] is not None and int(match[3]) > qps:
        return f"there is no flow {word}: #1 to #{qps}"
    return ""
