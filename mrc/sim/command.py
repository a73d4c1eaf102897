# SPDX-License-Identifier: BSD-2-Clause
"""The command line of python -m mrc.sim."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from enum import IntEnum
from importlib import metadata
from typing import NoReturn

from mrc import _stdout
from mrc.errors import MrcError, MrcUsageError
from mrc.fabric.console import Tell, add_options, load, run_one
from mrc.fabric.record import Record
from mrc.fabric.scenario import Scenario

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
  [fabric]
  delay = "100us"   # a cable; with 1us, the default, too little may be in flight to fill such lines
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
  4    this host lacks something: a file that cannot be read or written, matplotlib for a figure,
       room for what goes to stdout
  70   the emulation found an error of its own: please report it with the file and seed
  130  stopped by Ctrl-C or SIGTERM, or because nobody reads stdout any more
"""


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
    add_options(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; the exit code."""
    return _stdout.printing("mrc.sim", lambda: _checked(argv))


def _checked(argv: Sequence[str] | None) -> int:
    try:
        return _main(_parser().parse_args(argv))
    except (_UsageError, MrcUsageError) as error:
        return _say(Exit.USAGE, str(error), "--help explains, --list names scenarios")
    except SystemExit as end:  # --help has been printed
        return int(end.code or 0)
    except KeyboardInterrupt:
        return _say(Exit.INTERRUPTED, "stopped")
    except OSError as error:
        if _stdout.is_of_stdout(error):
            return Exit.ENVIRONMENT
        name = f"{error.filename}: " if error.filename else ""
        return _say(Exit.ENVIRONMENT, f"{name}{error.strerror or error}")
    except ImportError as error:
        return _say(Exit.ENVIRONMENT, f"{error}", "pip install matplotlib")
    except MrcError as error:
        return _say(Exit.SOFTWARE, f"the emulation failed: {error}", "please report it")


def _say(code: Exit, message: str, advice: str = "") -> Exit:
    with contextlib.suppress(OSError):
        print(f"mrc.sim: {message}{f' ({advice})' if advice else ''}", file=sys.stderr)
    return code


def _main(options: argparse.Namespace) -> int:
    loaded = load(options, "sim")
    met = [run_one(scenario, options, _run) for scenario in loaded]
    return Exit.OK if all(met) else Exit.NOT_MET


def _run(scenario: Scenario, tell: Tell) -> Record:
    from .run import run_scenario

    return run_scenario(scenario, tell, version=_version())


def _version() -> str:
    try:
        return metadata.version("mrc")
    except metadata.PackageNotFoundError:
        return "0+source"
