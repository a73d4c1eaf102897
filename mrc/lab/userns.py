# SPDX-License-Identifier: BSD-2-Clause
"""User namespaces: whether this process is in one, as whom, and whether it may enter another's.

Standard library only: commands ask before they do anything.
"""

from __future__ import annotations

import enum
import fcntl
import os
from pathlib import Path

__all__ = ["Way", "inside", "outer_uid", "way_to"]

_NS_GET_PARENT = 0xB702
_ALL = (0, 0, 2**32 - 1)
"""The map of a process in no user namespace: every user is himself."""


class Way(enum.Enum):
    """From the user namespace of this process to that of another."""

    HERE = "the same"
    DOWN = "one below, which its owner may enter"
    NONE = "elsewhere"


def _map() -> list[tuple[int, int, int]]:
    """(uid here, uid outside, how many); empty where nothing is mapped."""
    try:
        lines = Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()
    except OSError:
        return [_ALL]  # a kernel without user namespaces
    found = []
    for line in lines:
        first, outside, count = map(int, line.split())
        found.append((first, outside, count))
    return found


def inside() -> bool:
    """Whether this process is in a user namespace, as far as can be told: not every user is."""
    return _map() != [_ALL]


def outer_uid() -> int:
    """The user as the namespace outside of ours knows him; our own number where it does not."""
    uid = os.geteuid()
    for first, outside, count in _map():
        if first <= uid < first + count:
            return outside + uid - first
    return uid


def way_to(pid: int) -> Way:
    """How the user namespace of a process can be reached. NONE: not, or it has ended."""
    try:
        here = Path("/proc/self/ns/user").stat()
        fd = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return Way.NONE
    found = Way.HERE
    try:
        while not os.path.samestat(os.fstat(fd), here):
            found = Way.DOWN
            above = fcntl.ioctl(fd, _NS_GET_PARENT)  # EPERM: the parent is none of ours
            os.close(fd)
            fd = above
    except OSError:
        return Way.NONE
    finally:
        os.close(fd)
    return found
