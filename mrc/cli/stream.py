# SPDX-License-Identifier: BSD-2-Clause
"""One connection's part in one test: memory, regions, and what runs over them, at either end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mrc.cli.bulk import BulkReceiver, BulkSender
from mrc.cli.files import FileSender
from mrc.cli.flow import CreditReturn, Outlet
from mrc.cli.latency import Ping, Pong
from mrc.cli.link import CALL_TIMEOUT_S, Link
from mrc.cli.pattern import Pattern
from mrc.cli.protocol import TestParams
from mrc.cli.sink import FileReceiver

_SCRAP_BYTES = 64

FileReport = Callable[[dict[str, Any]], None]


class Stream:
    """Registers memory and, once both ends have, makes the engines."""

    def __init__(self, link: Link, params: TestParams, block: Pattern, initiator: bool) -> None:
        self.link = link
        self.params = params
        self._initiator = initiator
        self._block = block
        ours, theirs = 2 * link.index, 2 * link.index + 1
        if not initiator:
            ours, theirs = theirs, ours
        self._sent_pattern = block.lane(ours)
        self._taken_pattern = block.lane(theirs)
        takes_data = not initiator or params.bidir or params.kind == "latency"
        ring_bytes = params.size * params.depth if takes_data else _SCRAP_BYTES
        self.ring = bytearray(ring_bytes)
        self.ring_mr = link.conn.register(self.ring, remote_write=True)
        sends_file = params.kind == "file" and initiator
        self.buffer = bytearray(params.size * params.depth) if sends_file else block.block
        self.buffer_mr = link.conn.register(self.buffer, remote_write=False)
        self._outlet: Outlet | None = None
        self.base_bytes = link.bytes_received()
        link.conn.advertise(self._region, self.ring_mr)

    @property
    def _region(self) -> str:
        return f"mrc-test-{self.params.test}"

    async def meet(self) -> None:
        """Learn where the peer's ring is; it was advertised before the peer asked or answered."""
        remote = await self.link.guard(
            self.link.conn.remote_region(self._region, timeout=CALL_TIMEOUT_S)
        )
        self._outlet = Outlet(self.link, self.buffer_mr, remote)

    @property
    def bytes_received(self) -> int:
        """Payload bytes placed at this end since the test began."""
        return self.link.bytes_received() - self.base_bytes

    @property
    def outlet(self) -> Outlet:
        """Writes to the peer; needs `meet` first, as all below."""
        if self._outlet is None:
            raise AssertionError("meet() comes first")
        return self._outlet

    def bulk_sender(self) -> BulkSender:
        """Messages as fast as the window allows."""
        return BulkSender(self.params, self._sent_pattern, self.outlet)

    def bulk_receiver(self) -> BulkReceiver:
        """Checks them and gives credit."""
        pattern = self._taken_pattern if self.params.verify else None
        return BulkReceiver(self.params, pattern, self.ring, CreditReturn(self.outlet))

    def ping(self) -> Ping:
        """Measures."""
        return Ping(self.params, self._sent_pattern, self._taken_pattern, self.outlet, self.ring)

    def pong(self) -> Pong:
        """Answers."""
        return Pong(self.params, self._sent_pattern, self._taken_pattern, self.outlet, self.ring)

    def file_sender(self, paths: Sequence[str], on_done: FileReport) -> FileSender:
        """Reads files and sends them."""
        return FileSender(self.params, paths, self.buffer, self.outlet, on_done)

    def file_receiver(self, directory: str | None, on_done: FileReport) -> FileReceiver:
        """Writes them."""
        return FileReceiver(
            self.params, self.ring, CreditReturn(self.outlet), directory=directory, on_done=on_done
        )

    async def release(self) -> None:
        """Give the memory back after a test that ended well; a lost connection does it itself."""
        self.link.on_message = None
        self.link.on_credit = None
        await self.link.guard(self.link.quiet())
        self.ring_mr.close()
        self.buffer_mr.close()
