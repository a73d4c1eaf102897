# SPDX-License-Identifier: BSD-2-Clause
"""The pages under docs/ say what the code does."""

import dataclasses
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mrc import DropReason, PathStats, PortStats, QpStats
from mrc.cli.labparser import lab_parser
from mrc.cli.parser import recv_parser, send_parser
from mrc.evfile import parse_profile
from tools.conformance import check, rows

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
API_PAGE = DOCS / "reference" / "python.md"  # its programs are run by tests/aio/test_examples.py
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([^)#]+)(?:#[^)]*)?\)")


def blocks(language):
    """(page and number, text) of each fenced block in a language."""
    return [
        (f"{page.name} block {number}", match[2])
        for page in PAGES
        if page != API_PAGE
        for number, match in enumerate(BLOCK.finditer(page.read_text()))
        if match[1] == language
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(DOCS.parent)))
def test_links_lead_somewhere(page):
    assert [t for t in LINK.findall(page.read_text()) if not (page.parent / t).exists()] == []


@pytest.mark.parametrize("text", [pytest.param(t, id=i) for i, t in blocks("toml")])
def test_tables_can_be_read(text):
    if text.startswith("[[row]]"):  # of the conformance table
        assert [f for r in rows.parse(text, "page") for f in check.faults(DOCS.parent, r)] == []
    else:
        assert len(parse_profile(tomllib.loads(text), "page")) > 0


@pytest.mark.parametrize("program", [pytest.param(t, id=i) for i, t in blocks("python")])
def test_programs_run_and_leave_nothing_open(program):
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", program]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_counter_is_explained_and_no_other():
    names = set(DropReason.__members__)
    for record in (QpStats, PathStats, PortStats):
        names |= {f.name for f in dataclasses.fields(record)}
    text = (DOCS / "reference" / "counters.md").read_text()
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert {n for cell in cells for n in re.findall(r"`(\w+)`", cell)} == names


def test_every_verb_and_option_of_the_lab_is_on_its_page():
    text = (DOCS / "reference" / "lab.md").read_text()
    named = set(re.findall(r"(?<![\w-])--[\w-]+", text)) | {"-h"}
    (verbs,) = (a.choices for a in lab_parser()._actions if isinstance(a.choices, dict))
    assert [verb for verb in verbs if not re.search(rf"\b{verb}\b", text)] == []
    options = [a.option_strings for p in (lab_parser(), *verbs.values()) for a in p._actions]
    assert [spellings for spellings in options if spellings and not named & set(spellings)] == []


@pytest.mark.parametrize("parser", [recv_parser(), send_parser()], ids=lambda p: p.prog)
def test_every_option_is_on_the_commands_page(parser):
    text = (DOCS / "reference" / "cli.md").read_text()
    named = set(re.findall(r"(?<![\w-])--?[\w-]+", text)) | {"-h", "--version"}
    options = [a.option_strings for a in parser._actions if a.option_strings]
    assert [spellings for spellings in options if not named & set(spellings)] == []
