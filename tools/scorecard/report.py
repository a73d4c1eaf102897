# SPDX-License-Identifier: BSD-2-Clause
"""Runs to records, records to medians, medians to tables for people. Pure but for the console."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

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


def _gbit(bps: float) -> str:
    return f"{bps / 1e9:.3f}"


def _whole(value: float) -> str:
    return f"{value:.0f}"


def _three(value: float) -> str:
    return f"{value:.3f}"


def _percent(share: float) -> str:
    return f"{share:.3%}"


FIGURES = (
    Figure("goodput_bps", "goodput, Gbit/s", _gbit),
    Figure("share_of_capacity", "share of capacity", _three),
    Figure("gap_ms", "longest gap, ms", _whole),
    Figure("to70_ms", "to 70 % of what survives, ms", _whole),
    Figure("to95_ms", "to 95 % of what survives, ms", _whole),
    Figure("after_fault_bps", "settled after the fault, Gbit/s", _gbit),
    Figure("out_ms", "path out of use, ms", _whole),
    Figure("reuse_ms", "healed path in use, ms", _whole),
    Figure("full_ms", "to 95 % of all again, ms", _whole),
    Figure("after_heal_bps", "settled after the heal, Gbit/s", _gbit),
    Figure("sent_per_delivered", "bytes sent per byte", _three),
    Figure("cpu_s_per_gb", "CPU s/GB, both ends", lambda v: f"{v:.2f}"),
    Figure("resent_share", "packets sent again", _percent),
    Figure("spurious_share", "of them needlessly", _percent),
    Figure("late_loss_share", "lost once the path was out", _percent),
    Figure("confirmed_gap_ms", "longest gap of confirmations, ms", _whole),
    Figure("timeouts", "timeouts", _whole),
    Figure("resolution_ms", "longest sampling step, ms", _whole),
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


@dataclass(frozen=True, slots=True)
class Sheet:
    """One MTU and case: a line for each figure, a column for each peer."""

    title: str
    peers: list[str]
    lines: list[list[str]]


def sheets(document: Mapping[str, Any]) -> list[Sheet]:
    """All of them, in the order in which they were run."""
    made = []
    every = rows(document)
    for mtu, case in dict.fromkeys((row["mtu"], row["case"]) for row in every):
        chosen = [row for row in every if (row["mtu"], row["case"]) == (mtu, case)]
        lines = [
            [figure.head, *(cell(row, figure) for row in chosen)]
            for figure in FIGURES
            if any(figure.key in row for row in chosen)
        ]
        heads = [_name(document, row) for row in chosen]
        made.append(Sheet(f"{document['cases'][case]}, MTU {mtu}", heads, lines))
    return made


def _name(document: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    name: str = document["peers"][row["peer"]]
    return f"{name} ({len(row['failed'])} of {row['runs']} failed)" if row["failed"] else name


def notes(document: Mapping[str, Any]) -> list[str]:
    """What a reader must know beside the figures."""
    peers, cases = document["peers"], document["cases"]
    found = [f"{peers[peer]}: missing, {why}" for peer, why in document["missing"].items()]
    found += [f"{cases[case]}: not run, {why}" for case, why in document["not_run"].items()]
    found += [f"MRC does not deliver what was sent: {why}" for why in document["unverified"]]
    for row in rows(document):
        name, case = peers[row["peer"]], cases[row["case"]]
        found += [f"{name}, {case}, MTU {row['mtu']}: {why}" for why in row["failed"]]
    return found


def show(document: Mapping[str, Any], console: Console) -> None:
    """Tables and notes on a terminal."""
    for sheet in sheets(document):
        table = Table(title=sheet.title, title_justify="left", box=SIMPLE_HEAD)
        table.add_column("")
        for name in sheet.peers:
            table.add_column(name, justify="right")
        for line in sheet.lines:
            table.add_row(*line)
        console.print(table)
    for note in notes(document):
        console.print(note, style="yellow", highlight=False, markup=False, soft_wrap=True)


def markdown(document: Mapping[str, Any]) -> str:
    """The same as text for a page."""
    where = document["where"]
    head = (
        f"{where['planes']} planes of {where['rate_mbit']} Mbit/s, {where['kernel']},"
        f" {where['cores']} cores, TCP congestion control {where['tcp_congestion']};"
        f" medians of {where['runs']} run{'s' if where['runs'] > 1 else ''},"
        f" {document['started']}."
    )
    lines = ["# Scorecard", "", head]
    for sheet in sheets(document):
        lines += ["", f"## {sheet.title}", "", "| | " + " | ".join(sheet.peers) + " |"]
        lines.append("| --- |" + " ---: |" * len(sheet.peers))
        lines += ["| " + " | ".join(line) + " |" for line in sheet.lines]
    if found := notes(document):
        lines += ["", "Notes:", "", *(f"* {note}" for note in found)]
    return "\n".join(lines) + "\n"
