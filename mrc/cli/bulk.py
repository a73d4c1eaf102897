# SPDX-License-Identifier: BSD-2-Clause
"""Bulk traffic over one connection: the sender's loop and the receiver's check."""

from __future__ import annotations

import asyncio
import time

from mrc.cli.flow import CreditReturn, Outlet, SendWindow
from mrc.cli.pattern import Pattern
from mrc.cli.protocol import NUMBER_MASK, StreamResult, TestParams

_YIELD_EVERY = 64


class BulkSender:
    """Writes messages until the count is reached or `stop` is called, then drains."""

    def __init__(self, params: TestParams, pattern: Pattern, outlet: Outlet) -> None:
        self._params = params
        self._pattern = pattern
        self._outlet = outlet
        self._stopping = False
        self.window = SendWindow(outlet.link, params.depth, params.counted)
        self.end_ns = 0

    def stop(self) -> None:
        """Post nothing more; `run` returns when what is out is complete."""
        self._stopping = True

    @property
    def messages(self) -> int:
        """Complete messages."""
        return self.window.completed

    @property
    def bytes(self) -> int:
        """Bytes of complete messages."""
        return self.window.completed_bytes

    async def run(self) -> None:
        """Send. Raises what a write raised."""
        params, window = self._params, self.window
        while not self._stopping and not 0 < params.messages <= window.posted:
            await window.room()
            if self._stopping:
                break
            number = window.posted
            window.add(
                self._outlet.write(
                    params.size,
                    imm=number & NUMBER_MASK if params.counted else None,
                    local_offset=self._pattern.offset(number),
                    remote_offset=number % params.depth * params.size,
                ),
                params.size,
            )
            if window.posted % _YIELD_EVERY == 0:
                await asyncio.sleep(0)  # completions may keep coming without ever blocking us
        await window.drain()
        self.end_ns = time.monotonic_ns()


class BulkReceiver:
    """Checks each message where it was placed, then gives its slot back.

    Messages up to CHECK_AT_ONCE are checked as they come; longer ones piece by piece, so that the
    event loop, and with it acknowledgements, never wait long.
    """

    CHECK_AT_ONCE = 4 << 20

    def __init__(
        self, params: TestParams, pattern: Pattern | None, ring: bytearray, credit: CreditReturn
    ) -> None:
        self._params = params
        self._pattern = pattern
        self._view = memoryview(ring)
        self._credit = credit
        self._arrived = 0
        self._checker: asyncio.Task[None] | None = None
        self._wanted: int | None = None
        self._all_here = asyncio.Event()
        self.result = StreamResult()
        if params.counted:
            credit.link.on_message = self._on_message

    def _on_message(self, number: int) -> None:
        if number != self._arrived & NUMBER_MASK:
            self.result.add_error(f"immediate {number} came where {self._arrived} was due (B.8)")
        self._arrived += 1
        if self._pattern is None or self._params.size <= self.CHECK_AT_ONCE:
            self._check(0, self._params.size)
            self._accept()
        elif self._checker is None or self._checker.done():
            self._checker = self._credit.link.spawn(self._check_in_pieces())

    async def _check_in_pieces(self) -> None:
        size = self._params.size
        while self.result.messages < self._arrived:
            for start in range(0, size, self.CHECK_AT_ONCE):
                if not self._check(start, min(start + self.CHECK_AT_ONCE, size)):
                    break
                await asyncio.sleep(0)
            self._accept()

    def _check(self, start: int, end: int) -> bool:
        """Compare a part of the oldest message not accepted yet; False where it differs."""
        if self._pattern is None:
            return True
        number = self.result.messages
        slot = number % self._params.depth * self._params.size
        part = self._view[slot + start : slot + end]
        if self._pattern.matches(number, part, start):
            return True
        at = start + self._pattern.first_difference(number, part, start)
        self.result.add_error(f"message {number} differs from byte {at} on")
        return False

    def _accept(self) -> None:
        """The oldest message is dealt with: its slot may be written again."""
        self.result.messages += 1
        self.result.checked += self._pattern is not None
        self._credit.advance(self.result.messages)
        self._wake()

    def _wake(self) -> None:
        if self._wanted is not None and self.result.messages >= self._wanted:
            self._all_here.set()

    async def finish(self, messages: int) -> StreamResult:
        """The result once all `messages` of the sender are here.

        Uncounted ones are here already, since the sender saw their transport ACK (B.13).
        """
        if self._params.counted:
            self._wanted = messages
            self._wake()
            await self._all_here.wait()
        else:
            self.result.messages = messages
        return self.result
