# SPDX-License-Identifier: BSD-2-Clause
"""What a proof depends on, as one number, and the file the proofs are kept in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from . import csource, pysource
from .rows import FOLDER, Row, is_c, split_test

Proofs = dict[str, dict[str, object]]


def _around(root: Path, file: str, find: str) -> str:
    """The function that a mutant changes, without comments."""
    path = root / file
    offset = path.read_text().index(find)
    return pysource.around(path, offset) if path.suffix == ".py" else csource.around(path, offset)


def _test(root: Path, test: str) -> Sequence[str]:
    file, name = split_test(test)
    if is_c(test):
        return csource.test_text(root / file, name)
    return pysource.test_text(root, root / file, name)


def of(root: Path, row: Row) -> str:
    """Digest of a row that passes the check: the row, the functions it changes, its tests.

    White space counts for nothing, comments neither. What else the tests run through is left out
    on purpose: see docs/howto/add-a-requirement.md.
    """
    parts = [row.id, row.statement, *row.where, *row.tests]
    for m in row.mutants:
        parts += [m.file, m.find, m.replace, _around(root, m.file, m.find)]
    for test in row.tests:
        parts += _test(root, test)
    text = "\0".join(" ".join(p.split()) for p in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _file(root: Path, source: str) -> Path:
    return root / FOLDER / "proved" / f"{source}.json"


def load(root: Path) -> Proofs:
    """The proofs on record, by the id of their row."""
    found: Proofs = {}
    for path in sorted((root / FOLDER / "proved").glob("*.json")):
        found.update(json.loads(path.read_text()))
    return found


def save(root: Path, rows: list[Row], proofs: Proofs) -> None:
    """Write the proofs of these rows, a file for each file of rows."""
    for source in sorted({r.source for r in rows}):
        path = _file(root, source)
        kept = {r.id: proofs[r.id] for r in rows if r.source == source and r.id in proofs}
        lines = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in kept.items()]
        text = "{\n" + ",\n".join(lines) + "\n}\n" if lines else "{}\n"
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
