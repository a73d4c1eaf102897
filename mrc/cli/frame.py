# SPDX-License-Identifier: BSD-2-Clause
"""What both commands share around their work: event loop, signals, exit code, the last report."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import TextIO

from mrc import _early, _stdout
from mrc.cli.exits import CliError, Exit, from_exception
from mrc.cli.human import HumanOutput
from mrc.cli.options import Common
from mrc.cli.output import JsonOutput, Lines, Output, StreamOutput, say
from mrc.cli.stop import Stop


def make_output(program: str, form: str, lines: Lines) -> Output:
    """The reporter for --json, --json-stream or people."""
    if form == "json":
        return JsonOutput(program, lines)
    if form == "json-stream":
        return StreamOutput(program, lines)
    return HumanOutput(program, lines)


def _loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if name == "asyncio":
        return None
    try:
        import uvloop
    except ImportError:
        if name == "uvloop":
            raise CliError(Exit.ENVIRONMENT, "uvloop is not installed") from None
        return None
    return uvloop.new_event_loop


async def _stoppable(lines: Lines, work: Callable[[Stop], Awaitable[Exit]]) -> Exit:
    """Run with Ctrl-C, SIGTERM and an stdout that nobody reads as a request to stop.

    A second signal stops at once.
    """
    stop = Stop()
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work(stop))

    def on_signal(number: signal.Signals) -> None:
        if stop.requested:
            task.cancel()
        stop.request(f"interrupted by {number.name}")

    for number in _early.heeded():
        loop.add_signal_handler(number, on_signal, number)
    lines.on_closed = lambda: stop.request("nobody reads the output")
    try:
        return await task
    except asyncio.CancelledError:
        raise stop.error() from None


def run(
    program: str, common: Common, peer: str, work: Callable[[Stop, Output], Awaitable[Exit]]
) -> int:
    """The exit code of the whole command. Whatever happens, the report is finished once."""
    _early.occupy()
    problem = _stdout.problem()
    if problem is not None:  # better now than when there is a report to be lost
        say(program, _stdout.why_not(problem))
        return _stdout.code_of(problem)
    lines = Lines(_where())
    output = make_output(program, common.output, lines)
    try:
        with asyncio.Runner(loop_factory=_loop_factory(common.loop)) as runner:
            code = runner.run(_stoppable(lines, lambda stop: work(stop, output)))
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last line of defence
        code = _explain(output, peer, error) if lines.error is None else Exit.INTERRUPTED
    output.finish()
    if lines.error is None:
        return code
    say(program, _stdout.why_not(lines.error))
    return _stdout.code_of(lines.error)


def _where() -> TextIO:
    """Stdout, whatever its encoding."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return sys.stdout


def _explain(output: Output, peer: str, error: BaseException) -> Exit:
    """Tell the user; the exit code."""
    known = from_exception(error, peer)
    if isinstance(error, KeyboardInterrupt):
        known = CliError(Exit.INTERRUPTED, "interrupted")
    if known is None or os.environ.get("MRC_DEBUG"):
        traceback.print_exception(error)
    if known is None:
        known = CliError(Exit.ENVIRONMENT, f"internal error: {type(error).__name__}: {error}")
    output.error(str(known))
    return known.code
