# SPDX-License-Identifier: BSD-2-Clause
"""What commands that run scenarios have in common: options, progress, what is kept of a run."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import library, report
from .errors import FabricError
from .given import Given
from .record import Record, dump
from .scenario import Case, Scenario, load_scenario

__all__ = ["Progress", "Tell", "add_options", "load", "run_one"]

_EVERY_S = 0.5
_QUIET_EVERY_S = 10.0
_LAB_START_S = 1.5
"""Until a lab is up and its programs have been read in, about."""
_NAME_MAX = 40
_PLACES = {"sim": "the emulated fabric (python -m mrc.sim)", "lab": "a lab (mrc-lab run)"}


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    case: Case
    number: int
    """From 0."""
    cases: int
    now_ns: int
    wall_s: float


Tell = Callable[[Progress], None]
Runner = Callable[[Scenario, Tell], Record]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which scenarios, what is different in them, what is kept."""
    add = parser.add_argument
    add("scenario", nargs="*", metavar="SCENARIO", help="a file (.toml), or a name from --list")
    add("--list", action="store_true", help="the scenarios that come with the package")
    add("--json", metavar="FILE", help="write the record; - for stdout, and no text then")
    add("--figure", metavar="FILE", help="draw it: .svg, .png or .pdf (needs matplotlib)")
    add("--seed", type=int, metavar="N", help="another seed than the file's")
    add(
        "--set",
        action="append",
        default=[],
        dest="changes",
        metavar="KEY=VALUE",
        help="another value than the file's: fabric.planes=2, work.0.bytes=64KB; again for more",
    )
    add(
        "--case",
        action="append",
        default=[],
        metavar="ID",
        help="only this case: main, or the id of a comparison; again for more",
    )
    add("--quiet", action="store_true", help="no progress")


def load(options: argparse.Namespace, on: str) -> list[Scenario]:
    """The scenarios asked for, as they are to be run; with --list none, they are printed.

    FabricError: they cannot be, on this fabric. OSError; ImportError: a figure without matplotlib.
    """
    if options.list:
        if options.scenario:
            raise FabricError("--list shows what there is, and takes no scenario")
        for name in library.names():
            scenario = load_scenario(library.find(name))
            if on in scenario.on:
                scenario = load_scenario(library.find(name), fabric=on)
                print(f"{name:26} {_about(_takes_s(scenario, on)):>7}  {scenario.name}")
        return []
    if not options.scenario:
        raise FabricError("which scenario?")
    if len(options.scenario) > 1 and (options.json or options.figure):
        raise FabricError("--json and --figure are for one scenario")
    _check_outputs(options)
    given = Given(options.changes, options.seed)
    loaded = [given.loaded(library.find(word), on) for word in options.scenario]
    for scenario in loaded:
        if on not in scenario.on:
            where = " and ".join(_PLACES[name] for name in scenario.on)
            raise FabricError(f"{scenario.source}: is for {where} only (on = {list(scenario.on)})")
    return [scenario.only(options.case) for scenario in loaded] if options.case else loaded


def _takes_s(scenario: Scenario, on: str) -> float:
    """How long all its cases take: on a lab in real time, else as it says. 0: not known."""
    if on == "sim":
        return scenario.takes_ns / 1e9
    return sum(case.run.duration_ns / 1e9 + _LAB_START_S for case in scenario.cases)


def _about(seconds: float) -> str:
    """For people who want to know whether to wait."""
    if not seconds:
        return "-"
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _check_outputs(options: argparse.Namespace) -> None:
    for flag, path in (("--json", options.json), ("--figure", options.figure)):
        _check_output(flag, path)
    if options.figure is not None:
        from . import figure

        figure.check(options.figure)


def _check_output(flag: str, path: str | None) -> None:
    """OSError for what cannot be written when the run is over; nothing is made."""
    if path is None or path == "-":
        return
    target = Path(path)
    if target.is_dir():
        raise FabricError(f"{flag} {path}: is a folder, not a file")
    if not target.parent.is_dir():
        raise FabricError(f"{flag} {path}: there is no folder {target.parent}")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def run_one(
    scenario: Scenario,
    options: argparse.Namespace,
    run: Runner,
    describe: Callable[[Scenario], Iterable[str]] = report.describe,
) -> bool:
    """Run it, say and keep what came of it; whether all expectations are met."""
    text = options.json != "-"
    if text:
        for line in describe(scenario):
            print(line, flush=True)
    with _progress(scenario, quiet=options.quiet) as tell:
        record = run(scenario, tell)
    if text:
        for line in report.lines(record):
            print(line)
    _keep(scenario, record, options)
    return all(check.met for check in record.expect)


def _keep(scenario: Scenario, record: Record, options: argparse.Namespace) -> None:
    if options.json == "-":
        sys.stdout.write(dump(record))
    elif options.json is not None:
        Path(options.json).write_text(dump(record), encoding="utf-8")
    if options.figure is not None:
        from . import figure

        figure.draw(record, scenario.figure, Path(options.figure))


@contextlib.contextmanager
def _progress(scenario: Scenario, *, quiet: bool) -> Iterator[Tell]:
    """A line on stderr that is written over, or a new one now and then where it is no terminal."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    every = _EVERY_S if terminal else _QUIET_EVERY_S
    last = time.monotonic()
    shown = False

    def tell(progress: Progress) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if quiet or now - last < every:
            return
        last, shown = now, True
        text = f"  {_how_far(progress, scenario.name)}"
        with contextlib.suppress(OSError):
            print(f"\r{text}\x1b[K" if terminal else text, end="" if terminal else "\n",
                  file=sys.stderr, flush=True)  # fmt: skip

    try:
        yield tell
    finally:
        if terminal and shown:
            with contextlib.suppress(OSError):
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _how_far(progress: Progress, title: str) -> str:
    """`no trimming (2 of 3): 0.350 of 1 s, 4 s gone, 7 s to go`."""
    case, now_s = progress.case, progress.now_ns / 1e9
    whole_s = case.run.duration_ns / 1e9
    name = textwrap.shorten(case.name or title, _NAME_MAX, placeholder=" ..")
    text = f"{name} ({progress.number + 1} of {progress.cases}): {now_s:.3f} of "
    if case.run.done:  # it ends when all has arrived, which nobody knows before
        return f"{text}at most {whole_s:g} s, {progress.wall_s:.0f} s gone"
    left_s = progress.wall_s * (whole_s / now_s - 1) if now_s > 0 else None
    to_go = "" if left_s is None else f", {max(0.0, left_s):.0f} s to go"
    return f"{text}{whole_s:g} s, {progress.wall_s:.0f} s gone{to_go}"
