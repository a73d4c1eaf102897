# SPDX-License-Identifier: BSD-2-Clause
"""Ping-pong: each side answers a write with immediate by another, as ib_write_lat does.

What is measured is what an asyncio application sees: from posting the write to learning, in the
event loop, that the answer is in memory; half of that is reported.
"""

from __future__ import annotations

import asyncio
import time

from mrc.cli.flow import Outlet
from mrc.cli.histogram import LatencyHistogram
from mrc.cli.pattern import Pattern
from mrc.cli.protocol import NUMBER_MASK, StreamResult, TestParams

WARM_UP = 16


class Ping:
    """The side that measures. The first WARM_UP round trips are made but not counted."""

    def __init__(
        self, params: TestParams, sent: Pattern, taken: Pattern, outlet: Outlet, ring: bytearray
    ) -> None:
        self._params = params
        self._sent = sent
        self._taken = taken
        self._outlet = outlet
        self._view = memoryview(ring)
        self._stopping = False
        self._sent_ns = 0
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.histogram = LatencyHistogram()
        self.result = StreamResult()
        self.posted = 0
        self.end_ns = 0
        outlet.link.on_message = self._on_pong

    def stop(self) -> None:
        """End with the round trip that is under way."""
        self._stopping = True

    @property
    def messages(self) -> int:
        """Messages that were answered."""
        return self.result.messages

    @property
    def bytes(self) -> int:
        """Bytes sent that were answered."""
        return self.result.messages * self._params.size

    async def run(self) -> None:
        """Measure until the count is reached or `stop` is called."""
        self._ping()
        await self._done
        self.end_ns = time.monotonic_ns()

    def _ping(self) -> None:
        slot = self.posted % self._params.depth * self._params.size
        self._sent_ns = time.perf_counter_ns()
        self._outlet.write(
            self._params.size,
            imm=self.posted & NUMBER_MASK,
            local_offset=self._sent.offset(self.posted),
            remote_offset=slot,
        )
        self.posted += 1

    def _on_pong(self, number: int) -> None:
        taken_ns = time.perf_counter_ns() - self._sent_ns
        expected = self.result.messages
        if number != expected & NUMBER_MASK:
            self.result.add_error(f"answer {number} arrived where {expected} was due (B.8)")
        check(self._params, self._taken, self._view, expected, self.result)
        self.result.messages += 1
        if expected >= WARM_UP:
            self.histogram.add(taken_ns // 2)
        limit = self._params.messages and self._params.messages + WARM_UP
        if self._stopping or 0 < limit <= self.result.messages:
            if not self._done.done():
                self._done.set_result(None)
        else:
            self._ping()


class Pong:
    """The side that answers, then checks: the slot is not written again for depth messages."""

    def __init__(
        self, params: TestParams, sent: Pattern, taken: Pattern, outlet: Outlet, ring: bytearray
    ) -> None:
        self._params = params
        self._sent = sent
        self._taken = taken
        self._outlet = outlet
        self._view = memoryview(ring)
        self.result = StreamResult()
        outlet.link.on_message = self._on_ping

    def _on_ping(self, number: int) -> None:
        expected = self.result.messages
        self._outlet.write(
            self._params.size,
            imm=expected & NUMBER_MASK,
            local_offset=self._sent.offset(expected),
            remote_offset=expected % self._params.depth * self._params.size,
        )
        if number != expected & NUMBER_MASK:
            self.result.add_error(f"immediate {number} arrived where {expected} was due (B.8)")
        check(self._params, self._taken, self._view, expected, self.result)
        self.result.messages += 1

    async def finish(self, messages: int) -> StreamResult:
        """The answers were all received by the other side before it asked for this."""
        if self.result.messages != messages:
            self.result.add_error(f"{self.result.messages} of {messages} messages arrived")
        return self.result


def check(
    params: TestParams, pattern: Pattern, ring: memoryview, number: int, result: StreamResult
) -> None:
    """Compare one message in its slot, if the test says so."""
    if not params.verify:
        return
    start = number % params.depth * params.size
    message = ring[start : start + params.size]
    if not pattern.matches(number, message):
        at = pattern.first_difference(number, message)
        result.add_error(f"message {number} differs from byte {at} on")
    result.checked += 1
