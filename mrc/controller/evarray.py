# SPDX-License-Identifier: BSD-2-Clause
"""The EVs of a managed profile: their API values, and what they are on the wire (C.5, D.4, H23)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mrc.errors import MrcProfileError
from mrc.ev import VALUE_BITS, EvEntry, EvField, expand, split_value
from mrc.evgen import SPORT_BASE, automatic, combinations, entry_of, generate
from mrc.types import EvFormat

from .attrs import EV_BYTES, UNPOPULATED, EvId, EvMode
from .format import ManagedFormat

__all__ = ["EvArray", "EvSlot"]


@dataclass(slots=True)
class EvSlot:
    """One entry of the array. `tag`: its EV on the wire where that is no part of the path."""

    id: EvId
    tag: int
    wire: int = 0
    denied: bool = False


class EvArray:
    """`key`: the attributes it was made for. `after`: whose tags may still be in flight.

    All methods raise MrcProfileError with the reason.
    """

    def __init__(
        self, key: Hashable, ports: Sequence[int], seed: int, after: EvArray | None = None
    ) -> None:
        self.key = key
        self.slots: list[EvSlot] = []
        self._ports = ports
        self._seed = seed
        self.next_tag: int = SPORT_BASE if after is None else after.next_tag
        # Tags of entries, these and the former ones, which must not be given out a second time.
        self._taken = set[int]() if after is None else {s.tag for s in after.slots}

    def fill(self, mode: EvMode, count: int, fields: Sequence[EvField], fmt: ManagedFormat) -> None:
        """Unpopulated entries; or what the device or the fields make."""
        if mode is EvMode.EXPLICIT:
            self.slots = [EvSlot(UNPOPULATED, self._tag()) for _ in range(count)]
            return
        widths = fmt.attr.widths
        if widths is None:
            raise MrcProfileError(f"format {fmt.id} has no widths yet")
        if mode is EvMode.AUTO:
            entries = automatic(fmt.format, count, ports=self._ports, seed=self._seed)
        else:
            most = combinations(fields)
            if count > most:
                raise MrcProfileError(f"count {count}, but the fields have {most} combinations")
            entries = generate(fmt.format, fields, widths, count, ports=self._ports)
        bits = VALUE_BITS[fmt.format]
        for e in entries:
            path = _path_of(e, fmt.format)
            value = (
                _left(path, bits) if mode is EvMode.AUTO else collect(fields, widths, path, bits)
            )
            self.slots.append(EvSlot(EvId(value, e.plane), self._tag(), e.value))

    def keep(self, old: EvArray) -> None:
        """Explicit entries stay when only fields or format changed."""
        for slot, before in zip(self.slots, old.slots, strict=False):
            slot.id, slot.denied = before.id, before.denied

    def check(self, ev: EvId, fmt: ManagedFormat, fields: Sequence[EvField]) -> None:
        """Whether the EV has bits only where the fields take them (D.3)."""
        split_value(fields, ev.value)
        if fmt.attr.widths is not None:
            self._entry(EvSlot(ev, SPORT_BASE), fmt, fields)

    def put(self, slot: EvSlot, ev: EvId, *, denied: bool) -> None:
        """Another EV in this place, under a tag that was not used lately."""
        former = slot.tag
        slot.id, slot.denied, slot.tag = ev, denied, self._tag()
        self._taken.discard(former)

    def restore(self, slot: EvSlot, before: EvSlot) -> None:
        """Undo put()."""
        self._taken.discard(slot.tag)
        self._taken.add(before.tag)
        slot.id, slot.denied, slot.tag, slot.wire = (
            before.id,
            before.denied,
            before.tag,
            before.wire,
        )

    def entries(self, fmt: ManagedFormat, fields: Sequence[EvField]) -> list[EvEntry]:
        """Every entry on the wire."""
        empty = sum(s.id == UNPOPULATED for s in self.slots)
        if empty:
            raise MrcProfileError(f"{empty} EVs are not populated yet; replace them")
        found = [self._entry(s, fmt, fields) for s in self.slots]
        seen: dict[int, int] = {}
        for index, (slot, e) in enumerate(zip(self.slots, found, strict=True), 1):
            if e.value in seen:
                raise MrcProfileError(f"EV {index}, {slot.id}, is EV {seen[e.value]} too")
            seen[e.value] = index
        for slot, e in zip(self.slots, found, strict=True):
            slot.wire = e.value
        return found

    def entry(self, slot: EvSlot, fmt: ManagedFormat, fields: Sequence[EvField]) -> EvEntry:
        """One entry on the wire."""
        return self._entry(slot, fmt, fields)

    def by_wire(self, wire: int) -> EvSlot | None:
        """The entry that is this EV on the wire."""
        return next((s for s in self.slots if s.wire == wire and s.id != UNPOPULATED), None)

    def check_range(self, fields: Sequence[EvField]) -> None:
        """Whether they are base to base + count - 1, for devices that have no others (C.5)."""
        bits = sum(f.bits for f in fields)
        values = sorted(
            int.from_bytes(s.id.value, "big") >> EV_BYTES * 8 - bits for s in self.slots
        )
        for before, value in pairwise(values):
            if value != before + 1:
                raise MrcProfileError(
                    f"EVs are not contiguous: {before:#x} is followed by {value:#x}"
                )

    def _entry(self, slot: EvSlot, fmt: ManagedFormat, fields: Sequence[EvField]) -> EvEntry:
        widths = fmt.attr.widths or ()
        if self.key and isinstance(self.key, tuple) and self.key[0] is EvMode.AUTO:
            path = int.from_bytes(slot.id.value, "big") >> EV_BYTES * 8 - VALUE_BITS[fmt.format]
        else:
            values = split_value(fields, slot.id.value)
            path = expand(fields, widths, values, VALUE_BITS[fmt.format])
        return entry_of(fmt.format, path, slot.tag, slot.id.port)

    def _tag(self) -> int:
        """The next one that no entry has. There are four times as many as a table has EVs."""
        tag = self.next_tag
        while tag in self._taken:
            tag = _tag_after(tag)
        self._taken.add(tag)
        self.next_tag = _tag_after(tag)
        return tag


def _tag_after(tag: int) -> int:
    return tag + 1 if tag < 0xFFFF else SPORT_BASE


def collect(fields: Sequence[EvField], widths: Sequence[int], path: int, bits: int) -> bytes:
    """The EV whose expansion is that path value: expand() backwards (D.4)."""
    number = 0
    taken = 0
    at = bits
    for f, width in zip(fields, widths, strict=False):
        at -= width
        value = path >> at & (1 << width) - 1
        for position in range(f.width - 1, -1, -1):
            if f.mask >> position & 1:
                number = number << 1 | value >> position & 1
                taken += 1
    return _left(number, taken)


def _left(number: int, bits: int) -> bytes:
    """The bits at the top of 32 bytes."""
    return (number << EV_BYTES * 8 - bits).to_bytes(EV_BYTES, "big")


def _path_of(e: EvEntry, fmt: EvFormat) -> int:
    if fmt in (EvFormat.UDP, EvFormat.STEV):
        return e.value
    path = int(e.dst or 0)
    return path if fmt is EvFormat.SRV6 else path << 128 | int(e.srh or 0)
