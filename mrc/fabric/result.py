# SPDX-License-Identifier: BSD-2-Clause
"""Figures out of a record: what a run comes to, and the names that expressions over it may use."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from . import expression
from .errors import FabricError
from .measure import WINDOW_S, Series, goodput_bps, jain, longest_gap_s, reuse_s, time_to_s
from .record import TOTAL, Check, FaultMark, Record
from .scenario import MAIN, Expectation, Scenario

__all__ = ["checked", "judged", "names_of", "result_of", "sentence"]

_COUNTERS = ("retransmitted", "spurious", "lost", "timeouts", "marked", "trimmed")


def result_of(record: Record) -> dict[str, Any]:
    """All figures of a run without its comparisons. None: never, or not known on this fabric."""
    whole = record.series()
    begin, end = _period(record)
    result: dict[str, Any] = {
        "goodput_bps": goodput_bps(whole, begin, end),
        "share_of_capacity": _share(record, whole, begin, end),
        **_after_faults(record, whole, end),
        "finish_s": record.run.get("finish_s"),
        "messages": sum(flow.completions for flow in record.flows),
        "errors": sum(flow.errors for flow in record.flows),
        **_fair([flow.goodput_bps for flow in record.flows]),
        **_counts(record),
    }
    works = dict.fromkeys(flow.work for flow in record.flows)
    result["works"] = {work: _of_work(record, work, begin, end) for work in works}
    return result


def _period(record: Record) -> tuple[float, float]:
    """From the first to the last byte that counts for means."""
    last = record.samples[-1].t_s
    first = min((flow.start_s for flow in record.flows), default=0.0)
    begin = max(first, float(record.run.get("skip_s", 0.0)))
    end = max((flow.end_s for flow in record.flows), default=last)
    return begin, max(min(end, last), begin + 1e-9)


def _of_work(record: Record, work: str, begin: float, end: float) -> dict[str, Any]:
    flows = [flow for flow in record.flows if flow.work == work]
    first = max(begin, min(flow.start_s for flow in flows))
    last = max(min(end, max(flow.end_s for flow in flows)), first + 1e-9)
    series = record.series(work)
    return {
        "goodput_bps": goodput_bps(series, first, last),
        "gap_ms": longest_gap_s(series, first, last) * 1e3,
        "messages": sum(flow.completions for flow in flows),
        "errors": sum(flow.errors for flow in flows),
        **_fair([flow.goodput_bps for flow in flows]),
    }


def _fair(rates: list[float]) -> dict[str, float]:
    return {
        "jain": jain(rates),
        "slowest_bps": min(rates, default=0.0),
        "fastest_bps": max(rates, default=0.0),
    }


def _counts(record: Record) -> dict[str, Any]:
    last = next((s for s in reversed(record.samples) if s.flow == TOTAL), None)
    if last is None:
        return {}
    found: dict[str, Any] = {name: getattr(last, name) for name in _COUNTERS}
    sent, delivered = last.sent_bytes, last.delivered_bytes
    found["sent_per_delivered"] = sent / delivered if sent is not None and delivered else None
    found["spurious_share"] = (
        last.spurious / last.sent if last.spurious is not None and last.sent else None
    )
    return found


def _capacities(record: Record, begin: float, end: float) -> Iterator[tuple[float, float, float]]:
    """(from, to, bit/s) in order, between two times."""
    at, bps = begin, float(record.run["capacity_bps"])
    for mark in record.faults:
        if mark.t_s > at and mark.t_s < end:
            yield at, mark.t_s, bps
            at = mark.t_s
        if mark.t_s < end:
            bps = mark.capacity_bps
    yield at, end, bps


def _share(record: Record, series: Series, begin: float, end: float) -> float | None:
    """Goodput over what the fabric could carry in that time."""
    if "capacity_bps" not in record.run or end <= begin:
        return None
    possible = sum((b - a) * bps for a, b, bps in _capacities(record, begin, end))
    return (series.at(end) - series.at(begin)) * 8 / possible if possible else None


def _after_faults(record: Record, whole: Series, end: float) -> dict[str, float | None]:
    """The worst over all faults: each looked at until something else happens."""
    found: dict[str, float | None] = {}
    first = min((mark.t_s for mark in record.faults if mark.on), default=None)
    begin = first if first is not None else _period(record)[0]
    found["gap_ms"] = longest_gap_s(whole, begin, end) * 1e3 if end > begin else None
    changes = [list(group) for _, group in groupby(record.faults, key=lambda m: m.t_s)]
    limits = [*(marks[0].t_s for marks in changes), math.inf][1:]
    worst: dict[str, list[float | None]] = {"to70_ms": [], "to95_ms": [], "back_ms": []}
    for marks, limit in zip(changes, limits, strict=True):
        at, bps = marks[-1].t_s, marks[-1].capacity_bps
        until = min(limit, end)
        if until - at < WINDOW_S:
            continue
        if any(mark.on for mark in marks):
            for name, share in (("to70_ms", 0.70), ("to95_ms", 0.95)):
                worst[name].append(time_to_s(whole, at, share * bps, until_s=until))
        else:
            worst["back_ms"].append(time_to_s(whole, at, 0.95 * bps, until_s=until))
    for name, times in worst.items():
        known = [t for t in times if t is not None]
        found[name] = max(known) * 1e3 if times and len(known) == len(times) else None
    found["reuse_ms"] = _reuse(record)
    return found


def _reuse(record: Record) -> float | None:
    """From the end of the first fault that ends until the first of its paths is in use again."""
    ended = next((mark for mark in record.faults if not mark.on and mark.paths), None)
    if ended is None:
        return None
    found = [t for path in ended.paths if (t := _path_reuse(record, path, ended)) is not None]
    return min(found) * 1e3 if found else None


def _path_reuse(record: Record, path: int, mark: FaultMark) -> float | None:
    try:
        return reuse_s(record.ev_series(record.flows[0].flow, path), mark.t_s)
    except FabricError:
        return None


def _functions(record: Record) -> dict[str, Callable[..., Any]]:
    """What expressions may call; times in seconds, `who` the name of a work or a flow."""

    def goodput(begin: float, end: float, who: str = TOTAL) -> float:
        return goodput_bps(record.series(who), begin, end)

    def share(begin: float, end: float) -> float | None:
        return _share(record, record.series(), begin, end)

    def gap(begin: float, end: float, who: str = TOTAL) -> float:
        return longest_gap_s(record.series(who), begin, end) * 1e3

    def count(name: str, begin: float, end: float, who: str = TOTAL) -> float:
        series = record.counter(name, who)
        return series.at(end) - series.at(begin)

    def plane(number: int, begin: float, end: float, who: str = TOTAL) -> float:
        return goodput_bps(record.plane_series(number - 1, who), begin, end)

    def ev(number: int, begin: float, end: float, who: str = "") -> float:
        return goodput_bps(record.ev_series(who or record.flows[0].flow, number), begin, end)

    def back(at: float, bps: float) -> float | None:
        found = time_to_s(record.series(), at, bps)
        return None if found is None else found * 1e3

    known = (goodput, share, gap, count, plane, ev, back)
    return {function.__name__: function for function in known}


def names_of(record: Record) -> dict[str, Any]:
    """Names for expressions: figures, functions, each work; each comparison with all of these."""
    works = {name.replace("-", "_"): v for name, v in record.result.get("works", {}).items()}
    names: dict[str, Any] = {
        **_functions(record),
        **works,
        **record.result,
        "capacity_bps": record.run.get("capacity_bps"),
        "rtt_s": record.run.get("base_rtt_s"),
    }
    for other in record.compare:
        names[other.run["case"]] = names_of(other)
    return names


def checked(expect: tuple[Expectation, ...], record: Record) -> tuple[Check, ...]:
    """Each expectation, and the figures its expression names."""
    names = names_of(record)
    found = []
    for one in expect:
        values = {
            name: names[name]
            for name in sorted(expression.names_in(one.expression))
            if isinstance(names.get(name), int | float)
        }
        try:
            met = bool(expression.evaluate(one.expression, names))
        except FabricError as error:  # the run is not lost for it
            met, values = False, {"why": str(error)}
        found.append(Check(one.words, one.expression, met, values))
    return tuple(found)


def judged(scenario: Scenario, records: Sequence[Record], more: Sequence[Check] = ()) -> Record:
    """The records of all cases as one; expectations and the verdict are of the first.

    `more`: what was expected besides, and judged elsewhere.
    """
    record = replace(records[0], compare=tuple(records[1:]))
    record = replace(record, expect=(*more, *checked(scenario.expect, record)))
    return replace(record, verdict=sentence(record, scenario.verdict, scenario.claim))


def sentence(record: Record, template: str, claim: str) -> str:
    """One sentence: what came of it, beside what is published."""
    names = names_of(record)
    try:
        said = expression.fill(template, names) if template else _plain(names)
    except FabricError as error:
        said = str(error)
    missed = [check.words for check in record.expect if not check.met]
    head = f"not met ({'; '.join(missed)})" if missed else "met" if record.expect else "measured"
    return f"{head}: {said}" + (f". Published: {claim}" if claim else "")


def _plain(names: Mapping[str, Any]) -> str:
    share = names.get("share_of_capacity")
    text = f"{names['goodput_bps'] / 1e9:.3g} Gbit/s"
    return text if share is None else f"{text}, {share:.1%} of what the fabric could carry"


def case_name(record: Record) -> str:
    """What to call a run in tables and legends."""
    return str(record.run.get("name") or ("MRC" if record.run.get("case") == MAIN else record.on))
