# SPDX-License-Identifier: BSD-2-Clause
"""What all ends share: how to say ready, when to stop, how to report."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

STEP_NS = 5_000_000
"""Time between two samples."""


class Samples:
    """Rows of numbers taken every STEP_NS by a loop that calls ``due`` often enough."""

    def __init__(self, *columns: str) -> None:
        self.columns = ("t_ns", *columns)
        self.rows: list[tuple[int, ...]] = []
        self._next_ns = 0

    def due(self, read: Callable[[], Sequence[int]]) -> None:
        """Take a sample when it is time."""
        now = time.monotonic_ns()
        if now >= self._next_ns:
            self.take(read)
            self._next_ns = max(self._next_ns + STEP_NS, now + STEP_NS // 2)

    def take(self, read: Callable[[], Sequence[int]]) -> None:
        """Take one now."""
        self.rows.append((time.monotonic_ns(), *read()))

    def wait_ms(self) -> float:
        """How long until the next one is due, at least 0."""
        return max(0.0, (self._next_ns - time.monotonic_ns()) / 1e6)

    def as_json(self) -> dict[str, Any]:
        """As the report has it."""
        return {"columns": self.columns, "samples": self.rows}


class Stop:
    """Set by SIGTERM or SIGINT."""

    def __init__(self) -> None:
        self.set = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on)

    def _on(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.set = True


def ready() -> None:
    """The other end may start."""
    print("ready", flush=True)


def report(samples: Samples | None = None, **more: Any) -> None:
    """The last thing an end says.

    Written piece by piece: with PYTHONUNBUFFERED print() drops what a signal in a full pipe leaves.
    """
    text = json.dumps({**(samples.as_json() if samples else {}), **more}) + "\n"
    left = memoryview(text.encode())
    while left:
        left = left[os.write(1, left) :]
