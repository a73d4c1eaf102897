# SPDX-License-Identifier: BSD-2-Clause
"""MemoryRegion: pinned bytes with a local and a remote key."""

from __future__ import annotations

import mmap
import sys
from typing import Any

from . import _chance
from ._check import whole
from ._children import Owned
from ._core import Pin
from ._typed import typed
from .errors import MrcUsageError
from .pd import ProtectionDomain
from .types import Access

__all__ = ["MemoryRegion"]

_DEFAULT_ACCESS = Access.LOCAL_WRITE | Access.REMOTE_WRITE


class MemoryRegion(Owned):
    """Any contiguous buffer (bytearray, numpy array, mmap, memoryview), registered for transfer.

    The buffer is pinned until close(): a bytearray cannot be resized meanwhile. Read-only memory
    may be registered with Access.NONE, as a source of writes only. Peers can write to the region
    only with Access.REMOTE_WRITE, which is the default. The rkey is random, so that it cannot be
    guessed; it names the region to a peer, together with `addr`.
    """

    @typed
    def __init__(self, pd: ProtectionDomain, buffer: Any, access: Access = _DEFAULT_ACCESS) -> None:
        pd.require_open()
        if access & Access.REMOTE_WRITE and not access & Access.LOCAL_WRITE:
            raise MrcUsageError("REMOTE_WRITE needs LOCAL_WRITE")
        pin = Pin(buffer, writable=bool(access & Access.LOCAL_WRITE))
        try:
            self.rkey = pd.ctx.pump.mr_register(pd.number, pin, int(access), _chance.bits(32))
        except BaseException:
            pin.release()
            raise
        self.pd = pd
        self.ctx = pd.ctx
        self.access = access
        self.addr = pin.addr
        self.length = pin.nbytes
        self.buffer = buffer
        self._closed = False
        pd.ctx.pins[self.rkey] = (pd.number, pin)
        pd.mrs.add(self)

    @classmethod
    @typed
    def register(
        cls, pd: ProtectionDomain, buffer: Any, access: Access = _DEFAULT_ACCESS
    ) -> MemoryRegion:
        """The constructor by the name of the verbs call."""
        return cls(pd, buffer, access)

    @classmethod
    @typed
    def alloc(
        cls, pd: ProtectionDomain, nbytes: int, access: Access = _DEFAULT_ACCESS
    ) -> MemoryRegion:
        """A region over fresh page-aligned zeroed memory; `view` reaches it."""
        whole("nbytes", nbytes, 1, sys.maxsize)
        return cls(pd, mmap.mmap(-1, nbytes), access)

    @property
    def lkey(self) -> int:
        """The key for work requests of this side; the same number as rkey."""
        return self.rkey

    @property
    def view(self) -> memoryview:
        """The bytes. Release it (or let it go) before you resize the buffer after close()."""
        return memoryview(self.buffer).cast("B")

    def range(self, offset: int, length: int | None) -> tuple[int, int]:
        """(address, length) of a part of the region; None is all that follows the offset.

        MrcUsageError when any of it lies outside.
        """
        if self._closed:
            raise MrcUsageError("the memory region is closed")
        size = self.length - offset if length is None else length
        if offset < 0 or size < 0 or offset + size > self.length:
            raise MrcUsageError(
                f"bytes {offset}..{offset + size} are outside the region of {self.length}"
            )
        return self.addr + offset, size

    def close(self) -> None:
        """Unregister and unpin. MrcUsageError while a work request refers to it. Twice is once."""
        if self._closed:
            return
        ctx = self.ctx
        if not ctx.closed:
            ctx.unpin(self.rkey)
        self._closed = True
        self.pd.mrs.discard(self)

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"<MemoryRegion {self.length} bytes at {self.addr:#x} rkey {self.rkey:#010x}>"
