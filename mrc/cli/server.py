# SPDX-License-Identifier: BSD-2-Clause
"""mrc-recv: accept clients, one at a time, and outlive every one of them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Coroutine
from typing import Any

from mrc.cli.exits import CliError, Exit, from_exception
from mrc.cli.link import Link
from mrc.cli.options import RecvOptions
from mrc.cli.output import Output
from mrc.cli.parser import version
from mrc.cli.protocol import DEPTH_MAX, IMM_QUEUE, PROTOCOL, SPARE_WRITES
from mrc.cli.session import Session
from mrc.cli.stop import Stop
from mrc.units import format_seconds

HELLO_TIMEOUT_S = 10.0
LEAVE_TIMEOUT_S = 1.0
STREAMS_MAX = 256

Listen = Callable[..., Coroutine[Any, Any, Any]]


class Server:
    """One run of mrc-recv. `listen` is mrc.listen, or what stands for it in a test."""

    def __init__(self, options: RecvOptions, output: Output, listen: Listen) -> None:
        self._options = options
        self._output = output
        self._listen = listen
        self._session: Session | None = None
        self._guests: set[asyncio.Task[None]] = set()
        self._ended: asyncio.Queue[tuple[Session, CliError | None]] = asyncio.Queue()

    @property
    def address(self) -> str:
        """What is listened on, as an address with port."""
        return f"[{self._options.common.bind or '::'}]:{self._options.common.port}"

    async def run(self, stop: Stop) -> Exit:
        """Serve until stopped, or with -1 until one client was served."""
        common = self._options.common
        more = {} if common.udp_port is None else {"udp_port": common.udp_port}
        server = await self._listen(
            self.address,
            backend=common.backend,
            ev_profile=common.ev_profile,
            depth=DEPTH_MAX + SPARE_WRITES,
            imm_queue=IMM_QUEUE,
            dscp=common.dscp,
            plane_addresses=common.plane_addresses,
            mode=common.mode,
            pump=common.pump,
            **more,
        )
        host, port, _, zone = server.sockname
        at = f"{host}%{socket.if_indextoname(zone)}" if zone else host
        self._output.note(f"listening on [{at}]:{port}")
        acceptor = asyncio.create_task(self._accept(server))
        try:
            return await self._serve(stop, acceptor)
        finally:
            for task in (acceptor, *self._guests):
                task.cancel()
            await asyncio.wait({acceptor, *self._guests})
            if self._session is not None:
                await self._session.close(CliError(Exit.PEER, "the receiver was stopped"))
            server.close()
            await server.wait_closed(timeout=5.0)

    async def _serve(self, stop: Stop, acceptor: asyncio.Task[None]) -> Exit:
        wait = (
            self._options.idle_timeout
            if (self._options.one_off and self._options.idle_timeout_given)
            else None
        )
        while True:
            try:
                session, error = await stop.within(self._next(acceptor, wait))
            except TimeoutError:
                if self._session is not None:
                    continue
                text = f"no client came within {format_seconds(wait or 0.0)}"
                raise CliError(Exit.PEER, text) from None
            except CliError:
                if self._session is not None:
                    raise
                return Exit.INTERRUPTED
            if self._options.one_off:
                return self._result(session, error)
            if error is not None:
                self._output.error(str(error))

    async def _next(
        self, acceptor: asyncio.Task[None], limit_s: float | None
    ) -> tuple[Session, CliError | None]:
        """The next session that is over. TimeoutError; what ended the acceptor, if that comes."""
        ended = asyncio.ensure_future(self._ended.get())
        waits: set[asyncio.Future[Any]] = {ended, acceptor}
        try:
            done, _ = await asyncio.wait(
                waits, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                raise TimeoutError
            if acceptor in done:
                acceptor.result()
                raise CliError(Exit.ENVIRONMENT, "the listening socket was closed")
            return ended.result()
        finally:
            ended.cancel()

    @staticmethod
    def _result(session: Session, error: CliError | None) -> Exit:
        """What -1 exits with."""
        if error is not None:
            raise error
        if session.tests_done == 0:
            raise CliError(Exit.PEER, "the client left before its test")
        if session.problem is not None:
            raise CliError(Exit.FAILED, session.problem)
        return Exit.OK

    async def _accept(self, server: Any) -> None:
        async for conn in server:
            task = asyncio.create_task(self._welcome(conn))
            self._guests.add(task)
            task.add_done_callback(self._guests.discard)

    async def _welcome(self, conn: Any) -> None:
        """Wait for the guest's hello; who says none is shown out."""
        link = Link(conn, 0)
        greeted = asyncio.Event()

        async def hello(params: dict[str, Any]) -> dict[str, Any]:
            await self._let_go(params.get("session"))
            self._admit(link, params)
            greeted.set()
            return {"version": version(), "protocol": PROTOCOL}

        link.serve("hello", hello)
        try:
            async with asyncio.timeout(HELLO_TIMEOUT_S):
                await link.guard(greeted.wait())
        except asyncio.CancelledError:
            await link.close()
            raise
        except Exception as error:  # noqa: BLE001 - one guest must not end the server
            why = from_exception(error, "peer") or error
            self._output.note(f"a connection was closed that asked for no test ({why})")
            await link.close()

    async def _let_go(self, key: object) -> None:
        """Give a client that is about to leave a moment, when the next is at the door."""
        present = self._session
        if present is not None and present.key != key and present.idle:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LEAVE_TIMEOUT_S):
                    await present.over.wait()

    def _admit(self, link: Link, params: dict[str, Any]) -> None:
        """Into the present session, or a new one; CliError when another client has the floor."""
        if params.get("protocol") != PROTOCOL:
            raise CliError(
                Exit.PEER,
                f"mrc-recv {version()} has test protocol {PROTOCOL}, "
                f"mrc-send {params.get('version')} has {params.get('protocol')}",
            )
        key, index, streams = (params.get(name) for name in ("session", "stream", "streams"))
        if (
            not isinstance(key, str)
            or type(index) is not int
            or type(streams) is not int
            or not (1 <= index <= streams <= STREAMS_MAX)
        ):
            raise CliError(Exit.PEER, "malformed hello")
        session = self._session
        if session is not None and session.key != key:
            raise CliError(Exit.PEER, "busy with another client")
        if session is not None and (index in session.links or streams != session.streams):
            raise CliError(Exit.PEER, "this connection was announced differently before")
        new = session is None
        if session is None:
            session = self._session = Session(key, streams, self._options, self._output)
        link.index = index
        session.add(link)
        if new:
            task = asyncio.create_task(self._attend(session))
            self._guests.add(task)
            task.add_done_callback(self._guests.discard)

    async def _attend(self, session: Session) -> None:
        error = await session.watch(self._options.idle_timeout)
        try:
            await session.close(error)
        finally:
            self._session = None
            session.over.set()
            self._ended.put_nowait((session, error))
