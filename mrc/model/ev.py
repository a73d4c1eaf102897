# SPDX-License-Identifier: BSD-2-Clause
"""From an entropy value to bits on the wire: profiles (MRC D.3, D.4), SRv6 templates (D.9)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

WIDTHS = (32, 128, 256)  # STEV, SRv6, SRv6 with SRH (D.2)


@dataclass(frozen=True, slots=True)
class EvField:
    """One field of an EV profile, D.3. Bits of mask come from the EV, the others from init."""

    width: int
    init: int
    mask: int = 0
    low: int = 0
    high: int = 0  # 0 with a mask: the whole range

    @property
    def bits(self) -> int:
        """How many bits of the EV it takes."""
        return self.mask.bit_count()

    @property
    def last(self) -> int:
        """Largest value the device generates for it."""
        return self.high or (1 << self.bits) - 1


def check(fields: Sequence[EvField], format_widths: Sequence[int]) -> None:
    """Raise ValueError with the reason when a profile is not acceptable (D.3)."""
    if len(fields) > len(format_widths):
        raise ValueError("more fields than the format has")
    if sum(f.width for f in fields) > sum(format_widths):
        raise ValueError("fields are wider than the format")
    if sum(format_widths) > max(WIDTHS):
        raise ValueError("format is wider than an EV can be")
    for number, (field, format_width) in enumerate(zip(fields, format_widths, strict=False)):
        for wrong, reason in (
            (not 1 <= field.width <= 32, "width is not in 1..32"),
            (field.width > format_width, "wider than its place in the format"),
            (field.init >> field.width, "init does not fit its width"),
            (field.mask >> field.width, "mask has bits outside its width"),
            (field.high >> field.bits, "max does not fit the mask"),
            (field.low > field.last, "min is above max"),
        ):
            if wrong:
                raise ValueError(f"field {number}: {reason}")


def expand(fields: Sequence[EvField], format_widths: Sequence[int], ev: bytes) -> bytes:
    """Return the wire value of an EV, left-aligned in 32, 128 or 256 bits (D.4).

    The EV is read from the most significant bit of its first byte. ValueError: the profile is not
    acceptable, the EV is too short, or it has bits no field takes.
    """
    check(fields, format_widths)
    stream = "".join(f"{byte:08b}" for byte in ev)
    if len(stream) < sum(f.bits for f in fields):
        raise ValueError("EV has fewer bits than the fields take")
    out = ""
    for field, format_width in zip(fields, format_widths, strict=False):
        value = field.init
        for position in reversed(range(field.width)):
            if field.mask >> position & 1:
                bit, stream = stream[0], stream[1:]
                value = value & ~(1 << position) | int(bit) << position
        out += f"{value:0{format_width}b}"
    if "1" in stream:
        raise ValueError("EV has bits beyond those the fields take")
    total = next(width for width in WIDTHS if len(out) <= width)
    return int(out.ljust(total, "0"), 2).to_bytes(total // 8, "big")


def generate(fields: Sequence[EvField]) -> Iterator[bytes]:
    """Return all EVs of a generated profile, the last field changing fastest (H25)."""
    drawn = [f for f in fields if f.bits]
    for values in product(*(range(f.low, f.last + 1) for f in drawn)):
        bits = "".join(f"{v:0{f.bits}b}" for v, f in zip(values, drawn, strict=True))
        yield int(bits.ljust(-(-len(bits) // 8) * 8, "0") or "0", 2).to_bytes(-(-len(bits) // 8))


@dataclass(frozen=True, slots=True)
class Usid:
    """A uSID in the number scheme of D.9: role, plane, number."""

    role: int  # 4 bits: 1 T0, 2 T1, 3 host
    plane: int  # 4 bits
    number: int  # 8 bits

    @property
    def value(self) -> int:
        """The 16 bits of it."""
        return self.role << 12 | self.plane << 8 | self.number


def steer(template: Sequence[Usid], ev: int) -> list[Usid]:
    """Return the chain with the EV's plane in every uSID and its uplink in the T1 uSID (D.9)."""
    plane, uplink = ev >> 24 & 0xF, ev >> 16 & 0xFF
    return [
        replace(usid, plane=plane, number=uplink if usid.role == 2 else usid.number)
        for usid in template
    ]


def carrier(block: int, chain: Sequence[Usid]) -> int:
    """Return the destination address: 32-bit block, up to six uSIDs, zeros (A.13.1)."""
    if len(chain) > 6:
        raise ValueError("a carrier holds six uSIDs")
    address = block
    for usid in chain:
        address = address << 16 | usid.value
    return address << 16 * (6 - len(chain))


def after_node(address: int) -> int:
    """Return the destination address after a uN node took its uSID out of it (A.13.1)."""
    return address >> 96 << 96 | address % (1 << 80) << 16
