# SPDX-License-Identifier: BSD-2-Clause
"""Which ports of a fabric have the eBPF program, and what it does there.

At the egress of a switch's port it keeps a virtual queue, where the fabric marks or trims; where a
link ends it damages or cuts packets, from the first fault of that kind on.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from mrc.fabric.shape import Link as Way
from mrc.fabric.shape import Tier
from mrc.fabric.timeline import LinkState

from . import config
from .bpf import Bpf, PortConfig
from .rtnl import Change, Kernel, Verb

if TYPE_CHECKING:
    from .plan import FabricSpec

TRIMMED, TRIMMED_LASTHOP = 12, 16
"""DSCP of cut packets (A.13.5, our defaults)."""


class Marks:
    """The programs of one fabric. Loads nothing before it is needed."""

    def __init__(self, spec: FabricSpec, kernel: Kernel) -> None:
        """`kernel` attaches what is loaded."""
        self._spec = spec
        self._kernel = kernel
        self._bpf: Bpf | None = None
        self._ports: dict[tuple[Verb, Way], int] = {}
        self._configs: dict[int, PortConfig] = {}

    def require(self) -> None:
        """FabricUnavailableError: not compiled, or not allowed here."""
        _ = self._loaded

    def begin(self) -> None:
        """The virtual queues, where the fabric marks or trims."""
        if self._spec.ecn_bytes is None and not self._spec.trim:
            return
        for way in self._spec.shape.links:
            if way.src.tier is not Tier.HOST:
                self._set(Verb.QUEUE, way, self._queue(way))

    def change(self, way: Way, before: LinkState, after: LinkState) -> None:
        """What faults make of a direction."""
        if (before.corrupt_ppm, before.trim_ppm) != (after.corrupt_ppm, after.trim_ppm):
            wire = PortConfig(
                corrupt_ppm=after.corrupt_ppm,
                trim_ppm=after.trim_ppm,
                trimmed_dscp=self._trimmed(way),
            )
            self._set(Verb.WIRE, way, wire)
        if before.rate_bps != after.rate_bps and (Verb.QUEUE, way) in self._ports:
            rate_bps = after.rate_bps or self._spec.shape.rate_of(way)
            self._set(Verb.QUEUE, way, replace(self._queue(way), rate_bytes=rate_bps // 8))

    def counts(self) -> dict[Way, dict[str, int]]:
        """Marked, trimmed and corrupted packets of each direction that has a program."""
        found: dict[Way, dict[str, int]] = {}
        for (_, way), port in self._ports.items():
            total = found.setdefault(way, {})
            for name, count in self._loaded.counts(port).items():
                total[name] = total.get(name, 0) + count
        return found

    def close(self) -> None:
        """Close the maps."""
        bpf, self._bpf = self._bpf, None
        if bpf is not None:
            bpf.close()
        self._ports.clear()

    @property
    def _loaded(self) -> Bpf:
        if self._bpf is None:
            self._bpf = Bpf()
        return self._bpf

    def _queue(self, way: Way) -> PortConfig:
        shape = self._spec.shape
        # MRC E.8: no marks on the last hop
        lo, hi = (0, 0) if way.dst.tier is Tier.HOST else self._spec.ecn_bytes or (0, 0)
        limit = shape.queue_bytes if self._spec.trim else 0
        rate_bytes = shape.rate_of(way) // 8
        return PortConfig(rate_bytes, lo, hi, limit, trimmed_dscp=self._trimmed(way))

    @staticmethod
    def _trimmed(way: Way) -> int:
        return TRIMMED_LASTHOP if way.dst.tier is Tier.HOST else TRIMMED

    def _set(self, verb: Verb, way: Way, wanted: PortConfig) -> None:
        port = self._ports.get((verb, way))
        if port is None:
            port = self._ports[verb, way] = len(self._ports)
            where = config.out_port(way) if verb is Verb.QUEUE else config.in_port(way)
            self._loaded.configure(port, wanted)
            fd = self._loaded.load(verb.value, port)
            try:
                self._kernel.carry_out([Change(*where, verb, fd)])
            finally:
                os.close(fd)
        else:
            self._loaded.configure(port, wanted)
