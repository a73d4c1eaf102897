# SPDX-License-Identifier: BSD-2-Clause
"""Entropy values: one path each, and the profile that lists them (D.1 to D.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum, IntFlag
from ipaddress import IPv6Address
from os import PathLike

from ._typed import check_fields, named, typed
from .errors import MrcProfileError
from .evrows import RowTable
from .planes import PlaneAddresses, address_problem
from .types import EV_MAX, PLANE_MAX, EvFormat

__all__ = [
    "EvEntry",
    "EvField",
    "EvProfile",
    "EventMask",
    "ReverseRule",
    "expand",
    "split_value",
]

# Bits of an expanded path value (D.2), and the field widths assumed when a profile names none.
VALUE_BITS = {EvFormat.UDP: 16, EvFormat.STEV: 32, EvFormat.SRV6: 128, EvFormat.SRV6_SRH: 256}
_IFNAME_MAX = 15  # bytes, IFNAMSIZ less its zero
_SRV6 = (EvFormat.SRV6, EvFormat.SRV6_SRH)
_USID = (32, 16, 16, 16, 16, 16, 16)  # F3216: block, then six uSIDs (A.13.1)
DEFAULT_WIDTHS: dict[EvFormat, tuple[int, ...]] = {
    EvFormat.UDP: (16,),
    EvFormat.STEV: (16, 16),
    EvFormat.SRV6: _USID,
    EvFormat.SRV6_SRH: _USID + _USID,
}


class ReverseRule(IntEnum):
    """Which EV carries an answer (D.8).

    REFLECT: that of the request when it is in the own profile and good, else the reverse set. OWN:
    the reverse set, an EV of each plane that is known to reach the peer, at first the plane's
    first. OWN_RANDOM: the same, at first any of the plane (H38).
    """

    REFLECT = 0
    OWN = 1
    OWN_RANDOM = 2


class LossRule(IntEnum):
    """When a lost packet, after which its path delivered others, takes the path out of use (D.5).

    COMPARED: when the path loses more than the others do. FIRST: at once.
    """

    COMPARED = 0
    FIRST = 1


class SkipRule(IntEnum):
    """How long a congested path is out of use (D.5, D.6).

    COMPARED: one turn, and for round trips where it is marked and the others of its plane are not.
    TURN: one turn.
    """

    COMPARED = 0
    TURN = 1


class EventMask(IntFlag):
    """New states of EVs that raise an event (C.6). SKIP is too short-lived to be one."""

    NONE = 0
    GOOD = 1
    ASSUMED_BAD = 2
    DENIED = 4
    ALL = 7


@named
@dataclass(frozen=True, slots=True)
class EvField:
    """One field of a generated profile (D.3).

    width 1..32 bits; mask 0 fixes the field to init; otherwise min..max are the values of the
    masked bits, max 0 meaning all of them.
    """

    width: int
    init: int = 0
    min: int = 0
    max: int = 0
    mask: int = 0

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def bits(self) -> int:
        """How many bits of the EV the field takes."""
        return self.mask.bit_count()

    @property
    def top(self) -> int:
        """Highest value of the masked bits."""
        return self.max if self.max or self.min else (1 << self.bits) - 1

    def check(self) -> tuple[str, str] | None:
        """(key, reason) of the first broken rule of D.3, or None."""
        if not 1 <= self.width <= 32:
            return "width", f"{self.width} is not in 1..32"
        if not 0 <= self.init < 1 << self.width:
            return "init", f"{self.init:#x} does not fit {self.width} bits"
        if not 0 <= self.mask < 1 << self.width:
            return "mask", f"{self.mask:#x} has bits outside the width of {self.width}"
        if not 0 <= self.max < 1 << self.bits:
            return "max", f"{self.max} does not fit the {self.bits} bits of the mask"
        if not 0 <= self.min <= self.top:
            return "min", f"{self.min} is not in 0..{self.top}"
        return None

    def deposit(self, value: int) -> int:
        """The field with `value` in it (D.4 step 2).

        The bits of `value`, most significant first, replace those of init at the mask positions,
        highest first.
        """
        result = self.init
        left = self.bits
        for position in range(self.width - 1, -1, -1):
            if self.mask >> position & 1:
                left -= 1
                result = result & ~(1 << position) | (value >> left & 1) << position
        return result


def split_value(fields: Sequence[EvField], ev: bytes) -> list[int]:
    """The bits of each field in an EV, a byte string read from the top bit of byte 0 (H24).

    MrcProfileError: the EV is too short, or a bit beyond those consumed is set (D.3).
    """
    total = sum(f.bits for f in fields)
    left = len(ev) * 8
    if left < total:
        raise MrcProfileError(f"an EV of {left} bits is shorter than its fields: {total} bits")
    number = int.from_bytes(ev, "big")
    values = []
    for f in fields:
        left -= f.bits
        values.append(number >> left & (1 << f.bits) - 1)
    if number & (1 << left) - 1:
        raise MrcProfileError(f"EV {ev.hex()} has bits set beyond the {total} of its fields")
    return values


def expand(
    fields: Sequence[EvField], widths: Sequence[int], values: Sequence[int], total_bits: int
) -> int:
    """The path value: fields right-aligned in format widths, the whole left-aligned (D.4)."""
    result = 0
    used = 0
    for f, width, value in zip(fields, widths, values, strict=False):
        result = result << width | f.deposit(value)
        used += width
    return result << (total_bits - used)


@named
@dataclass(frozen=True, slots=True)
class EvEntry:
    """One path.

    `value`: the 32-bit EV on the wire, high half in the flow label, low half the UDP source port
    (A.12). `plane` 1..31. `dst`: outer destination of SRv6; `srh`: its segment, or `dst` again
    as a copy (A.13.2).
    """

    value: int
    plane: int = 1
    dst: IPv6Address | None = None
    srh: IPv6Address | None = None
    backup: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def source_port(self) -> int:
        """Low half of the EV (A.12)."""
        return self.value & 0xFFFF

    @property
    def flow_label(self) -> int:
        """High half of the EV (A.12)."""
        return self.value >> 16


@named
@dataclass(frozen=True, slots=True)
class EvProfile:
    """All paths of a connection, hashable, checked when made (MrcProfileError).

    min_active: the number of paths below which a verdict of ASSUMED_BAD never goes (D.3).
    interfaces: (plane, local interface) pairs: the plane is down while the interface has no carrier
    (D.7); planes that are not named are not watched. reverse: the way of answers (D.8); None:
    REFLECT for udp and stev, OWN for SRv6. deny: EVs that are DENIED from the start (D.7). events:
    which changes raise an event (C.6). rows: SRv6 destinations come from these templates (D.9), so
    that the entries have none. origin: the managed profile it is of (C.5). loss: what one lost
    packet says of its path (D.5). skip: how long a mark keeps its path out (D.6). sources: own
    address in a plane, where that is another than the connection's (C.4).
    """

    format: EvFormat
    entries: tuple[EvEntry, ...]
    min_active: int = 0
    name: str = ""
    interfaces: tuple[tuple[int, str], ...] = ()
    reverse: ReverseRule | None = None
    deny: tuple[int, ...] = ()
    events: EventMask = EventMask.ALL
    rows: RowTable | None = None
    origin: object | None = None
    loss: LossRule = LossRule.COMPARED
    sources: PlaneAddresses = ()
    skip: SkipRule = SkipRule.COMPARED

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.min_active:  # a quarter, as in the examples D.3 quotes
            active = sum(not e.backup for e in self.entries)
            object.__setattr__(self, "min_active", max(1, active // 4))
        problem = self.problem()
        if problem is not None:
            raise MrcProfileError(f"{self.name or 'EV profile'}: {problem}")

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[EvEntry]:
        return iter(self.entries)

    @classmethod
    @typed
    def udp(cls, count: int, sport_base: int = 49152, planes: int | Sequence[int] = 1) -> EvProfile:
        """EV i is UDP source port sport_base + i; planes, or as many from 1 on, take turns."""
        if not 1 <= count <= EV_MAX:
            raise MrcProfileError(f"the number of EVs {count} is not in 1..{EV_MAX}")
        number = planes if isinstance(planes, int) else len(planes)
        if not 1 <= number <= PLANE_MAX:
            raise MrcProfileError(f"the number of planes {number} is not in 1..{PLANE_MAX}")
        turns = range(1, number + 1) if isinstance(planes, int) else planes
        if sport_base < 1 or sport_base + count > 0x10000:
            raise MrcProfileError(
                f"source ports {sport_base}..{sport_base + count - 1} are not in 1..65535"
            )
        entries = tuple(EvEntry(sport_base + i, turns[i % len(turns)]) for i in range(count))
        return cls(EvFormat.UDP, entries)

    @classmethod
    @typed
    def load(cls, path: str | PathLike[str]) -> EvProfile:
        """Read a TOML file.

        OSError: it cannot be read. MrcProfileError: names file, place and reason.
        """
        from pathlib import Path

        from .evfile import load_profile

        return load_profile(Path(path))

    @property
    def reverse_rule(self) -> ReverseRule:
        """`reverse`, or what suits the format: an EV that is a tag means nothing to the peer."""
        if self.reverse is not None:
            return self.reverse
        return ReverseRule.OWN if self.format in _SRV6 else ReverseRule.REFLECT

    def denying(self, evs: Iterable[int], *, strict: bool = True) -> EvProfile:
        """The same with these EVs DENIED from the start; strict: each is one of the profile."""
        known, deny = {e.value for e in self.entries}, dict.fromkeys(self.deny)
        if not isinstance(evs, Iterable):
            raise MrcProfileError(f"{self.name or 'EV profile'}: deny: {evs!r:.60} are no EVs")
        for ev in evs:
            if not isinstance(ev, int):
                raise MrcProfileError(f"{self.name or 'EV profile'}: deny: {ev!r:.60} is no EV")
            if ev in known:
                deny[ev] = None
            elif strict:
                raise MrcProfileError(f"{self.name or 'EV profile'}: deny: no EV is {ev:#x}")
        return replace(self, deny=tuple(deny))

    @typed
    def towards(
        self, dst: IPv6Address, planes: Mapping[int, IPv6Address] | None = None
    ) -> EvProfile:
        """The same with the outer destinations towards dst, when rows give them (D.9).

        planes: the peer's addresses in planes, where they are others. MrcProfileError: no row for
        an address, or a number that does not fit.
        """
        if self.rows is None:
            return self
        by_end: dict[IPv6Address, list[int]] = {}
        for e in self.entries:
            by_end.setdefault((planes or {}).get(e.plane, dst), []).append(e.value)
        outer: dict[int, IPv6Address] = {}
        for end, values in by_end.items():
            outer.update(zip(values, self.rows.addresses(end, values), strict=True))
        entries = tuple(replace(e, dst=outer[e.value]) for e in self.entries)
        return replace(self, entries=entries, rows=None)

    def problem(self) -> str | None:
        """The first broken rule, with its place, or None."""
        if not 1 <= len(self.entries) <= EV_MAX:
            return f"{len(self.entries)} EVs, where 1..{EV_MAX} are possible"
        seen: dict[int, int] = {}
        for index, entry in enumerate(self.entries, 1):
            why = self._entry_problem(entry)
            if why is not None:
                return f"[[ev]] {index}: {why[0]}: {why[1]}"
            if entry.value in seen:
                return f"[[ev]] {index}: value: {entry.value:#x} is [[ev]] {seen[entry.value]} too"
            seen[entry.value] = index
        active = sum(not e.backup for e in self.entries)
        if active == 0:
            return "all EVs are backups"
        if not 1 <= self.min_active <= active:
            return f"min_active: {self.min_active} is not in 1..{active}, the active EVs"
        return self._deny_problem(seen) or self._interface_problem() or self._source_problem()

    def _entry_problem(self, entry: EvEntry) -> tuple[str, str] | None:
        if self.rows is None:
            return entry_problem(self.format, entry)
        if self.format is not EvFormat.SRV6:
            return "dst", f"comes from row templates with format srv6 only, not {self.format.value}"
        if entry.dst is not None:
            return "dst", "comes from the row templates"
        plane = self.rows.evs.plane.get(entry.value)
        if plane != entry.plane:
            return "port", f"{entry.plane} is not plane {plane}, which {entry.value:#x} says"
        return entry_problem(EvFormat.STEV, entry)

    def _deny_problem(self, known: dict[int, int]) -> str | None:
        for ev in self.deny:
            if ev not in known:
                return f"deny: no EV is {ev:#x}"
        if self.origin is None and len(set(self.deny)) == len(known):  # a controller may lift it
            return "deny: no EV is left: all are denied"
        return None

    def _interface_problem(self) -> str | None:
        planes, seen = {e.plane for e in self.entries}, set[str]()
        for index, (plane, interface) in enumerate(self.interfaces, 1):
            if plane not in planes:
                return f"[[plane]] {index}: number: no EV is in plane {plane}"
            if not 1 <= len(interface.encode()) <= _IFNAME_MAX or any(
                c in "/\0" or c.isspace() for c in interface
            ):
                return f"[[plane]] {index}: interface: {interface!r} is no interface name"
            if interface in seen:
                return f"[[plane]] {index}: interface: {interface!r} occurs twice"
            seen.add(interface)
        return None

    def _source_problem(self) -> str | None:
        planes = {e.plane for e in self.entries}
        for plane, address in self.sources:
            if plane not in planes:
                return f"plane {plane} has an address, but no EV"
            planes.discard(plane)
            problem = address_problem(address)
            if problem is not None:
                return f"plane {plane}: source: {problem}"
        return None


def entry_problem(fmt: EvFormat, e: EvEntry) -> tuple[str, str] | None:
    """(key, reason) of the first rule the entry breaks for this format, or None."""
    widest = 0xFFFF if fmt is EvFormat.UDP else 0xFFFFFFFF
    if not 0 <= e.value <= widest:
        return "value", f"{e.value:#x} does not fit format {fmt.value}"
    if e.source_port == 0:
        return "value", f"{e.value:#x} gives UDP source port 0"
    if not 1 <= e.plane <= PLANE_MAX:
        return "port", f"{e.plane} is not in 1..{PLANE_MAX}"
    wants_dst = fmt in _SRV6
    if wants_dst != (e.dst is not None):
        return "dst", f"is {'needed' if wants_dst else 'not possible'} with format {fmt.value}"
    if (fmt is EvFormat.SRV6_SRH) != (e.srh is not None):
        return "srh", f"belongs to format srv6-srh, and to no other; this is {fmt.value}"
    for key, address in (("dst", e.dst), ("srh", e.srh)):
        if address is not None and (address.is_multicast or address.is_unspecified):
            return key, f"{address} is no destination"
    return None
