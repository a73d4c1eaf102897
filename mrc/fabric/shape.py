# SPDX-License-Identifier: BSD-2-Clause
"""The shape of a fabric: planes of two tiers of switches, a port in each for a host (0.2, G.1).

Numbers are 0-based here and in every field of the package; names (mrc.fabric.target) count from 1.
Host h lies under T0 switch h // hosts_per_t0 of each plane. Every T0 has a cable to every T1 of its
plane.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from mrc.types import PLANE_MAX

from .errors import FabricError

__all__ = ["FabricShape", "Link", "Node", "Path", "Switch", "Tier", "t0_letters"]

SWITCHES_MAX = 512
HOSTS_MAX = 1 << 17
_MTU = (1280, 65535)


class Tier(enum.StrEnum):
    """Where a node stands."""

    HOST = "h"
    T0 = "t0"
    T1 = "t1"


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """A host, or a switch of some plane; `number` is 0-based."""

    tier: Tier
    number: int

    @property
    def name(self) -> str:
        """`h1`, `t0.a`, `t1.1`, as people write it."""
        if self.tier is Tier.HOST:
            return f"h{self.number + 1}"
        return f"t0.{t0_letters(self.number)}" if self.tier is Tier.T0 else f"t1.{self.number + 1}"


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """One direction of one cable."""

    plane: int
    src: Node
    dst: Node

    @property
    def back(self) -> Link:
        """The other direction of the same cable."""
        return Link(self.plane, self.dst, self.src)

    @property
    def name(self) -> str:
        """As a target of one direction is written."""
        if self.src.tier is Tier.HOST:
            return f"{self.src.name}.port{self.plane + 1}->"
        if self.dst.tier is Tier.HOST:
            return f"->{self.dst.name}.port{self.plane + 1}"
        return f"p{self.plane + 1}.{self.src.name}->{self.dst.name}"


@dataclass(frozen=True, slots=True, order=True)
class Switch:
    """A switch of a plane."""

    plane: int
    node: Node

    @property
    def name(self) -> str:
        """`p1.t1.2`."""
        return f"p{self.plane + 1}.{self.node.name}"


@dataclass(frozen=True, slots=True)
class Path:
    """One way from a host to another: a plane, and a T1 unless both lie under one T0."""

    index: int
    plane: int
    t1: int | None


def t0_letters(number: int) -> str:
    """a, b, .. z, aa, ab, ..: the name of T0 switch `number`."""
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


@dataclass(frozen=True)
class FabricShape:
    """A fabric.

    Rates in bit/s, times in ns, queues and MTU in bytes. FabricError: no such fabric.
    """

    planes: int = 4
    t1: int = 4
    """T1 switches in each plane."""
    hosts: int = 2
    t0: int = 0
    """T0 switches in each plane; 0: one for each host."""
    rate_bps: int = 500_000_000
    """Links between a host and its T0."""
    t1_rate_bps: int = 0
    """Links between T0 and T1; 0: as rate_bps."""
    delay_ns: int = 1_000
    """Propagation of every link, one direction."""
    jitter_ns: int = 0
    """A packet may take up to this much longer on every link: reordering."""
    mtu: int = 9500
    queue_bytes: int = 200 << 10
    """At each output port; a packet that finds more waiting is lost, or cut where `trim` is set."""
    ecn_lo: int | None = None
    """Marks CE never below, always above ecn_hi, linear between (E.8); None: never."""
    ecn_hi: int | None = None
    trim: bool = False

    def __post_init__(self) -> None:
        """Fill in what follows from the rest, and refuse what cannot be."""
        self._whole("planes", 1, PLANE_MAX)
        self._whole("t1", 1, SWITCHES_MAX)
        self._whole("hosts", 2, HOSTS_MAX)
        object.__setattr__(self, "t0", self.t0 or min(self.hosts, SWITCHES_MAX))
        object.__setattr__(self, "t1_rate_bps", self.t1_rate_bps or self.rate_bps)
        self._whole("t0", 1, SWITCHES_MAX)
        if self.t0 > self.hosts or (self.t0 - 1) * self.hosts_per_t0 >= self.hosts:
            raise FabricError(
                f"t0 = {self.t0}: {self.hosts} hosts, {self.hosts_per_t0} under each T0,"
                f" leave T0 switches without any"
            )
        for name in ("rate_bps", "t1_rate_bps"):
            self._whole(name, 1000, 10**13)
        for name in ("delay_ns", "jitter_ns"):
            self._whole(name, 0, 10**10)
        self._whole("mtu", *_MTU)
        self._whole("queue_bytes", self.mtu, 1 << 31)
        self._check_ecn()

    def _whole(self, name: str, low: int, high: int) -> None:
        value = getattr(self, name)
        if type(value) is not int or not low <= value <= high:
            raise FabricError(f"{name} = {value!r}: must be {low} to {high}")

    def _check_ecn(self) -> None:
        if (self.ecn_lo is None) != (self.ecn_hi is None):
            raise FabricError("ecn_lo and ecn_hi belong together")
        if self.ecn_lo is not None and self.ecn_hi is not None:
            self._whole("ecn_lo", 0, 1 << 31)
            self._whole("ecn_hi", self.ecn_lo + 1, 1 << 31)

    @property
    def hosts_per_t0(self) -> int:
        """How many hosts the T0 switches have, all but the last."""
        return -(-self.hosts // self.t0)

    def t0_of(self, host: int) -> int:
        """Number of the T0 switches (one in each plane) above a host."""
        return host // self.hosts_per_t0

    def under(self, t0: int) -> range:
        """The hosts under T0 number `t0`."""
        first = t0 * self.hosts_per_t0
        return range(first, min(first + self.hosts_per_t0, self.hosts))

    def path_count(self, src: int, dst: int) -> int:
        """How many paths lead from one host to another."""
        return self.planes * (1 if self.t0_of(src) == self.t0_of(dst) else self.t1)

    def path(self, src: int, dst: int, index: int) -> Path:
        """Path `index` of a pair: planes fastest, so that any first few use all planes (H25)."""
        if not 0 <= index < self.path_count(src, dst):
            raise FabricError(
                f"there is no path {index} from h{src + 1} to h{dst + 1}:"
                f" 0 to {self.path_count(src, dst) - 1}"
            )
        t1, plane = divmod(index, self.planes)
        return Path(index, plane, None if self.t0_of(src) == self.t0_of(dst) else t1)

    def route(self, src: int, dst: int, path: Path) -> tuple[Link, ...]:
        """The links a packet takes, in order."""
        first, last = Node(Tier.T0, self.t0_of(src)), Node(Tier.T0, self.t0_of(dst))
        nodes = [Node(Tier.HOST, src), first, last, Node(Tier.HOST, dst)]
        nodes[2:3] = [] if path.t1 is None else [Node(Tier.T1, path.t1), last]
        return tuple(Link(path.plane, a, b) for a, b in pairwise(nodes))

    def host_links(self, plane: int) -> Iterator[Link]:
        """From each host to its T0, in one plane."""
        for host in range(self.hosts):
            yield Link(plane, Node(Tier.HOST, host), Node(Tier.T0, self.t0_of(host)))

    def up_links(self, plane: int) -> Iterator[Link]:
        """From each T0 to each T1, in one plane."""
        for t0 in range(self.t0):
            for t1 in range(self.t1):
                yield Link(plane, Node(Tier.T0, t0), Node(Tier.T1, t1))

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """All of them, each direction for itself, in a fixed order."""
        found: list[Link] = []
        for plane in range(self.planes):
            for link in (*self.host_links(plane), *self.up_links(plane)):
                found += (link, link.back)
        return tuple(found)

    def links_of(self, switch: Switch) -> tuple[Link, ...]:
        """Both directions of every cable of a switch."""
        here = switch.node
        if here.tier is Tier.T1:
            others = [Node(Tier.T0, n) for n in range(self.t0)]
        else:
            others = [Node(Tier.HOST, h) for h in self.under(here.number)]
            others += [Node(Tier.T1, n) for n in range(self.t1)]
        out = [Link(switch.plane, here, other) for other in others]
        return tuple(x for link in out for x in (link, link.back))

    def rate_of(self, link: Link) -> int:
        """Its rate in bit/s when nothing is wrong."""
        return self.rate_bps if Tier.HOST in (link.src.tier, link.dst.tier) else self.t1_rate_bps
