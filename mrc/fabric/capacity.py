# SPDX-License-Identifier: BSD-2-Clause
"""What a fabric can carry between two hosts while some of it is broken.

Planes carry equal load as long as their ports are up (D.7), so this is what an ideal sender that
may load planes unequally could do: an upper bound, and what is lost to it is the transport's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .plan import Work
from .shape import FabricShape, Link, Node, Tier
from .timeline import LinkState

__all__ = ["ENCAP", "HEADERS", "TIMESTAMP", "capacity_bps", "framing", "work_capacity_bps"]

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
        return _rate(shape, link, known)

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


def work_capacity_bps(
    shape: FabricShape, works: Sequence[Work], states: Mapping[Link, LinkState] | None = None
) -> float:
    """Bit/s of wire for a scenario's work, at best.

    Between one pair of hosts that of their paths; else what the ports of the senders, or those of
    the receivers, take, whichever is less: switches are then taken to be no bottleneck.
    """
    ways = {way for work in works for way in _ways(work)}
    if len({frozenset(way) for way in ways}) == 1:
        return sum(capacity_bps(shape, a, b, states) for a, b in ways)
    known = states or {}
    return min(
        sum(_ports(shape, host, known, down=down) for host in {way[down] for way in ways})
        for down in (False, True)
    )


def _ways(work: Work) -> set[tuple[int, int]]:
    """Who sends to whom; of permutations and collectives each host to the next."""
    hosts = work.hosts
    if work.kind in ("bulk", "pair"):
        ways = {(work.src, work.dst)}
        return ways | {(work.dst, work.src)} if work.both else ways
    if work.kind == "incast":
        return {(host, work.dst) for host in hosts}
    return {(host, hosts[(i + 1) % len(hosts)]) for i, host in enumerate(hosts)}


def _ports(shape: FabricShape, host: int, states: Mapping[Link, LinkState], *, down: bool) -> float:
    total = 0.0
    for plane in range(shape.planes):
        link = Link(plane, Node(Tier.HOST, host), Node(Tier.T0, shape.t0_of(host)))
        total += _rate(shape, link.back if down else link, states)
    return total


def _rate(shape: FabricShape, link: Link, states: Mapping[Link, LinkState]) -> float:
    state = states.get(link, LinkState())
    bps = shape.rate_of(link) if state.rate_bps is None else state.rate_bps
    return 0.0 if state.cut else bps * (1 - state.loss_ppm / 1e6)
