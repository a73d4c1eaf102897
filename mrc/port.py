# SPDX-License-Identifier: BSD-2-Clause
"""Port: one local address through one I/O backend."""

from __future__ import annotations

from ipaddress import IPv6Address

from ._check import whole
from ._core import MemWire
from ._typed import typed
from .device import Context
from .errors import MrcUsageError
from .types import UDP_PORT, Backend, PortStats

__all__ = ["Port"]


class Port:
    """Sends and receives for a context; lives as long as the context.

    `addr` is the local IPv6 address, :: for all; `scope_id` its zone when link-local. `udp_port`
    is the port to receive on (1..65535); when it is taken, up to `udp_port_tries` ports above it
    are tried. Buffers in bytes, 0 for the default. `gso`, `gro`: try segmentation offloads.
    MEM needs `wire` and `mem_end` 0 or 1.

    OSError: the system refused, in words that name what is missing.
    """

    @typed
    def __init__(
        self,
        ctx: Context,
        backend: Backend = Backend.UDP,
        *,
        addr: IPv6Address | str = "::",
        scope_id: int = 0,
        udp_port: int = UDP_PORT,
        udp_port_tries: int = 0,
        gso: bool = True,
        gro: bool = True,
        sndbuf_bytes: int = 0,
        rcvbuf_bytes: int = 0,
        wire: MemWire | None = None,
        mem_end: int = 0,
    ) -> None:
        if (backend is Backend.MEM) != (wire is not None):
            raise MrcUsageError("a memory wire belongs to the MEM backend, and to no other")
        if not 1 <= udp_port <= 0xFFFF:
            raise MrcUsageError(f"UDP port {udp_port} is not in 1..65535")
        whole("udp_port_tries", udp_port_tries, 0, 0xFFFF)
        try:
            address = IPv6Address(addr)
        except ValueError:
            raise MrcUsageError(f"addr {addr!r:.60} is no IPv6 address") from None
        self.ctx = ctx
        self.backend = backend
        self.index = ctx.pump.port_add(
            backend,
            address.packed,
            wire,
            udp_port=udp_port,
            udp_port_tries=min(udp_port_tries, 0xFFFF - udp_port),
            scope_id=scope_id,
            no_gso=int(not gso),
            no_gro=int(not gro),
            sndbuf_bytes=sndbuf_bytes,
            rcvbuf_bytes=rcvbuf_bytes,
            mem_end=mem_end,
        )
        if wire is not None:
            ctx.keepalive.append(wire)
        self.udp_port = self.stats().udp_port

    def stats(self) -> PortStats:
        """Counters, and what the system granted."""
        return self.ctx.pump.port_stats(self.index)

    def __repr__(self) -> str:
        return f"<Port {self.index} {self.backend.name.lower()} UDP {self.udp_port}>"
