# SPDX-License-Identifier: BSD-2-Clause
"""Waiting with a limit, in order, without losing what was waited for when cancelled."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from ._check import seconds as checked

__all__ = ["Gate", "Mailbox", "limit"]

T = TypeVar("T")


@asynccontextmanager
async def limit(seconds: float | None, what: str) -> AsyncIterator[None]:
    """TimeoutError that says what did not happen, after that many seconds (None: never).

    MrcUsageError: no number of seconds.
    """
    scope = asyncio.timeout(checked(seconds))
    try:
        async with scope:
            yield
    except TimeoutError:
        if scope.expired():
            raise TimeoutError(f"{what} within {seconds} s") from None
        raise


class _Waiters:
    """Futures in order of arrival."""

    __slots__ = ("_queue",)

    def __init__(self) -> None:
        self._queue: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    async def wait(self) -> bool:
        """Wait to be woken.

        False: woken and cancelled in one, so the wake must be handed on; the caller does that
        and raises CancelledError. Cancelled before: raises it here.
        """
        fut: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(fut)
        try:
            await fut
        except asyncio.CancelledError:
            if fut.cancelled() or fut.exception() is not None:
                raise
            return False
        return True

    def wake(self) -> bool:
        """Wake the first that still waits; False when there is none."""
        while self._queue:
            fut = self._queue.popleft()
            if not fut.done():
                fut.set_result(None)
                return True
        return False

    def fail(self, exc: Exception) -> None:
        while self._queue:
            fut = self._queue.popleft()
            if not fut.done():
                fut.set_exception(exc)


class Gate:
    """A count of permits, given in order of asking; fail() turns all asking into an error.

    Whoever waits takes up its permit a turn of the loop after it was given. Until then those who
    come wait too, whatever is left, or they would pass by.
    """

    __slots__ = ("_ahead", "_error", "_free", "_waiters")

    def __init__(self, permits: int) -> None:
        self._free = permits
        self._ahead = 0  # permits given to waiters that have not run since
        self._waiters = _Waiters()
        self._error: Exception | None = None

    def check(self) -> None:
        """Raise the error of fail(), if there was one."""
        if self._error is not None:
            raise self._error.with_traceback(None)

    def try_acquire(self) -> bool:
        """Take a permit if one is left, whoever waits for the loop."""
        self.check()
        if self._free == 0:
            return False
        self._free -= 1
        return True

    async def acquire(self) -> None:
        """Take a permit, waiting for it. When cancelled, none was taken."""
        self.check()
        if self._ahead == 0 and self.try_acquire():
            return
        given = await self._waiters.wait()
        self._ahead -= 1
        if not given:
            self.release()  # the permit came together with the cancellation
            raise asyncio.CancelledError
        self._give()

    def release(self, permits: int = 1) -> None:
        """Permits go to those who wait, first come first served; the rest stays."""
        self._free += permits
        self._give()

    def _give(self) -> None:
        while self._free > 0 and self._waiters.wake():
            self._free -= 1
            self._ahead += 1

    def fail(self, exc: Exception) -> None:
        """Every acquire, waiting or to come, raises exc."""
        self._error = exc
        self._waiters.fail(exc)


class Mailbox(Generic[T]):
    """Items in order. After fail() what is there is still given, then the error."""

    __slots__ = ("_error", "_items", "_waiters")

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._waiters = _Waiters()
        self._error: Exception | None = None

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        """Append, and wake one who waits."""
        self._items.append(item)
        self._waiters.wake()

    def get_nowait(self) -> T | None:
        """The first item, or None; the error once there will be no more."""
        if self._items:
            return self._items.popleft()
        if self._error is not None:
            raise self._error.with_traceback(None)
        return None

    async def get(self) -> T:
        """The first item, waiting for it. When cancelled, none was taken."""
        while True:
            item = self.get_nowait()
            if item is not None:
                return item
            if not await self._waiters.wait():
                if self._items:
                    self._waiters.wake()
                raise asyncio.CancelledError

    def fail(self, exc: Exception) -> None:
        """No more items will come."""
        self._error = self._error or exc
        self._waiters.fail(self._error)
