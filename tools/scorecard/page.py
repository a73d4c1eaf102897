# SPDX-License-Identifier: BSD-2-Clause
"""The tables of docs/explanation/scorecard.md: made of a document, never typed.

``--page`` puts them between two marks of the page and keeps what they were made of beside it, so
that a test can make them again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.scorecard.report import WANTED_HEAD, notes, table_lines, title, verdict_lines
from tools.scorecard.rows import FIGURES, Record, cell, rows
from tools.scorecard.stage import ROOT

PAGE = ROOT / "docs" / "explanation" / "scorecard.md"
DATA = PAGE.with_suffix(".json")
FIGURES_SHOWN = ("loss-one-9000", "hole-9000")
"""Drawn on the page, from docs/explanation/img."""
BEGIN, END = "<!-- scorecard: begin -->", "<!-- scorecard: end -->"
LINES = (
    ("clean", "goodput_bps", "cpu_s_per_gb", "sent_per_delivered"),
    ("single", "goodput_bps"),
    ("loss", "goodput_bps", "gap_ms", "sent_per_delivered"),
    ("loss-one", "goodput_bps", "after_fault_bps", "gap_ms", "out_ms", "still_share"),
    ("hole", "goodput_bps", "gap_ms", "to70_ms", "to95_ms", "reuse_ms", "full_ms"),
    ("port", "goodput_bps", "gap_ms", "to70_ms", "to95_ms", "reuse_ms", "full_ms"),
    ("flap", "goodput_bps", "share_of_capacity", "gap_ms"),
    ("equal", "goodput_bps"),
    ("reorder", "goodput_bps", "share_of_capacity", "sent_per_delivered"),
)
"""Case, and those of its figures that the page shows."""
DIGITS = 5


def slim(document: Mapping[str, Any]) -> dict[str, Any]:
    """What the tables need: without samples and events, figures to DIGITS digits."""
    return {**document, "records": [_slim(record) for record in document["records"]]}


def _slim(record: Record) -> dict[str, Any]:
    kept = ("scenario", "run", "started", "commit", "failed")
    short = {key: record[key] for key in kept if key in record}
    if "result" in record:
        short["result"] = {k: _rounded(v) for k, v in record["result"].items()}
    return short


def _rounded(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def section(document: Mapping[str, Any]) -> str:
    """What stands between the marks."""
    lines = [BEGIN, "", *_origin(document), "", "### What is wanted of MRC", ""]
    lines += table_lines(WANTED_HEAD, verdict_lines(document))
    every = rows(document)
    for mtu in dict.fromkeys(row["mtu"] for row in every):
        chosen = [row for row in every if row["mtu"] == mtu]
        lines += ["", f"### Beside the others, MTU {mtu}", "", *_table(document, chosen)]
    if found := notes(document):
        lines += ["", *(f"* {note}" for note in found)]
    return "\n".join([*lines, "", END])


def _origin(document: Mapping[str, Any]) -> list[str]:
    where, records = document["where"], document["records"]
    begun = sorted({record["started"] for record in records})
    commits = ", ".join(f"`{name}`" for name in sorted({record["commit"] for record in records}))
    origin = (
        f"{where['kernel']}, {where['cores']} cores, {where['planes']} planes of"
        f" {where['rate_mbit']} Mbit/s, TCP congestion control {where['tcp_congestion']};"
        f" {len(records)} runs from {begun[0]} to {begun[-1]}, commits measured: {commits}."
        " Medians; behind a case stands how often each peer ran, if not three times. The peers of a"
        " row ran in the same fabric, one after the other."
    )
    return [origin]


def _table(document: Mapping[str, Any], chosen: Sequence[Mapping[str, Any]]) -> list[str]:
    ran = {row["peer"] for row in chosen}
    peers = [peer for peer in document["peers"] if peer in ran]  # MRC first, whoever began
    figures = {figure.key: figure for figure in FIGURES}
    body = []
    for case, *keys in LINES:
        by_peer = {row["peer"]: row for row in chosen if row["case"] == case}
        if not by_peer:
            continue
        runs = max(row["runs"] for row in by_peer.values())
        often = "" if runs == 3 else f" ({runs} run{'s' if runs > 1 else ''})"
        name = title(document, next(iter(by_peer.values())))
        for number, key in enumerate(keys):
            head = f"**{name}**{often}: " if number == 0 else "- "
            cells = [cell(by_peer.get(peer, {}), figures[key]) for peer in peers]
            body.append([head + figures[key].head, *cells])
    return table_lines(["", *(document["peers"][peer] for peer in peers)], body)


def text(page: str, document: Mapping[str, Any]) -> str:
    """A page with its tables made anew. ValueError: it has no marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {BEGIN} ... {END} in the page")
    return before + section(document) + after


def write(document: Mapping[str, Any], drawn: Path) -> list[Path]:
    """The page, what it is made of, and its figures out of a folder; the files written."""
    short = slim(document)
    made = text(PAGE.read_text(encoding="utf-8"), short)
    records = ",\n".join(json.dumps(record) for record in short.pop("records"))
    rest = json.dumps(short)[1:]
    DATA.write_text(f'{{"records": [\n{records}\n],\n{rest}\n', encoding="utf-8")
    PAGE.write_text(made, encoding="utf-8")
    written = [PAGE, DATA]
    for name in FIGURES_SHOWN:
        if (drawn / f"{name}.svg").exists():
            written.append(PAGE.parent / "img" / f"scorecard-{name}.svg")
            shutil.copyfile(drawn / f"{name}.svg", written[-1])
    return written
