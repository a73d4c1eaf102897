# SPDX-License-Identifier: BSD-2-Clause
"""Carrier of network interfaces, as the kernel tells it by rtnetlink; control path only."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterable, Iterator

__all__ = ["CarrierWatch"]

_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port id
_LINK = struct.Struct("=BxHiII")  # ifinfomsg: family, device type, index, flags, change mask
_ATTRIBUTE = struct.Struct("=HH")  # rtattr: length, type
_NEWLINK, _DELLINK, _GETLINK = 16, 17, 18
_REQUEST_DUMP = 0x301
_GROUP_LINK = 1
_NAME = 3  # IFLA_IFNAME
_UP_AND_RUNNING = 0x41  # IFF_UP, IFF_RUNNING: enabled, and with a carrier
_RECEIVE_BYTES = 1 << 16


class CarrierWatch:
    """Whether interfaces of this network namespace are up and have a carrier.

    Readable, as a file descriptor, when something changed; read() then says what. An interface
    that is removed is down; it is watched by its name, so that a new one of that name counts.
    """

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._up: dict[str, bool] = {}
        self._sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._sock.setblocking(False)
        self._sock.bind((0, _GROUP_LINK))

    def add(self, names: Iterable[str]) -> None:
        """Watch these too. OSError: one does not exist."""
        wanted = set(names)
        for name in sorted(wanted):
            try:
                socket.if_nametoindex(name)
            except OSError:
                raise OSError(errno.ENODEV, f"no network interface {name!r} here") from None
        self._names |= wanted
        self._ask()

    def fileno(self) -> int:
        """For a selector or an event loop."""
        return self._sock.fileno()

    def read(self) -> dict[str, bool]:
        """True or False for each interface that has changed since the last call, or is new."""
        changes: dict[str, bool] = {}
        while True:
            try:
                data, (sender, _) = self._sock.recvfrom(_RECEIVE_BYTES)
            except BlockingIOError:
                return changes
            except OSError as exc:
                if exc.errno != errno.ENOBUFS:
                    raise
                self._ask()  # the kernel dropped some: all anew
                continue
            if sender != 0:  # not the kernel
                continue
            for name, up in _links(data):
                if name in self._names and self._up.get(name) is not up:
                    self._up[name] = changes[name] = up

    def close(self) -> None:
        """Twice is once."""
        self._sock.close()

    def _ask(self) -> None:
        """Have the kernel list all interfaces."""
        link = _LINK.pack(0, 0, 0, 0, 0)
        size = _HEADER.size + len(link)
        self._sock.sendto(_HEADER.pack(size, _GETLINK, _REQUEST_DUMP, 0, 0) + link, (0, 0))


def _links(data: bytes) -> Iterator[tuple[str, bool]]:
    """(name, up) of the link messages in a datagram of the kernel."""
    at = 0
    while at + _HEADER.size <= len(data):
        size, kind, *_ = _HEADER.unpack_from(data, at)
        if size < _HEADER.size:
            return
        body = data[at + _HEADER.size : at + size]
        at += (size + 3) & ~3
        if kind not in (_NEWLINK, _DELLINK) or len(body) < _LINK.size:
            continue
        family, _, _, flags, _ = _LINK.unpack_from(body)
        name = _name(body[_LINK.size :])
        if family == 0 and name is not None:  # others: a bridge tells of its ports
            yield name, kind == _NEWLINK and flags & _UP_AND_RUNNING == _UP_AND_RUNNING


def _name(attributes: bytes) -> str | None:
    at = 0
    while at + _ATTRIBUTE.size <= len(attributes):
        size, kind = _ATTRIBUTE.unpack_from(attributes, at)
        if size < _ATTRIBUTE.size:
            return None
        if kind == _NAME:
            text = attributes[at + _ATTRIBUTE.size : at + size].rstrip(b"\0")
            return text.decode(errors="replace")
        at += (size + 3) & ~3
    return None
