# SPDX-License-Identifier: BSD-2-Clause
"""The near side of a lab that lives on its own: find it, ask it, hear of its faults.

Standard library only, and small: mrc-send imports it for faults on its command line.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from . import userns
from .errors import FabricError, FabricUnavailableError
from .state import ENV_LAB, Place, place, places, surroundings

MESSAGE_MAX = 1 << 20


class NoLabError(FabricError):
    """There is no such lab; the text says which there are."""


class GoneError(NoLabError):
    """It is not up; a lab that is to go has gone."""


class Remote:
    """A connection to a lab. Faults given with `bound` end with it."""

    def __init__(self, where: Place) -> None:
        """NoLabError: nobody answers there."""
        self.place = where
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        self.heard: list[dict[str, Any]] = []
        """Faults that began or ended while an answer was awaited; oldest first."""
        try:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE_MAX)
            with where.control() as path:
                self._sock.connect(path)
        except OSError as error:
            self._sock.close()
            raise NoLabError(f"the lab {where.name} does not answer: {error.strerror}") from error

    def __enter__(self) -> Self:
        """For a few questions."""
        return self

    def __exit__(self, *_: object) -> None:
        """Hang up."""
        self.close()

    def close(self) -> None:
        """Hang up; faults bound to this connection end."""
        self._sock.close()

    def fileno(self) -> int:
        """Readable when `hear` has something."""
        return self._sock.fileno()

    def ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        """One question, one answer.

        ValueError: it makes no sense for this lab; FabricUnavailableError: the machine cannot;
        FabricError: anything else.
        """
        try:
            self._sock.send(json.dumps({"op": op, **arguments}).encode())
            while "answer" not in (message := self._receive()):
                self.heard.append(message)
        except OSError as error:
            raise FabricError(f"the lab {self.place.name} is gone ({error})") from error
        answer: dict[str, Any] = message["answer"]
        if "missing" in answer:
            raise FabricUnavailableError(answer["missing"], answer["hint"])
        if "usage" in answer:
            raise ValueError(answer["usage"])
        if "error" in answer:
            raise FabricError(answer["error"])
        return answer

    def hear(self) -> list[dict[str, Any]]:
        """Faults of ours that began or ended since the last call; never waits.

        Each has `fault` (its number), `what`, `on`, `due_ns` and `done_ns` of CLOCK_MONOTONIC.
        """
        while True:
            try:
                message = self._receive(socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except (OSError, FabricError):
                break  # the lab is gone: its faults are, too
            self.heard.append(message)
        heard, self.heard = self.heard, []
        return heard

    def _receive(self, flags: int = 0) -> dict[str, Any]:
        data = self._sock.recv(MESSAGE_MAX, flags)
        if not data:
            raise FabricError(f"the lab {self.place.name} is gone")
        found: dict[str, Any] = json.loads(data)
        return found


def asked_for(name: str | None) -> str | None:
    """The name of a lab by --name or, outside of a lab, by MRC_LAB; None: neither says."""
    if name is not None or surroundings() is not None:
        return name
    return os.environ.get(ENV_LAB) or None


def choose(name: str | None) -> Place:
    """The lab of that name; without one, the one this process is in, or the only one there is."""
    if (name := asked_for(name)) is not None:
        found = place(name)
        if not found.alive():
            raise GoneError(f"there is no lab named {name}{_known()}")
        return found
    if (inside := surroundings()) is not None:
        return inside[0]
    alive = [p for p in places() if p.alive()]
    if len(alive) == 1:
        return alive[0]
    if not alive:
        raise GoneError("no lab is up: mrc-lab up")
    raise NoLabError(f"several labs are up; choose one by --name{_known()}")


def _known() -> str:
    names = [p.name for p in places() if p.alive()]
    return f" (up: {', '.join(names)})" if names else ""


def host_number(name: str, hosts: int) -> int:
    """`h2` as 1. FabricError: there is no such host; the message says which there are."""
    digits = name.removeprefix("h")
    if name == digits or not digits.isdecimal() or not 1 <= int(digits) <= hosts:
        raise FabricError(f"there is no host {name} in this lab, which has h1 to h{hosts}")
    return int(digits) - 1


def standing_in(said: dict[str, Any]) -> str | None:
    """Which host or switch of the lab whose `status` is `said` this process is in; None: none."""
    own = Path("/proc/self/ns/net").stat()
    for ns, path in said["namespaces"].items():
        with contextlib.suppress(OSError):  # not for us to look at, so not where we are
            if os.path.samestat(own, Path(path).stat()):
                return str(ns)
    return None


def entering(said: dict[str, Any], ns: str, argv: Sequence[str]) -> list[str]:
    """The command line that runs `argv` in a namespace of the lab whose `status` is `said`.

    FabricUnavailableError: it is in a user namespace that cannot be entered from here.
    """
    enter = ["nsenter", f"--net={said['namespaces'][ns]}"]
    match userns.way_to(said["holder"]):
        case userns.Way.NONE:
            raise FabricUnavailableError(
                f"the lab {said['name']} is in a user namespace that cannot be entered from here",
                "work in it where `mrc-lab up` was typed, or outside of all user namespaces",
            )
        case userns.Way.DOWN:
            enter += [f"--user=/proc/{said['holder']}/ns/user", "--preserve-credentials"]
    return [*enter, "--", *argv]
