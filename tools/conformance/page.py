# SPDX-License-Identifier: BSD-2-Clause
"""docs/reference/conformance.md out of the rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from . import check, digest
from .check import Status
from .rows import Row, split_test, split_where

PARTS = {
    "A": "Wire format",
    "B": "Requestor and responder",
    "C": "Objects, states, verbs",
    "D": "Entropy values",
    "E": "Congestion control",
    "F": "Endpoint operations, probes, timers",
    "G": "Numbers",
    "H": "Open questions",
}

HEAD = """# Conformance

Written by `make conformance-page` out of `tests/conformance/*.toml`; do not edit it here.
[How to add a requirement](../howto/add-a-requirement.md) says how a row is made and what its
status means.

Sections are those of the MRC 1.0 reference this project implements (parts A to F); *choice H7* is
an entry of its list of open questions. A row is **proved** when its mutant, a change that removes
the behaviour, has been tried and made one of the tests named fail; **tested, not proved** when it
has tests but no valid proof; **not covered** when nothing would notice if it were gone.
"""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _places(items: list[tuple[str, str]]) -> str:
    """Each file with a link and the names in it, files in the order they are first named."""
    by_file: dict[str, list[str]] = {}
    for file, name in items:
        by_file.setdefault(file, []).append(name)
    return "<br>".join(
        f"[{file.rpartition('/')[2]}](../../{file}): " + ", ".join(f"`{n}`" for n in names)
        for file, names in by_file.items()
    )


def _line(row: Row, status: Status, why: str) -> str:
    where = _places([split_where(w) for w in row.where])
    tests = _places([split_test(t) for t in row.tests])
    state = status.value + (f" ({why})" if why else "")
    return f"| {row.id} | {_cell(row.statement)} | {where} | {tests} | {state} |"


def text(root: Path, rows: list[Row]) -> str:
    """The page; the rows have no faults."""
    proofs = digest.load(root)
    found = [(row, *check.status(root, row, proofs)) for row in rows]
    count = Counter((row.id[0], status) for row, status, _ in found)
    lines = [HEAD, "| part | rows | proved | tested, not proved | not covered |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    parts = sorted({row.id[0] for row in rows})
    for part in parts:
        each = [count[part, s] for s in Status]
        numbers = " | ".join(str(n) for n in (sum(each), *each))
        lines.append(f"| [{part} {PARTS[part]}](#{_anchor(part)}) | {numbers} |")
    totals = [sum(count[p, s] for p in parts) for s in Status]
    lines.append(f"| all | {' | '.join(str(n) for n in (sum(totals), *totals))} |")
    for part in parts:
        lines += ["", f"## {part} {PARTS[part]}", ""]
        lines += ["| id | requirement | where | tests | status |", "|" + " --- |" * 5]
        lines += [_line(row, status, why) for row, status, why in found if row.id[0] == part]
    return "\n".join(lines) + "\n"


def _anchor(part: str) -> str:
    words = f"{part} {PARTS[part]}".lower().replace(",", "")
    return words.replace(" ", "-")
