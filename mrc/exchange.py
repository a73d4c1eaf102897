# SPDX-License-Identifier: BSD-2-Clause
"""The exchange of C.4 over a channel: both roles, from the stream to the Connection.

The active side says hello with its half of table 10-1; the passive one makes its lanes and its
queue pair, answers with its own half, and is ready to receive; the first then says ready.
"""

from __future__ import annotations

import socket
from collections.abc import Hashable
from ipaddress import IPv6Address

from ._tcp import address_of
from .bringup import Half, Local, complete, prepare
from .channel import Channel
from .conn import Connection
from .driver import Driver
from .errors import MrcHandshakeError, MrcUsageError
from .oob import ConnectionInfo, FrameError, hello, parse_hello
from .options import ConnectionOptions
from .planes import PlaneAddresses
from .port import Port
from .types import Backend

__all__ = [
    "answer",
    "expect_hello",
    "greet",
    "host_of",
    "local_end",
    "open_port",
    "require_own",
    "require_theirs",
]


def require_own(sources: PlaneAddresses) -> None:
    """OSError that names the plane: an address of it is none of this host's."""
    for plane, address in sources:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind((str(address), 0))
            except OSError as exc:
                what = f"address {address} of plane {plane}: {exc.strerror}"
                raise OSError(exc.errno, what) from exc


def _is_own(address: IPv6Address, scope_id: int) -> bool:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(address), 0, 0, scope_id if address.is_link_local else 0))
        except OSError:
            return False
    return True


def require_theirs(peer: ConnectionInfo, channel: Channel) -> None:
    """MrcHandshakeError: a peer on another host names an address of ours as its own.

    Packets for it would reach whatever listens here, past all that keeps other hosts out.
    """
    name = channel.peername
    if not isinstance(name, tuple) or _is_own(*address_of(name)):
        return
    for address in (peer.qp.gid, *(address for _, address in peer.plane_addresses)):
        if _is_own(address, name[3]):
            raise MrcHandshakeError(
                f"{address} cannot be on another host: it is an address of ours"
            )


def open_port(driver: Driver, options: ConnectionOptions, addr: IPv6Address, scope_id: int) -> Port:
    """The port on which packets for addr come, and those for the planes' addresses. OSError."""
    if options.sources:  # several: one socket takes them all
        addr, scope_id = IPv6Address(0), 0
    kind = options.backend_kind()
    return driver.port(kind, addr, scope_id, options.udp_port, options.also_udp_port)


def local_end(driver: Driver, channel: Channel, options: ConnectionOptions) -> Local:
    """Our end of the data path: the address the channel uses, and those of planes."""
    addr, scope_id = address_of(channel.sockname)
    if options.backend_kind() is Backend.MEM:
        raise MrcUsageError("the mem backend has no network; use mem_pair()")
    return Local(open_port(driver, options, addr, scope_id), addr, scope_id)


async def greet(
    driver: Driver, channel: Channel, local: Local, options: ConnectionOptions
) -> Connection:
    """The active side of the exchange."""
    peer_name = channel.peername
    towards = address_of(peer_name)[0] if isinstance(peer_name, tuple) else local.addr
    half = prepare(driver, local, options, towards)
    try:
        channel.send(hello(half.info))
        peer = await expect_hello(channel)
        require_theirs(peer, channel)
    except BaseException:
        half.close()
        raise
    whole = complete(half, peer, passive=False, via=host_of(channel))
    try:
        channel.send({"type": "ready"})
        return Connection(whole, channel)
    except BaseException:
        whole.close()
        raise


def host_of(channel: Channel) -> Hashable:
    """Who the peer is: the address and zone its stream comes from, whatever it says of itself."""
    name = channel.peername
    return address_of(name) if isinstance(name, tuple) else name


async def expect_hello(channel: Channel) -> ConnectionInfo:
    """The peer's first message. MrcHandshakeError: it is none, or a refusal."""
    try:
        message = await channel.recv()
        if message is None:
            raise MrcHandshakeError("the peer ended the out-of-band exchange")
        info = parse_hello(message)
    except FrameError as exc:
        raise MrcHandshakeError(f"the peer does not speak mrc oob: {exc}") from exc
    channel.trust()
    return info


async def answer(half: Half, channel: Channel, peer: ConnectionInfo) -> Connection:
    """The passive side of the exchange, after the peer's hello."""
    whole = complete(half, peer, passive=True, via=host_of(channel))
    try:
        channel.send(hello(half.info))
        await _expect_ready(channel)
    except BaseException:
        whole.close()
        raise
    return Connection(whole, channel)


async def _expect_ready(channel: Channel) -> None:
    message = await channel.recv()
    if message is None or message.get("type") != "ready":
        raise MrcHandshakeError("the peer did not become ready")
