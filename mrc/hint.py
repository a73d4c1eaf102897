# SPDX-License-Identifier: BSD-2-Clause
"""QpHint: what an application says beforehand of its traffic (C.2). Advice, not a promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack, cast

from ._check import bytes_of
from ._children import Owned
from ._typed import typed
from .errors import MrcUsageError

if TYPE_CHECKING:
    from .device import Context

__all__ = ["HintFields", "QpHint"]

_BITS = {"qps_per_peer": 1 << 0, "peers": 1 << 1, "incast": 1 << 2, "vendor": 1 << 31}
_VENDOR_BYTES = 128


class HintFields(TypedDict, total=False):
    """What can be said; numbers of 32 bits.

    qps_per_peer: queue pairs to one peer in use at the same time. peers: peers this side sends to
    at once. incast: remote queue pairs that target the same receiver as ours. vendor: 128 bytes.
    """

    qps_per_peer: int
    peers: int
    incast: int
    vendor: bytes


class QpHint(Owned):
    """An object that queue pairs refer to by QpAttr.hint, until they are reset or closed.

    incast N: until the peer's first answer a queue pair has at most one N-th of its window in
    flight, one packet at least. The other fields are kept and mean nothing here.
    """

    @typed
    def __init__(self, ctx: Context, **fields: Unpack[HintFields]) -> None:
        self.ctx = ctx
        self.number = ctx.verbs.hint_create(fields, _mask(fields))
        self._closed = False
        ctx.hints.add(self)

    def query(self, *names: str) -> HintFields:
        """The fields given so far, of `names` when there are any."""
        self._require_open()
        raw = self.ctx.verbs.hint_query(self.number)
        wanted = _mask(dict.fromkeys(names)) if names else 0xFFFFFFFF
        found = {name: raw[name] for name, bit in _BITS.items() if raw["mask"] & wanted & bit}
        return cast("HintFields", found)

    def modify(self, **fields: Unpack[HintFields]) -> None:
        """Set these fields; queue pairs heed it as long as they have not heard of their peer."""
        self._require_open()
        self.ctx.verbs.hint_modify(self.number, fields, _mask(fields))

    def close(self) -> None:
        """MrcUsageError while a queue pair refers to it. Twice is once."""
        if self._closed:
            return
        if not self.ctx.closed:
            self.ctx.verbs.hint_destroy(self.number)
        self._closed = True
        self.ctx.hints.discard(self)

    def _require_open(self) -> None:
        if self._closed:
            raise MrcUsageError("the hint is closed")

    def __repr__(self) -> str:
        return f"<QpHint {self.number}>"


def _mask(fields: object) -> int:
    mask = 0
    assert isinstance(fields, dict)  # noqa: S101 - HintFields is one
    for name, value in fields.items():
        if name not in _BITS:
            raise MrcUsageError(f"{name} is no field of a queue pair hint")
        if name == "vendor" and value is not None:
            bytes_of("vendor", value, _VENDOR_BYTES)
        mask |= _BITS[name]
    return mask
