# SPDX-License-Identifier: BSD-2-Clause
"""Documents to tables for people: on a terminal, and as Markdown. Pure but for the console."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tools.scorecard.emulated import TITLES
from tools.scorecard.rows import FIGURES, cell, rows
from tools.scorecard.wanted import Verdict, verdicts

BUSY_SHARE = 0.05
"""With more of the machine in other hands figures say less."""


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
        made.append(Sheet(f"{title(document, chosen[0])}, MTU {mtu}", heads, lines))
    return made


def title(document: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Of a row's case, with the rate of its links where that is not the one of all."""
    name: str = document["cases"][row["case"]]
    rate = row.get("rate_mbit")
    usual = rate is None or rate == document["where"]["rate_mbit"]
    return name if usual else f"{name}, planes of {rate} Mbit/s"


def _name(document: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    name: str = document["peers"][row["peer"]]
    return f"{name} ({len(row['failed'])} of {row['runs']} failed)" if row["failed"] else name


def notes(document: Mapping[str, Any]) -> list[str]:
    """What a reader must know beside the figures."""
    peers, cases = document["peers"], document["cases"]
    found = [f"{peers[peer]}: missing, {why}" for peer, why in document["missing"].items()]
    found += [f"{cases[case]}: not run, {why}" for case, why in document["not_run"].items()]
    found += [
        f"{peers[left_out['peer']]}, MTU {left_out['mtu']}: not run, {left_out['why']}"
        for left_out in document.get("unfit", ())
    ]
    found += [f"MRC does not deliver what was sent: {why}" for why in document["unverified"]]
    for row in rows(document):
        name, case = peers[row["peer"]], cases[row["case"]]
        found += [f"{name}, {case}, MTU {row['mtu']}: {why}" for why in row["failed"]]
    results = [r["result"] for r in document["records"] if "failed" not in r]
    shares = [result.get("others_share", 0.0) for result in results]
    if busy := [share for share in shares if share > BUSY_SHARE]:
        found.append(
            f"other programs had more than {BUSY_SHARE:.0%} of the machine in {len(busy)} of"
            f" {len(shares)} runs, up to {max(busy):.0%}: those may be lower than they would be"
        )
    if document.get("quick"):
        found.append("a quick run shows that it works: what is wanted is not judged by it")
    return found


def verdict_lines(document: Mapping[str, Any]) -> list[list[str]]:
    """What is wanted of MRC: MTU, case, figure, wanted, found, met or not."""
    titles = {**document["cases"], **TITLES}
    return [
        [str(v.mtu or "-"), titles.get(v.case, v.case), v.what, v.wanted, v.found, _met(v)]
        for v in verdicts(document)
    ]


WANTED_HEAD = ("MTU", "case", "figure", "wanted", "found", "")


def _met(verdict: Verdict) -> str:
    return {True: "met", False: "NOT MET", None: "-"}[verdict.met]


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
    table = Table(title="What is wanted of MRC", title_justify="left", box=SIMPLE_HEAD)
    for name in WANTED_HEAD:
        table.add_column(name)
    for line in verdict_lines(document):
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
    lines = ["# Scorecard", "", head, "", "## What is wanted of MRC", ""]
    lines += table_lines(WANTED_HEAD, verdict_lines(document))
    for sheet in sheets(document):
        lines += ["", f"## {sheet.title}", ""]
        lines += table_lines(["", *sheet.peers], sheet.lines)
    if found := notes(document):
        lines += ["", "Notes:", "", *(f"* {note}" for note in found)]
    return "\n".join(lines) + "\n"


def table_lines(head: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """A table of Markdown; one without a name for its first column has figures in the others."""
    right = head[0] == ""
    made = [
        f"| {' | '.join(head)} |",
        "| --- |" + (" ---: |" if right else " --- |") * (len(head) - 1),
    ]
    return made + [f"| {' | '.join(line)} |" for line in lines]
