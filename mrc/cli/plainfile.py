# SPDX-License-Identifier: BSD-2-Clause
"""Files named on a command line: regular ones, and never one whose opening waits for somebody."""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


def open_plain(path: str) -> io.FileIO:
    """The file, opened for reading. OSError: it cannot be, or it is of another kind.

    Opening a FIFO waits for a writer, and a device may do things when it is opened: the kind is
    looked at before, and once more after, should the file have been replaced in between.
    """
    _require_plain(path, Path(path).stat().st_mode)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _require_plain(path, os.fstat(fd).st_mode)
        return io.FileIO(fd, "r")
    except BaseException:
        os.close(fd)
        raise


def is_waiting_fifo(path: str) -> bool:
    """A FIFO with a name: who opens it waits. That of `<(command)` has none, and a writer."""
    return stat.S_ISFIFO(Path(path).stat().st_mode) and Path(path).resolve().exists()


def _require_plain(path: str, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kind = _KINDS.get(stat.S_IFMT(mode), "of an unknown kind")
    raise OSError(errno.EINVAL, f"is {kind}, not a regular file", path)
