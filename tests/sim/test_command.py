# SPDX-License-Identifier: BSD-2-Clause
"""python -m mrc.sim: what it prints, keeps, and returns."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from mrc.fabric import library
from mrc.fabric.record import load
from mrc.fabric.scenario import load_scenario, parse_scenario
from mrc.sim.command import EPILOG, Exit, main

TEXT = """\
name = "tiny"
[fabric]
planes = 2
t1 = 1
rate = "100mbit"
delay = "100us"
[[work]]
kind = "bulk"
[run]
duration = "50ms"
sample = "5ms"
[expect]
"it moves" = "goodput_bps > 0"
"""


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TEXT)
    return str(path)


def test_a_run_in_words(tiny, capsys):
    assert main([tiny]) == Exit.OK
    out = capsys.readouterr().out
    assert "tiny\n  2 hosts, 2 planes of 2 T0 and 1 T1, 100 Mbits/sec a port" in out
    assert "  ok  it moves\n" in out
    assert "goodput_bps" not in out
    assert "met: " in out


def test_the_record_and_the_figure_are_kept(tiny, tmp_path, capsys):
    made = tmp_path / "a.json"
    drawn = tmp_path / "a.svg"
    assert main([tiny, "--json", str(made), "--figure", str(drawn), "--seed", "9"]) == Exit.OK
    record = load(made.read_text())
    assert (record.scenario, record.run["seed"], record.on) == ("tiny", 9, "sim")
    assert drawn.read_text().startswith("<?xml")
    capsys.readouterr()
    assert main([tiny, "--json", "-", "--seed", "9"]) == Exit.OK
    assert json.loads(capsys.readouterr().out) == json.loads(made.read_text())


def test_values_may_be_set(tiny, capsys):
    command = [tiny, "--json", "-", "--set", "fabric.planes=1", "--set", "work.0.bytes=64KB"]
    assert main([*command, "--set", "name=other"]) == Exit.OK
    value = json.loads(capsys.readouterr().out)
    assert (value["scenario"], value["run"]["shape"]["planes"]) == ("other", 1)


def test_an_expectation_that_is_not_met(tmp_path, capsys):
    path = tmp_path / "x.toml"
    path.write_text(TEXT.replace("goodput_bps > 0", "goodput_bps > 1e12"))
    assert main([str(path)]) == Exit.NOT_MET
    said = capsys.readouterr().out
    assert "NOT it moves\n" in said
    assert "it would be: goodput_bps > 1e12  (goodput_bps = " in said


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], Exit.USAGE, "which scenario?"),
        (["startup-dead-path"], Exit.USAGE, "did you mean startup-dead-paths"),
        (["TINY", "--set", "fabric"], Exit.USAGE, "KEY=VALUE"),
        (["TINY", "--set", "fabric.planez=2"], Exit.USAGE, "did you mean planes"),
        (["TINY", "--set", "fabric.planes=2", "--set", "fabric.planes.x=2"], Exit.USAGE, "a value"),
        (
            ["TINY", "--set", "work.7.bytes=2"],
            Exit.USAGE,
            "--set work.7.bytes=2: there is no work.7",
        ),
        (["TINY", "--figure", "x.gif"], Exit.USAGE, "a figure ends with"),
        (["TINY", "TINY", "--json", "x"], Exit.USAGE, "for one scenario"),
        (["TINY", "--seed", "x"], Exit.USAGE, "invalid int"),
        (["TINY", "--seed", "-1"], Exit.USAGE, "--seed -1: [run] seed: -1 must be"),
        (["TINY", "--set", "expect.it=gapms < 3"], Exit.USAGE, "did you mean gap_ms?"),
        (["TINY", "--case", "rc"], Exit.USAGE, "there is no case 'rc'"),
        (["TINY", "--set", 'on=["lab"]'], Exit.USAGE, "is for a lab (mrc-lab run) only"),
        (["none.toml"], Exit.USAGE, "none.toml: there is no such file"),
        (["TINY", "--json", "/nowhere/x.json"], Exit.USAGE, "there is no folder /nowhere"),
        (["--nothing"], Exit.USAGE, "unrecognized"),
    ],
)
def test_what_cannot_be_run(arguments, code, words, tiny, capsys):
    assert main([tiny if word == "TINY" else word for word in arguments]) == code
    err = capsys.readouterr().err
    assert words in err
    assert err.startswith("mrc.sim: ")


def test_the_list_is_of_all_scenarios(capsys):
    assert main(["--list"]) == Exit.OK
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == library.names()
    assert all(line.split()[2] in ("s", "min") for line in lines)
    assert len(lines) >= 15


@pytest.mark.parametrize("name", library.names())
def test_our_scenarios_can_be_read_and_say_what_they_are_compared_with(name):
    scenario = load_scenario(library.find(name))
    assert scenario.claim
    assert scenario.verdict
    assert scenario.scaling
    assert scenario.expect
    assert scenario.only(["main"]).cases == (scenario.main,)
    braces = replace(scenario, verdict="{{a}} set: {gap_ms:.0f}")
    assert braces.only(["main"]).verdict == braces.verdict


def test_an_interrupt_ends_it_with_its_own_code(tiny):
    command = [sys.executable, "-m", "mrc.sim", tiny, "--set", 'run.duration="100s"']
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        run.stdout.readline()  # it has begun
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=60)
    assert run.returncode == Exit.INTERRUPTED
    assert err.decode() == "mrc.sim: stopped\n"


def examples():
    """Scenario files in help and pages."""
    docs = Path(__file__).resolve().parents[2] / "docs"
    pages = (docs / "howto" / "use-the-lab.md", docs / "reference" / "scenario-files.md")
    texts = {"help": EPILOG, **{page.name: page.read_text("utf-8") for page in pages}}
    for name, text in texts.items():
        found = re.findall(r"(?m)^( +)(name = .*\n(?:(?:\1.*)?\n)*)", text)
        assert found, name
        for indent, lines in found:
            scenario = textwrap.dedent(indent + lines).partition("\nmrc-lab run")[0]
            yield pytest.param(scenario, id=name)


@pytest.mark.parametrize("text", list(examples()))
def test_the_scenarios_in_help_and_pages_fill_the_line_and_meet_what_they_expect(
    text, tmp_path, capsys
):
    path = tmp_path / "x.toml"
    path.write_text(text)
    parse_scenario(text, "x.toml", fabric="lab")
    assert main([str(path), "--json", "-"]) == Exit.OK
    record = load(capsys.readouterr().out)
    assert record.expect
    assert record.result["share_of_capacity"] >= 0.95


def test_the_help_teaches():
    command = [sys.executable, "-m", "mrc.sim", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for words in ("--list", "exit codes:", "[[work]]", "startup-dead-paths"):
        assert words in done.stdout
    assert Path(library.folder() / "startup-dead-paths.toml").exists()
