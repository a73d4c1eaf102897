# SPDX-License-Identifier: BSD-2-Clause
"""The page that explains the scorecard is made of the figures beside it."""

import json

import pytest

from tools.scorecard import page
from tools.scorecard.rows import FIGURES
from tools.scorecard.wanted import verdicts


@pytest.fixture(scope="module")
def document():
    return json.loads(page.DATA.read_text(encoding="utf-8"))


def test_the_tables_of_the_page_are_those_of_its_figures(document):
    written = page.PAGE.read_text(encoding="utf-8")
    assert page.text(written, document) == written


def test_a_figure_that_changes_changes_the_page(document):
    written = page.PAGE.read_text(encoding="utf-8")
    other = json.loads(json.dumps(document))
    for record in other["records"]:
        if record["run"]["peer"] == "mrc" and record["scenario"] == "clean":
            record["result"]["goodput_bps"] /= 2
    assert page.text(written, other) != written
    assert any(v.met is False for v in verdicts(other) if v.case == "clean")


def test_lines_of_the_page_name_figures_that_there_are(document):
    known = {figure.key for figure in FIGURES}
    for case, *keys in page.LINES:
        assert case in document["cases"]
        assert set(keys) <= known


def test_a_page_without_marks_is_refused(document):
    with pytest.raises(ValueError, match="scorecard: begin"):
        page.text("# nothing", document)
