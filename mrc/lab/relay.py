# SPDX-License-Identifier: BSD-2-Clause
"""Delay on links, by a process that keeps their packets for a time (csrc/lab/mrc_relay.c).

One process for all links of a fabric, started with the first of them. It needs no privilege:
the sockets come from the holder of the namespaces. As a script (``python -I relay.py FD LIBRARY``)
it is that process: standard library only; it ends when the other end of its socket closes.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

RELAY_BIT = 0x04
"""Of the first byte of the source address: a packet that has been kept already."""
SOURCE_BYTE = 6
MESSAGE_MAX = 1 << 16
ETH_P_ALL = 0x0003
SO_ATTACH_FILTER = 26
PACKET_IGNORE_OUTGOING = 23
SOL_PACKET = 263
STATS = ("relayed", "refused", "no_room", "too_long")


class RelayError(Exception):
    """The relay cannot be had; the text says why."""


def library() -> Path | None:
    """The compiled relay, where the package was built with it."""
    return next(iter(sorted(Path(__file__).parent.glob("_relay*.so"))), None)


# ---- the near side -------------------------------------------------------------------------------


class Relay:
    """Links whose packets are kept. RelayError: it does not work here."""

    def __init__(self) -> None:
        """Starts the process."""
        compiled = library()
        if compiled is None:
            raise RelayError("the relay is not compiled: make")
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far:
            self._process = subprocess.Popen(
                [sys.executable, "-I", __file__, str(far.fileno()), str(compiled)],
                pass_fds=[far.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._control = near
        self.pid: int = self._process.pid

    def add(self, rx: socket.socket, tx: socket.socket, end: str, begin: str, mtu: int) -> int:
        """Keep what comes in at interface `end`, by a packet socket there; it goes on at `begin`.

        The number of the link. Both sockets are fresh, and closed here.
        """
        with rx, tx:
            fresh = [(0x30, 0, 0, SOURCE_BYTE), (0x45, 0, 1, RELAY_BIT), (6, 0, 0, 0)]
            code = b"".join(struct.pack("=HBBI", *i) for i in [*fresh, (6, 0, 0, 0xFFFFFFFF)])
            buffer = ctypes.create_string_buffer(code)
            program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
            rx.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
            rx.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            rx.bind((end, ETH_P_ALL))
            tx.bind((begin, 0))
            answer = self._ask({"add": mtu}, [rx.fileno(), tx.fileno()])
        if answer["id"] < 0:
            raise RelayError(f"{end}: {os.strerror(-answer['id'])}")
        return int(answer["id"])

    def set(self, link: int, delay_ns: int, jitter_ns: int = 0) -> None:
        """How long, from the next packet on."""
        self._ask({"set": link, "delay_ns": delay_ns, "jitter_ns": jitter_ns})

    def end(self, link: int) -> None:
        """Keep nothing more; what is kept leaves in its time."""
        self._ask({"end": link})

    def stats(self) -> dict[str, int]:
        """Ever growing counts, all links together."""
        return {name: int(value) for name, value in self._ask({"stats": 0}).items()}

    def close(self) -> None:
        """End the process, and lose what it keeps."""
        self._control.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ask(self, question: dict[str, int], fds: list[int] | None = None) -> dict[str, Any]:
        try:
            socket.send_fds(self._control, [json.dumps(question).encode()], fds or [])
            data = self._control.recv(MESSAGE_MAX)
        except OSError as error:
            raise RelayError(f"the relay is gone: {error.strerror}") from error
        if not data:
            raise RelayError("the relay is gone")
        found: dict[str, Any] = json.loads(data)
        return found


# ---- the process ---------------------------------------------------------------------------------


def _load(path: str) -> ctypes.CDLL:
    made = ctypes.CDLL(path)
    made.mrc_relay_new.restype = ctypes.c_void_p
    made.mrc_relay_new.argtypes = [ctypes.c_uint64]
    made.mrc_relay_add.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_uint32]
    made.mrc_relay_set.argtypes = [
        ctypes.c_void_p,
        ctypes.c_uint32,
        ctypes.c_uint64,
        ctypes.c_uint64,
    ]
    made.mrc_relay_end.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    made.mrc_relay_run.argtypes = [ctypes.c_void_p, ctypes.c_int]
    made.mrc_relay_read_stats.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    return made


def _answer(code: ctypes.CDLL, relay: int, asked: dict[str, int], fds: list[int]) -> dict[str, int]:
    if "add" in asked:
        return {"id": code.mrc_relay_add(relay, *fds, asked["add"])}
    if "set" in asked:
        code.mrc_relay_set(relay, asked["set"], asked["delay_ns"], asked["jitter_ns"])
    elif "end" in asked:
        code.mrc_relay_end(relay, asked["end"])
    else:
        counts = (ctypes.c_uint64 * len(STATS))()
        code.mrc_relay_read_stats(relay, counts)
        return dict(zip(STATS, counts, strict=True))
    return {}


def main() -> None:
    """Relay until the control socket, whose descriptor number is the first argument, closes."""
    control = socket.socket(fileno=int(sys.argv[1]))
    code = _load(sys.argv[2])
    relay = code.mrc_relay_new(1)
    while relay:
        code.mrc_relay_run(relay, control.fileno())
        data, fds, _, _ = socket.recv_fds(control, MESSAGE_MAX, 2)
        if not data:
            return
        answer = _answer(code, relay, json.loads(data), fds)
        control.send(json.dumps(answer).encode())


if __name__ == "__main__":
    main()
