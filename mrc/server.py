# SPDX-License-Identifier: BSD-2-Clause
"""Server: accepts connections on a TCP port; strangers are closed and counted."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from ipaddress import AddressValueError, IPv4Address
from types import TracebackType
from typing import Any, Self, Unpack

from ._children import warn_unclosed
from ._tcp import address_of, resolve
from ._typed import typed
from ._waits import Mailbox, limit
from .admission import Admission, Guest
from .bringup import lanes_towards, prepare
from .channel import Channel
from .conn import Connection
from .device import Context
from .driver import Driver
from .errors import MrcError, MrcHandshakeError, MrcUsageError
from .exchange import answer, host_of, local_end, open_port, require_own, require_theirs
from .oob import OOB_VERSION, REFUSED, FrameError, parse_hello
from .options import ConnectionOptions, OptionArgs

__all__ = ["PORT", "Server", "listen"]

PORT = 18515  # of the out-of-band exchange, as perftest has it
_HELLO_SECONDS = 10.0
_UNACCEPTED_MAX = 1024
_REASONS_MAX = 64


@typed
async def listen(
    address: str = f"[::]:{PORT}",
    *,
    context: Context | None = None,
    lanes_max: int | None = None,
    **options: Unpack[OptionArgs],
) -> Server:
    """A server at "[address]:port", "address" or ":port"; port 0 takes a free one.

    A link-local address needs its zone: "[fe80::1%eth0]:18515". lanes_max: paths over UDP, each a
    descriptor, of all connections together, and three quarters of it for those of one host; None:
    three quarters of the limit of descriptors. Who comes then is refused.

    MrcUsageError: arguments. OSError: the address or port is taken or not ours, or the system
    refuses the data port.
    """
    wish = ConnectionOptions(**options)
    host, port = _split(address)
    sockaddr = (await resolve(host, port, passive=True))[0]
    sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    driver = None
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            sock.bind(sockaddr)
            sock.listen()
        except OSError as exc:
            raise OSError(exc.errno, f"listen on {address}: {exc.strerror}") from exc
        driver = Driver.attach(
            context, wish.seed, wish.dscp, service_time=wish.service_time, pump=wish.pump
        )
        driver.hold()
        require_own(wish.sources)
        open_port(driver, wish, *address_of(sockaddr))
        server = Server(driver, wish, lanes_max)
        await server.start(sock)
    except BaseException:
        sock.close()
        if driver is not None:
            driver.drop()
        raise
    return server


def _split(address: str) -> tuple[str, int]:
    """Host and port of "[host]:port", "host:port", "host" or ":port"."""
    if address.startswith("["):
        host, closed, rest = address[1:].partition("]")
        port = rest.removeprefix(":") if rest else str(PORT)
        if not closed or (rest and not rest.startswith(":")):
            raise MrcUsageError(f"{address!r} is not [address]:port")
    elif address.count(":") == 1:
        host, _, port = address.partition(":")
    else:
        host, port = address, str(PORT)
    if not port.isascii() or not port.isdigit() or int(port) > 0xFFFF:
        raise MrcUsageError(f"{address!r}: {port!r} is not a port in 0..65535")
    with suppress(AddressValueError):
        IPv4Address(host)
        raise MrcUsageError(f"{host} is IPv4; MRC data paths need IPv6 here")
    return host or "::", int(port)


class Server:
    """Accepts connections; made by listen(). `async with` closes it, `async for` accepts.

    strangers: connections that were not ours: other bytes, or no hello in time. refused: peers
    that spoke our protocol and could not be served; `refusals` counts the reasons.
    """

    def __init__(
        self, driver: Driver, options: ConnectionOptions, lanes_max: int | None = None
    ) -> None:
        self.options = options
        self.strangers = 0
        self.refusals: dict[str, int] = {}
        self._driver = driver
        self._server: asyncio.Server | None = None
        self._accepted: Mailbox[Connection] = Mailbox()
        self._admission = Admission(lanes_max, driver.ctx.limits.qp_max)
        self._greetings: set[asyncio.Task[None]] = set()
        self._closed = False
        self._over: asyncio.Future[None] = driver.loop.create_future()

    async def start(self, sock: socket.socket) -> None:
        """Begin to serve on this bound socket; it is ours from now on."""
        self._server = await asyncio.start_server(self._on_stream, sock=sock)

    @property
    def refused(self) -> int:
        """Peers refused so far."""
        return sum(self.refusals.values())

    @property
    def context(self) -> Context:
        """The context all accepted connections share."""
        return self._driver.ctx

    @property
    def sockname(self) -> tuple[Any, ...]:
        """Address of the out-of-band socket: (host, port, flow info, zone)."""
        if self._server is None or self._closed:
            raise MrcUsageError("the server is closed")
        return tuple(self._server.sockets[0].getsockname())

    async def accept(self, timeout: float | None = None) -> Connection:
        """The next connection. TimeoutError; MrcUsageError once the server is closed."""
        async with limit(timeout, "nobody connected"):
            return await self._accepted.get()

    async def __aiter__(self) -> AsyncIterator[Connection]:
        while True:
            try:
                conn = await self._accepted.get()
            except MrcUsageError:
                return
            yield conn

    # -- greetings ---------------------------------------------------------------------------

    def _on_stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        channel = Channel(reader, writer)
        if self._closed:
            channel.abort()
            return
        task = self._driver.loop.create_task(self._meet(channel))
        self._greetings.add(task)
        task.add_done_callback(self._greetings.discard)
        out = self._admission.enter(Guest(task, host_of(channel), channel))
        if out is not None:
            self._count("too many connections are being set up")
            out.channel.abort()  # here, for its task may not even have begun
            out.task.cancel()

    async def _meet(self, channel: Channel) -> None:
        """One stream: a connection to accept, or closed and counted. Raises nothing."""
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                await self._exchange(channel)
        except (FrameError, TimeoutError) as exc:
            if isinstance(exc, TimeoutError) and channel.trusted:
                await self._refuse(channel, "setup timeout: the peer did not become ready")
                return
            self.strangers += 1
            channel.abort()
        except (MrcError, OSError) as exc:
            words = exc.strerror if isinstance(exc, OSError) else None  # not "[Errno 98] ..."
            reason = words or str(exc) or type(exc).__name__
            await self._refuse(channel, reason)
        except asyncio.CancelledError:
            channel.abort()
            raise
        except Exception as exc:  # noqa: BLE001 - a stream is never left open, whatever happened
            self._count(f"internal error: {type(exc).__name__}")
            channel.abort()
            self._driver.loop.call_exception_handler(
                {"message": "mrc: setting up a connection failed", "exception": exc}
            )

    def _count(self, reason: str) -> None:
        """Peers choose words of some reasons: as many are told apart as fit a table."""
        if reason not in self.refusals and len(self.refusals) >= _REASONS_MAX:
            reason = "other reasons"
        self.refusals[reason] = self.refusals.get(reason, 0) + 1

    async def _refuse(self, channel: Channel, reason: str) -> None:
        self._count(REFUSED if reason.startswith(REFUSED) else reason)
        with suppress(MrcError, FrameError):
            channel.send({"type": "refuse", "oob": OOB_VERSION, "reason": reason[:500]})
        await channel.close()

    async def _exchange(self, channel: Channel) -> None:
        message = await channel.recv()
        if message is None:
            raise FrameError("nothing was said")
        peer = parse_hello(message)
        channel.trust()
        require_theirs(peer, channel)
        if len(self._accepted) >= _UNACCEPTED_MAX:
            raise MrcHandshakeError("the server does not accept connections at the moment")
        local = local_end(self._driver, channel, self.options)
        lanes = lanes_towards(self.options, peer)
        host = host_of(channel)
        async with self._admission.lanes(host, lanes):
            lacks = self._admission.lacks(host, lanes, self.context.paths)
            if lacks is not None:
                raise MrcHandshakeError(f"the server has no room for more {lacks} at the moment")
            planes = peer.plane_addresses
            half = prepare(self._driver, local, self.options, peer.qp.gid, planes)
            conn = await answer(half, channel, peer)
        self._admission.took(host, conn)
        if self._closed:
            await conn.close(0)
        else:
            self._accepted.put(conn)

    # -- the end -----------------------------------------------------------------------------

    def close(self) -> None:
        """Stop listening. Connections already accepted live on; others are closed."""
        if self._closed:
            return
        self._closed = True
        if self._server is not None:
            self._server.close()
        for task in self._greetings:
            task.cancel()
        self._accepted.fail(MrcUsageError("the server is closed"))
        self._ending = self._driver.loop.create_task(self._finish())

    async def _finish(self) -> None:
        unaccepted: list[Connection] = []
        with suppress(MrcUsageError):
            while (conn := self._accepted.get_nowait()) is not None:
                unaccepted.append(conn)
        await asyncio.gather(*(conn.close(1.0) for conn in unaccepted), return_exceptions=True)
        await asyncio.gather(*self._greetings, return_exceptions=True)
        self._driver.drop()
        self._over.set_result(None)

    async def wait_closed(self, timeout: float | None = None) -> None:
        """Wait until everything of the server itself is gone. TimeoutError."""
        async with limit(timeout, "the server did not close"):
            await asyncio.shield(self._over)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()
        await self.wait_closed()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            warn_unclosed(self)
