# SPDX-License-Identifier: BSD-2-Clause
"""What is mistyped to make, or to what it starts, is said, and is no success."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from mrc.fabric import library
from mrc.fabric.record import Check
from mrc.fabric.scenario import load_scenario
from tests.fabric.records import LINE, record
from tests.needs import skip_or_fail
from tools.scenarios.__main__ import main
from tools.scenarios.page import page

ROOT = Path(__file__).resolve().parents[2]
VOPR = ROOT / "build" / "c" / "vopr"
BUILT = ("build/c/vopr", ".venv/.ext", ".venv/.test")
"""What is not made for this."""


def make(*words: str) -> tuple[int, str]:
    if shutil.which("make") is None:
        skip_or_fail("no make command")
    old = [word for name in BUILT for word in ("-o", name)]
    done = subprocess.run(
        ["make", "-s", *old, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("sim SEED=abc", "make: SEED=abc is not a number from 0"),
        ("sim SEED=010", "make: SEED=010 is not a number from 0"),
        ("sim SEED=-1", "make: SEED=-1 is not a number from 0"),
        ("sim SEEDS=0", "make: SEEDS=0 is not a number from 1"),
        ("sim SEEDS=x", "make: SEEDS=x is not a number from 1"),
    ],
)
def test_numbers_are_numbers(words, says):
    code, said = make(*words.split())
    assert code == 2
    assert said.splitlines()[0] == says


@pytest.mark.parametrize("argv", [["abc"], ["1x"], ["1", "y"], ["99999999999999999999"], [" 1"]])
def test_vopr_runs_no_seed_that_is_none(argv):
    if not VOPR.exists():
        skip_or_fail("vopr is not compiled: make build/c/vopr")
    done = subprocess.run([VOPR, *argv], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"vopr: {argv[-1]} is not a number\n"


def test_a_scenario_that_is_not_there(capsys):
    assert main(["ev-loss", "star-up-dead-paths"]) == 1
    said = capsys.readouterr()
    assert said.err == (
        "scenarios: there is no 'star-up-dead-paths'; did you mean startup-dead-paths?\n"
    )
    assert said.out == ""


def test_the_page_of_scenarios_says_what_is_judged_and_what_was_found():
    text = (ROOT / "docs" / "reference" / "scenarios.md").read_text("utf-8")
    rows = {line.split("](")[0][3:]: line for line in text.splitlines() if line.startswith("| [")}
    assert list(rows) == library.names()
    for name, row in rows.items():
        judged = row.rpartition(" | ")[2]
        for one in load_scenario(library.find(name)).expect:
            assert one.words in judged, name


def test_a_row_tells_what_is_met_from_what_is_not():
    scenario = load_scenario(library.find("startup-dead-paths"))
    made = record([(1, LINE)], lost=3, trimmed=0, timeouts=0, sent_bytes=1)
    run = {**made.run, "base_rtt_s": 0.001}
    checks = (Check("few", "lost < 5", met=True), Check("none", "lost == 0", met=False))
    made = replace(made, run=run, expect=checks, verdict="not met (none): 3. Published: 5")
    (row,) = [line for line in page([("x", scenario, made)], {}).splitlines() if "| [x]" in line]
    assert row.endswith(" | 3 | **not met**: none. met: few |")
