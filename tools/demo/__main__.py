# SPDX-License-Identifier: BSD-2-Clause
"""The command line: ``python -m tools.demo``, or ``make demo ARGS=...``."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mrc.lab import Fabric, FabricError, FabricUnavailableError

from .folder import work_folder
from .programs import DemoError, find
from .scenario import Director, Result, make_file
from .stage import FabricStage, LoopbackStage, Stage
from .story import Story
from .summary import figures, show
from .view import Output, hush, watch

EXIT_OK, EXIT_USAGE, EXIT_WRONG, EXIT_ENVIRONMENT, EXIT_INTERRUPTED = 0, 1, 2, 4, 130
EXIT_UNREAD = 141
"""Nobody reads what we say: the code of a program that SIGPIPE ended."""
FILE_MB = 128


def main(argv: list[str] | None = None) -> int:
    """The command; returns its exit code."""
    options = _parser().parse_args(argv)
    console = Output(stderr=options.json)  # stdout belongs to the JSON object then
    try:
        return _run(options, console)
    except BrokenPipeError:
        hush(sys.stdout)
        return EXIT_UNREAD


def _run(options: argparse.Namespace, console: Output) -> int:
    """Everything, in words. BrokenPipeError: the reader has left."""
    try:
        found = _demo(options, console)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return _fail(options, console, EXIT_INTERRUPTED, "interrupted")
    except BrokenPipeError:
        raise
    except (DemoError, FabricError, OSError) as error:
        return _fail(options, console, EXIT_ENVIRONMENT, str(error))
    if options.json:
        print(json.dumps(found, allow_nan=False), flush=True)
    else:
        show(found, console)
    return EXIT_WRONG if found["problems"] else EXIT_OK


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        self.exit(EXIT_USAGE, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m tools.demo",
        description="One connection over 16 SRv6 paths in a fabric of network namespaces: a file,"
        " then bulk traffic while one spine is cut and healed; shown live, and judged at the end.",
        epilog='By make: make demo ARGS="--duration 20"',
    )
    parser.add_argument(
        "--duration", type=_seconds, default=12.0, metavar="S", help="bulk traffic (default 12)"
    )
    parser.add_argument("--file", type=_file, metavar="PATH", help="send it, not a random one")
    parser.add_argument("--json", action="store_true", help="one JSON object with all figures")
    parser.add_argument("--loopback", action="store_true", help="make no fabric, use [::1]")
    return parser


def _seconds(text: str) -> float:
    value = float(text)
    if not 1.5 <= value <= 3600:
        raise argparse.ArgumentTypeError("must be 1.5 to 3600 seconds")
    return value


def _file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"{text} is not a file")
    return path


def _fail(options: argparse.Namespace, console: Output, code: int, text: str) -> int:
    if options.json:
        print(json.dumps({"error": text}), flush=True)
    else:
        text = f"demo: {text}"
        console.print(text, style="bold red", highlight=False, markup=False, soft_wrap=True)
    return code


def _demo(options: argparse.Namespace, console: Output) -> dict[str, Any]:
    find("mrc-send")  # say so before building anything
    with work_folder() as folder, _stage(options, folder, console) as stage:
        story = Story(stage.evs(), stage.title, stage.places())
        file = options.file or make_file(folder, FILE_MB << 20)
        director = Director(stage, story, folder, file, options.duration)
        result = asyncio.run(_play(director, console, quiet=options.json))
        return figures(story, result)


@contextlib.contextmanager
def _stage(options: argparse.Namespace, folder: Path, console: Output) -> Iterator[Stage]:
    with contextlib.ExitStack() as stack:
        if not options.loopback:
            try:
                fabric = stack.enter_context(Fabric())
            except FabricUnavailableError as error:
                console.print(
                    f"no fabric of namespaces on this machine: {error}\n"
                    "going on over [::1]; the cut and the heal are left out",
                    style="yellow", highlight=False, markup=False, soft_wrap=True,
                )  # fmt: skip
            else:
                yield FabricStage(fabric, folder)
                return
        yield LoopbackStage()


async def _play(director: Director, console: Output, *, quiet: bool) -> Result:
    play = asyncio.current_task()
    assert play is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, play.cancel)
    if quiet:
        return await director.play()
    console.print(director.stage.title, highlight=False)
    playing = asyncio.create_task(director.play())
    watching = asyncio.create_task(watch(director.story, console))
    try:
        await asyncio.wait({playing, watching}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    if not watching.cancelled():  # nobody watches any more
        watching.result()
    return playing.result()


if __name__ == "__main__":
    sys.exit(main())
