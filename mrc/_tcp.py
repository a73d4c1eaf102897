# SPDX-License-Identifier: BSD-2-Clause
"""Addresses and sockets of the out-of-band exchange, the same on every event loop.

A link-local address means something together with its zone only, the number of an interface. uvloop
drops the zone in getaddrinfo (of an address, not of a name) and in sock_connect; so what has a zone
is resolved and connected here.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from ipaddress import AddressValueError, IPv6Address
from typing import Any

from ._check import whole
from .errors import MrcUsageError

__all__ = ["SockAddr", "address_of", "connect_tcp", "resolve"]

SockAddr = tuple[Any, ...]
"""(address, port, flow info, zone number), as the socket module has it for IPv6."""


async def resolve(host: str, port: int, *, passive: bool = False) -> list[SockAddr]:
    """IPv6 socket addresses of a name or an address.

    MrcUsageError: there are only IPv4 ones, or link-local ones without a zone, or a zone where none
    belongs. OSError: the zone is no interface here; socket.gaierror: no such name.
    """
    whole("port", port, 0, 0xFFFF)
    flags = socket.AI_PASSIVE if passive else 0
    if _is_ipv6(host):
        _check_zone(host)
        kind = socket.SOCK_STREAM
        infos = socket.getaddrinfo(host, port, type=kind, flags=flags | socket.AI_NUMERICHOST)
    else:
        try:
            infos = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=flags
            )
        except socket.gaierror as exc:  # whose own words leave out which name
            raise socket.gaierror(exc.errno, f"{host}: {exc.strerror}") from exc
    found: list[SockAddr] = [info[4] for info in infos if info[0] == socket.AF_INET6]
    if not found:
        raise MrcUsageError(f"{host} has no IPv6 address; MRC data paths need IPv6 here")
    usable = [name for name in found if name[3] or not address_of(name)[0].is_link_local]
    if not usable:
        raise MrcUsageError(f"{host} is link-local: it needs a zone, e.g. {found[0][0]}%eth0")
    return usable


def _is_ipv6(host: str) -> bool:
    try:
        IPv6Address(host.partition("%")[0])
    except AddressValueError:
        return False
    return True


def _check_zone(host: str) -> None:
    """Say what is wrong with a zone; getaddrinfo only says that it does not know the name."""
    address, percent, zone = host.partition("%")
    if not percent:
        return
    if not IPv6Address(address).is_link_local:
        raise MrcUsageError(f"{host}: only a link-local address has a zone")
    if not zone:
        raise MrcUsageError(f"{host} is link-local: it needs a zone, e.g. {address}%eth0")
    try:
        socket.if_nametoindex(zone)
    except OSError:
        if not _is_index(zone):
            raise OSError(errno.ENODEV, f"{host}: no interface {zone}") from None


def _is_index(zone: str) -> bool:
    """Whether it is the number of an interface, which stands for its name."""
    try:
        socket.if_indextoname(int(zone))
    except (OSError, ValueError, OverflowError):
        return False
    return True


def address_of(name: SockAddr) -> tuple[IPv6Address, int]:
    """(address, zone number) of what getsockname or getpeername returns for IPv6."""
    return IPv6Address(name[0].partition("%")[0]), name[3]


async def connect_tcp(address: SockAddr, source: SockAddr | None) -> socket.socket:
    """A connected non-blocking socket, bound to `source` before if there is one. OSError."""
    sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        if source is not None:
            _bind(sock, source)
        error = sock.connect_ex(address)
        if error == errno.EINPROGRESS:
            await _writable(sock)
            error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    except BaseException:
        sock.close()
        raise
    if error:
        sock.close()
        raise OSError(error, os.strerror(error))
    return sock


def _bind(sock: socket.socket, source: SockAddr) -> None:
    try:
        sock.bind(source)
    except OSError as exc:
        raise OSError(exc.errno, f"local address {source[0]}: {exc.strerror}") from exc


async def _writable(sock: socket.socket) -> None:
    """Until the kernel has connected the socket, or given up."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(sock, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(sock)
