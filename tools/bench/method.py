# SPDX-License-Identifier: BSD-2-Clause
"""What a measurement is made of: methods in groups, samples, targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tools.bench.link import Link

PORT = 5001
"""Of whatever listens in the receiving host and has no port of its own."""


class Unit(StrEnum):
    """Figures a sample may have; the text is the head of the column."""

    GBPS = "Gbit/s"
    """User bytes that arrived; headers are not counted."""
    LOSS = "loss %"
    """Share of the packets sent that did not arrive; of ours, that were sent again."""
    SEND = "s/GB send"
    """Processor time of the sending core for each gigabyte, the kernel's included."""
    RECV = "s/GB recv"
    CPU = "s/GB both"
    P50 = "p50 us"
    P99 = "p99 us"
    MWRITES = "M/s"
    """Million writes, or datagrams, a second."""
    MCORE = "M/cpu-s"
    """Million writes for each second of processor time of all that took part."""
    NS = "ns/packet"
    """Processor time of both ends."""
    GBYTES = "GB/s"
    SECONDS = "s"
    BYTES = "bytes"
    SCAPY = "scapy"
    """1: it was imported."""
    TRAIN = "train"
    """Packets in one message to the kernel, on average."""
    UNEVEN = "uneven %"
    """Of the bytes of a path within 1 MB sent: standard deviation, of the mean."""
    UNEVEN_MS = "of 1 ms %"
    """The same within a millisecond."""
    ROW = "KB in row"
    """Bytes that leave one behind the other on one path, on average."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one run gave."""

    figures: dict[Unit, float]
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cores:
    """Which core each end is pinned to; None: not pinned."""

    sender: int | None
    receiver: int | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where and how long a method runs."""

    cores: Cores
    seconds: int
    net: Link | None = None

    @property
    def link(self) -> Link:
        """The link of a group that has one."""
        assert self.net is not None
        return self.net


Run = Callable[[Place], Sample]


def nothing_missing() -> str:
    """For methods that can run wherever the bench can."""
    return ""


@dataclass(frozen=True, slots=True)
class Method:
    """One row of a table."""

    name: str
    what: str
    run: Run
    missing: Callable[[], str] = nothing_missing
    """Why it cannot run here; empty when it can."""
    packages: tuple[str, ...] = ()
    """What Debian calls what it needs."""
    once: bool = False
    """The figure does not vary: one run is enough."""


@dataclass(frozen=True, slots=True)
class Target:
    """A row of the table of what is wanted: a ratio within a round, or a figure by itself."""

    what: str
    unit: Unit
    ours: str
    peer: str | None
    wanted: float
    at_least: bool = True

    def met(self, value: float) -> bool:
        """Whether a measured value is good enough."""
        return value >= self.wanted if self.at_least else value <= self.wanted


@dataclass(frozen=True, slots=True)
class Group:
    """Methods that are compared with each other, in one place."""

    name: str
    title: str
    link: str | None
    """Kind of link; None: within one process."""
    methods: tuple[Method, ...]
    columns: tuple[Unit, ...]
    targets: tuple[Target, ...] = ()
    overhead_s: float = 1.7
    """What a run takes beside its measured time, for the estimate."""
    against: tuple[str, ...] = ()
    """Rows to which all rows are shown as ratios, in the unit of the first column."""
