# SPDX-License-Identifier: BSD-2-Clause
"""What a SACK says, written and read (MRC A.7, B.4, B.5). PSNs are unbounded numbers here."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from mrc.model import psn
from mrc.model.wire import Seth

BITS = 64


@dataclass(frozen=True, slots=True)
class SackMap:
    """Where the bitmap begins, relative to cack, and its bits; bit 0 is the lowest PSN."""

    offset: int
    bitmap: int

    def psns(self, cack: int) -> set[int]:
        """Return the PSNs whose bits are set."""
        return {cack + self.offset + i for i in range(BITS) if self.bitmap >> i & 1}


def place(cack: int, base: int, received: AbstractSet[int]) -> SackMap:
    """Return the map that begins at base; a bit says that its PSN has arrived (A.7)."""
    bitmap = sum(1 << i for i in range(BITS) if base + i <= cack or base + i in received)
    return SackMap(base - cack, bitmap)


def base_of(cack: int, max_rcv: int, lowest_unreported: int | None) -> int:
    """Return where the bitmap begins (B.4, the choice there; H36).

    Right above cack while all that arrived fits; else at the lowest PSN that no SACK has reported,
    but never so high that the newest packet is not the last bit.
    """
    newest_last = max_rcv - (BITS - 1)
    if max_rcv - cack <= BITS:
        return cack + 1
    return newest_last if lowest_unreported is None else min(lowest_unreported, newest_last)


@dataclass(frozen=True, slots=True)
class Told:
    """What a requestor learns from a SACK."""

    cack: int  # it and all before have arrived
    also: frozenset[int]  # arrived too; may be at or below cack


def read(seth: Seth, near: int) -> Told:
    """Read a SACK; near is any PSN of the window (B.5, steps 1 and 2).

    A cleared bit says nothing.
    """
    cack = psn.unwrap(seth.cack_psn, near)
    also = SackMap(seth.sack_offset, seth.sack_bitmap).psns(cack)
    if not seth.pr:
        also.add(cack + seth.ack_psn_offset)
    return Told(cack, frozenset(also))
