# SPDX-License-Identifier: BSD-2-Clause
"""The regions advertised, ours and the peer's, by name, and those who wait for one."""

from __future__ import annotations

import asyncio

from .errors import MrcUsageError
from .mr import MemoryRegion
from .oob import TEXT_MAX, FrameError, RemoteRegion
from .types import Access

__all__ = ["Regions"]

_REGIONS_MAX = 4096


class Regions:
    """Filled by the peer's messages; a name advertised again names the newer region."""

    def __init__(self) -> None:
        self._known: dict[str, RemoteRegion] = {}
        self._offered: set[str] = set()
        self._waits: dict[str, asyncio.Future[RemoteRegion]] = {}
        self._error: Exception | None = None

    def add(self, region: RemoteRegion) -> None:
        """The peer advertised it. FrameError: too many."""
        if len(self._known) >= _REGIONS_MAX and region.name not in self._known:
            raise FrameError(f"more than {_REGIONS_MAX} regions")
        self._known[region.name] = region
        wait = self._waits.pop(region.name, None)
        if wait is not None:
            wait.set_result(region)

    def offer(self, name: str, mr: MemoryRegion) -> RemoteRegion:
        """What the peer is told of a region of ours. MrcUsageError: what it would not take."""
        if not mr.access & Access.REMOTE_WRITE:
            raise MrcUsageError("a region without remote write access cannot be advertised")
        if not isinstance(name, str) or not 1 <= len(name) <= TEXT_MAX:
            raise MrcUsageError(f"a region's name is text of 1..{TEXT_MAX} characters")
        if len(self._offered) >= _REGIONS_MAX and name not in self._offered:
            raise MrcUsageError(f"more than {_REGIONS_MAX} regions; a name can be used again")
        self._offered.add(name)
        return RemoteRegion(name, mr.addr, mr.length, mr.rkey)

    async def wait(self, name: str) -> RemoteRegion:
        """The region of that name, waiting for it."""
        if not isinstance(name, str):
            raise MrcUsageError(f"name {name!r:.60} is no text")
        if name in self._known:
            return self._known[name]
        if self._error is not None:
            raise self._error.with_traceback(None)
        wait = self._waits.get(name)
        if wait is None:
            wait = self._waits[name] = asyncio.get_running_loop().create_future()
        return await asyncio.shield(wait)

    def fail(self, exc: Exception) -> None:
        """No more will be advertised."""
        self._error = self._error or exc
        for wait in self._waits.values():
            wait.set_exception(self._error)
            wait.exception()  # those who waited may all have been cancelled
        self._waits.clear()
