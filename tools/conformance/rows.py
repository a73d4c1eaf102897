# SPDX-License-Identifier: BSD-2-Clause
"""The rows of tests/conformance/*.toml as records, and what is wrong with their form."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = "tests/conformance"
PAGE = "docs/reference/conformance.md"
TEXTS = ("id", "section", "statement")
LISTS = ("where", "tests")
SECTION = re.compile(r"[A-H](\.\d+)*")
ID = re.compile(r"(?P<section>[A-H](?:\.\d+)*)-(?P<number>[1-9]\d*)")


class RowError(Exception):
    """A file of rows that cannot be read; the message names the file and the row."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file that removes the behaviour."""

    file: str
    find: str  # literal, exactly once in the file
    replace: str


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement."""

    id: str
    section: str
    statement: str
    where: tuple[str, ...]  # "file: symbol"
    tests: tuple[str, ...]  # "file.c: TEST name" or "file.py::test"
    mutants: tuple[Mutant, ...]
    source: str  # name of the file of rows, without its suffix
    place: int  # in that file

    @property
    def order(self) -> tuple[str, tuple[int, ...], int]:
        """Where the row stands in the table: part, numbers of the section, running number."""
        part, *numbers = self.section.split(".")
        return part, tuple(int(n) for n in numbers), int(self.id.rpartition("-")[2])


def is_c(test: str) -> bool:
    """Whether a test is one of C."""
    return "::" not in test


def split_where(where: str) -> tuple[str, str]:
    """File and symbol of "file: symbol"."""
    file, _, symbol = where.partition(": ")
    return file.strip(), symbol.strip()


def split_test(test: str) -> tuple[str, str]:
    """File and name of a test; the parameters of a Python test are left out of its name."""
    if is_c(test):
        return split_where(test)
    file, _, name = test.partition("::")
    return file, name.partition("[")[0].replace("::", ".")


def _row(raw: object, source: str, place: int) -> Row:
    """One table of the file; RowError says what is wrong with it."""
    if not isinstance(raw, dict):
        raise RowError(f"{source}.toml: row is no table")
    name = f"{source}.toml: {raw.get('id', 'row without id')}"
    if unknown := set(raw) - {*TEXTS, *LISTS, "mutant"}:
        raise RowError(f"{name}: unknown key {', '.join(sorted(unknown))}")
    for key in TEXTS:
        if not isinstance(raw.get(key), str) or not raw[key].strip():
            raise RowError(f"{name}: {key} is missing")
    for key in LISTS:
        values = raw.get(key, [])
        if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
            raise RowError(f"{name}: {key} is no list of strings")
    mutants = raw.get("mutant", [])
    for m in mutants:
        if set(m) != {"file", "find", "replace"} or m["find"] == m["replace"]:
            raise RowError(f"{name}: a mutant has file, find and a different replace")
    match = ID.fullmatch(raw["id"])
    if not SECTION.fullmatch(raw["section"]) or not match or match["section"] != raw["section"]:
        raise RowError(f"{name}: the id is not the section {raw['section']}, a dash and a number")
    return Row(
        raw["id"],
        raw["section"],
        " ".join(raw["statement"].split()),
        tuple(raw.get("where", [])),
        tuple(raw.get("tests", [])),
        tuple(Mutant(m["file"], m["find"], m["replace"]) for m in mutants),
        source,
        place,
    )


def parse(text: str, source: str) -> list[Row]:
    """The rows of one file's text."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        raise RowError(f"{source}.toml: {e}") from e
    if set(raw) - {"row"}:
        raise RowError(f"{source}.toml: holds more than [[row]]")
    return [_row(r, source, i) for i, r in enumerate(raw.get("row", []))]


def load(root: Path) -> list[Row]:
    """All rows, in the order of the table."""
    files = sorted((root / FOLDER).glob("*.toml"))
    rows = [r for path in files for r in parse(path.read_text(), path.stem)]
    return sorted(rows, key=lambda r: r.order)
