# SPDX-License-Identifier: BSD-2-Clause
"""The ring of slots between a sender and a receiver: when a slot may be written again.

Message k goes to slot k % depth of the receiver's ring. Its slot is free when message k - depth is
complete at the sender and, where the receiver looks at messages, when its credit has come back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from mrc.cli.exits import CliError, Exit
from mrc.cli.link import Link, Write
from mrc.cli.protocol import CREDIT_BIT, NUMBER_MASK
from mrc.errors import MrcError

if TYPE_CHECKING:
    from mrc.mr import MemoryRegion
    from mrc.oob import RemoteRegion


class Outlet:
    """What writes over one connection in one test need: local memory, and the peer's ring."""

    def __init__(self, link: Link, source: MemoryRegion, remote: RemoteRegion) -> None:
        self.link = link
        self._source = source
        self._remote = remote

    def write(
        self, length: int, imm: int | None, local_offset: int = 0, remote_offset: int = 0
    ) -> Write:
        """Post a write; the future completes when it is placed at the peer (B.13)."""
        future = self.link.conn.write_nowait(
            self._source,
            self._remote,
            local_offset=local_offset,
            remote_offset=remote_offset,
            length=length,
            imm=imm,
        )
        self.link.track(future)
        return future


class SendWindow:
    """Sender's side. `counted` says whether the receiver gives credit."""

    def __init__(self, link: Link, depth: int, counted: bool) -> None:
        self._depth = depth
        self._counted = counted
        self._pending: deque[tuple[Write, int]] = deque()
        self._credited = 0
        self._waiter: asyncio.Future[None] | None = None
        self._posted_bytes = 0
        self.posted = 0
        if counted:
            link.on_credit = self._on_credit

    @property
    def completed(self) -> int:
        """Messages that are complete, whether or not anybody has waited for them yet."""
        return self.posted - sum(not _succeeded(write) for write, _ in self._pending)

    @property
    def completed_bytes(self) -> int:
        """Their bytes."""
        return self._posted_bytes - self.open_bytes

    @property
    def open_bytes(self) -> int:
        """Bytes of messages that are not complete."""
        return sum(size for write, size in self._pending if not _succeeded(write))

    @property
    def uncredited(self) -> int:
        """Messages that the receiver, where it looks at them, has not given back."""
        return self.posted - self._credited if self._counted else 0

    def _on_credit(self, number: int) -> None:
        gained = (number - self._credited) & NUMBER_MASK
        if gained > self.posted - self._credited:
            raise CliError(Exit.PEER, "the peer gave credit for messages that were never sent")
        self._credited += gained
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _credit(self, number: int) -> None:
        while self._counted and self._credited < number:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    async def room(self) -> None:
        """Wait until the next message has a free slot, at both ends."""
        while self._pending and (len(self._pending) >= self._depth or self._pending[0][0].done()):
            await self._pending[0][0]
            self._pending.popleft()
        await self._credit(self.posted + 1 - self._depth)

    def add(self, completion: Write, size: int) -> None:
        """The next message, of `size` bytes, was posted."""
        self._pending.append((completion, size))
        self._posted_bytes += size
        self.posted += 1

    async def drain(self) -> None:
        """Wait until every message is complete and, if counted, credited."""
        while self._pending:
            await self._pending[0][0]
            self._pending.popleft()
        await self._credit(self.posted)


def _succeeded(write: Write) -> bool:
    return write.done() and not write.cancelled() and write.exception() is None


class CreditReturn:
    """Receiver's side: tells the sender how far it got.

    One credit is in flight at a time, so that a fast receiver sends few and a slow one sends each.
    """

    def __init__(self, outlet: Outlet) -> None:
        self.link = outlet.link
        self._outlet = outlet
        self._flight: Write | None = None
        self._told = 0
        self._done = 0

    def advance(self, done: int) -> None:
        """Messages before number `done` are checked."""
        self._done = done
        if self._flight is None:
            self._send()

    def _send(self) -> None:
        self._told = self._done
        self._flight = self._outlet.write(0, imm=CREDIT_BIT | (self._told & NUMBER_MASK))
        self._flight.add_done_callback(self._sent)

    def _sent(self, flight: Write) -> None:
        self._flight = None
        if not _succeeded(flight) or self._told == self._done:
            return
        try:
            self._send()
        except MrcError as error:  # closed meanwhile
            self.link.fail(error)
