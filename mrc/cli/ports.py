# SPDX-License-Identifier: BSD-2-Clause
"""The I/O port below the connections: what it counted during a test, what the kernel granted it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from mrc.telemetry import port_json
from mrc.types import PortStats

RCVBUF_WANTED = 8 << 20  # what the I/O backends ask for
SNDBUF_WANTED = 4 << 20

_GAUGES = frozenset({"caps", "sndbuf_bytes", "rcvbuf_bytes", "udp_port", "kind", "tx_errno"})
_COUNTERS = tuple(f.name for f in fields(PortStats) if f.name not in _GAUGES)


def granted_less(granted_bytes: int, wanted_bytes: int) -> bool:
    """The kernel capped a socket buffer; 0 is a port that has none, or does not tell."""
    return 0 < granted_bytes < wanted_bytes


@dataclass(frozen=True, slots=True)
class PortCounts:
    """Port and dropped packets at one moment; both outlive a test, they belong to the program."""

    port: PortStats
    drops: dict[str, int]

    def since(self, earlier: PortCounts) -> PortCounts:
        """What grew since `earlier`; gauges (buffers, port number) as they are now."""
        grown = {name: getattr(self.port, name) - getattr(earlier.port, name) for name in _COUNTERS}
        return PortCounts(
            replace(self.port, **grown),
            {name: n - earlier.drops.get(name, 0) for name, n in self.drops.items()},
        )

    def as_json(self) -> dict[str, Any]:
        """`ports` and `drops` of a report; of the drops only the reasons that occurred."""
        return {
            "ports": [port_json(self.port)],
            "drops": {name: n for name, n in self.drops.items() if n},
        }
