# SPDX-License-Identifier: BSD-2-Clause
"""What people see of a run while it lasts, and of scenarios before."""

import argparse
from dataclasses import replace

import pytest

from mrc.fabric import console, library
from mrc.fabric.console import Progress, add_options, load
from mrc.fabric.scenario import load_scenario

SCENARIO = load_scenario(library.find("startup-dead-paths"))


def told(progress: Progress, capsys, monkeypatch):
    """The line on stderr, of a run that is told nothing else."""
    monkeypatch.setattr(console, "_QUIET_EVERY_S", 0.0)

    def run(_, tell):
        tell(progress)
        raise KeyboardInterrupt

    options = argparse.Namespace(json="-", figure=None, quiet=False)
    with pytest.raises(KeyboardInterrupt):
        console.run_one(SCENARIO, options, run)
    return capsys.readouterr().err


def test_progress_says_how_far_of_how_much_and_how_long_yet(capsys, monkeypatch):
    progress = Progress(SCENARIO.compare[0], 1, 4, 500_000_000, 6.0)
    said = told(progress, capsys, monkeypatch)
    assert said == "  with a denylist (2 of 4): 0.500 of 2 s, 6 s gone, 18 s to go\n"


def test_what_ends_when_all_has_arrived_has_no_time_to_go(capsys, monkeypatch):
    case = SCENARIO.compare[0]
    case = replace(case, run=replace(case.run, done=True))
    said = told(Progress(case, 1, 4, 500_000_000, 6.0), capsys, monkeypatch)
    assert "0.500 of at most 2 s, 6 s gone\n" in said
    assert "to go" not in said


def test_a_long_name_is_cut_between_words(capsys, monkeypatch):
    case = replace(SCENARIO.main, name="forty characters and a few more are too many words")
    said = told(Progress(case, 0, 1, 0, 0.0), capsys, monkeypatch)
    assert said.startswith("  forty characters and a few more are .. (1 of 1): 0.000 of 2 s")


@pytest.mark.parametrize("on", ["sim", "lab"])
def test_the_list_says_how_long_each_takes(on, capsys):
    parser = argparse.ArgumentParser()
    add_options(parser)
    assert load(parser.parse_args(["--list"]), on) == []
    lines = capsys.readouterr().out.splitlines()
    for line in lines:
        name, number, unit, *_ = line.split()
        assert int(number) > 0
        assert unit in ("s", "min")
        assert on in load_scenario(library.find(name)).on
