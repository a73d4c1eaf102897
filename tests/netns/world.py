# SPDX-License-Identifier: BSD-2-Clause
"""What the tests in this folder have in common: waiting, processes, sockets in hosts."""

import select
import socket
import time
from pathlib import Path as FilePath

from mrc.lab import Fabric

from .packets import UDP_PORT

WAIT_S = 5.0


def wait_for(condition, what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {WAIT_S} s"
        time.sleep(0.01)


def running(pid: int) -> bool:
    try:
        state = FilePath(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def comm(pid: int) -> str:
    return FilePath(f"/proc/{pid}/comm").read_text().strip()


def inbox(fabric: Fabric, kind=socket.SOCK_DGRAM, proto: int = 0) -> socket.socket:
    receiver = fabric.hosts[1]
    sock = receiver.socket(socket.AF_INET6, kind, proto)
    if kind == socket.SOCK_DGRAM:
        sock.bind((str(receiver.address), UDP_PORT))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    return sock


def lane(fabric: Fabric, index: int) -> socket.socket:
    """A sending socket on path ``index``."""
    sender = fabric.hosts[0]
    sock = sender.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sock.bind((str(sender.address), sender.paths()[index].sport))
    sock.connect((str(fabric.hosts[1].address), UDP_PORT))
    return sock


def received(sock: socket.socket, count: int = 0, quiet_s: float = 0.05) -> list[bytes]:
    """Wait for ``count`` packets, then on until none came for ``quiet_s``."""
    found: list[bytes] = []
    while select.select([sock], [], [], WAIT_S if len(found) < count else quiet_s)[0]:
        found.append(sock.recv(65536))
    return found
