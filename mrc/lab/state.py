# SPDX-License-Identifier: BSD-2-Clause
"""Where labs are noted between two commands: one folder each, in the user's own runtime directory.

    NAME/lock       held (flock) by the process that keeps the lab, as long as it lives
    NAME/control    its socket
    NAME/lab.json   what it says of itself
    NAME/log        what it had to say to nobody in particular

The lock is the truth: the kernel drops it when its holder ends, however it ends. A folder whose
lock is free is what a crash left; `sweep` removes it, and what still runs in its hosts.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import userns
from .errors import FabricError
from .fabric import cleanup_stale

DEFAULT_NAME = "lab"
ENV_LAB = "MRC_LAB"
"""The name of the lab that is meant without --name."""
ENV_HOST = "MRC_LAB_HOST"
"""For what `mrc-lab exec` runs: the name of the host, h1, h2, .., .."""
ENV_FOLDER = "MRC_LAB_FOLDER"
""".. and the folder of its lab. A variable of its own: a name is never taken for a path."""
_MADE = ("lock", "control", "lab.json", "log")
"""What a lab has in its folder, and profiles of EVs beside it."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of one lab."""

    folder: Path

    @property
    def name(self) -> str:
        """Of the lab."""
        return self.folder.name

    @property
    def log(self) -> Path:
        """For people, when something went wrong."""
        return self.folder / "log"

    def alive(self) -> bool:
        """Whether the process that keeps the lab lives."""
        try:
            fd = os.open(self.folder / "lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def take(self) -> int:
        """Make the folder and lock it: a descriptor to keep. FabricError: somebody has it."""
        if self.folder.is_symlink():
            raise FabricError(f"{self.folder}: is a link, no folder of a lab")
        self.folder.mkdir(mode=0o700, exist_ok=True)
        fd = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held, there = os.fstat(fd), (self.folder / "lock").stat()
            if held.st_ino != there.st_ino:  # removed by a sweep between the two calls
                raise BlockingIOError
        except OSError:
            os.close(fd)
            raise FabricError(f"a lab named {self.name} is up already") from None
        return fd

    def note(self, said: Mapping[str, Any]) -> None:
        """Write lab.json, whole or not at all."""
        draft = self.folder / "lab.json.new"
        draft.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
        draft.replace(self.folder / "lab.json")

    def noted(self) -> dict[str, Any]:
        """lab.json; empty where there is none, or it is torn."""
        try:
            found = json.loads((self.folder / "lab.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def remove(self) -> None:
        """What labs make, and the folder when nothing else is in it."""
        made = [self.folder / name for name in _MADE]
        for pattern in ("*.toml", "*.new"):  # profiles, and those that a full disk cut short
            made += self.folder.glob(pattern)
        for path in made:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        with suppress(OSError):  # a stranger's file: it stays, and is no lab without a lock
            self.folder.rmdir()

    @contextmanager
    def control(self) -> Iterator[str]:
        """A short path to the socket: those of sockets are limited to 107 bytes."""
        fd = os.open(self.folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield f"/proc/self/fd/{fd}/control"
        finally:
            os.close(fd)


def surroundings() -> tuple[Place, str] | None:
    """The lab this process runs in, and the name of its host; None: in none.

    FabricError: what the environment says is no folder for labs of this user.
    """
    named, host = os.environ.get(ENV_FOLDER), os.environ.get(ENV_HOST)
    if not named or not host:
        return None
    folder = Path(named)
    if not folder.is_absolute() or not _NAME.fullmatch(folder.name):
        raise FabricError(f"{ENV_FOLDER}={named} is no folder of a lab; unset it")
    return Place(_checked(folder.parent) / folder.name), host


def base() -> Path:
    """The folder of all labs of this user, made if need be. FabricError: another one's.

    In a host it is that of its lab: in a user namespace one is root, and not.
    """
    if (inside := surroundings()) is not None:
        return inside[0].folder.parent
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and _is_ours(Path(runtime)):
        return _made(Path(runtime) / "mrc-lab")
    if os.geteuid() == 0:
        try:
            return _made(Path("/run/mrc-lab"))
        except FabricError:
            if not userns.inside():
                raise
    # Root of a user namespace is not the machine's: the same folder as outside of it.
    return _made(Path(f"/tmp/mrc-lab-{userns.outer_uid()}"))  # noqa: S108 - see _made


def _made(folder: Path) -> Path:
    """The folder, ours alone. FabricError: it cannot be made, or is another's."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        raise FabricError(f"{folder}: no folder for labs, but a file; remove it") from None
    except OSError as error:
        raise FabricError(f"{folder}: {error.strerror}") from error
    return _checked(folder)


def _checked(folder: Path) -> Path:
    """A folder that is ours alone."""
    if not _is_ours(folder):
        raise FabricError(f"{folder} belongs to another user; set XDG_RUNTIME_DIR")
    if folder.lstat().st_mode & 0o077:
        raise FabricError(f"{folder} is open to other users: chmod 700 {folder}")
    return folder


def _is_ours(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def place(name: str) -> Place:
    """The folder a lab of that name has or would have. ValueError: no name."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for a lab: letters, digits, . _ -, at most 32")
    return Place(base() / name)


def places() -> list[Place]:
    """Every folder there is, of living labs and others."""
    found = (folder for folder in sorted(base().iterdir()) if not folder.is_symlink())
    return [Place(folder) for folder in found if folder.is_dir()]


def sweep(wait_s: float = 2.0) -> list[str]:
    """Remove what crashes left: folders, processes in hosts. The names of those labs."""
    gone = []
    for found in places():
        if not (found.folder / "lock").is_file():
            continue  # whatever it is, no lab was there
        try:
            lock = found.take()
        except (FabricError, OSError):
            continue  # it lives, or is no lab of ours at all
        try:
            pid = found.noted().get("holder")
            _wait_ended(pid, wait_s)
            found.remove()
            gone.append(found.name)
        finally:
            os.close(lock)
    if gone:
        cleanup_stale()
    return gone


def _wait_ended(pid: Any, seconds: float) -> None:
    """When the keeper is dead the holder of the namespaces ends, and all that is in them."""
    deadline = time.monotonic() + seconds
    while isinstance(pid, int) and time.monotonic() < deadline:
        try:
            name = Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip()
        except OSError:
            return
        if name != "mrc-lab":
            return
        time.sleep(0.02)
