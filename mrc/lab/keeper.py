# SPDX-License-Identifier: BSD-2-Clause
"""The process that keeps a lab up between two commands: a fabric, its faults, a socket.

It is a program that uses Fabric like any other. If it ends, the holder of the namespaces ends, and
all of it is gone but the folder of the lab, which the next command sweeps. If the holder ends
first, this process notices, stops what was left in the hosts, and ends too.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from mrc.fabric import FabricError as VocabularyError
from mrc.fabric import parse_fault, parse_target, settle

from . import userns
from .counters import read_links
from .errors import FabricError, FabricUnavailableError, said_of
from .fabric import Fabric, cleanup_stale
from .plan import fitting_window
from .player import Happened, Player, Playing
from .profile import Mode, answering_profile, answering_rows, ev_profile
from .remote import MESSAGE_MAX
from .state import Place

BACKLOG = 64
OWNERS_MAX = 128  # commands at a time: descriptors are left for the lab itself


class Keeper:
    """One lab that is up. `serve` returns when it is to go down, or when its holder has died."""

    def __init__(self, fabric: Fabric, place: Place) -> None:
        """The fabric is up; from now on the socket of the place takes connections."""
        self._fabric = fabric
        self._place = place
        self._since_ns = time.monotonic_ns()
        self._player = Player(fabric.spec.shape, fabric.faults.apply, time.monotonic_ns)
        self._select = selectors.DefaultSelector()
        self._owners: dict[int, socket.socket] = {}
        self._numbers = itertools.count(1)
        self._ending = False
        self._leased = 0
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with place.control() as path:
            self._listener.bind(path)
        self._listener.listen(BACKLOG)
        self._select.register(self._listener, selectors.EVENT_READ, self._accept)
        self._holder = os.pidfd_open(fabric.client.pid)
        self._select.register(self._holder, selectors.EVENT_READ, self._holder_died)
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._select.register(self._woken, selectors.EVENT_READ, self._stop)
        place.note({"pid": os.getpid(), **self.said()})

    def said(self) -> dict[str, Any]:
        """What `status` says of the fabric itself."""
        client, spec = self._fabric.client, self._fabric.spec
        return {
            "name": self._place.name,
            "keeper": os.getpid(),
            "holder": client.pid,
            "userns": self._fabric.userns or userns.inside(),
            "spec": asdict(spec),
            "hosts": {host.ns: str(host.address) for host in self._fabric.hosts},
            "namespaces": {ns: client.path(ns) for ns in client.fds},
        }

    def serve(self) -> None:
        """Until `down` is asked for, a signal comes, or the holder dies."""
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        while not self._ending:
            due = self._player.due()
            wait_s = None if due is None else max(0.0, (due - time.monotonic_ns()) / 1e9)
            for key, _ in self._select.select(wait_s):
                key.data()
            self._tell(self._guarded(self._player.advance))
        self._fabric.down()
        cleanup_stale()
        self._place.remove()

    # -- connections -------------------------------------------------------------------------

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            sock, _ = self._listener.accept()
            if len(self._owners) >= OWNERS_MAX:
                sock.close()
                return
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE_MAX)
            owner = next(self._numbers)
            self._owners[owner] = sock
            self._select.register(sock, selectors.EVENT_READ, lambda: self._hear(owner, sock))

    def _hear(self, owner: int, sock: socket.socket) -> None:
        try:
            data = sock.recv(MESSAGE_MAX)
        except OSError:
            data = b""
        if not data:
            self._select.unregister(sock)
            del self._owners[owner]
            sock.close()
            self._guarded(lambda: self._player.forget(owner))
            self._ending |= owner == self._leased
            return
        self._send(owner, {"answer": self._answer(owner, data)})

    def _answer(self, owner: int, data: bytes) -> dict[str, Any]:
        try:
            asked = json.loads(data)
            answer: dict[str, Any] = getattr(self, "_op_" + asked.pop("op"))(owner, **asked)
        except FabricUnavailableError as error:
            return {"missing": error.missing, "hint": error.hint}
        except (VocabularyError, ValueError) as error:
            return {"usage": str(error)}
        except RecursionError:
            return {"usage": "nested too deeply"}
        except (FabricError, OSError) as error:
            return {"error": said_of(error)}
        except (TypeError, AttributeError, KeyError) as error:
            return {"error": f"not understood: {error}; is the lab of another version?"}
        return answer

    def _send(self, owner: int, message: dict[str, Any]) -> None:
        sock = self._owners.get(owner)
        if sock is not None:
            with contextlib.suppress(OSError):  # who does not listen is not waited for
                sock.send(json.dumps(message).encode(), socket.MSG_DONTWAIT)

    def _tell(self, happened: list[Happened]) -> None:
        """Each fault's begin and end, to whoever owns it."""
        for event in happened:
            message = {
                "fault": event.number,
                "what": event.what,
                "on": event.on,
                "due_ns": event.due_ns,
                "done_ns": event.done_ns,
            }
            self._send(event.owner, message)

    def _guarded(self, action: Any) -> list[Happened]:
        """A fault that the system refuses must not take the lab down; it is noted in the log."""
        try:
            found: list[Happened] = action()
        except (FabricError, OSError) as error:
            if not self._ending:
                self._log(f"fault not carried out: {error}")
            return []
        return found

    def _log(self, text: str) -> None:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        with contextlib.suppress(OSError), self._place.log.open("a", encoding="utf-8") as file:
            file.write(f"{stamp} {text}\n")

    def _stop(self) -> None:
        self._ending = True

    def _holder_died(self) -> None:
        self._log("the holder of the namespaces died")
        self._ending = True

    # -- what can be asked -------------------------------------------------------------------

    def _op_status(self, _: int) -> dict[str, Any]:
        now = time.monotonic_ns()
        faults = [_fault(p, now) for p in self._player]
        return {**self.said(), "up_s": (now - self._since_ns) / 1e9, "faults": faults}

    def _op_links(self, _: int) -> dict[str, Any]:
        """What each direction of each cable has carried and lost, by its name."""
        found = read_links(self._fabric.client, self._fabric.spec)
        marks = self._fabric.faults.marks()
        return {"links": {w.name: {**asdict(c), **marks.get(w, {})} for w, c in found.items()}}

    def _op_faults(
        self,
        owner: int,
        script: list[str],
        pair: tuple[int, int] = (0, 1),
        bound: bool = False,
        start_ns: int | None = None,
    ) -> dict[str, Any]:
        """Play a script. `bound`: it ends with this connection, which hears of every step."""
        faults = [parse_fault(line) for line in script]
        self._fabric.faults.require(faults)
        whose = owner if bound else 0
        numbers = self._player.add(faults, owner=whose, pair=(pair[0], pair[1]), start_ns=start_ns)
        happened = self._player.advance()
        self._tell(happened)
        return {"numbers": numbers, "happened": [asdict(h) for h in happened]}

    def _op_heal(
        self, _: int, target: str = "all", pair: tuple[int, int] = (0, 1)
    ) -> dict[str, Any]:
        healed = self._player.heal(parse_target(target), (pair[0], pair[1]))
        self._tell(healed.ended)
        now = time.monotonic_ns()
        return {
            "happened": [asdict(h) for h in healed.ended],
            "dropped": [_fault(p, now) for p in healed.dropped],
            "waiting": [_fault(p, now) for p in healed.waiting],
        }

    def _op_check(
        self, _: int, script: list[str], pair: tuple[int, int] = (0, 1)
    ) -> dict[str, Any]:
        """Whether a script could be played."""
        faults = [parse_fault(line) for line in script]
        self._fabric.faults.require(faults)
        settle(faults, self._fabric.spec.shape, (pair[0], pair[1]))
        return {}

    def _op_profile(self, _: int, src: int, dst: int, mode: str = "udp") -> dict[str, Any]:
        """A file with the EV profile by which a host reaches another; the window that fits."""
        spec, name = self._fabric.spec, f"h{src + 1}-h{dst + 1}.{mode}.toml"
        made = self._file(name, lambda: ev_profile(spec, src, dst, Mode(mode)))
        return {**made, "window": fitting_window(spec)}

    def _op_answering(self, _: int, src: int) -> dict[str, Any]:
        """The same by which it answers any other, with headers of its own."""
        spec, rows = self._fabric.spec, f"h{src + 1}.rows.toml"
        self._file(rows, lambda: answering_rows(spec, src))
        return self._file(f"h{src + 1}.srv6.toml", lambda: answering_profile(spec, src, rows))

    def _file(self, name: str, text: Callable[[], str]) -> dict[str, Any]:
        file = self._place.folder / name
        if not file.exists():
            draft = file.with_suffix(".new")  # whole or not at all: a disk may be full
            try:
                draft.write_text(text(), encoding="ascii")
                draft.replace(file)
            except OSError as error:
                raise OSError(error.errno, os.strerror(error.errno or 0), str(draft)) from None
        return {"file": str(file)}

    def _op_processes(self, _: int) -> dict[str, Any]:
        """Those that make the fabric: this one, the holder, the relay where there is one."""
        relay = self._fabric.faults.relay_pid
        return {"pids": [os.getpid(), self._fabric.client.pid, *([relay] if relay else [])]}

    def _op_lease(self, owner: int) -> dict[str, Any]:
        """From now on the lab lives as long as this connection."""
        self._leased = owner
        return {}

    def _op_down(self, _: int) -> dict[str, Any]:
        self._ending = True
        return {}


def _fault(p: Playing, now_ns: int) -> dict[str, Any]:
    """A fault that is in force or will be, as `status` says it."""
    until_ns = p.fault.until_ns
    return {
        "number": p.number,
        "fault": str(p.fault),
        "what": p.what,
        "on": p.on,
        "from_s": (p.start_ns + p.fault.at_ns - now_ns) / 1e9,
        "until_s": None if until_ns is None else (p.start_ns + until_ns - now_ns) / 1e9,
    }
