# SPDX-License-Identifier: BSD-2-Clause
"""Whom a server takes, and sets up at the same time: no host keeps others out, or takes all."""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ._check import whole
from .channel import Channel
from .conn import Connection
from .path import PathTable
from .types import Backend

__all__ = ["Admission", "Guest"]

_STREAMS_MAX = 256
_LANES_MAX = 4096
_READY_MAX = 1 << 20


class Guest(NamedTuple):
    """A stream that is being set up."""

    task: asyncio.Task[None]
    host: Hashable
    channel: Channel


class Admission:
    """Streams and lanes of connections that are not ready yet, and of those that are.

    A lane is a descriptor, and so is a stream. lanes_max: of all path tables; None: three quarters
    of the limit of descriptors. connections_max: of the context; and no more than a quarter of that
    limit. One host has three quarters of each bound at most.
    """

    def __init__(self, lanes_max: int | None = None, connections_max: int = _READY_MAX) -> None:
        self._guests: dict[asyncio.Task[None], Guest] = {}  # oldest first
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        unlimited = soft == resource.RLIM_INFINITY
        self._streams_max = _STREAMS_MAX if unlimited else min(_STREAMS_MAX, soft // 8)
        self._lanes_max = _LANES_MAX if unlimited else min(_LANES_MAX, soft // 2)
        self._lanes: Counter[Hashable] = Counter()
        self._entering: Counter[Hashable] = Counter()  # connections that these lanes are of
        self._freed = asyncio.Event()
        if lanes_max is None:
            lanes_max = _READY_MAX if unlimited else min(_READY_MAX, soft * 3 // 4)
        self._ready_max = whole("lanes_max", lanes_max, 1, _READY_MAX)
        self._ends_max = connections_max if unlimited else min(connections_max, soft // 4)
        self._hosts: WeakKeyDictionary[PathTable, Hashable] = WeakKeyDictionary()
        self._ends: WeakKeyDictionary[Connection, Hashable] = WeakKeyDictionary()

    def enter(self, guest: Guest) -> Guest | None:
        """One more. Above the limit, the one that has to go for it.

        That is one of the host which has the most, the longest silent before those that said hello.
        """
        self._guests[guest.task] = guest
        guest.task.add_done_callback(lambda task: self._guests.pop(task, None))
        if len(self._guests) <= self._streams_max:
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
        self._entering[host] += 1
        try:
            yield
        finally:
            self._lanes[host] -= count
            self._entering[host] -= 1
            self._lanes += Counter()  # without those that have none
            self._entering += Counter()
            self._freed.set()

    def lacks(self, host: Hashable, count: int, tables: Iterable[PathTable]) -> str | None:
        """What this host may not have so many more lanes for, beside these tables; None: it may.

        Asked inside lanes(), where what others of the host are about to have counts as had.
        """
        ends = Counter(at for end, at in self._ends.items() if not end.freed) + self._entering
        if ends.total() > self._ends_max or ends[host] > max(self._ends_max * 3 // 4, 1):
            return "connections"
        lanes = [(t, len(t.profile)) for t in tables if t.port.backend is Backend.UDP]
        held = sum(n for _, n in lanes)
        theirs = self._lanes[host] + sum(n for t, n in lanes if self._hosts.get(t) == host)
        fits = held + count <= self._ready_max and theirs <= self._ready_max * 3 // 4
        return None if held == 0 or fits else "paths"

    def took(self, host: Hashable, end: Connection) -> None:
        """A connection of this host is ready."""
        self._hosts[end.path] = host
        self._ends[end] = host
