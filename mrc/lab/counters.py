# SPDX-License-Identifier: BSD-2-Clause
"""What the spines counted: the verdict from the wire, independent of what the programs say."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import config

if TYPE_CHECKING:
    from .client import HolderClient
    from .plan import FabricSpec

QUIET_S = 0.06
QUIET_LIMIT_S = 2.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """What an interface counted. A GSO train is one packet here, so bytes are the exact measure."""

    bytes: int = 0
    packets: int = 0

    def __sub__(self, other: Traffic) -> Traffic:
        """What was added since ``other``."""
        return Traffic(self.bytes - other.bytes, self.packets - other.packets)


@dataclass(frozen=True, slots=True)
class SpineCounters:
    """A spine's counters, by host (0-based): what came from it, what was sent on to it."""

    rx: tuple[Traffic, ...]
    tx: tuple[Traffic, ...]

    def __sub__(self, other: SpineCounters) -> SpineCounters:
        """What was added since ``other``."""
        return SpineCounters(
            tuple(a - b for a, b in zip(self.rx, other.rx, strict=True)),
            tuple(a - b for a, b in zip(self.tx, other.tx, strict=True)),
        )


def read_spines(client: HolderClient, spec: FabricSpec) -> dict[tuple[int, int], SpineCounters]:
    """The counters of every spine, by (plane, spine)."""
    where = {
        (plane, spine): config.t1_ns(plane, spine)
        for plane in range(1, spec.planes + 1)
        for spine in range(1, spec.spines + 1)
    }
    found = client.ask("counters", names=list(where.values()))["counters"]
    return {key: _of_spine(found[ns], spec.hosts) for key, ns in where.items()}


def settle(client: HolderClient, spec: FabricSpec) -> None:
    """Wait until interfaces have said what they say when they come up (multicast group reports)."""
    deadline = time.monotonic() + QUIET_LIMIT_S
    last = read_spines(client, spec)
    while time.monotonic() < deadline:
        time.sleep(QUIET_S)
        now = read_spines(client, spec)
        if now == last:
            return
        last = now


def _of_spine(devices: Mapping[str, Sequence[int]], hosts: int) -> SpineCounters:
    per_host = [devices[f"t0-{h + 1}"] for h in range(hosts)]
    return SpineCounters(
        tuple(Traffic(c[0], c[1]) for c in per_host),
        tuple(Traffic(c[2], c[3]) for c in per_host),
    )
