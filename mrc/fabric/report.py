# SPDX-License-Identifier: BSD-2-Clause
"""What a run says to people: a line for each case, one for each expectation, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mrc.units import format_rate, time_text

from .record import Check, Record
from .result import case_name
from .scenario import Scenario

__all__ = ["describe", "lines"]

_COLUMNS: tuple[tuple[str, int, Callable[[dict[str, Any]], str]], ...] = (
    ("goodput", 15, lambda r: format_rate(r["goodput_bps"])),
    ("share", 8, lambda r: _percent(r["share_of_capacity"])),
    ("gap", 9, lambda r: _ms(r["gap_ms"])),
    ("to 70 %", 9, lambda r: _ms(r["to70_ms"])),
    ("to 95 %", 9, lambda r: _ms(r["to95_ms"])),
    ("back", 9, lambda r: _ms(r["back_ms"])),
    ("finish", 9, lambda r: _ms(None if r["finish_s"] is None else r["finish_s"] * 1e3)),
    ("fairness", 9, lambda r: f"{r['jain']:.3f}"),
    ("sent/got", 9, lambda r: _number(r.get("sent_per_delivered"))),
    ("lost", 9, lambda r: str(r.get("lost", "-"))),
    ("cut", 9, lambda r: str(r.get("trimmed", "-"))),
)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value / 1e3:.2f} s" if value >= 1e4 else f"{value:.3g} ms"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def describe(scenario: Scenario, cable: str | None = None, more: str = "") -> Iterator[str]:
    """What will be run.

    cable: what one adds to the way, where that is not its delay; more: words behind all.
    """
    case = scenario.main
    shape, mode = case.shape, case.transport
    yield f"{scenario.name}"
    yield (
        f"  {shape.hosts} hosts, {shape.planes} plane{'s' * (shape.planes > 1)}"
        f" of {shape.t0} T0 and {shape.t1} T1, {format_rate(shape.rate_bps)} a port,"
        f" {cable or f'{time_text(shape.delay_ns)} a cable'}, path MTU {mode.path_mtu}, {mode.cc}"
        f"{more}"
    )
    if scenario.scaling:
        yield f"  scaled: {scenario.scaling}"


def lines(record: Record) -> Iterator[str]:
    """The figures of all cases, what was expected, the verdict."""
    cases = (record, *record.compare)
    width = max(len(case_name(case)) for case in cases)
    yield " ".join((f"  {'':{width}}", *(f"{head:>{w}}" for head, w, _ in _COLUMNS)))
    for case in cases:
        cells = (f"{show(case.result):>{w}}" for _, w, show in _COLUMNS)
        yield " ".join((f"  {case_name(case):{width}}", *cells))
    for check in record.expect:
        yield f"  {'ok ' if check.met else 'NOT'} {check.words}"
        if not check.met:
            yield f"      it would be: {check.expression}{_values(check)}"
    yield f"  {record.verdict}"


def _values(check: Check) -> str:
    shown = ", ".join(f"{name} = {_short(value)}" for name, value in check.values.items())
    return f"  ({shown})" if shown else ""


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
