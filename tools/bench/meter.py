# SPDX-License-Identifier: BSD-2-Clause
"""How busy the two cores were while bytes arrived: the same measure for every method.

A process's own clock leaves out what the kernel does for it in interrupts and in its threads, and
each program chooses another period. So the cores themselves are read, and the bytes that the
receiving host's interfaces have counted tell the period in which traffic flowed.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.bench.method import Cores, Unit

STEP_S = 0.05
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
BUSY = (0, 1, 2, 5, 6)
"""user, nice, system, irq, softirq in a line of /proc/stat."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One look."""

    t_s: float
    sender_s: float
    receiver_s: float
    rx_bytes: int


class Meter:
    """Reads while the block runs."""

    def __init__(self, cores: Cores, netdev: Path) -> None:
        """``netdev``: the receiving host's /proc/PID/net/dev."""
        self._cores = cores
        self._netdev = netdev
        self._readings: list[Reading] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(STEP_S):
            self._readings.append(self._read())

    def _read(self) -> Reading:
        busy: dict[str, float] = {}
        for line in Path("/proc/stat").read_text().splitlines():
            name, *values = line.split()
            if name.startswith("cpu"):
                busy[name] = sum(int(values[i]) for i in BUSY) * TICK_S
        now = time.monotonic()
        if self._cores.sender is None or self._cores.receiver is None:
            return Reading(now, busy["cpu"], 0.0, received(self._netdev))
        sender, receiver = (busy[f"cpu{n}"] for n in (self._cores.sender, self._cores.receiver))
        return Reading(now, sender, receiver, received(self._netdev))

    def cost(self, gbps: float) -> dict[Unit, float]:
        """Seconds of processor time for each gigabyte, of which ``gbps`` says how many there were.

        Empty when too little was seen.
        """
        window = steady(self._readings)
        if window is None or gbps <= 0:
            return {}
        first, last = window
        seconds = (last.t_s - first.t_s) * gbps / 8
        send = (last.sender_s - first.sender_s) / seconds
        recv = (last.receiver_s - first.receiver_s) / seconds
        if self._cores.sender is None:
            return {Unit.CPU: send}
        return {Unit.SEND: send, Unit.RECV: recv, Unit.CPU: send + recv}


def received(netdev: Path) -> int:
    """Bytes that all interfaces but loopback and management have received."""
    total = 0
    for line in netdev.read_text().splitlines()[2:]:
        name, _, rest = line.partition(":")
        if name.strip() not in ("lo", "oob"):
            total += int(rest.split()[0])
    return total


def steady(readings: list[Reading]) -> tuple[Reading, Reading] | None:
    """The period in which bytes came at half their greatest rate or more, less what is at its ends.

    None: shorter than a fifth of a second.
    """
    rates = [(b.rx_bytes - a.rx_bytes) / (b.t_s - a.t_s) for a, b in pairwise(readings)]
    if not rates or max(rates) <= 0:
        return None
    fast = [i for i, rate in enumerate(rates) if rate >= max(rates) / 2]
    first, last = fast[0] + 4, fast[-1] - 1
    if (last - first) * STEP_S < 0.2:
        return None
    return readings[first], readings[last]
