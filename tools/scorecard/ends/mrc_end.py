# SPDX-License-Identifier: BSD-2-Clause
"""MRC through the library: one connection, writes of 1 MiB, sixteen in flight.

    mrc_end.py recv ADDRESS PORT OPTIONS        mrc_end.py send ADDRESS PORT OPTIONS

OPTIONS is a JSON object: keyword arguments of connect() or listen(), and ``verify``. The receiver
samples the bytes placed in its memory; the sender its counters and what the peer has confirmed.
With ``verify`` every message carries an immediate, and the receiver compares it before it is
written again.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import mrc
from mrc.telemetry import event_json
from mrc.transfer import WriteArgs
from tools.scorecard.ends.common import STEP_NS, Samples, Stop, ready, report

MESSAGE = 1 << 20
DEPTH = 16
COUNTERS = (
    "packets_sent",
    "bytes_sent",
    "packets_retransmitted",
    "spurious_retransmits",
    "losses_inferred",
    "timeouts",
    "cwnd_bytes",
)


def pattern(number: int) -> bytes:
    """What message ``number`` holds: never the same twice in a row in a slot."""
    return (number % 65521 + 1).to_bytes(4, "little") * (MESSAGE // 4)


def main(argv: list[str]) -> int:
    """The command line above."""
    role, address, port, text = argv
    options: dict[str, Any] = json.loads(text)
    verify: bool = options.pop("verify", False)
    run = {"send": _send, "recv": _receive}[role]
    try:
        import uvloop
    except ImportError:
        factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    else:
        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(run(address, int(port), options, verify))
    return 0


class _Sampler:
    """Takes samples on the event loop until stopped."""

    def __init__(self, stop: Stop, *columns: str) -> None:
        self.samples = Samples(*columns)
        self.over = asyncio.Event()
        self._stop = stop
        self._read: Callable[[], Sequence[int]] | None = None
        self._tick()

    def watch(self, read: Callable[[], Sequence[int]]) -> None:
        """From now on this is what is sampled."""
        self._read = read

    def _tick(self) -> None:
        if self._stop.set:
            self.over.set()
            return
        if self._read is not None:
            self.samples.take(self._read)
        asyncio.get_running_loop().call_later(STEP_NS / 1e9, self._tick)


async def _receive(address: str, port: int, options: dict[str, Any], verify: bool) -> None:
    sampler = _Sampler(Stop(), "delivered", "duplicates")
    ring = bytearray(MESSAGE * DEPTH)
    async with await mrc.listen(f"[{address}]:{port}", **options) as server:
        ready()
        async with await server.accept(timeout=10) as conn:
            checker = _Checker(conn, ring)
            conn.serve("checked", checker.wait_checked)
            conn.advertise("ring", conn.register(ring))

            def read() -> tuple[int, ...]:
                stats = conn.stats()
                return stats.bytes_received, stats.duplicates_received

            sampler.watch(read)
            task = asyncio.create_task(checker.run()) if verify else None
            conn.closed.add_done_callback(lambda _: sampler.over.set())
            await sampler.over.wait()
            if task is not None:
                task.cancel()
            error = conn.closed.result() if conn.closed.done() else None
            sampler.samples.take(read)
    report(
        sampler.samples,
        error=str(error or ""),
        checked=checker.checked,
        wrong=checker.wrong,
        drops={name: count for name, count in conn.drops().items() if count},
    )


class _Checker:
    """Compares each message where it was placed."""

    def __init__(self, conn: mrc.Connection, ring: bytearray) -> None:
        self._conn = conn
        self._view = memoryview(ring)
        self._more = asyncio.Event()
        self.checked = 0
        self.wrong = 0

    async def run(self) -> None:
        """Until cancelled, or the peer is gone."""
        while True:
            try:
                number = (await self._conn.receive_imm()).imm
            except mrc.MrcError:
                return
            slot = number % DEPTH * MESSAGE
            self.wrong += self._view[slot : slot + MESSAGE] != pattern(number)
            self.checked += 1
            self._more.set()

    async def wait_checked(self, params: dict[str, Any]) -> dict[str, Any]:
        """Answer to the sender: so many were compared, their slots may be written."""
        while self.checked < params["messages"]:
            self._more.clear()
            await self._more.wait()
        return {}


async def _send(address: str, port: int, options: dict[str, Any], verify: bool) -> None:
    sampler = _Sampler(Stop(), "completed", "lost", *COUNTERS)
    async with await mrc.connect(address, port, **options) as conn:
        writer = _Writer(conn, sampler.over)
        await writer.prepare()
        ready()

        def read() -> list[int]:
            stats = conn.stats()
            lost = sum(path.packets_lost for path in conn.path_stats())
            return [writer.completed, lost, *(getattr(stats, name) for name in COUNTERS)]

        sampler.watch(read)
        error = ""
        try:
            await (writer.write_verified() if verify else writer.write())
        except mrc.MrcError as problem:
            error = str(problem)
        sampler.samples.take(read)
        events = [event_json(e, 0) for e in conn.ev_events()]
    report(sampler.samples, error=error, events=events, messages=writer.messages)


class _Writer:
    """Fills the peer's ring again and again."""

    def __init__(self, conn: mrc.Connection, over: asyncio.Event) -> None:
        self._conn = conn
        self._over = over
        self.completed = 0
        """Bytes of messages that the peer has confirmed."""
        self.messages = 0

    async def prepare(self) -> None:
        """Find the ring."""
        self._ring = await self._conn.remote_region("ring", timeout=5)
        self._blocks = [self._conn.register(bytearray(MESSAGE)) for _ in range(DEPTH)]

    async def write(self) -> None:
        """Sixteen at a time, each slot for itself, until told to stop."""

        async def fill(slot: int) -> None:
            while not self._over.is_set():
                await self._put(slot)

        await asyncio.gather(*(fill(slot) for slot in range(DEPTH)))

    async def write_verified(self) -> None:
        """A ring at a time: it is filled again once the peer has compared all of it."""
        while not self._over.is_set():
            for slot, block in enumerate(self._blocks):
                block.view[:] = pattern(self.messages + slot)
            first = self.messages
            await asyncio.gather(*(self._put(slot, first + slot) for slot in range(DEPTH)))
            await self._conn.call("checked", {"messages": self.messages})

    async def _put(self, slot: int, imm: int | None = None) -> None:
        where: WriteArgs = {"remote_offset": slot * MESSAGE, "length": MESSAGE, "imm": imm}
        await self._conn.write(self._blocks[slot], self._ring, **where)
        self.completed += MESSAGE
        self.messages += 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
