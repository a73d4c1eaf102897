# SPDX-License-Identifier: BSD-2-Clause
"""Runs to medians, medians to text. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mrc.fabric.measure import median

Record = Mapping[str, Any]

TIMES = ("to70_ms", "to95_ms", "out_ms", "reuse_ms", "full_ms")
"""Here None means that it never happened, and counts as later than anything."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of the tables."""

    key: str
    head: str
    show: Callable[[float], str]


def gbit(bps: float) -> str:
    """10^9 bit/s."""
    return f"{bps / 1e9:.3f}"


def whole(value: float) -> str:
    """No digits behind the point."""
    return f"{value:.0f}"


def three(value: float) -> str:
    """Three digits behind the point."""
    return f"{value:.3f}"


def percent(share: float) -> str:
    """Of shares that may be very small, three digits; of others one."""
    return f"{share:.3%}" if abs(share) < 0.1 else f"{share:.1%}"


FIGURES = (
    Figure("goodput_bps", "goodput, Gbit/s", gbit),
    Figure("share_of_capacity", "share of capacity", three),
    Figure("gap_ms", "longest gap, ms", whole),
    Figure("to70_ms", "to 70 % of what survives, ms", whole),
    Figure("to95_ms", "to 95 % of what survives, ms", whole),
    Figure("before_fault_bps", "before the fault, Gbit/s", gbit),
    Figure("after_fault_bps", "settled after the fault, Gbit/s", gbit),
    Figure("out_ms", "path out of use, ms", whole),
    Figure("still_share", "load of the path 100 ms later", percent),
    Figure("reuse_ms", "healed path in use, ms", whole),
    Figure("full_ms", "to 95 % of all again, ms", whole),
    Figure("after_heal_bps", "settled after the heal, Gbit/s", gbit),
    Figure("sent_per_delivered", "bytes sent per byte", three),
    Figure("cpu_s_per_gb", "CPU s/GB, both ends", lambda v: f"{v:.2f}"),
    Figure("resent_share", "packets sent again", percent),
    Figure("spurious_share", "of them needlessly", percent),
    Figure("late_loss_share", "lost once the path was out", percent),
    Figure("confirmed_gap_ms", "longest gap of confirmations, ms", whole),
    Figure("timeouts", "timeouts", whole),
    Figure("resolution_ms", "longest sampling step, ms", whole),
    Figure("others_share", "machine busy with others", percent),
)


def medians(records: Sequence[Record]) -> dict[str, float | None]:
    """Of each figure over the runs of one peer and case. A run that failed has none."""
    results = [r["result"] for r in records if "failed" not in r]
    found: dict[str, float | None] = {}
    for key in dict.fromkeys(k for result in results for k in result):
        values = [result[key] for result in results if key in result]
        if key in TIMES or all(isinstance(v, int | float) for v in values):
            found[key] = median(values)
    return found


def grouped(records: Iterable[Record]) -> dict[tuple[int, str], dict[str, list[Record]]]:
    """By (mtu, case), then by peer, each in the order of first appearance."""
    groups: dict[tuple[int, str], dict[str, list[Record]]] = {}
    for record in records:
        key = record["run"]["mtu"], record["scenario"]
        groups.setdefault(key, {}).setdefault(record["run"]["peer"], []).append(record)
    return groups


def rows(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row for each MTU, case and peer: medians, runs, failures."""
    return [
        {
            "mtu": mtu,
            "case": case,
            "peer": peer,
            "rate_mbit": records[0]["run"].get("rate_mbit"),
            "runs": len(records),
            "failed": [r["failed"] for r in records if "failed" in r],
            **medians(records),
        }
        for (mtu, case), peers in grouped(document["records"]).items()
        for peer, records in peers.items()
    ]


def cell(row: Mapping[str, Any], figure: Figure) -> str:
    """A figure as text; a dash where it does not apply."""
    value = row.get(figure.key)
    if value is not None:
        return figure.show(value)
    return "never" if figure.key in TIMES and figure.key in row else "-"
