# SPDX-License-Identifier: BSD-2-Clause
"""Ctrl-C and SIGTERM: ask everything to come to an end, with a limit on how long that may take."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from mrc.cli.exits import CliError, Exit

_T = TypeVar("_T")


class Stop:
    """A request to stop; it comes once and stays."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.reason = "interrupted"

    @property
    def requested(self) -> bool:
        """True once somebody asked."""
        return self._event.is_set()

    def request(self, reason: str) -> None:
        """Ask; the first reason counts."""
        if not self._event.is_set():
            self.reason = reason
            self._event.set()

    async def wait(self) -> None:
        """Until somebody asks."""
        await self._event.wait()

    def error(self) -> CliError:
        """What ends the program after a stop."""
        return CliError(Exit.INTERRUPTED, self.reason)

    async def within(
        self,
        work: Coroutine[Any, Any, _T],
        grace: float = 0.0,
        on_request: Callable[[], None] | None = None,
    ) -> _T:
        """The result of `work`.

        When a stop is requested, `on_request` is called and the work has `grace` seconds left; then
        it is cancelled and error() raised.
        """
        task = asyncio.ensure_future(work)
        asked = asyncio.ensure_future(self._event.wait())
        try:
            await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                if on_request is not None:
                    on_request()
                await asyncio.wait({task}, timeout=grace)
            if not task.done():
                raise self.error()
            return await task
        finally:
            asked.cancel()
            task.cancel()
            await asyncio.wait({task})
