# SPDX-License-Identifier: BSD-2-Clause
"""Bytes that end where readable memory ends: one byte read beyond them stops the process."""

import ctypes
import mmap
import os
from typing import Any

PAGE = mmap.PAGESIZE


class Guard:
    """Room for up to `size` bytes right before a page that may not be touched."""

    def __init__(self, ffi: Any, size: int) -> None:
        self.ffi = ffi
        self.room = -(-size // PAGE) * PAGE
        self.memory = mmap.mmap(-1, self.room + PAGE)
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        libc = ctypes.CDLL(None, use_errno=True)
        wall = ctypes.c_void_p(self.start + self.room)
        if libc.mprotect(wall, ctypes.c_size_t(PAGE), 0) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def hold(self, data: bytes) -> Any:
        """Return a `uint8_t *` to data, until the next call."""
        at = self.room - len(data)
        self.memory[at : self.room] = data
        return self.ffi.cast("uint8_t *", self.start + at)
