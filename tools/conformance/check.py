# SPDX-License-Identifier: BSD-2-Clause
"""What the rows name exists, and the status of each."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from . import csource, digest, pysource
from .rows import Row, is_c, split_test, split_where


class Status(Enum):
    """How far a requirement is covered."""

    PROVED = "proved"
    TESTED = "tested, not proved"
    NONE = "not covered"


def _where(root: Path, where: str) -> str | None:
    file, symbol = split_where(where)
    path = root / file
    if not path.is_file():
        return f"no file {file}"
    if not symbol:
        return f"{file}: no symbol named"
    if path.suffix == ".py":
        there = pysource.find(path, symbol) is not None
    elif path.suffix in (".c", ".h"):
        there = csource.defines(path, symbol)
    else:
        there = symbol in path.read_text()
    return None if there else f"{file} does not define {symbol}"


def _test(root: Path, test: str) -> str | None:
    file, name = split_test(test)
    path = root / file
    if not path.is_file():
        return f"no file {file}"
    if is_c(test):
        return None if name in csource.tests(path) else f"{file} has no TEST({name})"
    there = name.rpartition(".")[2].startswith("test_") and pysource.find(path, name) is not None
    return None if there else f"{file} has no test {name}"


def faults(root: Path, row: Row) -> list[str]:
    """One sentence for each thing the row names that is not there."""
    found = [_where(root, w) for w in row.where] + [_test(root, t) for t in row.tests]
    for m in row.mutants:
        path = root / m.file
        if not path.is_file():
            found.append(f"mutant: no file {m.file}")
        elif (n := path.read_text().count(m.find)) != 1:
            found.append(f"mutant: {m.find!r} is {n} times in {m.file}")
    if not row.where:
        found.append("where is empty")
    if row.mutants and not row.tests:
        found.append("a mutant, but no test that could fail")
    return [f"{row.source}.toml: {row.id}: {f}" for f in found if f]


def order_faults(rows: list[Row]) -> list[str]:
    """Ids used twice, and rows that stand in their file before one they should follow."""
    found = []
    last: Row | None = None
    place: dict[str, int] = {}
    for row in rows:
        if last is not None and row.id == last.id:
            found.append(f"{row.source}.toml: {row.id} is also in {last.source}.toml")
        if row.place < place.get(row.source, 0):
            found.append(f"{row.source}.toml: {row.id} stands too early")
        place[row.source] = max(row.place, place.get(row.source, 0))
        last = row
    return found


def status(root: Path, row: Row, proofs: digest.Proofs) -> tuple[Status, str]:
    """The status of a row that has no faults, and why it is not proved."""
    if not row.tests:
        return Status.NONE, "no test"
    if not row.mutants:
        return Status.TESTED, "no mutant"
    proof = proofs.get(row.id)
    if proof is None:
        return Status.TESTED, "mutant not tried"
    if proof.get("digest") != digest.of(root, row):
        return Status.TESTED, "proof is stale"
    return Status.PROVED, ""
