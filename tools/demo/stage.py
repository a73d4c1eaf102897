# SPDX-License-Identifier: BSD-2-Clause
"""Where the demo takes place: an SRv6 fabric with faults on request, or the loopback without."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mrc.lab import Fabric, Mode, Spine, spine_of, tcp_listens

PATHS = 16
SPORT_BASE = 49152
PORT = 18515


class Stage(Protocol):
    """Two ends, 16 paths between them."""

    title: str
    """One line for people: what the paths are made of."""
    address: str
    """Where the sender finds the receiver."""

    def command(self, end: int, argv: Sequence[str]) -> list[str]:
        """The command line that runs ``argv`` at the sender (0) or the receiver (1)."""

    def arguments(self, end: int) -> list[str]:
        """Options that make either program use the paths."""

    port: int
    """TCP port of the receiver."""

    def listens(self) -> bool:
        """Whether the receiver has its TCP port open."""

    def evs(self) -> Sequence[int]:
        """The EVs of the paths."""

    def places(self) -> Mapping[int, Spine]:
        """Where each EV goes, its plane and its spine, both 1-based; empty without switches."""

    def carried(self) -> Mapping[int, int]:
        """Bytes from the sender that the wire itself counted, by EV; empty where nobody counts."""


@dataclass
class FabricStage:
    """2 hosts, 4 planes x 4 spines, every switch the kernel's uN."""

    fabric: Fabric
    folder: Path
    """Where the EV profiles are written."""

    def __post_init__(self) -> None:
        """Write the profiles; note where the counters stand."""
        self.port = PORT
        self.address = str(self.fabric.hosts[1].address)
        privilege = "a user namespace" if self.fabric.userns else "root"
        switches = self.fabric.spec.planes * (self.fabric.spec.hosts + self.fabric.spec.spines)
        self.title = (
            f"2 hosts, 4 planes x 4 spines: {switches} switches, each a network namespace"
            f" with the kernel's own SRv6 uN ({privilege})"
        )
        for host in self.fabric.hosts:
            host.write_profile(self._profile(host.index), Mode.UDP)
        self._before = self.fabric.spine_counters()

    def _profile(self, end: int) -> Path:
        return self.folder / f"host{end + 1}.toml"

    def command(self, end: int, argv: Sequence[str]) -> list[str]:
        """By nsenter."""
        return self.fabric.hosts[end].command(argv)

    def arguments(self, end: int) -> list[str]:
        """The EV profile: source port and plane of every path; the carrier is the kernel's."""
        return ["--backend", "udp", "--ev-profile", str(self._profile(end))]

    def listens(self) -> bool:
        """As the receiving host's kernel says."""
        return self.fabric.hosts[1].listens(self.port)

    def evs(self) -> list[int]:
        """The source ports."""
        return list(self.places())

    def places(self) -> dict[int, Spine]:
        """By source port."""
        return {path.sport: spine_of(path) for path in self.fabric.hosts[0].paths()}

    def carried(self) -> dict[int, int]:
        """From the interface counters of the spines."""
        now = self.fabric.spine_counters()
        return {
            ev: (now[spine] - self._before[spine]).tx[1].bytes
            for ev, spine in self.places().items()
        }


class LoopbackStage:
    """Both programs on this host; a path is a UDP source port, and nothing can be cut."""

    title = "[::1], one UDP source port per path; no switches, so nothing can be cut"
    address = "::1"

    def __init__(self) -> None:
        """Choose a port that is free now: on this host we are not alone."""
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind((self.address, 0))
            self.port = int(probe.getsockname()[1])

    def command(self, end: int, argv: Sequence[str]) -> list[str]:
        """As it is."""
        del end
        return list(argv)

    def arguments(self, end: int) -> list[str]:
        """Source ports count up from the base; the receiver follows the sender."""
        options = ["--backend", "udp"]
        if end:
            return [*options, "-B", self.address]
        return [*options, "-e", str(PATHS), "--sport-base", str(SPORT_BASE)]

    def listens(self) -> bool:
        """As this host's kernel says."""
        return tcp_listens(Path("/proc/net/tcp6").read_text(), self.port)

    def evs(self) -> list[int]:
        """The source ports."""
        return [SPORT_BASE + i for i in range(PATHS)]

    def places(self) -> dict[int, Spine]:
        """There are no switches here."""
        return {}

    def carried(self) -> dict[int, int]:
        """Nobody counts per path here."""
        return {}
