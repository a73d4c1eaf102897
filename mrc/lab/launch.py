# SPDX-License-Identifier: BSD-2-Clause
"""Start a lab that outlives the command, and take one down."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from .errors import FabricError, FabricUnavailableError, said_of
from .fabric import Fabric
from .keeper import Keeper
from .plan import FabricSpec
from .remote import NoLabError, Remote
from .state import Place, sweep

SAID_MAX = 1 << 16
EAGER = -10


def launch(place: Place, spec: FabricSpec, *, userns: bool | None = None) -> int:
    """Build a lab in a process of its own, whose number is returned when it can be worked in.

    FabricUnavailableError names what this machine refuses, FabricError anything else; then nothing
    is left. The same when this call is interrupted.
    """
    lock = place.take()
    near, far = os.pipe()
    pid = os.fork()
    if pid == 0:
        _keep(place, spec, userns, lock, far)
    os.close(far)
    os.close(lock)
    try:
        with os.fdopen(near, "rb") as pipe:
            said = json.loads(pipe.read(SAID_MAX) or "{}")
    except BaseException:
        _abandon(pid)
        raise
    if said.get("up"):
        return pid
    _abandon(pid)
    if "missing" in said:
        raise FabricUnavailableError(said["missing"], said["hint"])
    raise FabricError(said.get("error", "the process that keeps the lab ended without a word"))


def _abandon(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
    sweep()


def _keep(place: Place, spec: FabricSpec, userns: bool | None, lock: int, far: int) -> NoReturn:
    """The whole life of the keeping process; the command that made it has another."""
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        null = os.open(os.devnull, os.O_RDONLY)
        for wanted, fd in enumerate((null, log, log)):
            os.dup2(fd, wanted)
        _close_but({0, 1, 2, lock, far})
        os.chdir("/")
        said = _keep_until_down(place, spec, userns, far)
    except BaseException:  # noqa: BLE001 - the last frame of this process
        traceback.print_exc(file=sys.__stderr__)
        os._exit(1)
    if said:
        os.write(far, json.dumps(said).encode())
    os._exit(0)


def _keep_until_down(
    place: Place, spec: FabricSpec, userns: bool | None, far: int
) -> dict[str, object]:
    """What to tell who waits, when nothing came up."""
    try:
        with Fabric(spec, userns=userns) as fabric:
            keeper = Keeper(fabric, place)
            with contextlib.suppress(OSError):
                os.nice(EAGER)  # faults come in time on a busy machine; only root may
            os.write(far, b'{"up": true}')
            os.close(far)
            keeper.serve()
    except FabricUnavailableError as error:
        return {"missing": error.missing, "hint": error.hint}
    except (FabricError, OSError) as error:
        return {"error": said_of(error)}
    return {}


def _close_but(kept: set[int]) -> None:
    for entry in list(Path("/proc/self/fd").iterdir()):
        if int(entry.name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(entry.name))


def take_down(place: Place) -> None:
    """Remove a lab, and wait until it is gone. NoLabError: it does not go."""
    with contextlib.suppress(FabricError, OSError), Remote(place) as remote:
        remote.ask("down")
        while True:
            remote.ask("status")
    if place.alive():
        raise NoLabError(f"the lab {place.name} does not end; its log: {place.log}")
