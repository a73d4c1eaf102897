# SPDX-License-Identifier: BSD-2-Clause
"""What a fabric looks like on paper: switches, paths, addresses. Pure.

The shape is MRC's multi-plane leaf-spine (MRC 0.2, A.13.1): every host has one port per plane; in
each plane the port is wired to a T0 switch of its own, every T0 to all T1 switches (spines) of the
plane. A path from one host to another is therefore (plane, spine), and crosses T0, T1, T0.

uSIDs follow the number scheme of MRC D.9: role(4) plane(4) number(8), behind the 32-bit block.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv6Address

BLOCK = 0xFCBBBBBB
"""The SRv6 locator block, the upper 32 bits of every carrier."""

PLANES_MAX = 14
SPINES_MAX = 200
HOSTS_MAX = 200


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
    rate_mbit: int | None = None
    """Rate of every fabric link, each direction, in Mbit/s; None: as fast as the machine."""

    def __post_init__(self) -> None:
        """Refuse what the address plan cannot number."""
        for name, limit in (("planes", PLANES_MAX), ("spines", SPINES_MAX)):
            if not 1 <= getattr(self, name) <= limit:
                raise ValueError(f"{name} must be 1..{limit}, not {getattr(self, name)}")
        if not 2 <= self.hosts <= HOSTS_MAX:
            raise ValueError(f"hosts must be 2..{HOSTS_MAX}, not {self.hosts}")
        if not 1024 <= self.sport_base <= 65536 - self.paths:
            raise ValueError(f"sport_base must be 1024..{65536 - self.paths}")
        if not 1420 <= self.mtu <= 65535:  # 1280 inside, and room for outer header, SRH and inner
            raise ValueError("mtu must be 1420..65535")
        if self.rate_mbit is not None and self.rate_mbit < 1:
            raise ValueError("rate_mbit must be at least 1")

    @property
    def paths(self) -> int:
        """How many paths lead from one host to another."""
        return self.planes * self.spines


@dataclass(frozen=True, slots=True)
class Path:
    """One way from host ``src`` to host ``dst`` (0-based), in every form a sender can ask for."""

    index: int
    plane: int
    """1..planes; also the number of the NIC port (MRC 0.2)."""
    spine: int
    """1..spines, counted within the plane."""
    src: int
    dst: int
    sport: int

    @property
    def ev(self) -> int:
        """The wire EV of the SRv6 formats: plane, spine, source port (the split of MRC D.9)."""
        return self.plane << 24 | self.spine << 16 | self.sport

    def _switches(self) -> tuple[int, int, int]:
        return (
            usid(Role.T0, self.plane, self.src + 1),
            usid(Role.T1, self.plane, self.spine),
            usid(Role.T0, self.plane, self.dst + 1),
        )

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
        """First carrier of the 'extend' use of an SRH (MRC A.13.2): it is used up at the spine."""
        return carrier(*self._switches()[:2])

    @property
    def srh_kernel_entry(self) -> IPv6Address:
        """The SRH entry that takes over at the spine and ends in End.DT6."""
        return self._entry(Role.HOST_KERNEL)

    @property
    def srh_raw_entry(self) -> IPv6Address:
        """The SRH entry that takes over at the spine and ends at a local address."""
        return self._entry(Role.HOST_RAW)

    def _entry(self, role: Role) -> IPv6Address:
        return carrier(self._switches()[2], usid(role, self.plane, self.dst + 1))


def host_address(host: int) -> IPv6Address:
    """The address applications use to reach host ``host`` (0-based): fd00::1, fd00::2, ..."""
    return IPv6Address((0xFD00 << 112) | host + 1)


def paths_between(spec: FabricSpec, src: int, dst: int) -> tuple[Path, ...]:
    """All paths from one host to another, planes fastest, so that any first few use all planes."""
    return tuple(
        Path(i, i % spec.planes + 1, i // spec.planes + 1, src, dst, spec.sport_base + i)
        for i in range(spec.paths)
    )
