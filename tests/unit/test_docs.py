# SPDX-License-Identifier: BSD-2-Clause
"""The pages under docs/ say what the code does."""

import dataclasses
import re
import tomllib
from pathlib import Path

import pytest

from mrc import DropReason, PathStats, PortStats, QpStats
from mrc.evfile import parse_profile

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([^)#]+)(?:#[^)]*)?\)")


def blocks(language):
    for page in PAGES:
        for number, match in enumerate(BLOCK.finditer(page.read_text())):
            if match[1] == language:
                yield pytest.param(match[2], id=f"{page.name}-{number}")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(DOCS.parent)))
def test_links_lead_somewhere(page):
    assert [t for t in LINK.findall(page.read_text()) if not (page.parent / t).exists()] == []


@pytest.mark.parametrize("text", blocks("toml"))
def test_profiles_can_be_read(text):
    assert len(parse_profile(tomllib.loads(text), "page")) > 0


@pytest.mark.parametrize("text", blocks("python"))
def test_programs_compile(text):
    compile(text, "page", "exec")


def test_every_counter_is_explained_and_no_other():
    names = set(DropReason.__members__)
    for record in (QpStats, PathStats, PortStats):
        names |= {f.name for f in dataclasses.fields(record)}
    text = (DOCS / "reference" / "counters.md").read_text()
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert {n for cell in cells for n in re.findall(r"`(\w+)`", cell)} == names
