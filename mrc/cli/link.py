# SPDX-License-Identifier: BSD-2-Clause
"""One connection as the commands use it: who gets which immediate, calls that may be refused, and
one place where the loss of the peer becomes known."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from mrc.cli.exits import CliError, Exit, from_exception
from mrc.cli.protocol import CREDIT_BIT, NUMBER_MASK
from mrc.errors import MrcError
from mrc.telemetry import Snapshot, port_json

if TYPE_CHECKING:
    from mrc.aio import Connection
    from mrc.mr import MemoryRegion
    from mrc.oob import RemoteRegion

    from mrc.types import EvEvent, QpStats

CALL_TIMEOUT_S = 30.0

Handler = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
_T = TypeVar("_T")


class Link:
    """Wraps a connection of the library.

    Data immediates go to `on_message(number)`, credits to `on_credit(number)`, both 31-bit numbers.
    An exception in either, or the loss of the connection, ends up in `failed`.
    """

    def __init__(self, conn: Connection, index: int) -> None:
        self.conn = conn
        self.index = index
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.failed.add_done_callback(seen)
        self.on_message: Callable[[int], None] | None = None
        self.on_credit: Callable[[int], None] | None = None
        self._writes: set[asyncio.Future[None]] = set()
        self._reader = asyncio.create_task(self._read_immediates())

    async def _read_immediates(self) -> None:
        try:
            while True:
                imm = (await self.conn.receive_imm()).imm
                handler = self.on_credit if imm & CREDIT_BIT else self.on_message
                if handler is None:
                    raise CliError(Exit.PEER, "the peer sent a message outside of a test")
                handler(imm & NUMBER_MASK)
        except Exception as error:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """Make `error` the end of everything that goes on over this connection."""
        if not self.failed.done():
            self.failed.set_exception(error)

    async def guard(self, work: Coroutine[Any, Any, _T]) -> _T:
        """The result of `work`, or the failure of the connection if that comes first."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, self.failed}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self.failed.result()
            return await task
        finally:
            task.cancel()

    async def call(
        self, method: str, params: dict[str, Any], timeout: float = CALL_TIMEOUT_S
    ) -> dict[str, Any]:
        """Ask the peer; CliError with its words when it refuses, TimeoutError when it is silent."""
        reply = await self.guard(self.conn.call(method, params, timeout=timeout))
        if not isinstance(reply, dict):
            raise CliError(Exit.PEER, f"the peer's answer to {method} makes no sense")
        if "refused" in reply:
            code = reply.get("code")
            known = code in (Exit.USAGE, Exit.FAILED, Exit.PEER, Exit.ENVIRONMENT)
            raise CliError(Exit(code) if known else Exit.PEER, f"peer: {reply['refused']}")
        return reply

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        """Call without caring for the answer, or whether anybody is there to give one."""
        try:
            await self.conn.call(method, params, timeout=1.0)
        except (MrcError, OSError, TimeoutError):
            pass

    def serve(self, method: str, handler: Handler) -> None:
        """Answer the peer's calls of `method`; errors become refusals, never a broken connection."""

        async def answer(params: Any) -> dict[str, Any]:
            try:
                if not isinstance(params, dict):
                    raise ValueError("parameters are not an object")
                return await handler(params)
            except CliError as error:
                return {"refused": str(error), "code": int(error.code)}
            except (ValueError, MrcError, OSError) as error:
                known = from_exception(error, "peer")
                code = Exit.FAILED if known is None else known.code
                return {"refused": str(known or error), "code": int(code)}

        self.conn.serve(method, answer)

    def write(
        self, source: MemoryRegion, remote: RemoteRegion, length: int, imm: int | None,
        local_offset: int = 0, remote_offset: int = 0,
    ) -> asyncio.Future[None]:
        """Post a write; the future completes when it is placed at the peer (B.13)."""
        future = self.conn.write_nowait(
            source, remote, local_offset=local_offset, remote_offset=remote_offset, length=length,
            imm=imm)
        self._writes.add(future)
        future.add_done_callback(self._written)
        return future

    def _written(self, future: asyncio.Future[None]) -> None:
        self._writes.discard(future)
        if not future.cancelled():
            error = future.exception()
            if error is not None:
                self.fail(error)

    async def quiet(self) -> None:
        """Wait until no write is under way."""
        while self._writes:
            await asyncio.wait(self._writes)

    def snapshot(self) -> Snapshot:
        """Counters and paths now; after close(), the last ones."""
        conn = self.conn
        return Snapshot(
            time.monotonic_ns(), conn.stats(), tuple(conn.path_stats()), self.path_table)

    @property
    def path_table(self) -> tuple[int, int]:
        """Which path table the connection uses: connections of one process may share it."""
        return id(self.conn.context), self.conn.path_id

    def _counters(self) -> QpStats:
        """Of the queue pair alone: asked every few milliseconds."""
        qp = self.conn.qp
        return self.conn.stats() if qp.closed else qp.stats()

    def bytes_received(self) -> int:
        """Payload bytes the peer has placed here, ever."""
        return self._counters().bytes_received

    def bytes_acked(self) -> int:
        """Payload bytes of our complete writes, ever."""
        return self._counters().bytes_acked

    def take_events(self) -> list[EvEvent]:
        """Changes of paths since the last call."""
        return self.conn.ev_events()

    def describe(self) -> dict[str, Any]:
        """One element of `start.connected`."""
        conn = self.conn
        return {
            "socket": self.index,
            "local_host": str(conn.local.qp.gid),
            "local_port": conn.local.qp.udp_port,
            "local_qpn": conn.local.qp.qpn,
            **self.peer(),
            "remote_qpn": conn.peer.qp.qpn,
            "paths": len(conn.path_stats()),
            "backend": conn.port_stats().kind.name.lower(),
            "mtu": conn.agreed.path_mtu,
            "start_psn": conn.local.qp.psn,
        }

    def peer(self) -> dict[str, Any]:
        """Where the peer takes packets."""
        qp = self.conn.peer.qp
        return {"remote_host": str(qp.gid), "remote_port": qp.udp_port}

    def ports(self) -> list[dict[str, Any]]:
        """Counters of the I/O port."""
        return [port_json(self.conn.port_stats())]

    def drops(self) -> dict[str, int]:
        """Packets dropped, by reason; only what happened."""
        return {name: n for name, n in self.conn.drops().items() if n}

    async def close(self, timeout: float = 5.0) -> None:
        """Close the connection; one that is lost already is no error."""
        self._reader.cancel()
        try:
            await self.conn.close(timeout=timeout)
        except (MrcError, OSError, TimeoutError):
            pass


def seen(future: asyncio.Future[Any]) -> None:
    """Done callback: the exception, if any, is known, so asyncio need not complain about it."""
    if not future.cancelled():
        future.exception()
