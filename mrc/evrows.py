# SPDX-License-Identifier: BSD-2-Clause
"""From an EV to an SRv6 address without a table of addresses (D.9).

A file of the node maps prefixes of destinations to row templates: the carrier of uSIDs towards any
host of that row, with the plane, the uplink and the host's downlink still open. The destination's
downlink number is put in once per peer; the EV says plane and uplink, for each path.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv6Address, IPv6Network

from .errors import MrcProfileError

__all__ = ["Bits", "EvLayout", "Row", "RowTable", "UsidLayout"]

_ADDRESS_BITS = 128


@dataclass(frozen=True, slots=True)
class Bits:
    """Bits of a number: the lowest, counted from 0, and how many."""

    low: int
    width: int

    @property
    def top(self) -> int:
        """The largest value."""
        return (1 << self.width) - 1

    def get(self, number: int) -> int:
        """The value there."""
        return number >> self.low & self.top

    def put(self, number: int, value: int) -> int:
        """`number` with the value there. It fits."""
        return number & ~(self.top << self.low) | value << self.low

    def inside(self, width: int) -> bool:
        """Whether a number of that width has them all."""
        return self.low >= 0 and self.width >= 1 and self.low + self.width <= width

    def meets(self, other: Bits) -> bool:
        """Whether the two overlap."""
        return self.low < other.low + other.width and other.low < self.low + self.width


@dataclass(frozen=True, slots=True)
class EvLayout:
    """Where a 32-bit EV says its plane, which is the NIC port, and the uplink of its T0."""

    plane: Bits = field(default_factory=lambda: Bits(24, 8))
    uplink: Bits = field(default_factory=lambda: Bits(16, 8))

    def problem(self) -> str | None:
        """The first broken rule, or None."""
        if not self.plane.inside(32) or not self.uplink.inside(32):
            return "plane and uplink are bits of a 32-bit EV"
        if self.plane.meets(self.uplink):
            return "plane and uplink share bits"
        return "a plane has at most 8 bits" if self.plane.width > 8 else None


@dataclass(frozen=True, slots=True)
class UsidLayout:
    """The locator block, and where a uSID says its plane and its number; widths in bits."""

    block: int = 32
    usid: int = 16
    plane: Bits = field(default_factory=lambda: Bits(8, 4))
    number: Bits = field(default_factory=lambda: Bits(0, 8))

    def problem(self) -> str | None:
        """The first broken rule, or None."""
        if not 1 <= self.block < _ADDRESS_BITS or not 1 <= self.usid <= _ADDRESS_BITS - self.block:
            return "block and uSID are not parts of an address of 128 bits"
        if not self.plane.inside(self.usid) or not self.number.inside(self.usid):
            return f"plane and number are bits of a uSID of {self.usid}"
        return "plane and number share bits" if self.plane.meets(self.number) else None

    @property
    def room(self) -> int:
        """How many uSIDs a carrier holds."""
        return (_ADDRESS_BITS - self.block) // self.usid

    def at(self, index: int) -> Bits:
        """The bits of uSID `index`, from 0, in an address."""
        return Bits(_ADDRESS_BITS - self.block - (index + 1) * self.usid, self.usid)

    def count(self, address: int) -> int:
        """How many uSIDs stand before the zeros that end the carrier (A.13.1)."""
        used = 0
        for index in range(self.room):
            if self.at(index).get(address):
                used = index + 1
        return used


@dataclass(frozen=True, slots=True)
class Row:
    """One row of nodes.

    `uplink`: which uSID, from 0, takes the EV's uplink number; None inside one T0 group. `host`:
    which takes the downlink number; None: the last. `downlink`: the bits of the destination
    address that are its downlink number.
    """

    prefix: IPv6Network
    template: IPv6Address
    uplink: int | None = 1
    host: int | None = None
    downlink: Bits = field(default_factory=lambda: Bits(0, 8))

    def problem(self, layout: UsidLayout) -> str | None:
        """The first broken rule, or None."""
        count = layout.count(int(self.template))
        if count == 0:
            return f"template {self.template} has no uSID"
        if any(layout.at(i).get(int(self.template)) == 0 for i in range(count)):
            return f"template {self.template} has a zero uSID before its end"
        for name, index in (("uplink", self.uplink), ("host", self.host)):
            if index is not None and not 0 <= index < count:
                return f"{name}: {index} is not in 0..{count - 1}, the uSIDs of {self.template}"
        if self.uplink is not None and self.uplink == self.host_index(layout):
            return f"uplink and host are both uSID {self.uplink}"
        return None if self.downlink.inside(_ADDRESS_BITS) else "downlink is bits of an address"

    def host_index(self, layout: UsidLayout) -> int:
        """Which uSID is the destination's."""
        return layout.count(int(self.template)) - 1 if self.host is None else self.host

    def towards(self, dst: IPv6Address, layout: UsidLayout) -> int:
        """Step 2: the template with the destination's downlink number in it."""
        number = self.downlink.get(int(dst))
        if number > layout.number.top:
            raise MrcProfileError(
                f"downlink {number} of {dst} does not fit {layout.number.width} bits of a uSID"
            )
        place = layout.at(self.host_index(layout))
        template = int(self.template)
        return place.put(template, layout.number.put(place.get(template), number))


@dataclass(frozen=True, slots=True)
class RowTable:
    """The rows of a node, and how the numbers in it are laid out. MrcProfileError when made."""

    rows: tuple[Row, ...]
    usids: UsidLayout = field(default_factory=UsidLayout)
    evs: EvLayout = field(default_factory=EvLayout)

    def __post_init__(self) -> None:
        problem = self.usids.problem() or self.evs.problem()
        if problem is not None:
            raise MrcProfileError(problem)
        seen: dict[IPv6Network, int] = {}
        for index, row in enumerate(self.rows, 1):
            why = row.problem(self.usids)
            if why is None and row.prefix in seen:
                why = f"prefix: {row.prefix} is that of [[row]] {seen[row.prefix]} too"
            if why is not None:
                raise MrcProfileError(f"[[row]] {index}: {why}")
            seen[row.prefix] = index

    def row(self, dst: IPv6Address) -> Row:
        """Step 1: the row of the longest prefix. MrcProfileError: none."""
        found = [r for r in self.rows if dst in r.prefix]
        if not found:
            raise MrcProfileError(f"no row template for {dst}: add a prefix that contains it")
        return max(found, key=lambda r: r.prefix.prefixlen)

    def address(self, dst: IPv6Address, ev: int) -> IPv6Address:
        """The outer destination towards dst on the path of an EV, steps 1 to 3."""
        return self.addresses(dst, [ev])[0]

    def addresses(self, dst: IPv6Address, evs: list[int]) -> list[IPv6Address]:
        """The same for many EVs."""
        row = self.row(dst)
        template = row.towards(dst, self.usids)
        return [IPv6Address(self._steer(row, template, ev)) for ev in evs]

    def _steer(self, row: Row, address: int, ev: int) -> int:
        """Step 3: the EV's plane into all uSIDs, its uplink into that of the T1."""
        layout = self.usids
        plane, uplink = self.evs.plane.get(ev), self.evs.uplink.get(ev)
        if plane > layout.plane.top:
            raise MrcProfileError(
                f"plane {plane} of EV {ev:#x} does not fit {layout.plane.width} bits of a uSID"
            )
        if row.uplink is not None and uplink > layout.number.top:
            raise MrcProfileError(
                f"uplink {uplink} of EV {ev:#x} does not fit {layout.number.width} bits of a uSID"
            )
        for index in range(layout.count(int(row.template))):
            place = layout.at(index)
            usid = layout.plane.put(place.get(address), plane)
            if index == row.uplink:
                usid = layout.number.put(usid, uplink)
            address = place.put(address, usid)
        return address
