# SPDX-License-Identifier: BSD-2-Clause
"""Carrier of network interfaces, as the kernel tells it by rtnetlink; control path only."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable, Iterator

from pyroute2.netlink import NLM_F_DUMP, NLM_F_REQUEST
from pyroute2.netlink.rtnl import RTM_GETLINK, RTMGRP_LINK
from pyroute2.netlink.rtnl.ifinfmsg import IFF_RUNNING, IFF_UP, ifinfmsg
from pyroute2.netlink.rtnl.marshal import MarshalRtnl

__all__ = ["CarrierWatch"]

_RECEIVE_BYTES = 1 << 16


class CarrierWatch:
    """Whether interfaces of this network namespace are up and have a carrier.

    Readable, as a file descriptor, when something changed; read() then says what. An interface
    that is removed is down; it is watched by its name, so that a new one of that name counts.
    """

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._up: dict[str, bool] = {}
        # pyroute2's own sockets bring an event loop of their own; ours watches this one, and the
        # library reads and writes the messages.
        self._sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._sock.setblocking(False)
        self._sock.bind((0, RTMGRP_LINK))

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
        request = ifinfmsg()
        request["header"]["type"] = RTM_GETLINK
        request["header"]["flags"] = NLM_F_REQUEST | NLM_F_DUMP
        request.encode()
        self._sock.sendto(bytes(request.data), (0, 0))


def _links(data: bytes) -> Iterator[tuple[str, bool]]:
    """(name, up) of the link messages in a datagram of the kernel."""
    wanted = IFF_UP | IFF_RUNNING  # enabled, and with a carrier
    for message in MarshalRtnl().parse(data):
        if message["event"] not in ("RTM_NEWLINK", "RTM_DELLINK") or message["family"] != 0:
            continue  # a bridge tells of its ports in a family of its own
        if name := message.get_attr("IFLA_IFNAME"):
            yield name, message["event"] == "RTM_NEWLINK" and message["flags"] & wanted == wanted
