# SPDX-License-Identifier: BSD-2-Clause
"""Try the mutants: each is applied to a copy, and one of the row's tests must then fail."""

from __future__ import annotations

import queue
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from . import digest
from .bench import Bench, Outcome, build
from .rows import Mutant, Row, is_c


@dataclass(slots=True)
class Verdict:
    """What became of one row."""

    row: Row
    killed: list[str] = field(default_factory=list)  # for each mutant: test and what it did
    defects: list[str] = field(default_factory=list)
    skipped: str = ""  # why its tests cannot run here
    late: bool = False  # the time was over


def wanted(rows: list[Row], names: list[str]) -> list[Row]:
    """Rows of these ids, sections (with those below) or parts; ValueError names what is none."""
    chosen = []
    for name in names:
        dots = (name + ".", name + "-")
        found = [r for r in rows if r.id == name or r.id.startswith(dots)]
        if not found:
            raise ValueError(f"no row, section or part {name}")
        chosen += found
    return [r for r in rows if r in chosen]


def rotated(root: Path, rows: list[Row]) -> list[Row]:
    """The rows from a place that moves with every commit, so that each has its turn."""
    command = ["git", "-C", str(root), "rev-list", "--count", "HEAD"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    number = int(said) if said.isdigit() else int(time.time() // 86400)
    start = number * 61 % len(rows) if rows else 0
    return rows[start:] + rows[:start]


class Prover:
    """Runs verdicts over a pool of copies."""

    def __init__(self, root: Path, jobs: int, say: Callable[[str], None]) -> None:
        self.root = root
        self.jobs = jobs
        self.say = say
        self._free: queue.SimpleQueue[Bench] = queue.SimpleQueue()

    def run(self, rows: list[Row], seconds: float | None = None) -> list[Verdict]:
        """A verdict for each row that has mutants; rows begun in time only."""
        rows = [r for r in rows if r.mutants and r.tests]
        if not rows:
            return []
        tests = list(dict.fromkeys(t for r in rows for t in r.tests))
        until = time.monotonic() + seconds if seconds else None
        failed = build(self.root, [t for t in tests if is_c(t)], self.jobs)
        if failed:
            raise RuntimeError(f"the tests do not build:\n{failed[-3000:]}")
        with tempfile.TemporaryDirectory(prefix="mrc-prove-") as tmp:
            for i in range(self.jobs):
                self._free.put(Bench(self.root, Path(tmp) / str(i)))
            with ThreadPoolExecutor(self.jobs) as pool:
                healthy: dict[str, Outcome] = {}

                def base(test: str) -> Outcome:
                    if test not in healthy:
                        healthy[test] = self._on_bench(lambda b: b.test(test))
                    return healthy[test]

                return list(pool.map(lambda r: self._row(r, base, until), rows))

    def _on_bench(self, what: Callable[[Bench], Outcome]) -> Outcome:
        bench = self._free.get()
        try:
            return what(bench)
        finally:
            self._free.put(bench)

    def _row(self, row: Row, base: Callable[[str], Outcome], until: float | None) -> Verdict:
        verdict = Verdict(row)
        if until is not None and time.monotonic() > until:
            verdict.late = True
            return verdict
        tests = sorted(row.tests, key=lambda t: not is_c(t))
        usable: dict[str, float] = {}
        for test in tests:
            outcome = base(test)
            if outcome.kind == "is skipped":
                verdict.skipped = f"{test} is skipped here"
            elif outcome.kind != "passes":
                verdict.defects.append(
                    f"{test} {outcome.kind} without a mutant:\n{outcome.said[-1500:]}"
                )
            else:
                usable[test] = outcome.patience_s
        if not verdict.defects and usable:
            for number, mutant in enumerate(row.mutants, 1):
                self._mutant(verdict, number, mutant, usable)
        self.say(report(verdict))
        return verdict

    def _mutant(
        self, verdict: Verdict, number: int, mutant: Mutant, tests: dict[str, float]
    ) -> None:
        name = f"mutant {number} of {len(verdict.row.mutants)}"
        bench = self._free.get()
        try:
            with bench.mutated(mutant):
                if failed := bench.prepare(list(tests), mutant):
                    verdict.defects.append(f"{name} does not compile:\n{failed[-1500:]}")
                    return
                for test, limit_s in tests.items():
                    outcome = bench.test(test, limit_s)
                    if outcome.noticed:
                        verdict.killed.append(f"{test} {outcome.kind}")
                        return
                    if outcome.kind == "does not compile":
                        verdict.defects.append(f"{name} does not load:\n{outcome.said[-1500:]}")
                        return
        finally:
            self._free.put(bench)
        if not verdict.skipped:
            verdict.defects.append(f"{name} SURVIVED: no test of the row fails under it")


def report(verdict: Verdict) -> str:
    """What to say of one row."""
    row = verdict.row
    if verdict.defects:
        return "\n".join(f"{row.id}: {d}" for d in verdict.defects)
    if proved(verdict):
        odd = [k for k in verdict.killed if not k.endswith(" fails")]
        return f"{row.id}: proved" + (f" ({'; '.join(odd)})" if odd else "")
    return f"{row.id}: not tried: {verdict.skipped or 'out of time'}"


def proved(verdict: Verdict) -> bool:
    """Every mutant was noticed."""
    return not verdict.defects and len(verdict.killed) == len(verdict.row.mutants)


def record(root: Path, rows: list[Row], verdicts: list[Verdict]) -> None:
    """Put the outcome on record: proofs made, and proofs refuted taken away."""
    proofs = digest.load(root)
    for v in verdicts:
        if proved(v):
            proofs[v.row.id] = {"digest": digest.of(root, v.row), "noticed": v.killed}
        elif v.defects:
            proofs.pop(v.row.id, None)
    tried = {v.row.source for v in verdicts}  # files of others stay as they are
    digest.save(root, [r for r in rows if r.source in tried], proofs)
