# SPDX-License-Identifier: BSD-2-Clause
"""From a FabricSpec to the commands that build it: namespaces, links, iproute2 lines. Pure.

``namespace_lines`` may be run again without harm (``replace``): an interface that was taken down
loses its routes, and gets them back that way.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass

from mrc.fabric.shape import Link as Way
from mrc.fabric.shape import Node, Tier

from .plan import (
    FabricSpec,
    Path,
    Role,
    carrier,
    host_address,
    paths_between,
    usid,
)

OOB = "oob"
"""The namespace of the management network: it carries the TCP connection between the programs."""

TABLE_BASE = 1000
"""Path i has routing table TABLE_BASE + i, and a rule with that preference."""

UDP = socket.IPPROTO_UDP
"""As a number: a minimal Debian has no /etc/protocols, without which ip does not know the name."""

UN = "encap seg6local action End flavors next-csid lblen 32 nflen 16"
"""The kernel's uN: match block and own uSID, shift the rest up, look the new address up."""

DECAP = "encap seg6local action End.DT6 table 255"
"""The end of a path: take the outer header off. Only the local table, 255, delivers to the host."""


def host_ns(host: int) -> str:
    """The namespace of host ``host`` (0-based)."""
    return f"h{host + 1}"


def t0_ns(plane: int, number: int) -> str:
    """T0 switch ``number`` (0-based) of a plane (1-based)."""
    return f"p{plane}t0-{number + 1}"


def t1_ns(plane: int, spine: int) -> str:
    """Spine ``spine`` of a plane, both 1-based."""
    return f"p{plane}t1-{spine}"


def node_ns(plane: int, node: Node) -> str:
    """The namespace of a host or switch as a shape has it; ``plane`` is 0-based there."""
    if node.tier is Tier.HOST:
        return host_ns(node.number)
    if node.tier is Tier.T0:
        return t0_ns(plane + 1, node.number)
    return t1_ns(plane + 1, node.number + 1)


def port_dev(plane: int, node: Node, other: Node) -> str:
    """The interface of ``node`` that faces ``other``."""
    if node.tier is Tier.HOST:
        return f"plane{plane + 1}"
    if node.tier is Tier.T1:
        return f"t0-{other.number + 1}"
    return f"{'host' if other.tier is Tier.HOST else 'spine'}{other.number + 1}"


def out_port(way: Way) -> tuple[str, str]:
    """Namespace and interface that send into one direction of a cable."""
    return node_ns(way.plane, way.src), port_dev(way.plane, way.src, way.dst)


def in_port(way: Way) -> tuple[str, str]:
    """Namespace and interface in which that direction ends."""
    return out_port(way.back)


@dataclass(frozen=True, slots=True)
class End:
    """One end of a veth pair."""

    ns: str
    dev: str
    mac: str
    address: str
    """Link-local; the next hop of whatever the other side routes this way."""


@dataclass(frozen=True, slots=True)
class Link:
    """A veth pair. ``fabric`` is False for the management network, which no fault touches."""

    a: End
    b: End
    fabric: bool = True


def links(spec: FabricSpec) -> tuple[Link, ...]:
    """All cables, in a fixed order; hosts first."""
    made: list[Link] = []

    def connect(a_ns: str, a_dev: str, b_ns: str, b_dev: str, *, fabric: bool = True) -> None:
        n = len(made)
        mac = f"02:4d:52:{n >> 8:02x}:{n & 255:02x}:"
        a = End(a_ns, a_dev, mac + "01", "fe80::1")
        made.append(Link(a, End(b_ns, b_dev, mac + "02", "fe80::2"), fabric))

    shape = spec.shape
    for host in range(spec.hosts):
        connect(host_ns(host), "oob", OOB, f"host{host + 1}", fabric=False)
    for plane in range(spec.planes):
        for way in (*shape.host_links(plane), *shape.up_links(plane)):
            connect(*out_port(way), *in_port(way))
    return tuple(made)


def namespaces(spec: FabricSpec) -> tuple[str, ...]:
    """All namespaces, hosts first."""
    found: dict[str, None] = {host_ns(h): None for h in range(spec.hosts)}
    for link in links(spec):
        found[link.a.ns] = found[link.b.ns] = None
    return tuple(found)


def sysctls(ns: str) -> dict[str, str]:
    """What is set in a namespace before its interfaces exist, so that they inherit it.

    No DAD, no router advertisements, no addresses but ours: nothing has to be waited for. Multicast
    group reports are sent at once, so that later the counters count our packets only.
    """
    conf = "net/ipv6/conf"
    values = {
        f"{conf}/default/accept_dad": "0",
        f"{conf}/default/accept_ra": "0",
        f"{conf}/default/addr_gen_mode": "1",
        f"{conf}/default/keep_addr_on_down": "1",
        f"{conf}/default/mldv2_unsolicited_report_interval": "1",
    }
    # A host with seg6_enabled would itself unpack a packet whose SRH is used up, and deliver the
    # inside a second time to UDP sockets; the raw backend wants it as it came.
    if not ns.startswith("h"):
        for name in ("forwarding", "seg6_enabled"):
            values[f"{conf}/all/{name}"] = values[f"{conf}/default/{name}"] = "1"
    return values


def link_lines(spec: FabricSpec, netns_path: dict[str, str]) -> list[str]:
    """``ip -batch`` lines that create all veth pairs straight in their namespaces."""
    return [
        f"link add name {e.dev} address {e.mac} mtu {spec.mtu} netns {netns_path[e.ns]} type veth"
        f" peer name {o.dev} address {o.mac} mtu {spec.mtu} netns {netns_path[o.ns]}"
        for e, o in ((link.a, link.b) for link in links(spec))
    ]


def namespace_lines(spec: FabricSpec) -> dict[str, list[str]]:
    """``ip -6 -batch`` lines per namespace: addresses, neighbours, routes, rules."""
    lines: dict[str, list[str]] = {ns: ["link set lo up"] for ns in namespaces(spec)}
    for link in links(spec):
        for end, other in ((link.a, link.b), (link.b, link.a)):
            # Neighbours never expire: a silent cut must not become an unreachable neighbour, which
            # the switches would report, and which would still be there after the heal.
            lines[end.ns] += [
                f"link set {end.dev} up",
                f"addr replace {end.address}/64 dev {end.dev} nodad",
                f"neigh replace {other.address} lladdr {other.mac} dev {end.dev} nud permanent",
            ]
    for plane in range(1, spec.planes + 1):
        for t0 in range(spec.shape.t0):
            lines[t0_ns(plane, t0)] += _t0_routes(spec, plane, t0)
        for spine in range(1, spec.spines + 1):
            lines[t1_ns(plane, spine)] += _t1_routes(spec, plane, spine)
    for host in range(spec.hosts):
        lines[host_ns(host)] += _host_lines(spec, host)
        lines[OOB].append(f"route replace {host_address(host)}/128 via fe80::1 dev host{host + 1}")
    return lines


def rule_lines(spec: FabricSpec) -> list[str]:
    """``ip -6 -batch`` lines of every host, to be run once: a rule has no ``replace``.

    UDP from any other source port goes the way of path 0: no datagram between two hosts ever takes
    the management network, so what the spines count is all there is.
    """
    lines = [
        f"rule add pref {TABLE_BASE + i} ipproto {UDP} sport {spec.sport_base + i}"
        f" lookup {TABLE_BASE + i}"
        for i in range(spec.paths)
    ]
    return [*lines, f"rule add pref {TABLE_BASE + spec.paths} ipproto {UDP} lookup {TABLE_BASE}"]


def tbf_line(spec: FabricSpec, dev: str, rate_bps: int) -> str:
    """A ``tc -batch`` line that gives a port a rate and a real queue.

    The bucket holds 2 ms at full rate, or up to 4 ms where a full GSO train needs that, and two
    packets at least; the queue 10 ms or so many bytes besides (the kernel counts both together).
    Where packets are trimmed that is decided before, and what is left needs room.
    """
    burst = max(rate_bps // 4000, min(131072, rate_bps // 2000), 2 * spec.mtu)
    room = spec.shape.queue_bytes * 2 if spec.trim else spec.queue_bytes
    queue = f"limit {burst + room}" if room is not None else "latency 10ms"
    return f"qdisc replace dev {dev} root handle 1: tbf rate {rate_bps}bit burst {burst} {queue}"


def first_lines(spec: FabricSpec, dev: str) -> list[str]:
    """``tc -batch`` lines by which packets that were cut leave a port before data, as in switches.

    The tc program puts them into class 10:1. Of HTB only that strict order is used: its classes
    have a rate that no port has.
    """
    limit = spec.shape.queue_bytes * 2 + 131072
    lines = [f"qdisc replace dev {dev} parent 1:1 handle 10: htb default 2"]
    for number, order in ((1, 0), (2, 1)):
        rate = f"rate 100gbit burst 1mb cburst 1mb prio {order} quantum 60000"
        lines += [
            f"class replace dev {dev} parent 10: classid 10:{number} htb {rate}",
            f"qdisc replace dev {dev} parent 10:{number} handle 2{number}: bfifo limit {limit}",
        ]
    return lines


def tbf_lines(spec: FabricSpec, rate_mbit: float | None = None) -> dict[str, list[str]]:
    """The same for every port of the fabric; ``rate_mbit`` instead of the fabric's own rates."""
    lines: dict[str, list[str]] = {}
    shape = spec.shape
    for way in shape.links:
        ns, dev = out_port(way)
        rate_bps = shape.rate_of(way) if rate_mbit is None else round(rate_mbit * 1e6)
        here = lines.setdefault(ns, [])
        here.append(tbf_line(spec, dev, rate_bps))
        if spec.trim and way.src.tier is not Tier.HOST and rate_mbit is None:
            here += first_lines(spec, dev)
    return lines


def _prefix(role: Role, plane: int, number: int) -> str:
    return f"{carrier(usid(role, plane, number))}/48"


def _t0_routes(spec: FabricSpec, plane: int, t0: int) -> list[str]:
    hosts = [h + 1 for h in spec.shape.under(t0)]
    ports = [f"host{h}" for h in hosts] + [f"spine{s}" for s in range(1, spec.spines + 1)]
    down = [
        f"route replace {_prefix(role, plane, number)} via fe80::1 dev host{number}"
        for number in hosts
        for role in (Role.HOST_KERNEL, Role.HOST_RAW)
    ]
    up = [
        f"route replace {_prefix(Role.T1, plane, s)} via fe80::2 dev spine{s}"
        for s in range(1, spec.spines + 1)
    ]
    return [*_own(_prefix(Role.T0, plane, t0 + 1), ports), *down, *up]


def _own(prefix: str, ports: list[str]) -> list[str]:
    """The uN route, once for each port: `dev` must be a real interface, and up. Not lo."""
    return [
        f"route replace {prefix} {UN} dev {port} metric {number}"
        for number, port in enumerate(ports, 1024)
    ]


def _t1_routes(spec: FabricSpec, plane: int, spine: int) -> list[str]:
    ports = [f"t0-{n}" for n in range(1, spec.shape.t0 + 1)]
    down = [
        f"route replace {_prefix(Role.T0, plane, n)} via fe80::1 dev t0-{n}"
        for n in range(1, spec.shape.t0 + 1)
    ]
    return [*_own(_prefix(Role.T1, plane, spine), ports), *down]


def _host_lines(spec: FabricSpec, host: int) -> list[str]:
    number, me = host + 1, host_address(host)
    above = spec.shape.t0_of(host) + 1
    lines = [
        f"addr replace {me}/128 dev lo nodad",
        f"route replace {host_address(0)}/64 via fe80::2 dev oob src {me}",
    ]
    for plane in range(1, spec.planes + 1):
        dev = f"plane{plane}"
        raw = carrier(usid(Role.HOST_RAW, plane, number))
        lines += [
            f"addr replace {raw}/128 dev {dev} nodad",
            f"route replace {_prefix(Role.T0, plane, above)} via fe80::2 dev {dev}",
            f"route replace {_prefix(Role.HOST_KERNEL, plane, number)} {DECAP} dev {dev}",
        ]
    for peer in range(spec.hosts):
        if peer != host:
            for path in paths_between(spec, host, peer):
                lines.append(f"route replace {_encap(path)} table {TABLE_BASE + path.index}")
    return lines


def _encap(path: Path) -> str:
    # One segment and encap.red: plain IPv6 in IPv6, the carrier as outer destination, no SRH.
    return (
        f"{host_address(path.dst)}/128 encap seg6 mode encap.red segs {path.kernel_carrier}"
        f" dev plane{path.plane} src {host_address(path.src)}"
    )
