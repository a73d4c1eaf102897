# SPDX-License-Identifier: BSD-2-Clause
"""mrc-recv and mrc-send as child processes that report one JSON object a line."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

READY_S = 10.0
STOP_S = 3.0
LINE_MAX = 1 << 22


class DemoError(Exception):
    """The demo cannot go on; the text is for the user."""


def find(name: str) -> str:
    """The installed command beside this Python. DemoError when the project was not built."""
    script = Path(sys.executable).with_name(name)
    if not script.exists():
        raise DemoError(f"{script} is not there: run make first")
    return str(script)


class Program:
    """One running command. ``messages`` gives its reports as they come."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        """Made by ``start``."""
        self.name = name
        self.process = process
        self._errors = asyncio.create_task(self._read_errors())

    @classmethod
    async def start(cls, name: str, command: Sequence[str]) -> Program:
        """Run it. Its output is read by us, its input is nothing."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LINE_MAX,
        )
        return cls(name, process)

    async def messages(self) -> AsyncIterator[tuple[str, Any, float]]:
        """(event, data, time of arrival on the monotonic clock), until the program ends."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            now = time.monotonic()
            try:
                message = json.loads(line)
                yield message["event"], message["data"], now
            except (ValueError, KeyError, TypeError) as error:
                raise DemoError(f"{self.name} said what is no report: {line[:200]!r}") from error

    async def wait(self) -> int:
        """Its exit code."""
        return await self.process.wait()

    async def complaint(self) -> str:
        """What it wrote to stderr, once it has ended."""
        return (await self._errors).strip()

    async def stop(self) -> int:
        """Ask it to end, then insist."""
        # Not SIGINT: who runs behind a script has it ignored, and with it all that is started.
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    self.process.send_signal(number)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.process.wait(), STOP_S)
        await self._errors
        return await self.process.wait()

    async def _read_errors(self) -> str:
        assert self.process.stderr is not None
        return (await self.process.stderr.read()).decode(errors="replace")


async def wait_ready(program: Program, ready: Callable[[], bool]) -> None:
    """Until ``ready``; DemoError when the program ends before that, or takes too long."""
    deadline = time.monotonic() + READY_S
    while not ready():
        if program.process.returncode is not None:
            raise DemoError(f"{program.name} ended at once: {await program.complaint()}")
        if time.monotonic() > deadline:
            raise DemoError(f"{program.name} is not ready after {READY_S:.0f} s")
        await asyncio.sleep(0.02)
