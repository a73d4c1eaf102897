# SPDX-License-Identifier: BSD-2-Clause
"""What a fabric can carry between two hosts while some of it is broken.

Planes carry equal load as long as their ports are up (D.7), so this is what an ideal sender that
may load planes unequally could do: an upper bound, and what is lost to it is the transport's.
"""

from __future__ import annotations

from collections.abc import Mapping

from .shape import FabricShape, Link, Node, Tier
from .timeline import LinkState

__all__ = ["capacity_bps", "framing"]

HEADERS = 40 + 8 + 12 + 4 + 16 + 4
"""IPv6, UDP, BTH, METH, RETH, iCRC: what a Write packet carries besides data (A.1)."""

TIMESTAMP = 4

ENCAP = 40
"""The outer IPv6 header of SRv6 without SRH (A.13.1)."""


def framing(path_mtu: int, *, srv6: bool = True, timestamps: bool = False) -> float:
    """Share of the wire, from the IPv6 header on, that is data, at best."""
    extra = (ENCAP if srv6 else 0) + (TIMESTAMP if timestamps else 0)
    return path_mtu / (path_mtu + HEADERS + extra)


def capacity_bps(
    shape: FabricShape, src: int, dst: int, states: Mapping[Link, LinkState] | None = None
) -> float:
    """Bit/s of wire from one host to another, alone in the fabric, with links in these states."""
    known = states or {}

    def rate(link: Link) -> float:
        state = known.get(link, LinkState())
        bps = shape.rate_of(link) if state.rate_bps is None else state.rate_bps
        return 0.0 if state.cut else bps * (1 - state.loss_ppm / 1e6)

    first, last = Node(Tier.T0, shape.t0_of(src)), Node(Tier.T0, shape.t0_of(dst))
    total = 0.0
    for plane in range(shape.planes):
        ends = (
            rate(Link(plane, Node(Tier.HOST, src), first)),
            rate(Link(plane, last, Node(Tier.HOST, dst))),
        )
        if first == last:
            total += min(ends)
            continue
        spines = (Node(Tier.T1, n) for n in range(shape.t1))
        across = sum(min(rate(Link(plane, first, s)), rate(Link(plane, s, last))) for s in spines)
        total += min(*ends, across)
    return total
