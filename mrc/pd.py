# SPDX-License-Identifier: BSD-2-Clause
"""ProtectionDomain: queue pairs reach only the memory regions of their own domain."""

from __future__ import annotations

from ._children import Children, Owned
from ._typed import typed
from .device import Context
from .errors import MrcUsageError

__all__ = ["ProtectionDomain"]


class ProtectionDomain(Owned):
    """A number C compares; an object Python keeps. Closing closes its queue pairs, then regions."""

    @typed
    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.number = ctx.next_pd()
        self.qps = Children()
        self.mrs = Children()
        self._closed = False
        ctx.pds.add(self)

    def require_open(self) -> None:
        """MrcUsageError when closed."""
        if self._closed:
            raise MrcUsageError("the protection domain is closed")

    def close(self) -> None:
        """Close queue pairs, then memory regions, then itself. Twice is once."""
        if self._closed:
            return
        self.qps.close_all()
        self.mrs.close_all()
        if not self.ctx.closed:  # regions whose objects were lost
            for rkey, (number, _) in tuple(self.ctx.pins.items()):
                if number == self.number:
                    self.ctx.unpin(rkey)
        self._closed = True
        self.ctx.pds.discard(self)

    def __repr__(self) -> str:
        return f"<ProtectionDomain {self.number}>"
