# SPDX-License-Identifier: BSD-2-Clause
"""Does every path lead where it should? One datagram each; the spines' counters decide."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .faults import Spine, spine_of

if TYPE_CHECKING:
    from .fabric import Fabric
    from .plan import Path

PORT = 4791


@dataclass(frozen=True, slots=True)
class PathCheck:
    """What happened to one datagram."""

    path: Path
    arrived: bool
    spines: tuple[Spine, ...]
    """The spines whose counters moved; should be the path's own and no other."""

    @property
    def ok(self) -> bool:
        """Arrived, by the way intended."""
        return self.arrived and self.spines == ((spine_of(self.path),) if self.path.spine else ())


def check_paths(
    fabric: Fabric, src: int = 0, dst: int = 1, *, size: int = 1000, timeout_s: float = 2.0
) -> list[PathCheck]:
    """Send one UDP datagram of ``size`` bytes over each path and watch where it goes."""
    sender, receiver = fabric.hosts[src], fabric.hosts[dst]
    done = []
    with receiver.socket(socket.AF_INET6, socket.SOCK_DGRAM) as inbox:
        inbox.bind((str(receiver.address), PORT))
        inbox.settimeout(timeout_s)
        for path in sender.paths(dst):
            before = fabric.spine_counters()
            with sender.socket(socket.AF_INET6, socket.SOCK_DGRAM) as out:
                out.bind((str(sender.address), path.sport))
                out.sendto(path.index.to_bytes(4, "big").ljust(size, b"\0"), inbox.getsockname())
            arrived = _receive(inbox, path)
            after = fabric.spine_counters()
            t0 = path.t0s[0]
            moved = tuple(key for key in after if (after[key] - before[key]).rx[t0].packets)
            done.append(PathCheck(path, arrived, moved))
    return done


def _receive(inbox: socket.socket, path: Path) -> bool:
    try:
        data, source = inbox.recvfrom(65536)
    except TimeoutError:
        return False
    return int.from_bytes(data[:4], "big") == path.index and source[1] == path.sport
