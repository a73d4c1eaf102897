# SPDX-License-Identifier: BSD-2-Clause
"""The plot: a file, then bulk traffic with a silent cut and a heal."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .programs import DemoError, Program, find, wait_ready
from .stage import FabricStage, Stage
from .story import Story

INTERVAL_S = "0.1"
CUT = (3, 2)
"""The spine to lose: any would do."""


@dataclass
class Result:
    """What came of it, for the summary."""

    file: Path
    file_equal: bool = False
    file_sha256: str = ""
    file_end: dict[str, Any] = field(default_factory=dict)
    bulk_end: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    wire: dict[int, int] = field(default_factory=dict)
    """Bytes the spines counted from sender to receiver in the bulk transfer, by EV."""


@dataclass
class Director:
    """Plays the whole demo on a stage; ``story`` can be watched meanwhile."""

    stage: Stage
    story: Story
    folder: Path
    file: Path
    bulk_s: float

    async def play(self) -> Result:
        """DemoError when it cannot go on. Leaves no process behind, also when cancelled."""
        received = self.folder / "received"
        received.mkdir()
        result = Result(self.file)
        receiver = await self._start(1, "mrc-recv", ["-o", str(received)])
        reader = asyncio.create_task(_discard(receiver))
        try:
            await wait_ready(receiver, self.stage.listens)
            await self._send_file(result, received)
            await self._send_bulk(result)
        finally:
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader
            await receiver.stop()
        return result

    async def _start(self, end: int, name: str, argv: Sequence[str]) -> Program:
        common = ["-p", str(self.stage.port), "--json-stream", "-i", INTERVAL_S]
        own = [find(name), *self.stage.arguments(end), *common, *argv]
        return await Program.start(name, self.stage.command(end, own))

    async def _send_file(self, result: Result, received: Path) -> None:
        size = self.file.stat().st_size
        self.story.new_transfer(f"sending a file of {size / 1e6:.0f} MB")
        self.story.say(f"mrc-send --file {self.file.name} ({size / 1e6:.0f} MB) over 16 paths")
        result.file_end = await self._send(result, ["--file", str(self.file)])
        sent, got = await asyncio.to_thread(_hashes, self.file, received / self.file.name)
        result.file_sha256 = sent
        result.file_equal = sent == got
        if not result.file_equal:
            result.problems.append("the received file differs from the sent one")
        seconds = result.file_end.get("sum_sent", {}).get("seconds", 0.0)
        equal = "equal" if result.file_equal else "DIFFERENT"
        self.story.say(f"file received in {seconds:.2f} s, SHA-256 {sent[:16]}... {equal}")

    async def _send_bulk(self, result: Result) -> None:
        self.story.new_transfer(f"bulk traffic for {self.bulk_s:.0f} s")
        self.story.say(f"mrc-send -t {self.bulk_s:g}, every message verified")
        self.story.steady.clear()
        before = self.stage.carried()
        faults = asyncio.create_task(self._cut_and_heal())
        try:
            result.bulk_end = await self._send(result, ["-t", f"{self.bulk_s:g}"])
        finally:
            faults.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await faults
        result.wire = {ev: n - before[ev] for ev, n in self.stage.carried().items()}
        if not result.bulk_end.get("verified"):
            result.problems.append("the bulk data was not verified")

    async def _send(self, result: Result, what: Sequence[str]) -> dict[str, Any]:
        sender = await self._start(0, "mrc-send", [self.stage.address, *what])
        end: dict[str, Any] = {}
        try:
            async for event, data, arrival in sender.messages():
                if event == "interval":
                    self.story.interval(data, arrival)
                elif event == "end":
                    end = data
                elif event == "error":
                    result.problems.append(f"mrc-send: {data}")
            code = await sender.wait()
        finally:
            await sender.stop()
        if code != 0:
            result.problems.append(f"mrc-send ended with {code}: {await sender.complaint()}")
        if not end:
            raise DemoError("; ".join(result.problems) or "mrc-send ended without a report")
        return end

    async def _cut_and_heal(self) -> None:
        """At a third and at two thirds of the bulk time, once data flows."""
        if not isinstance(self.stage, FabricStage):
            return
        story, faults = self.story, self.stage.fabric.faults
        await story.flowing.wait()
        await asyncio.sleep(self.bulk_s / 3)
        story.cut_spine = CUT
        story.cut_at = time.monotonic()
        faults.cut(CUT)
        story.phase = f"plane {CUT[0]}, spine {CUT[1]} is cut"
        story.say(f"CUT plane {CUT[0]} spine {CUT[1]}: packets vanish, links stay up", story.cut_at)
        await asyncio.sleep(self.bulk_s / 3)
        story.heal_at = time.monotonic()
        faults.heal(CUT)
        story.phase = "healed"
        story.say(f"HEAL plane {CUT[0]} spine {CUT[1]}", story.heal_at)


def make_file(folder: Path, size: int) -> Path:
    """A file of random bytes."""
    file = folder / "random.bin"
    with file.open("wb") as out:
        for _ in range(size // (1 << 20)):
            out.write(os.urandom(1 << 20))
    return file


def _hashes(*files: Path) -> list[str]:
    found = []
    for path in files:
        try:
            with path.open("rb") as file:
                found.append(hashlib.file_digest(file, "sha256").hexdigest())
        except OSError as error:
            found.append(str(error))
    return found


async def _discard(program: Program) -> None:
    async for _ in program.messages():
        pass
