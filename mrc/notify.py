# SPDX-License-Identifier: BSD-2-Clause
"""Notifications: events of a channel or a context, awaited on an event loop (C.1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Generic, Protocol, TypeVar

from ._children import AsyncClosing
from ._waits import limit
from .device import Context
from .driver import Driver
from .errors import MrcUsageError

__all__ = ["Notifications"]

T = TypeVar("T")


class Source(Protocol[T]):
    """A CompletionChannel, or Context.async_events."""

    ctx: Context

    @property
    def fd(self) -> int:
        """Readable exactly while an event waits."""

    def get_nowait(self) -> T | None:
        """The next event, or None."""

    def done(self, event: T, /) -> None:
        """Acknowledge one."""


class Notifications(AsyncClosing, Generic[T]):
    """Waits for the events of one source; `async with` lets go of the loop.

    One at a time for each source, else MrcUsageError. While it lives the loop drives the context.
    `get` leaves acknowledging to the caller; iteration acknowledges each event as it gives it out.
    When cancelled none is lost. It closes with its source.

        async with Notifications(channel) as events:
            cq.arm()
            ready = await events.get(timeout=1.0)
    """

    def __init__(self, source: Source[T]) -> None:
        self._source = source
        self._waiting: set[asyncio.Future[None]] = set()
        self._closed = False
        self._fd = source.fd
        self._driver = Driver.attach(source.ctx)
        self._driver.hold()
        try:
            self._driver.watch(self._fd, self)
        except BaseException:
            self._driver.drop()
            raise
        self._driver.kick()  # the loop may not know of what was posted before

    async def get(self, timeout: float | None = None) -> T:
        """The next event. TimeoutError; MrcUsageError once it is closed, or the context is."""
        async with limit(timeout, "no event came"):
            while True:
                if self._closed:
                    raise MrcUsageError("the notifications are closed")
                event = self._source.get_nowait()
                if event is not None:
                    return event
                await self._readable()

    async def __aiter__(self) -> AsyncIterator[T]:
        while True:
            event = await self.get()
            self._source.done(event)  # now: a loop left by break does not come back here
            yield event

    async def _readable(self) -> None:
        fut: asyncio.Future[None] = self._driver.loop.create_future()
        if not self._waiting:
            self._driver.loop.add_reader(self._fd, self._wake)
        self._waiting.add(fut)
        try:
            await fut
        finally:
            self._waiting.discard(fut)
            if not self._waiting and not self._closed:
                self._driver.loop.remove_reader(self._fd)

    def _wake(self) -> None:
        for fut in self._waiting:
            if not fut.done():
                fut.set_result(None)

    def close(self) -> None:
        """Whoever waits gets MrcUsageError. Twice is once."""
        if self._closed:
            return
        if self._waiting and not self._source.ctx.pump.foreign:  # a child shares the parent's loop
            self._driver.loop.remove_reader(self._fd)
        self._closed = True
        self._wake()
        self._driver.unwatch(self._fd)
        self._driver.drop()
