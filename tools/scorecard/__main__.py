# SPDX-License-Identifier: BSD-2-Clause
"""The command line: ``python -m tools.scorecard``, or ``make scorecard ARGS=...``."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from mrc.lab import FabricError
from tools.scorecard import draw, page, report
from tools.scorecard.cases import CASES, quick
from tools.scorecard.emulated import TITLES, emulate
from tools.scorecard.install import InstallError, install
from tools.scorecard.peers import every
from tools.scorecard.runs import SCHEMA, Plan, carry_out, join
from tools.scorecard.stage import ROOT, SHAPES
from tools.scorecard.wanted import missed, verdicts

EXIT_OK, EXIT_USAGE, EXIT_FAILED, EXIT_ENVIRONMENT, EXIT_INTERRUPTED = 0, 1, 2, 4, 130
FOLDER = ROOT / "build" / "scorecard"
WIDTH = 132


def main(argv: list[str] | None = None) -> int:
    """The command; returns its exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    console, progress = _console(), Console(stderr=True)
    try:
        return _scorecard(_arguments(argv), console, progress)
    except KeyboardInterrupt:
        return _fail(progress, EXIT_INTERRUPTED, "interrupted; nothing was written")
    except (FabricError, InstallError, OSError) as error:
        return _fail(progress, EXIT_ENVIRONMENT, str(error))


def _console() -> Console:
    """Wide where nobody looks: a terminal says itself how wide it is."""
    return Console() if sys.stdout.isatty() else Console(width=WIDTH)


def _scorecard(options: argparse.Namespace, console: Console, progress: Console) -> int:
    if options.join:
        document = join([_read(file) for file in options.join])
        return _finish(document, options, console, progress)
    _writable(options.out)
    peers = every(options.mrc)
    chosen = [p for p in peers if p.key in options.peers]
    if options.install and (fetched := install(chosen)):
        progress.print(f"installed {', '.join(fetched)}", highlight=False)
    missing = {p.key: why for p in chosen if (why := p.missing())}
    for key, why in missing.items():
        progress.print(f"{key} is missing: {why} (--install)", style="yellow", highlight=False)
    cases = [quick(c) if options.quick else c for c in CASES if c.key in options.cases]
    plan = Plan(
        peers=tuple(p for p in chosen if p.key not in missing),
        cases=tuple(cases),
        shapes=tuple(SHAPES[mtu] for mtu in options.mtu),
        runs=options.runs,
        first=options.first,
    )
    with tempfile.TemporaryDirectory(prefix="mrc-scorecard-") as folder:
        document = carry_out(plan, Path(folder), lambda text: _say(progress, text))
    if "mrc" in options.peers:
        for key in TITLES:
            if key in options.cases:
                document["emulated"][key] = emulate(key)
    document["peers"] = {p.key: p.title for p in peers}
    document["cases"] = {c.key: c.title for c in CASES}
    document |= {"missing": missing, "quick": options.quick}
    return _finish(document, options, console, progress)


def _finish(
    document: dict[str, Any], options: argparse.Namespace, console: Console, progress: Console
) -> int:
    """Judge, show, write; the exit code."""
    document["wanted"] = [asdict(verdict) for verdict in verdicts(document)]
    report.show(document, console)
    _write(document, options, progress)
    wrong = [r for r in document["records"] if "failed" in r]
    if not document["quick"]:
        wrong += missed(document)
    return EXIT_FAILED if wrong or document["unverified"] else EXIT_OK


def _writable(folder: Path) -> None:
    """OSError now and not when all has been run: the folder takes no file."""
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()


def _read(file: Path) -> dict[str, Any]:
    """A document written before. OSError: it is none, or of another version."""
    try:
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if document["schema"] == SCHEMA and "records" in document:
            return document
    except (ValueError, KeyError, TypeError):
        pass
    raise OSError(f"{file} is no scorecard of this version")


def _write(document: dict[str, Any], options: argparse.Namespace, progress: Console) -> None:
    _writable(options.out)
    file = options.json or options.out / "scorecard.json"
    file.write_text(json.dumps(document, allow_nan=False) + "\n", encoding="utf-8")
    tables = options.out / "scorecard.md"
    tables.write_text(report.markdown(document), encoding="utf-8")
    written = [file, tables]
    if draw.possible():
        written += draw.figures(document, options.out)
    else:
        _say(progress, "no figures: matplotlib is not installed (make scorecard installs it)")
    if options.page:
        written += page.write(document, options.out)
    _say(progress, "wrote " + ", ".join(str(name) for name in written))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        self.exit(EXIT_USAGE, f"{self.prog}: {message}\n")


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = _Parser(
        prog="make scorecard",
        description="MRC beside what its users would take instead, under the same faults in the"
        " same fabric of network namespaces.",
        epilog='By make: make scorecard ARGS="--cases clean,hole --peers mrc,mptcp --runs 3"',
    )
    cases, peers = [*(c.key for c in CASES), *TITLES], [p.key for p in every({})]
    parser.add_argument("--quick", action="store_true", help="short runs: to see that it works")
    parser.add_argument("--cases", type=_names(cases), default=cases, metavar="NAME,...",
                        help=f"of {', '.join(cases)}")  # fmt: skip
    parser.add_argument("--peers", type=_names(peers), default=peers, metavar="NAME,...",
                        help=f"of {', '.join(peers)}")  # fmt: skip
    parser.add_argument("--runs", type=_count, metavar="N",
                        help="of each; medians are shown (3; 1 with --quick)")  # fmt: skip
    parser.add_argument("--first", type=_count, default=0, metavar="N",
                        help="number of the first run, for several that are joined later:"
                        " who begins rotates with it")  # fmt: skip
    parser.add_argument("--mtu", type=_mtus, default=[9000], metavar="9000,1500",
                        help="MTU of the links; MRC's path MTU is 4096 or 1024")  # fmt: skip
    parser.add_argument("--install", action="store_true", help="fetch missing peers from Debian")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all runs there")
    parser.add_argument("--out", type=Path, default=FOLDER, metavar="DIR",
                        help="for JSON, Markdown and figures (build/scorecard)")  # fmt: skip
    parser.add_argument("--join", type=Path, nargs="+", metavar="FILE",
                        help="run nothing: one scorecard out of the JSON of several")  # fmt: skip
    parser.add_argument("--page", action="store_true",
                        help="write the tables of docs/explanation/scorecard.md")  # fmt: skip
    parser.add_argument("--mrc", type=_object, default={}, metavar="JSON",
                        help='options of mrc.connect, e.g. {"cc": "fixed"}')  # fmt: skip
    options = parser.parse_args(argv)
    options.runs = options.runs or (1 if options.quick else 3)
    return options


def _names(known: Sequence[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        given = text.split(",")
        for name in given:
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no {name!r}, only {', '.join(known)}")
        return [name for name in known if name in given]

    return parse


def _mtus(text: str) -> list[int]:
    try:
        return [mtu for mtu in map(int, text.split(",")) if SHAPES[mtu]]
    except (ValueError, KeyError):
        raise argparse.ArgumentTypeError("must be 9000, 1500 or both") from None


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError("must be 1 to 100")
    return int(text)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("must be a JSON object")
    return value


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _fail(console: Console, code: int, text: str) -> int:
    _say(console, f"scorecard: {text}")
    return code


if __name__ == "__main__":
    sys.exit(main())
