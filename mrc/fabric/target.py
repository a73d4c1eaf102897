# SPDX-License-Identifier: BSD-2-Clause
"""Names of the parts of a fabric, as an engineer would say them.

    all                    everything
    plane2                 everything of plane 2
    p1.t1.2                the second T1 switch (spine) of plane 1
    p1.t0.a                the first T0 switch of plane 1 (a, b, .. z, aa, ..)
    p1.t0.a--t1.2          a cable, in either order of its ends
    p1.t0.a->t1.2          one direction of it
    h2.port1               the cable of host 2 to its T0 in plane 1
    h2.port1->  ->h2.port1 what it sends, what it receives
    h2                     all ports of a host
    ev7                    path number 7 (from 0) between the first two hosts that communicate

`parse_target(str(t)) == t`. A name is checked against a shape when it is resolved.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .errors import FabricError
from .shape import FabricShape, Link, Node, Switch, Tier, t0_letters

__all__ = ["EXAMPLES", "Part", "Target", "TargetKind", "parse_target"]

Part = Link | Switch

EXAMPLES = "all, plane1, p1.t1.2, p1.t0.a, p1.t0.a--t1.2, p1.t0.a->t1.2, h2.port1, h2, ev7"

_NODE = r"t0\.([a-z]{1,3})|t1\.(\d{1,9})"
_SWITCH = re.compile(rf"p(\d{{1,9}})\.(?:{_NODE})")
_CABLE = re.compile(rf"p(\d{{1,9}})\.(?:{_NODE})(--|->)(?:{_NODE})")
_PORT = re.compile(r"(->)?h(\d{1,9})\.port(\d{1,9})(->)?")
_NUMBERED = re.compile(r"(plane|ev|h)(\d{1,9})")


class TargetKind(enum.Enum):
    """What a name names."""

    ALL = "all"
    PLANE = "plane"
    SWITCH = "switch"
    CABLE = "cable"
    PORT = "port"
    HOST = "host"
    EV = "ev"


class Way(enum.Enum):
    """Directions of a cable: both, or only the one from its first end (or the other)."""

    BOTH = "--"
    THERE = "->"
    BACK = "<-"


@dataclass(frozen=True, slots=True)
class Target:
    """A name. Numbers are 0-based; which of them mean something depends on the kind."""

    kind: TargetKind
    plane: int = 0
    t0: int | None = None
    t1: int | None = None
    host: int = 0
    ev: int = 0
    way: Way = Way.BOTH
    """CABLE: THERE is from T0 to T1. PORT: THERE is what the host sends."""

    def __str__(self) -> str:
        match self.kind:
            case TargetKind.ALL:
                return "all"
            case TargetKind.PLANE:
                return f"plane{self.plane + 1}"
            case TargetKind.HOST:
                return f"h{self.host + 1}"
            case TargetKind.EV:
                return f"ev{self.ev}"
            case TargetKind.PORT:
                there, back = self.way is Way.THERE, self.way is Way.BACK
                port = f"h{self.host + 1}.port{self.plane + 1}"
                return f"{'->' if back else ''}{port}{'->' if there else ''}"
            case TargetKind.SWITCH | TargetKind.CABLE:
                ends = [f"t0.{t0_letters(self.t0)}"] if self.t0 is not None else []
                ends += [f"t1.{self.t1 + 1}"] if self.t1 is not None else []
                sign = "--" if self.way is Way.BOTH else "->"
                return f"p{self.plane + 1}.{sign.join(reversed(ends) if self.back else ends)}"

    @property
    def back(self) -> bool:
        """Only the direction towards the hosts (of a cable), or towards the host (of a port)."""
        return self.way is Way.BACK

    def parts(self, shape: FabricShape, pair: tuple[int, int] = (0, 1)) -> tuple[Part, ...]:
        """Everything the name covers: links one direction at a time, and switches.

        `pair` are the hosts between which paths are counted. FabricError says what exists.
        """
        self.check(shape, pair)
        match self.kind:
            case TargetKind.ALL:
                return shape.links + tuple(s for p in range(shape.planes) for s in _all(shape, p))
            case TargetKind.PLANE:
                links = tuple(x for x in shape.links if x.plane == self.plane)
                return links + tuple(_all(shape, self.plane))
            case TargetKind.SWITCH:
                return (Switch(self.plane, self._node()),)
            case _:
                return self.gate(shape, pair)

    def gate(self, shape: FabricShape, pair: tuple[int, int] = (0, 1)) -> tuple[Link, ...]:
        """Links of which each packet through the target takes exactly one.

        There loss, corruption, trimming and delay strike, once per packet whatever the target is:
        into a switch; out of the hosts for a plane or all; the link that no other path shares for
        an EV.
        """
        self.check(shape, pair)
        match self.kind:
            case TargetKind.ALL:
                return tuple(x for p in range(shape.planes) for x in shape.host_links(p))
            case TargetKind.PLANE:
                return tuple(shape.host_links(self.plane))
            case TargetKind.SWITCH:
                node = self._node()
                return tuple(x for x in shape.links if (x.plane, x.dst) == (self.plane, node))
            case TargetKind.HOST:
                ports = [self._port_link(shape, plane) for plane in range(shape.planes)]
                return tuple(x for link in ports for x in (link, link.back))
            case TargetKind.EV:
                route = shape.route(*pair, shape.path(*pair, self.ev))
                return (route[1],)
            case TargetKind.PORT:
                return _directions(self._port_link(shape, self.plane), self.way)
            case TargetKind.CABLE:
                ends = Node(Tier.T0, self.t0 or 0), Node(Tier.T1, self.t1 or 0)
                return _directions(Link(self.plane, *ends), self.way)

    def check(self, shape: FabricShape, pair: tuple[int, int] = (0, 1)) -> None:
        """FabricError: that shape has no such part; the message says what it has."""
        numbered = (
            (self.plane, shape.planes, "plane", "plane1", ""),
            (self.host, shape.hosts, "host", "h1", ""),
            (self.t1 or 0, shape.t1, "spine", "t1.1", f" in plane {self.plane + 1}"),
        )
        for number, count, what, first, where in numbered:
            if number >= count:
                last = f"{first[:-1]}{count}"
                has = f"only {first}" if count == 1 else f"{first} to {last}"
                raise FabricError(f"{self}: there is no {what} {number + 1}{where}: {has}")
        if (self.t0 or 0) >= shape.t0:
            has = "only t0.a" if shape.t0 == 1 else f"t0.a to t0.{t0_letters(shape.t0 - 1)}"
            raise FabricError(f"{self}: there is no T0 switch {t0_letters(self.t0 or 0)}: {has}")
        if self.kind is TargetKind.EV and max(pair) >= shape.hosts:
            raise FabricError(
                f"{self}: there is no host {max(pair) + 1} for its pair: h1 to h{shape.hosts}"
            )
        if self.kind is TargetKind.EV and self.ev >= shape.path_count(*pair):
            raise FabricError(
                f"{self}: there are {shape.path_count(*pair)} paths from h{pair[0] + 1}"
                f" to h{pair[1] + 1}: ev0 to ev{shape.path_count(*pair) - 1}"
            )

    def _node(self) -> Node:
        if self.t0 is not None:
            return Node(Tier.T0, self.t0)
        return Node(Tier.T1, self.t1 or 0)

    def _port_link(self, shape: FabricShape, plane: int) -> Link:
        return Link(plane, Node(Tier.HOST, self.host), Node(Tier.T0, shape.t0_of(self.host)))


def _all(shape: FabricShape, plane: int) -> Iterator[Switch]:
    for tier, count in ((Tier.T0, shape.t0), (Tier.T1, shape.t1)):
        yield from (Switch(plane, Node(tier, n)) for n in range(count))


def _directions(link: Link, way: Way) -> tuple[Link, ...]:
    if way is Way.BOTH:
        return (link, link.back)
    return (link if way is Way.THERE else link.back,)


def _t0_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("a") + 1
    return number - 1


def parse_target(text: str) -> Target:
    """A name as people write it. FabricError: with what names look like."""
    name = text.strip()
    if name == "all":
        return Target(TargetKind.ALL)
    for pattern, make in _FORMS:
        match = pattern.fullmatch(name)
        if match is not None:
            return make(name, match)
    raise FabricError(f"{text!r} names nothing; names are like {EXAMPLES}")


def _from_one(name: str, digits: str) -> int:
    if int(digits) == 0:
        raise FabricError(f"{name!r}: planes, spines, hosts and ports are counted from 1")
    return int(digits) - 1


def _numbered(name: str, match: re.Match[str]) -> Target:
    if match[1] == "ev":
        return Target(TargetKind.EV, ev=int(match[2]))
    number = _from_one(name, match[2])
    if match[1] == "h":
        return Target(TargetKind.HOST, host=number)
    return Target(TargetKind.PLANE, plane=number)


def _port(name: str, match: re.Match[str]) -> Target:
    if match[1] and match[4]:
        raise FabricError(f"{name!r}: an arrow in front (received) or behind (sent), not both")
    way = Way.BACK if match[1] else Way.THERE if match[4] else Way.BOTH
    host, plane = _from_one(name, match[2]), _from_one(name, match[3])
    return Target(TargetKind.PORT, plane=plane, host=host, way=way)


def _switch(name: str, match: re.Match[str]) -> Target:
    plane = _from_one(name, match[1])
    if match[2] is not None:
        return Target(TargetKind.SWITCH, plane=plane, t0=_t0_number(match[2]))
    return Target(TargetKind.SWITCH, plane=plane, t1=_from_one(name, match[3]))


def _cable(name: str, match: re.Match[str]) -> Target:
    upward = match[2] is not None
    t0, t1 = (match[2], match[6]) if upward else (match[5], match[3])
    if t0 is None or t1 is None:
        raise FabricError(f"{name!r}: a cable has one end at a T0 and one at a T1")
    way = Way.BOTH if match[4] == "--" else Way.THERE if upward else Way.BACK
    return Target(
        TargetKind.CABLE,
        plane=_from_one(name, match[1]),
        t0=_t0_number(t0),
        t1=_from_one(name, t1),
        way=way,
    )


_FORMS = ((_NUMBERED, _numbered), (_SWITCH, _switch), (_CABLE, _cable), (_PORT, _port))
