# SPDX-License-Identifier: BSD-2-Clause
"""Random numbers nobody can guess. Not the module `secrets`: it brings hashes that take 5 ms."""

from __future__ import annotations

import os

__all__ = ["bits"]


def bits(count: int) -> int:
    """That many random bits as a number, 1 at least."""
    return int.from_bytes(os.urandom((count + 7) // 8), "little") & ((1 << count) - 1)
