# SPDX-License-Identifier: BSD-2-Clause
"""docs/reference/field-reports.md: every report is there, every test named exists and names it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/field-reports.md").read_text(encoding="utf-8")
NUMBERS = (
    *(1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 14),
    *(16, 17, 19, 21, 22, 23, 25, 26, 27, 29),
    *(30, 31, 33, 34, 35, 37, 39, 40, 42),
    *(43, 44, 45, 47, 49, 50, 51, 52, 54),
    *(55, 56, 58, 60, 61, 63, 65),
    *(67, 68, 69, 70),
    *(72, 73, 74, 76, 77, 80),
)
WITHOUT_TEST = {76}  # belongs to what is not built yet
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| (.+) \|$", re.MULTILINE)
ROWS = {int(m[1]): m for m in ROW.finditer(PAGE)}
NAMED = re.compile(r"`((?:csrc|tests)/[^`: ]+)(?:: |::)(\w+)`")
TESTS = [(number, m[1], m[2]) for number, row in ROWS.items() for m in NAMED.finditer(row[3])]
AND = r"(?:,\s+(?:and\s+)?|\s+and\s+)(?:FR\s+)?"
REPORTS = re.compile(rf"(?:[Ff]ield reports?|FR)\s+(\d+(?:{AND}\d+)*)")
LEAD = 6  # lines of comment in front of a C test that belong to it


def test_every_report_has_a_row() -> None:
    assert len(NUMBERS) == 56
    assert tuple(ROWS) == NUMBERS


def test_every_row_has_a_test_or_says_why_not() -> None:
    assert set(ROWS) - {number for number, _, _ in TESTS} == WITHOUT_TEST


def _c_text(path: Path, name: str) -> str:
    """The test with the comment in front of it, or with that of the function it calls."""
    lines = path.read_text(encoding="utf-8").splitlines()
    starts = [i for i, line in enumerate(lines) if re.match(rf"TEST\({name}\)", line)]
    assert len(starts) == 1, f"{path.name} has no TEST({name})"
    start = starts[0]
    after = [i for i in range(start + 1, len(lines)) if lines[i].startswith("TEST(")]
    end = after[0] if after else len(lines)
    text = "\n".join(lines[max(0, start - LEAD) : end])
    child = re.search(r"child_run\([^,]+, (\w+)\)", lines[start])
    if child:
        at = next(i for i, line in enumerate(lines) if f"int {child[1]}(" in line)
        text += "\n".join(lines[max(0, at - LEAD) : start])
    return text


def _python_text(path: Path, name: str) -> str:
    """The test, and what the module says of all its tests."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    found = [n for n in ast.walk(tree) if getattr(n, "name", None) == name]
    assert len(found) == 1, f"{path.name} has no {name}"
    return (ast.get_docstring(tree) or "") + (ast.get_source_segment(source, found[0]) or "")


@pytest.mark.parametrize(("number", "file", "name"), TESTS)
def test_the_tests_named_exist_and_name_the_report(number: int, file: str, name: str) -> None:
    path = ROOT / file
    text = _python_text(path, name) if path.suffix == ".py" else _c_text(path, name)
    named = {int(n) for m in REPORTS.finditer(text) for n in re.findall(r"\d+", m[1])}
    assert number in named, f"{name} does not name field report {number}"
