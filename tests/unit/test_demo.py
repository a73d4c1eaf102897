# SPDX-License-Identifier: BSD-2-Clause
"""The demo's bookkeeping and judgement, on reports made up here."""

import argparse
import asyncio
import contextlib
import io
import json
import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mrc.lab import FabricUnavailableError
from tools.demo import __main__ as command
from tools.demo.scenario import CUT, Result
from tools.demo.stage import SPORT_BASE, LoopbackStage
from tools.demo.story import SenderClock, Story
from tools.demo.summary import figures, remarks, show
from tools.demo.view import Output, screen, watch

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
    text = printed(lambda console: console.print(screen(story)))
    assert len(text.splitlines()) <= 24
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "15/16 paths" in text
    assert text.count("BAD") == 1


def on_a_terminal(story: Story, width: int, play) -> list[str]:
    """What a terminal shows after ``watch`` was cancelled: a tiny one, of lines and a cursor."""
    console = Console(
        file=io.StringIO(), width=width, height=40, force_terminal=True, _environ={"TERM": "xterm"}
    )

    async def see() -> None:
        watching = asyncio.create_task(watch(story, console))
        await play()
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching

    asyncio.run(see())
    assert isinstance(console.file, io.StringIO)
    written = console.file.getvalue()
    assert "paths in use" in written, "the live screen was never shown"
    lines, row = [""], 0
    for token in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|\n|\r|[^\x1b\n\r]+", written):
        if token == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif token == "\x1b[2K":
            lines[row] = ""
        elif token == "\x1b[1A":
            row -= 1
        elif token[0] not in "\x1b\r":
            lines[row] += token
    return [line.rstrip() for line in lines if line.strip()]


@pytest.mark.parametrize("width", [60, 80, 100])
def test_on_a_terminal_the_events_stay_whole_and_the_screen_goes(width: int):
    story, _ = told([])
    story.heal_at = None
    story.log.append((ZERO + 4.0, "CUT [bold]plane[/bold] 3"))

    async def play() -> None:
        await asyncio.sleep(0)
        story.interval(interval(4.1, GOOD_COURSE[:1]), ZERO + 4.1)
        story.say("the last word", ZERO + 5.0)  # seen by no refresh: cancelled at once

    lines = on_a_terminal(story, width, play)
    assert max(len(line) for line in lines) <= width
    assert in_one_line("\n".join(lines)) == in_one_line(
        "4.000 CUT [bold]plane[/bold] 3"
        f" 4.005 {story.name(CUT_EV)} GOOD -> ASSUMED_BAD (loss), 5.0 ms after the cut"
        " 5.000 the last word"
    )
    assert all(line.startswith("  ") for line in lines)


def test_an_event_has_one_figure_though_the_clock_gets_better():
    story, result = told([event(4.0061, "GOOD", "ASSUMED_BAD"), GOOD_COURSE[1]])
    story.interval(interval(4.1, result.bulk_end["mrc"]["ev_events"][:1]), ZERO + 4.1)
    story.interval(interval(8.1, GOOD_COURSE[1:]), ZERO + 8.1)
    story.interval(interval(8.2), ZERO + 8.2 - 0.0003)
    cut = figures(story, result)["cut"]
    texts = [text for _, text in story.log]
    assert texts[0].endswith(f", {cut['retired_ms']:.1f} ms after the cut")
    assert texts[1].endswith(f", {cut['back_ms']:.1f} ms after the heal")
    assert cut["retired_ms"] == pytest.approx(6.1)


def test_a_path_lost_or_back_while_marked_is_told_and_judged_alike():
    events = [event(4.005, "SKIP", "ASSUMED_BAD"), event(8.03, "ASSUMED_BAD", "SKIP", reason="rx")]
    events.append(event(8.04, "SKIP", "GOOD"))
    story, result = told(events)
    story.interval(interval(8.1, events), ZERO + 8.1)
    texts = [text for _, text in story.log]
    assert [text.rpartition(", ")[2] for text in texts] == [
        "5.0 ms after the cut",
        "30.0 ms after the heal",
    ]
    found = figures(story, result)
    assert found["problems"] == []
    assert (found["cut"]["retired_ms"], found["cut"]["back_ms"]) == (5.0, 30.0)


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
    text += printed(lambda console: show(found, console)) + story.log[0][1]
    assert f"path {CUT_EV} GOOD -> ASSUMED_BAD" in text
    for word in ("plane", "spine"):
        assert word not in text
        assert {path[word] for path in found["paths"]} == {None}


def test_what_to_do_about_forbidden_namespaces_can_be_copied(tmp_path, monkeypatch):
    hint = "as root: sysctl -w " + "a.long.name." * 9 + "=10000"

    def refuse(_self):
        raise FabricUnavailableError("no more namespaces", hint)

    monkeypatch.setattr("mrc.lab.Fabric.up", refuse)
    console = Output(file=io.StringIO(), width=40)
    options = argparse.Namespace(loopback=False)
    with command._stage(options, tmp_path, console) as stage:
        assert isinstance(stage, LoopbackStage)
    assert isinstance(console.file, io.StringIO)
    assert hint in console.file.getvalue()


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
