# SPDX-License-Identifier: BSD-2-Clause
"""Test data that can be told apart message by message and checked as fast as memory can be read.

One pseudo-random block is made from a seed at both ends. Message k is the slice of that block that
begins at a place computed from k, so a slot that still holds an older message, a message placed in
the wrong slot, and any changed byte all differ. The sender sends the slice as it lies in the block
(no copy); the receiver compares with one memcmp (no copy either).
"""

import copy
import hashlib
from typing import Self

_STEP = 16
_PLACES = 65521  # prime: every place is used before one returns
_STRIDE = 31
_LANE = 8191
_TILE = (16 << 20) - 3


class Pattern:
    """The messages of one direction of one connection; `size` is the longest message, in bytes."""

    def __init__(self, seed: int, size: int) -> None:
        self._first = 0
        length = size + _STEP * _PLACES
        tile = hashlib.shake_128(seed.to_bytes(16, "big")).digest(min(length, _TILE))
        self.block = bytearray(tile)
        while len(self.block) < length:
            self.block += tile[: length - len(self.block)]

    def lane(self, index: int) -> Self:
        """Another sequence of messages over the same block, for another connection or direction."""
        other = copy.copy(self)
        other._first = index * _LANE  # noqa: SLF001 - a copy of ourselves
        return other

    def offset(self, message: int) -> int:
        """Where in the block message number `message` begins."""
        return _STEP * ((message * _STRIDE + self._first) % _PLACES)

    def matches(self, message: int, received: memoryview, start: int = 0) -> bool:
        """True when `received` is, byte for byte, that message from byte `start` on."""
        # startswith() takes any buffer and is a bare memcmp; comparing memoryviews is far slower
        return self.block.startswith(received, self.offset(message) + start)

    def first_difference(self, message: int, received: memoryview, start: int = 0) -> int:
        """Offset in `received` of the first wrong byte; its length when there is none."""
        at = self.offset(message) + start
        low, high = 0, len(received)
        while low < high:
            middle = (low + high + 1) // 2
            if self.block.startswith(received[low:middle], at + low):
                low = middle
            else:
                high = middle - 1
        return low
