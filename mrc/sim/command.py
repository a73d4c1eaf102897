# SPDX-License-Identifier: BSD-2-Clause
"""The command line of python -m mrc.sim."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from enum import IntEnum
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

from mrc.errors import MrcError, MrcUsageError
from mrc.fabric.record import Record, dump
from mrc.fabric.scenario import Scenario, load_scenario

from . import library, report

__all__ = ["Exit", "main"]

ABOUT = """\
Run a scenario on an emulated fabric: the engine that moves real packets, on hosts, switches, queues
and cables in virtual time. A scenario file says what the fabric is, what is sent, what breaks and
when, and what must come of it; the same file and seed give the same run, bit by bit, anywhere."""

EPILOG = """\
examples:
  python -m mrc.sim --list                          what there is
  python -m mrc.sim startup-dead-paths              run one of them by name
  python -m mrc.sim my.toml --figure out.svg        run a file, draw it
  python -m mrc.sim ev-loss --json run.json         keep the record (docs/reference/records.md)
  python -m mrc.sim ev-loss --seed 7 --set fabric.planes=4 --set 'transport.mode="rc"'

A scenario file is explained in docs/reference/scenario-files.md; a short one:
  name = "a spine dies"
  [[work]]
  kind = "bulk"
  [[fault]]
  do = "fail"
  target = "p1.t1.2"
  at = "1s"
  [run]
  duration = "2s"
  [expect]
  "nobody notices" = "gap_ms <= 20"

exit codes:
  0    it ran, and every expectation is met
  1    the command line or the scenario file cannot be run as given
  2    it ran, and an expectation is not met
  4    this host lacks something: a file that cannot be read or written, matplotlib for a figure
  70   the emulation found an error of its own: please report it with the file and seed
  130  stopped by Ctrl-C
"""

_EVERY_S = 0.5
_QUIET_EVERY_S = 10.0


class Exit(IntEnum):
    """Exit codes, as those of mrc-send where they mean the same."""

    OK = 0
    USAGE = 1
    NOT_MET = 2
    ENVIRONMENT = 4
    SOFTWARE = 70
    INTERRUPTED = 130


class _UsageError(Exception):
    """A sentence for the user."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UsageError(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m mrc.sim",
        description=ABOUT,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
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
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; the exit code."""
    try:
        return _main(_parser().parse_args(argv))
    except (_UsageError, MrcUsageError) as error:
        return _say(Exit.USAGE, str(error), "--help explains, --list names scenarios")
    except KeyboardInterrupt:
        return _say(Exit.INTERRUPTED, "stopped")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to flush
        return Exit.OK
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return _say(Exit.ENVIRONMENT, f"{name}{error.strerror or error}")
    except ImportError as error:
        return _say(Exit.ENVIRONMENT, f"{error}", "pip install 'mrc[figures]'")
    except MrcError as error:
        return _say(Exit.SOFTWARE, f"the emulation failed: {error}", "please report it")


def _say(code: Exit, message: str, advice: str = "") -> Exit:
    with contextlib.suppress(OSError):
        print(f"mrc.sim: {message}{f' ({advice})' if advice else ''}", file=sys.stderr)
    return code


def _main(options: argparse.Namespace) -> int:
    if options.list:
        for name in library.names():
            print(f"{name:26} {load_scenario(library.find(name)).name}")
        return Exit.OK
    if not options.scenario:
        raise _UsageError("which scenario?")
    if len(options.scenario) > 1 and (options.json or options.figure):
        raise _UsageError("--json and --figure are for one scenario")
    if options.figure is not None:
        from mrc.fabric import figure

        figure.check(options.figure)
    changes = _changes(options)
    loaded = [load_scenario(library.find(word), changes) for word in options.scenario]
    for scenario in loaded:
        if "sim" not in scenario.on:
            raise _UsageError(f"{scenario.source}: is not for the emulated fabric: on = ..")
    if options.case:
        loaded = [scenario.only(options.case) for scenario in loaded]
    met = [_one(scenario, options) for scenario in loaded]
    return Exit.OK if all(met) else Exit.NOT_MET


def _one(scenario: Scenario, options: argparse.Namespace) -> bool:
    from .run import run_scenario

    text = options.json != "-"
    if text:
        for line in report.describe(scenario):
            print(line, flush=True)
    with _progress(scenario, quiet=options.quiet) as tell:
        record = run_scenario(scenario, tell, version=_version())
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
        from mrc.fabric import figure

        figure.draw(record, scenario.figure, Path(options.figure))


@contextlib.contextmanager
def _progress(scenario: Scenario, *, quiet: bool) -> Iterator[Any]:
    """A line on stderr that is written over, or a new one now and then where it is no terminal."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    every = _EVERY_S if terminal else _QUIET_EVERY_S
    last = time.monotonic()
    shown = False

    def tell(progress: Any) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if quiet or now - last < every:
            return
        last, shown = now, True
        case = progress.case
        text = (
            f"  {case.name or scenario.name:.40} ({progress.number + 1} of {progress.cases}):"
            f" {progress.now_ns / 1e9:.3f} of {case.run.duration_ns / 1e9:g} s"
            f" in {progress.wall_s:.0f} s"
        )
        with contextlib.suppress(OSError):
            print(f"\r{text}\x1b[K" if terminal else text, end="" if terminal else "\n",
                  file=sys.stderr, flush=True)  # fmt: skip

    try:
        yield tell
    finally:
        if terminal and shown:
            with contextlib.suppress(OSError):
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _changes(options: argparse.Namespace) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for text in options.changes:
        key, equals, value = text.partition("=")
        words = key.split(".")
        if not equals or not all(words):
            raise _UsageError(f"--set {text}: KEY=VALUE, such as fabric.planes=2")
        here = changes
        for word in words[:-1]:
            here = here.setdefault(word, {})
            if not isinstance(here, dict):
                raise _UsageError(f"--set {text}: {word} has a value already")
        here[words[-1]] = _value(value)
    if options.seed is not None:
        changes.setdefault("run", {})["seed"] = options.seed
    return changes


def _value(text: str) -> Any:
    """As in a scenario file; what is no value there is words."""
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def _version() -> str:
    try:
        return metadata.version("mrc")
    except metadata.PackageNotFoundError:
        return "0+source"
