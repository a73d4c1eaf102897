# SPDX-License-Identifier: BSD-2-Clause
"""What a fabric looks like on paper: switches, paths, addresses. Pure.

The shape is MRC's multi-plane leaf-spine (MRC 0.2, A.13.1): every host has one port per plane; in
each plane the port is wired to a T0 switch, every T0 to all T1 switches (spines) of the plane. A
path from one host to another is therefore (plane, spine), and crosses T0, T1, T0; between two hosts
under one T0 it is (plane), and crosses that T0 alone.

Planes, spines and ports count from 1 here, as in addresses and on the wire; hosts and T0s from 0,
as in `mrc.fabric.shape`, which `FabricSpec.shape` leads to.

uSIDs follow the number scheme of MRC D.9: role(4) plane(4) number(8), behind the 32-bit block.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from ipaddress import IPv6Address

from mrc.fabric.shape import FabricShape

BLOCK = 0xFCBBBBBB
"""The SRv6 locator block, the upper 32 bits of every carrier."""

PLANES_MAX = 14
SPINES_MAX = 200
HOSTS_MAX = 200
CABLES_MAX = 4096
ROUTES_MAX = 500_000
MTU_BYTES = (1420, 65535)
"""1280 inside, and room for outer header, SRH and inner header."""
RATE_BPS = (1_000_000, 10**13)
DELAY_NS = (100_000, 10**10)
"""The machine itself takes as long as the least."""
QUEUE_BYTES_MAX = 1 << 31


class Role(IntEnum):
    """The upper four bits of a uSID: which kind of thing it names."""

    T0 = 1
    T1 = 2
    HOST_KERNEL = 3
    """A host's port; the host's kernel removes the outer header (End.DT6)."""
    HOST_RAW = 4
    """The same port as a local address: the outer packet reaches a raw socket untouched."""


def usid(role: Role, plane: int, number: int) -> int:
    """One 16-bit uSID. ``plane`` is 1..14, ``number`` 1..200."""
    return role << 12 | plane << 8 | number


def carrier(*usids: int) -> IPv6Address:
    """The IPv6 address holding up to six uSIDs behind the block, rest zero (F3216, MRC A.13.1)."""
    if not 1 <= len(usids) <= 6:
        raise ValueError(f"a carrier holds 1 to 6 uSIDs, not {len(usids)}")
    value = BLOCK
    for sid in (*usids, *(0,) * (6 - len(usids))):
        value = value << 16 | sid
    return IPv6Address(value)


@dataclass(frozen=True, slots=True)
class FabricSpec:
    """The size and kind of a fabric. The default: two hosts, 4 planes x 4 spines, 16 paths."""

    planes: int = 4
    spines: int = 4
    """T1 switches per plane."""
    hosts: int = 2
    sport_base: int = 49152
    """Path i of a host is taken by UDP packets with source port ``sport_base + i``."""
    mtu: int = 9500
    """MTU of every link in bytes. The outer header takes 40 of them."""
    rate_mbit: float | None = None
    """Rate of every fabric link, each direction, in Mbit/s; None: as fast as the machine."""
    t0: int = 0
    """T0 switches per plane; 0: one for each host."""
    t1_rate_mbit: float | None = None
    """Rate of the links between T0 and T1 where it differs."""
    queue_bytes: int | None = None
    """What may wait at a port that has a rate; None: 10 ms of it."""
    ecn_bytes: tuple[int, int] | None = None
    """Switches mark CE never below the first, always above the second (E.8). Needs eBPF."""
    trim: bool = False
    """Switches cut what they cannot queue to its headers (A.13.6). Needs eBPF."""
    delay_ns: int = 0
    """Extra time on the way from T0 to T1, each direction, on every link."""

    def __post_init__(self) -> None:
        """Refuse what the address plan cannot number."""
        for name, limit in (("planes", PLANES_MAX), ("spines", SPINES_MAX)):
            if not 1 <= getattr(self, name) <= limit:
                raise ValueError(f"{name} must be 1..{limit}, not {getattr(self, name)}")
        if not 2 <= self.hosts <= HOSTS_MAX:
            raise ValueError(f"hosts must be 2..{HOSTS_MAX}, not {self.hosts}")
        if not 1024 <= self.sport_base <= 65536 - self.paths:
            raise ValueError(f"sport_base must be 1024..{65536 - self.paths}")
        if not MTU_BYTES[0] <= self.mtu <= MTU_BYTES[1]:
            raise ValueError(f"mtu must be {MTU_BYTES[0]}..{MTU_BYTES[1]}")
        for name in ("rate_mbit", "t1_rate_mbit"):
            if (rate := getattr(self, name)) is not None and rate < 1:
                raise ValueError(f"{name} must be at least 1")
        if self.rate_mbit is None and (self.ecn_bytes or self.trim or self.t1_rate_mbit):
            raise ValueError("marks, trims and a rate of T1 links need rate_mbit")
        if self.queue_bytes is not None and self.queue_bytes < self.mtu:
            raise ValueError(f"queue_bytes must hold a packet of {self.mtu} bytes")
        _ = self.shape  # its own checks
        self._check_size()

    def _check_size(self) -> None:
        cables = self.planes * (self.hosts + self.shape.t0 * self.spines)
        routes = self.hosts * (self.hosts - 1) * self.paths
        for count, limit, what in (
            (cables, CABLES_MAX, "cables"),
            (routes, ROUTES_MAX, "paths from host to host"),
        ):
            if count > limit:
                raise ValueError(
                    f"{count} {what}: a lab has {limit} at most; python -m mrc.sim takes more"
                )

    @property
    def paths(self) -> int:
        """How many paths lead from one host to another under a different T0."""
        return self.planes * self.spines

    @property
    def shape(self) -> FabricShape:
        """The same in the words that all fabrics share."""
        return _shape(self)


WINDOW_BYTES = 937_500
"""What a sender that is told nothing of its fabric may have in flight (ADR 13)."""
PACKET_BYTES = 4264
"""A packet of the default path MTU on a cable, about."""


def fitting_window(spec: FabricSpec) -> int | None:
    """The window, in bytes, of one host to another with which no queue overflows (ADR 134).

    Three fifths of what the ports of its planes hold, for the planes are never quite even; but as
    much as is under way on cables where a path has no delay but its rate. None: a sender need not
    be told, is told by cut packets, or (with a delay of its own) a lab does not know how much is
    under way.
    """
    if spec.rate_mbit is None or spec.delay_ns or spec.trim:
        return None
    host, up = spec.rate_mbit, spec.t1_rate_mbit or spec.rate_mbit
    room = min(_room(spec, host), spec.spines * _room(spec, up))
    cables = 2 / host + 2 / up  # a packet of n bytes takes n x 8 x that, in us
    under_way = round(min(spec.mtu, PACKET_BYTES) * cables * min(host, spec.spines * up))
    window = spec.planes * max(room * 3 // 5, under_way)
    return window if window < WINDOW_BYTES else None


def _room(spec: FabricSpec, rate_mbit: float) -> int:
    """What may wait at a port of that rate."""
    return spec.queue_bytes or max(spec.mtu, round(rate_mbit * 1e6) // 800)


UNLIMITED_BPS = 10**11
"""Stands in a shape for `as fast as the machine`."""


@lru_cache(maxsize=64)
def _shape(spec: FabricSpec) -> FabricShape:
    rate_bps = UNLIMITED_BPS if spec.rate_mbit is None else round(spec.rate_mbit * 1e6)
    t1_bps = rate_bps if spec.t1_rate_mbit is None else round(spec.t1_rate_mbit * 1e6)
    lo, hi = spec.ecn_bytes or (None, None)
    return FabricShape(
        planes=spec.planes,
        t1=spec.spines,
        hosts=spec.hosts,
        t0=spec.t0,
        rate_bps=rate_bps,
        t1_rate_bps=t1_bps,
        delay_ns=spec.delay_ns,
        mtu=spec.mtu,
        queue_bytes=spec.queue_bytes or max(spec.mtu, rate_bps // 800),
        ecn_lo=lo,
        ecn_hi=hi,
        trim=spec.trim,
    )


def spec_of(shape: FabricShape) -> FabricSpec:
    """The fabric of namespaces nearest to a shape. ValueError: too large to number.

    A delay below the least of DELAY_NS is left out: the machine itself takes longer.
    """
    lo, hi = shape.ecn_lo, shape.ecn_hi
    return FabricSpec(
        planes=shape.planes,
        spines=shape.t1,
        hosts=shape.hosts,
        mtu=shape.mtu,
        rate_mbit=shape.rate_bps / 1e6,
        t0=shape.t0,
        t1_rate_mbit=shape.t1_rate_bps / 1e6,
        queue_bytes=shape.queue_bytes,
        ecn_bytes=None if lo is None or hi is None else (lo, hi),
        trim=shape.trim,
        delay_ns=shape.delay_ns if shape.delay_ns >= DELAY_NS[0] else 0,
    )


@dataclass(frozen=True, slots=True)
class Path:
    """One way from host ``src`` to host ``dst`` (0-based), in every form a sender can ask for."""

    index: int
    plane: int
    """1..planes; also the number of the NIC port (MRC 0.2)."""
    spine: int
    """1..spines, counted within the plane; 0: both hosts are under one T0."""
    src: int
    dst: int
    sport: int
    t0s: tuple[int, int]
    """Numbers (0-based) of the T0s above ``src`` and ``dst``."""

    @property
    def ev(self) -> int:
        """The wire EV of the SRv6 formats: plane, spine, source port (the split of MRC D.9)."""
        return self.plane << 24 | self.spine << 16 | self.sport

    def _switches(self) -> tuple[int, ...]:
        first, last = (usid(Role.T0, self.plane, t0 + 1) for t0 in self.t0s)
        if self.spine == 0:
            return (first,)
        return (first, usid(Role.T1, self.plane, self.spine), last)

    @property
    def kernel_carrier(self) -> IPv6Address:
        """Carrier that ends in End.DT6: the receiving kernel unpacks, any UDP socket receives."""
        return carrier(*self._switches(), usid(Role.HOST_KERNEL, self.plane, self.dst + 1))

    @property
    def raw_carrier(self) -> IPv6Address:
        """Carrier that ends at a local address: a raw socket receives the outer packet."""
        return carrier(*self._switches(), usid(Role.HOST_RAW, self.plane, self.dst + 1))

    @property
    def srh_carrier(self) -> IPv6Address:
        """First carrier of the 'extend' use of an SRH (MRC A.13.2): used up before the last T0."""
        return carrier(*(self._switches()[:-1] or self._switches()))

    @property
    def srh_kernel_entry(self) -> IPv6Address:
        """The SRH entry that takes over at the spine and ends in End.DT6."""
        return self._entry(Role.HOST_KERNEL)

    @property
    def srh_raw_entry(self) -> IPv6Address:
        """The SRH entry that takes over at the spine and ends at a local address."""
        return self._entry(Role.HOST_RAW)

    def _entry(self, role: Role) -> IPv6Address:
        host = usid(role, self.plane, self.dst + 1)
        return carrier(*self._switches()[1:][-1:], host)


def host_address(host: int) -> IPv6Address:
    """The address applications use to reach host ``host`` (0-based): fd00::1, fd00::2, ..."""
    return IPv6Address((0xFD00 << 112) | host + 1)


def paths_between(spec: FabricSpec, src: int, dst: int) -> tuple[Path, ...]:
    """All paths from one host to another, planes fastest, so that any first few use all planes."""
    shape = spec.shape
    t0s = shape.t0_of(src), shape.t0_of(dst)
    return tuple(
        Path(
            i,
            i % spec.planes + 1,
            0 if t0s[0] == t0s[1] else i // spec.planes + 1,
            src,
            dst,
            spec.sport_base + i,
            t0s,
        )
        for i in range(shape.path_count(src, dst))
    )
