# SPDX-License-Identifier: BSD-2-Clause
"""python -m tools.conformance check | write | prove: see docs/howto/add-a-requirement.md."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

from . import check, digest, page, prove
from .check import Status
from .rows import PAGE, Row, RowError, load

ROOT = Path(__file__).resolve().parents[2]


def say(text: str) -> None:
    """A line for people, at once."""
    print(text, flush=True)


def fail(lines: list[str]) -> int:
    """Say what is wrong."""
    for line in lines:
        print(f"conformance: {line}", file=sys.stderr)
    return 1


def summary(root: Path, rows: list[Row]) -> str:
    """One line: how many rows, and how far they are covered."""
    proofs = digest.load(root)
    count = Counter(check.status(root, r, proofs)[0] for r in rows)
    return f"{len(rows)} requirements: " + ", ".join(f"{count[s]} {s.value}" for s in Status)


def all_faults(root: Path, rows: list[Row]) -> list[str]:
    """Everything wrong with the rows."""
    return check.order_faults(rows) + [f for r in rows for f in check.faults(root, r)]


def do_check(root: Path) -> int:
    """0 when every row holds and the page is up to date."""
    rows = load(root)
    if found := all_faults(root, rows):
        return fail(found)
    path = root / PAGE
    if not path.is_file() or path.read_text() != page.text(root, rows):
        return fail([f"{PAGE} is not what the rows say; write it: make conformance-page"])
    say("conformance: " + summary(root, rows))
    return 0


def do_write(root: Path) -> int:
    """Write the page."""
    rows = load(root)
    if found := all_faults(root, rows):
        return fail(found)
    (root / PAGE).write_text(page.text(root, rows))
    say("conformance: " + summary(root, rows))
    return 0


def choose(root: Path, rows: list[Row], args: argparse.Namespace) -> list[Row]:
    """The rows to prove."""
    if args.row:
        return prove.wanted(rows, args.row)
    proofs = digest.load(root)
    stale = [r for r in rows if check.status(root, r, proofs)[0] is not Status.PROVED]
    if args.all:
        return rows
    if args.seconds:  # what is stale, then some of the rest
        return stale + [r for r in prove.rotated(root, rows) if r not in stale]
    return stale


def do_prove(root: Path, args: argparse.Namespace) -> int:
    """0 when every mutant tried was noticed."""
    rows = load(root)
    try:
        chosen = choose(root, rows, args)
    except ValueError as e:
        return fail([str(e)])
    if found := [f for r in chosen for f in check.faults(root, r)]:
        return fail(found)
    try:
        verdicts = prove.Prover(root, args.jobs, say).run(chosen, args.seconds)
    except RuntimeError as e:
        return fail([str(e)])
    if not args.dry:
        prove.record(root, rows, verdicts)
        if not all_faults(root, rows):
            (root / PAGE).write_text(page.text(root, rows))
    bad = [v for v in verdicts if v.defects]
    good = sum(prove.proved(v) for v in verdicts)
    say(f"conformance: {good} proved, {len(bad)} not, {len(verdicts) - good - len(bad)} not tried")
    return 1 if bad else 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(prog="python -m tools.conformance", description=__doc__)
    p.add_argument("--root", type=Path, default=ROOT, help="tree to work on")
    verbs = p.add_subparsers(dest="verb", required=True)
    verbs.add_parser("check", help="what the rows name exists, and the page is up to date")
    verbs.add_parser("write", help="write the page")
    pr = verbs.add_parser("prove", help="try mutants; without names those of every stale row")
    pr.add_argument("row", nargs="*", help="id, section or part: A.4-2, A.4, A")
    pr.add_argument("--all", action="store_true", help="every row")
    pr.add_argument("--seconds", type=float, help="stale rows, then others, begun in that time")
    pr.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="copies at work at once")
    pr.add_argument("--dry", action="store_true", help="record nothing")
    return p


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 holds, 1 does not."""
    args = parser().parse_args(argv)
    root = args.root.resolve()
    try:
        if args.verb == "check":
            return do_check(root)
        return do_write(root) if args.verb == "write" else do_prove(root, args)
    except RowError as e:
        return fail([str(e)])


if __name__ == "__main__":
    sys.exit(main())
