# SPDX-License-Identifier: BSD-2-Clause
"""What the spines counted: the verdict from the wire, independent of what the programs say."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrc.fabric.shape import Link as Way

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
    """A spine's counters, by T0 (0-based): what came from it, what was sent on to it.

    Unless a spec says otherwise, each host has a T0 of its own, of the same number.
    """

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
    return {key: _of_spine(found[ns], spec.shape.t0) for key, ns in where.items()}


@dataclass(frozen=True, slots=True)
class LinkCounters:
    """One direction of a cable."""

    bytes: int = 0
    """Sent into it; a GSO train is one packet here."""
    packets: int = 0
    dropped: int = 0
    """At the sending port, for want of room."""
    lost: int = 0
    """By a fault."""
    waiting_bytes: int = 0
    """At the sending port, now."""


def read_links(client: HolderClient, spec: FabricSpec) -> dict[Way, LinkCounters]:
    """The counters of every direction of every cable."""
    names = [ns for ns in client.fds if ns != config.OOB]
    devices = client.ask("counters", names=names)["counters"]
    jobs = [{"ns": ns, "argv": ["tc", "-s", "-j", "qdisc", "show"], "text": ""} for ns in names]
    queues: dict[tuple[str, str, str], dict[str, int]] = {}
    for ns, answer in zip(names, client.ask("runs", jobs=jobs)["answers"], strict=True):
        for queue in json.loads(answer["out"] or "[]"):
            queues[ns, queue["dev"], queue["kind"]] = queue
    found = {}
    for way in spec.shape.links:
        ns, dev = config.out_port(way)
        tbf = queues.get((ns, dev, "tbf"), {})
        ingress = queues.get((*config.in_port(way), "clsact"), {})
        found[way] = LinkCounters(
            devices[ns][dev][2],
            devices[ns][dev][3],
            tbf.get("drops", 0),
            ingress.get("drops", 0),
            tbf.get("backlog", 0),
        )
    return found


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


def _of_spine(devices: Mapping[str, Sequence[int]], t0s: int) -> SpineCounters:
    per_t0 = [devices[f"t0-{n + 1}"] for n in range(t0s)]
    return SpineCounters(
        tuple(Traffic(c[0], c[1]) for c in per_t0),
        tuple(Traffic(c[2], c[3]) for c in per_t0),
    )
