# SPDX-License-Identifier: BSD-2-Clause
"""connect, listen and mem_pair: connections on asyncio, the same on uvloop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from ipaddress import IPv6Address
from typing import Any, NamedTuple, Self, Unpack

from ._core import MemWire
from ._tcp import connect_tcp, resolve
from ._typed import typed
from ._waits import limit
from .bringup import Local, prepare
from .channel import Channel
from .conn import Connection
from .device import Context
from .driver import Driver
from .exchange import answer, expect_hello, greet, local_end, require_own
from .notify import Notifications
from .oob import RemoteRegion
from .options import ConnectionOptions, OptionArgs
from .port import Port
from .probing import Prober
from .server import PORT, Server, listen
from .transfer import Immediate
from .types import Backend

__all__ = [
    "Connection",
    "Immediate",
    "MemPair",
    "Notifications",
    "Prober",
    "RemoteRegion",
    "Server",
    "connect",
    "listen",
    "mem_pair",
]


@typed
async def connect(
    host: str,
    port: int = PORT,
    *,
    timeout: float | None = 10.0,
    local: str | None = None,
    context: Context | None = None,
    **options: Unpack[OptionArgs],
) -> Connection:
    """A connection to the server at `host` (name or IPv6 address, with %zone when link-local).

    `local` is the IPv6 address to use here; `context` lets connections share one engine, UDP port
    and paths. ConnectionOptions explains the rest.

    MrcUsageError: arguments. OSError (socket.gaierror, ConnectionRefusedError, TimeoutError among
    them): no such host, nobody there, or the system refuses a port or a path. MrcHandshakeError:
    the peer speaks another version, or refuses.
    """
    wish = ConnectionOptions(**options)
    driver = Driver.attach(
        context, wish.seed, wish.dscp, service_time=wish.service_time, pump=wish.pump
    )
    driver.hold()
    try:
        async with limit(timeout, f"no connection to {host} port {port}"):
            require_own(wish.sources)
            channel = await _dial(host, port, local)
            try:
                return await greet(driver, channel, local_end(driver, channel, wish), wish)
            except BaseException:
                channel.abort()
                raise
    finally:
        driver.drop()


async def _dial(host: str, port: int, local: str | None) -> Channel:
    """A channel to the first address that answers; the last error when none does."""
    source = None if local is None else (await resolve(local, 0))[0]
    error: OSError | None = None
    for address in await resolve(host, port):
        try:
            sock = await connect_tcp(address, source)
        except OSError as exc:
            error = exc
            continue
        try:
            return Channel(*await asyncio.open_connection(sock=sock))
        except BaseException:
            sock.close()
            raise
    assert error is not None  # noqa: S101 - there was at least one address
    raise error


class MemPair(NamedTuple):
    """Two connected ends in one process, and the wire between them."""

    a: Connection
    b: Connection
    wire: MemWire

    async def close(self, timeout: float | None = 5.0) -> None:
        """Close both ends."""
        await asyncio.gather(self.a.close(timeout), self.b.close(timeout))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


@typed
async def mem_pair(
    *,
    loss_ppm: int = 0,
    dup_ppm: int = 0,
    ring: int = 4096,
    b_options: OptionArgs | None = None,
    timeout: float | None = 10.0,
    **options: Unpack[OptionArgs],
) -> MemPair:
    """Two connections over a wire in memory, for tests and examples; nothing leaves the process.

    Packets are lost and duplicated that often per million, drawn from `seed` (default 1); change
    it later with MemPair.wire.faults(). b_options override options at the second end.
    """
    options["backend"] = "mem"
    seed = options.get("seed") or 1
    wish_a = ConnectionOptions(**options)
    options.update(b_options or {})
    wish_b = ConnectionOptions(**options)
    wire = MemWire(ring, seed)
    wire.faults(loss_ppm=loss_ppm, dup_ppm=dup_ppm)
    channels = await _channel_pair()
    drivers = [
        Driver.attach(None, seed + i, w.dscp, service_time=w.service_time, pump=w.pump)
        for i, w in enumerate((wish_a, wish_b))
    ]
    for driver in drivers:
        driver.hold()
    try:
        ends = []
        for i, driver in enumerate(drivers):
            port = Port(driver.ctx, Backend.MEM, wire=wire, mem_end=i)
            ends.append(Local(port, IPv6Address(f"fd00:6d72:63::{i + 1}")))
        async with limit(timeout, "the ends did not connect"):
            a, b = await _both(
                greet(drivers[0], channels[0], ends[0], wish_a),
                _meet_in_memory(drivers[1], channels[1], ends[1], wish_b),
            )
    except BaseException:
        for channel in channels:
            channel.abort()
        raise
    finally:
        for driver in drivers:
            driver.drop()
    return MemPair(a, b, wire)


async def _channel_pair() -> list[Channel]:
    """The ends of a stream within the process. When cancelled nothing of it is left."""
    socks = socket.socketpair()
    channels: list[Channel] = []
    try:
        for sock in socks:
            ends = await asyncio.open_unix_connection(sock=sock)
            channels.append(Channel(*ends))
    except BaseException:
        for channel in channels:
            channel.abort()
        for sock in socks[len(channels) :]:
            sock.close()
        raise
    return channels


async def _both(*ends: Coroutine[Any, Any, Connection]) -> list[Connection]:
    """Both connections, or none: one that was made is closed when the other was not."""
    tasks = [asyncio.ensure_future(end) for end in ends]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        for made in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(made, Connection):
                await made.close(0)
        raise


async def _meet_in_memory(
    driver: Driver, channel: Channel, local: Local, options: ConnectionOptions
) -> Connection:
    peer = await expect_hello(channel)
    return await answer(prepare(driver, local, options, local.addr), channel, peer)
