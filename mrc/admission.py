# SPDX-License-Identifier: BSD-2-Clause
"""Whom a server sets up at the same time: no host keeps others out, or takes all descriptors."""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import NamedTuple

from .channel import Channel

__all__ = ["Admission", "Guest"]

_STREAMS_MAX = 256
_LANES_MAX = 4096


class Guest(NamedTuple):
    """A stream that is being set up."""

    task: asyncio.Task[None]
    host: Hashable
    channel: Channel


class Admission:
    """Streams and lanes of connections that are not ready yet; a lane is a descriptor."""

    def __init__(self) -> None:
        self._guests: dict[asyncio.Task[None], Guest] = {}  # oldest first
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        unlimited = soft == resource.RLIM_INFINITY
        self._lanes_max = _LANES_MAX if unlimited else min(_LANES_MAX, soft // 2)
        self._lanes: Counter[Hashable] = Counter()
        self._freed = asyncio.Event()

    def enter(self, guest: Guest) -> Guest | None:
        """One more. Above the limit, the one that has to go for it.

        That is one of the host which has the most, the longest silent before those that said hello.
        """
        self._guests[guest.task] = guest
        guest.task.add_done_callback(lambda task: self._guests.pop(task, None))
        if len(self._guests) <= _STREAMS_MAX:
            return None
        alive = [each for each in self._guests.values() if not each.task.done()]
        (busiest, _), *_ = Counter(each.host for each in alive).most_common(1)
        theirs = [each for each in alive if each.host == busiest]
        victim = next((each for each in theirs if not each.channel.trusted), theirs[0])
        del self._guests[victim.task]
        return victim

    def _fits(self, host: Hashable, count: int) -> bool:
        held = self._lanes.total()
        theirs = self._lanes[host] + count
        return held == 0 or (held + count <= self._lanes_max and theirs <= self._lanes_max * 3 // 4)

    @asynccontextmanager
    async def lanes(self, host: Hashable, count: int) -> AsyncIterator[None]:
        """Wait until so many more lanes are in order, of this host and of all; hold them inside."""
        while not self._fits(host, count):
            self._freed.clear()
            await self._freed.wait()
        self._lanes[host] += count
        try:
            yield
        finally:
            self._lanes[host] -= count
            self._lanes += Counter()  # without those that have none
            self._freed.set()
