# SPDX-License-Identifier: BSD-2-Clause
"""``python -m tools.demo``: one connection over 16 SRv6 paths, a cut and a heal, live."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from tools.netlab import Fabric, FabricUnavailableError

from .programs import DemoError, find
from .scenario import Director, Result, make_file
from .stage import FabricStage, LoopbackStage, Stage
from .story import Story
from .summary import figures, show
from .view import watch

EXIT_OK, EXIT_USAGE, EXIT_WRONG, EXIT_ENVIRONMENT, EXIT_INTERRUPTED = 0, 1, 2, 4, 130
FILE_MB = 128


def main(argv: list[str] | None = None) -> int:
    """The command; returns its exit code."""
    options = _parser().parse_args(argv)
    console = Console(stderr=options.json)  # stdout belongs to the JSON object then
    try:
        found = _demo(options, console)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return _fail(options, console, EXIT_INTERRUPTED, "interrupted")
    except DemoError as error:
        return _fail(options, console, EXIT_ENVIRONMENT, str(error))
    if options.json:
        print(json.dumps(found, allow_nan=False))
    else:
        show(found, console)
    return EXIT_WRONG if found["problems"] else EXIT_OK


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        self.exit(EXIT_USAGE, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m tools.demo", description=__doc__)
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


def _fail(options: argparse.Namespace, console: Console, code: int, text: str) -> int:
    if options.json:
        print(json.dumps({"error": text}))
    else:
        console.print(f"demo: {text}", style="bold red", highlight=False, markup=False)
    return code


def _demo(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    find("mrc-send")  # say so before building anything
    with tempfile.TemporaryDirectory(prefix="mrc-demo-") as name, _stage(
        options, Path(name), console
    ) as stage:
        folder = Path(name)
        story = Story(stage.places(), stage.title)
        file = options.file or make_file(folder, FILE_MB << 20)
        director = Director(stage, story, folder, file, options.duration)
        result = asyncio.run(_play(director, console, quiet=options.json))
        return figures(story, result)


@contextlib.contextmanager
def _stage(options: argparse.Namespace, folder: Path, console: Console) -> Iterator[Stage]:
    with contextlib.ExitStack() as stack:
        if not options.loopback:
            try:
                fabric = stack.enter_context(Fabric())
            except FabricUnavailableError as error:
                console.print(
                    f"no fabric of namespaces on this machine: {error}\n"
                    "going on over [::1]; the cut and the heal are left out",
                    style="yellow", highlight=False, markup=False,
                )  # fmt: skip
            else:
                yield FabricStage(fabric, folder)
                return
        yield LoopbackStage()


async def _play(director: Director, console: Console, *, quiet: bool) -> Result:
    play = asyncio.current_task()
    assert play is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, play.cancel)
    if quiet:
        return await director.play()
    console.print(director.stage.title, highlight=False)
    watcher = asyncio.create_task(watch(director.story, console))
    try:
        return await director.play()
    finally:
        watcher.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watcher


if __name__ == "__main__":
    sys.exit(main())
