# SPDX-License-Identifier: BSD-2-Clause
"""The demo's folder: gone when the demo ends; after a SIGKILL, when the next demo starts."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "mrc-demo-"


@contextlib.contextmanager
def work_folder() -> Iterator[Path]:
    """A new folder among the temporary files; those that dead demos left there are removed.

    A living demo holds a lock on its folder, and the kernel drops it however the demo ends: unlike
    a process id, the lock means the same in every container that shares the temporary files.
    """
    remove_stale(Path(tempfile.gettempdir()))
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        with _locked(folder) as ours:
            if not ours:
                continue  # somebody took it for stale between the two steps
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            return


def remove_stale(parent: Path) -> list[Path]:
    """Remove our user's folders in ``parent`` that no living demo holds; returns them."""
    removed = []
    for folder in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError), _locked(folder) as dead:
            if dead:
                shutil.rmtree(folder, ignore_errors=True)
                removed.append(folder)
    return removed


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Whether the folder is there, belongs to our user, and its lock is ours for the while."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        yield os.fstat(fd).st_uid == os.geteuid() and _take(fd) and folder.exists()
    finally:
        os.close(fd)


def _take(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
