# SPDX-License-Identifier: BSD-2-Clause
"""The demo's bookkeeping and judgement, on reports made up here."""

import argparse
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tools.demo import __main__ as command
from tools.demo.folder import PREFIX, remove_stale, work_folder
from tools.demo.scenario import CUT, Result
from tools.demo.stage import SPORT_BASE, LoopbackStage
from tools.demo.story import SenderClock, Story
from tools.demo.summary import figures, remarks, show
from tools.demo.view import Output, screen
from tools.netlab import FabricUnavailableError

PLACES = {SPORT_BASE + i: (i % 4 + 1, i // 4 + 1) for i in range(16)}
CUT_EV = next(ev for ev, place in PLACES.items() if place == CUT)
ROOT = Path(__file__).parents[2]
ZERO = 1000.0
"""The sender's second 0 on the monotonic clock."""


def event(t: float, before: str, after: str, ev: int = CUT_EV, reason: str = "loss"):
    return {"t": t, "ev": ev, "plane": 1, "from": before, "to": after, "reason": reason}


def path(ev: int, sent: int = 1000, state: str = "GOOD") -> dict[str, Any]:
    return {
        "ev": ev,
        "plane": 1,
        "state": state,
        "packets_sent": sent // 100,
        "bytes_sent": sent,
        "packets_lost": 0,
        "retransmits": 0,
        "rtt_us": {"min": 1.0, "avg": 2.0, "max": 3.0},
    }


def interval(end: float, events=(), **states: Any) -> dict[str, Any]:
    return {
        "sum": {"end": end, "seconds": 0.1, "bytes": 16000, "bits_per_second": 1.28e6},
        "paths": [path(ev, state=states.get(f"ev{ev}", "GOOD")) for ev in PLACES],
        "mrc": {"ev_events": list(events)},
    }


def told(events: list[dict[str, Any]]) -> tuple[Story, Result]:
    """Cut at the sender's second 4, heal at 8."""
    story = Story(list(PLACES), "a stage", PLACES, begin=ZERO)
    story.new_transfer("bulk")
    story.interval(interval(0.1), ZERO + 0.1 + 0.003)
    story.interval(interval(0.2), ZERO + 0.2)
    story.cut_spine, story.cut_at, story.heal_at = CUT, ZERO + 4.0, ZERO + 8.0
    result = Result(Path("random.bin"), file_equal=True, file_sha256="ab" * 32)
    result.file_end = {"sum_sent": {"bytes": 10**6, "seconds": 0.5}}
    result.bulk_end = {
        "verified": True,
        "sum_received": {"bytes": 10**9, "seconds": 12.0, "bits_per_second": 6e8},
        "paths": [path(ev) for ev in PLACES],
        "mrc": {
            "packets_sent": 100,
            "packets_retransmitted": 3,
            "spurious_retransmits": 0,
            "timeouts": 0,
            "longest_gap_ms": 4.0,
            "ev_events": events,
        },
    }
    return story, result


GOOD_COURSE = [event(4.005, "GOOD", "ASSUMED_BAD"), event(8.03, "ASSUMED_BAD", "GOOD")]


def test_the_earliest_report_sets_the_clock():
    clock = SenderClock()
    for late in (0.004, 0.0002, 0.003):
        clock.seen(1.0, ZERO + 1.0 + late)
    assert clock.monotonic(5.0) == pytest.approx(ZERO + 5.0002)


def test_a_good_course_has_no_problems():
    found = figures(*told(GOOD_COURSE))
    assert found["problems"] == []
    assert remarks(found) == []
    assert found["cut"]["retired_ms"] == pytest.approx(5.0)
    assert found["cut"]["back_ms"] == pytest.approx(30.0)
    assert found["cut"]["ev"] == CUT_EV
    assert found["spread"] == [1.0, 1.0]
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([], "never retired"),
        (GOOD_COURSE[:1], "did not come back"),
        ([event(3.0, "GOOD", "ASSUMED_BAD"), *GOOD_COURSE[1:]], "never retired"),
        (
            [GOOD_COURSE[0], event(6.0, "ASSUMED_BAD", "GOOD"), *GOOD_COURSE[1:]],
            "before it was healed",
        ),
        ([event(4.005, "GOOD", "ASSUMED_BAD", ev=SPORT_BASE)], "never retired"),
    ],
    ids=["nothing", "not-back", "before-the-cut", "too-early", "another-path"],
)
def test_what_must_not_be_is_found(events: list[dict[str, Any]], says: str):
    found = figures(*told(events))
    assert any(says in problem for problem in found["problems"])


def test_a_path_without_traffic_is_a_problem():
    story, result = told(GOOD_COURSE)
    result.bulk_end["paths"][3]["packets_sent"] = 0
    assert figures(story, result)["problems"] == [f"paths without traffic: [{SPORT_BASE + 3}]"]


def test_slow_figures_are_remarks_and_no_problems():
    story, result = told([GOOD_COURSE[0], event(8.9, "ASSUMED_BAD", "GOOD")])
    result.bulk_end["mrc"]["longest_gap_ms"] = 80.0
    story.steady[SPORT_BASE] *= 3
    found = figures(story, result)
    assert found["problems"] == []
    assert len(remarks(found)) == 3


def test_the_story_tells_when_a_path_went_and_came_back():
    story, _ = told([])
    story.heal_at = None
    story.interval(interval(4.1, [event(4.005, "GOOD", "ASSUMED_BAD")]), ZERO + 4.1)
    story.heal_at = ZERO + 8.0
    story.interval(interval(8.1, [event(8.03, "ASSUMED_BAD", "GOOD")]), ZERO + 8.1)
    texts = [text for _, text in story.log]
    assert texts[0].endswith("GOOD -> ASSUMED_BAD (loss), 5.0 ms after the cut")
    assert texts[1].endswith("ASSUMED_BAD -> GOOD (loss), 30.0 ms after the heal")


def test_congestion_marks_do_not_fill_the_log():
    story, _ = told([])
    story.interval(interval(1.0, [event(0.9, "GOOD", "SKIP"), event(0.9, "SKIP", "GOOD")]), ZERO)
    assert story.log == []


def test_paths_that_change_together_share_a_line():
    story, _ = told([])
    story.heal_at = None
    others = [event(4.0, "GOOD", "ASSUMED_BAD", ev=SPORT_BASE + i) for i in (0, 1, 2)]
    same = event(4.0, "GOOD", "GOOD", ev=SPORT_BASE)
    story.interval(interval(4.1, [*others, same, GOOD_COURSE[0]]), ZERO + 4.1)
    texts = [text for _, text in story.log]
    assert texts == [
        "3 paths GOOD -> ASSUMED_BAD (loss)",
        f"{story.name(CUT_EV)} GOOD -> ASSUMED_BAD (loss), 5.0 ms after the cut",
    ]


def test_the_loopback_shows_when_its_port_is_open():
    stage = LoopbackStage()
    assert not stage.listens()
    with socket.create_server((stage.address, stage.port), family=socket.AF_INET6):
        assert stage.listens()


def printed(what, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    what(console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def test_the_screen_fits_a_small_terminal():
    story, _ = told([])
    story.interval(interval(0.3, **{f"ev{CUT_EV}": "ASSUMED_BAD"}), ZERO + 0.3)
    for i in range(200):
        story.say(f"event number {i} with more words than the terminal is wide, to be cut")
    text = printed(lambda console: console.print(screen(story)))
    assert len(text.splitlines()) <= 24
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "15/16 paths" in text
    assert text.count("BAD") == 1
    assert "event number 199" in text


def test_the_summary_says_what_happened():
    text = in_one_line(printed(lambda console: show(figures(*told(GOOD_COURSE)), console)))
    for words in ("every byte verified", "5.0 ms after the cut", "30.0 ms after the heal",
                  "equals the sent one", "4.0 ms without"):  # fmt: skip
        assert words in text
    assert "WRONG" not in text
    text = printed(lambda console: show(figures(*told([])), console))
    assert "WRONG: the dead path was never retired" in text


def test_before_the_first_report_no_path_is_said_to_be_in_use():
    story = Story(list(PLACES), "a stage", PLACES)
    for _ in range(2):
        text = printed(lambda console: console.print(screen(story)))
        assert "in use" not in text
        assert "no figures yet, 16 paths" in text
        assert story.usable == 0
        story.interval(interval(0.1), ZERO)
        assert "16/16 paths in use" in printed(lambda console: console.print(screen(story)))
        story.new_transfer("the next one")


def test_without_switches_there_is_no_talk_of_planes_and_spines():
    stage = LoopbackStage()
    story = Story(stage.evs(), stage.title, stage.places())
    story.interval(interval(0.1, [event(0.05, "GOOD", "ASSUMED_BAD")]), ZERO)
    _, result = told([])
    text = printed(lambda console: console.print(screen(story)))
    assert str(SPORT_BASE + 15) in text
    assert max(len(line) for line in text.splitlines()) <= 80
    found = figures(story, result)
    text += printed(lambda console: show(found, console))
    assert f"path {CUT_EV} GOOD -> ASSUMED_BAD" in text
    for word in ("plane", "spine"):
        assert word not in text
        assert {path[word] for path in found["paths"]} == {None}


def test_what_to_do_about_forbidden_namespaces_can_be_copied(tmp_path, monkeypatch):
    hint = "as root: sysctl -w " + "a.long.name." * 9 + "=10000"

    def refuse(_self):
        raise FabricUnavailableError("no more namespaces", hint)

    monkeypatch.setattr("tools.netlab.Fabric.up", refuse)
    console = Output(file=io.StringIO(), width=40)
    options = argparse.Namespace(loopback=False)
    with command._stage(options, tmp_path, console) as stage:
        assert isinstance(stage, LoopbackStage)
    assert isinstance(console.file, io.StringIO)
    assert hint in console.file.getvalue()


def test_a_folder_is_gone_after_use_and_spared_while_in_use(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with work_folder() as folder:
        (folder / "received").mkdir()
        with work_folder() as other:
            assert folder.is_dir()
            assert other != folder
        assert remove_stale(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_demo_left_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = (
        "import signal\nfrom tools.demo.folder import work_folder\n"
        "with work_folder() as folder:\n    print(folder, flush=True); signal.pause()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as living:
        assert living.stdout is not None
        folder = Path(living.stdout.readline().strip())
        (folder / "random.bin").write_bytes(b"x" * 1000)
        assert remove_stale(tmp_path) == []
        living.kill()
    assert folder.is_dir()
    with work_folder() as mine:
        assert list(tmp_path.iterdir()) == [mine]


def test_stale_folders_are_neither_links_nor_files_nor_other_names(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(precious)
    (tmp_path / f"{PREFIX}file").write_text("not a folder")
    assert remove_stale(tmp_path) == []
    assert len(list(tmp_path.iterdir())) == 3


@pytest.fixture
def demo(tmp_path) -> Iterator[list[str]]:
    """The command line of a short demo over [::1]; it must leave no file and no process behind."""
    yield [sys.executable, "-m", "tools.demo", "--loopback", "--duration", "1.5"]
    assert list(tmp_path.iterdir()) == []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command_line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            assert os.fsencode(tmp_path) not in command_line


@pytest.mark.parametrize(("form", "lines"), [([], 0), ([], 1), ([], 3), (["--json"], 0)])
def test_a_reader_that_leaves_is_no_crash(demo, tmp_path, form: list[str], lines: int):
    """make demo | head -2."""
    with subprocess.Popen(
        [*demo, *form],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(lines):
            assert process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == command.EXIT_UNREAD
    assert said == "" if not form else "Traceback" not in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_demo_that_is_stopped_leaves_nothing(demo, tmp_path, number: signal.Signals):
    with subprocess.Popen(
        demo,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        while "mrc-send" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(number)
        said = process.stdout.read()
    assert process.returncode == command.EXIT_INTERRUPTED
    assert "interrupted" in said
    assert "Traceback" not in said


def test_the_help_is_text_for_people(capsys):
    with pytest.raises(SystemExit):
        command.main(["--help"])
    said = capsys.readouterr().out
    assert "`" not in said
    assert 'make demo ARGS="--duration 20"' in said


def test_make_help_and_the_readme_name_the_options_of_the_demo():
    make = shutil.which("make")
    assert make, "make is missing"
    listed = subprocess.run([make, "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    line = next(line for line in listed.stdout.splitlines() if line.startswith("demo "))
    assert 'ARGS="--duration 20"' in line
    assert 'make demo ARGS="--duration 20"' in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("argv", [["--duration", "0"], ["--duration", "x"], ["--file", "none"]])
def test_bad_options_are_usage_errors(argv: list[str], capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(argv)
    assert ended.value.code == 1
    assert argv[0] in capsys.readouterr().err


def test_an_unbuilt_project_is_said_in_words(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    assert command.main(["--json"]) == 4
    assert "run make first" in json.loads(capsys.readouterr().out)["error"]
