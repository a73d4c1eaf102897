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

    def __init__(
        self, params: TestParams, pattern: Pattern, outlet: Outlet
    ) -> None:
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
        return self.window.completed * self._params.size

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
                )
            )
            if window.posted % _YIELD_EVERY == 0:
                await asyncio.sleep(0)  # completions may keep coming without ever blocking us
        await window.drain()
        self.end_ns = time.monotonic_ns()


class BulkReceiver:
    """Checks each message where it was placed, then gives its slot back."""

    def __init__(
        self, params: TestParams, pattern: Pattern | None, ring: bytearray, credit: CreditReturn
    ) -> None:
        self._params = params
        self._pattern = pattern
        self._view = memoryview(ring)
        self._credit = credit
        self._wanted: int | None = None
        self._all_here = asyncio.Event()
        self.result = StreamResult()
        if params.counted:
            credit.link.on_message = self._on_message

    def _on_message(self, number: int) -> None:
        expected = self.result.messages
        if number != expected & NUMBER_MASK:
            self.result.add_error(f"immediate {number} arrived where {expected} was due (B.8)")
        if self._pattern is not None:
            self._check(expected, self._pattern)
        self.result.messages += 1
        self._credit.advance(self.result.messages)
        self._wake()

    def _check(self, number: int, pattern: Pattern) -> None:
        start = number % self._params.depth * self._params.size
        message = self._view[start : start + self._params.size]
        if not pattern.matches(number, message):
            at = pattern.first_difference(number, message)
            self.result.add_error(f"message {number} differs from byte {at} on")
        self.result.checked += 1

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
