# SPDX-License-Identifier: BSD-2-Clause
"""`make bench`: ours, bare loops and peers in turn, under the same conditions; one table, JSON."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from tools.bench import draw, page
from tools.bench.bare import RULERS
from tools.bench.groups import groups
from tools.bench.method import Group
from tools.bench.peers import no_quic
from tools.bench.report import show
from tools.bench.run import SCHEMA, Plan, carry_out, estimate_s
from tools.scorecard.install import InstallError, install

EXIT_OK, EXIT_USAGE, EXIT_FAILED, EXIT_ENVIRONMENT, EXIT_INTERRUPTED = 0, 1, 2, 4, 130


def main(argv: list[str] | None = None) -> int:
    """0: all that could run did; 2: something failed; 4: nothing can be measured here."""
    signal.signal(signal.SIGTERM, _interrupt)
    options = _arguments(argv)
    try:
        return _bench(options)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except (InstallError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return EXIT_ENVIRONMENT


def _bench(options: argparse.Namespace) -> int:
    if options.join:
        document = _join([_read(file) for file in options.join])
    else:
        if missing := [p.name for p in RULERS if not p.exists()]:
            raise OSError(f"not compiled: {', '.join(missing)}; run make bench")
        chosen = [g for g in groups() if g.name in options.only]
        if options.install:
            _install(chosen)
        plan = Plan(chosen, options.rounds, options.time, frozenset(options.rows))
        _say(f"{len(chosen)} groups, about {_minutes(estimate_s(plan))}; Ctrl-C ends it cleanly")
        document = carry_out(plan, _say)
    print(show(document))
    for file in _draw(options, document):
        _say(f"written: {file}")
    if options.json:
        options.json.write_text(json.dumps(document, allow_nan=False) + "\n")
    if document["interrupted"]:
        return EXIT_INTERRUPTED
    return EXIT_FAILED if any(g["wrong"] for g in document["groups"].values()) else EXIT_OK


def _draw(options: argparse.Namespace, document: dict[str, Any]) -> list[Path]:
    """Figure and pages, when they are wanted."""
    written = []
    if options.figure:
        if why := draw.impossible(document):
            raise OSError(f"no figure: {why}")
        draw.figure(document, options.figure)
        written.append(options.figure)
    return written + (page.write(document) if options.page else [])


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    known = [g.name for g in groups()]
    parser = argparse.ArgumentParser(
        prog="make bench",
        description="MRC beside bare loops and peers, in ratios of one run.",
        epilog='By make: make bench ARGS="--only bulk,latency --json out.json"',
    )
    parser.add_argument("-r", "--rounds", type=int, help="ratios need several (5; 1 with --quick)")
    parser.add_argument("-t", "--time", type=int, help="seconds of each run (2; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="one short round: does it run?")
    parser.add_argument("--only", type=_names(known), default=known, metavar="GROUP,...",
                        help=f"of {', '.join(known)}")  # fmt: skip
    parser.add_argument("--rows", type=_names(sorted({m.name for g in groups()
                        for m in g.methods})), default=[], metavar="NAME,...",
                        help="only these rows of the groups")  # fmt: skip
    parser.add_argument("--install", action="store_true",
                        help="fetch missing peers: from Debian, aioquic with pip")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there")
    parser.add_argument("--join", type=Path, nargs="+", metavar="FILE",
                        help="run nothing: one table out of the JSON of several")  # fmt: skip
    parser.add_argument("--figure", type=Path, metavar="FILE",
                        help="draw evenness of trains against their cost, SVG")  # fmt: skip
    parser.add_argument("--page", action="store_true",
                        help="write the tables of docs/explanation, and their data")  # fmt: skip
    args = parser.parse_args(argv)
    args.rounds = args.rounds or (1 if args.quick else 5)
    args.time = args.time or (1 if args.quick else 2)
    if args.rounds < 1 or args.time < 1:
        parser.error("--rounds and --time must be at least 1")
    return args


def _names(known: Sequence[str]) -> Any:
    def parse(text: str) -> list[str]:
        given = text.split(",")
        for name in given:
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no {name!r}, only {', '.join(known)}")
        return [name for name in known if name in given]

    return parse


def _install(chosen: Sequence[Group]) -> None:
    wanted = [m for g in chosen for m in g.methods]
    fetched = install(wanted)
    if any(m.name == "quic" for m in wanted) and no_quic():
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install"]
        if subprocess.run([*pip, "aioquic"], check=False).returncode:
            raise InstallError("pip could not install aioquic")
        fetched.append("aioquic")
    if fetched:
        _say(f"installed {', '.join(fetched)}")


def _read(file: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if document["schema"] == SCHEMA and "groups" in document:
            return document
    except (ValueError, KeyError, TypeError):
        pass
    raise OSError(f"{file} is no result of this version of the bench")


def _join(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of a group that several have the last one counts."""
    found = {name: g for d in documents for name, g in d["groups"].items()}
    order = [g.name for g in groups()]
    return {
        **documents[-1],
        "groups": {name: found[name] for name in order if name in found},
        "interrupted": any(d["interrupted"] for d in documents),
    }


def _minutes(seconds: float) -> str:
    return f"{round(seconds) // 60} min {round(seconds) % 60} s"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
