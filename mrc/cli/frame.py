# SPDX-License-Identifier: BSD-2-Clause
"""What both commands share around their work: event loop, signals, exit code, the last report."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable

from mrc.cli.exits import CliError, Exit, from_exception
from mrc.cli.human import HumanOutput
from mrc.cli.options import Common
from mrc.cli.output import JsonOutput, Output, StdoutClosed, StreamOutput
from mrc.cli.stop import Stop


def make_output(program: str, form: str) -> Output:
    """The reporter for --json, --json-stream or people."""
    if form == "json":
        return JsonOutput(program, sys.stdout)
    if form == "json-stream":
        return StreamOutput(program, sys.stdout)
    return HumanOutput(program, sys.stdout)


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


async def _with_signals(work: Callable[[Stop], Awaitable[Exit]]) -> Exit:
    """Run with Ctrl-C and SIGTERM as a request to stop; the second one stops at once."""
    stop = Stop()
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work(stop))

    def on_signal(number: signal.Signals) -> None:
        if stop.requested:
            task.cancel()
        stop.request(f"interrupted by {number.name}")

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
    try:
        return await task
    except asyncio.CancelledError:
        raise stop.error() from None


def run(common: Common, output: Output, peer: str,
        work: Callable[[Stop], Awaitable[Exit]]) -> int:
    """The exit code of the whole command. Whatever happens, the report is finished once."""
    try:
        with asyncio.Runner(loop_factory=_loop_factory(common.loop)) as runner:
            code = runner.run(_with_signals(work))
    except StdoutClosed:
        return Exit.INTERRUPTED
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last line of defence
        code = _explain(output, peer, error)
    try:
        output.finish()
    except StdoutClosed:
        return Exit.INTERRUPTED
    return code


def _explain(output: Output, peer: str, error: BaseException) -> Exit:
    known = from_exception(error, peer)
    if isinstance(error, KeyboardInterrupt):
        known = CliError(Exit.INTERRUPTED, "interrupted")
    if known is None or os.environ.get("MRC_DEBUG"):
        traceback.print_exception(error)
    if known is None:
        known = CliError(Exit.ENVIRONMENT, f"internal error: {type(error).__name__}: {error}")
    try:
        output.error(str(known))
    except StdoutClosed:
        return Exit.INTERRUPTED
    return known.code
