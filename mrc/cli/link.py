# SPDX-License-Identifier: BSD-2-Clause
"""One connection as the commands use it.

Who gets which immediate, calls that may be refused, and one place where the loss of the peer
becomes known.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from mrc.cli.exits import CliError, Exit, from_exception
from mrc.cli.ports import RCVBUF_WANTED, SNDBUF_WANTED, PortCounts, granted_less
from mrc.cli.protocol import CREDIT_BIT, NUMBER_MASK
from mrc.errors import MrcError
from mrc.telemetry import Snapshot
from mrc.types import EvEvent, PathStats, QpStats, WorkCompletion

if TYPE_CHECKING:
    from mrc.conn import Connection

CALL_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 5.0

Handler = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
Write = asyncio.Future[WorkCompletion]
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
        self._writes: set[Write] = set()
        self._reader = asyncio.create_task(self._read_immediates())

    async def _read_immediates(self) -> None:
        try:
            while True:
                imm = (await self.conn.receive_imm()).imm
                handler = self.on_credit if imm & CREDIT_BIT else self.on_message
                (handler or _unexpected)(imm & NUMBER_MASK)
        except Exception as error:  # noqa: BLE001 - told to whoever waits on this connection
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """Make `error` the end of everything that goes on over this connection."""
        if not self.failed.done():
            self.failed.set_exception(error)

    async def guard(self, work: Coroutine[Any, Any, _T]) -> _T:
        """The result of `work`, or the failure of the connection if that comes first."""
        task = asyncio.ensure_future(work)
        waits: set[asyncio.Future[Any]] = {task, self.failed}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self.failed.result()
            return await task
        finally:
            task.cancel()

    async def call(
        self, method: str, params: dict[str, Any], limit_s: float | None = CALL_TIMEOUT_S
    ) -> dict[str, Any]:
        """Ask the peer; CliError with its words when it refuses, TimeoutError when it is silent."""
        reply = await self.guard(self.conn.call(method, params, timeout=limit_s))
        if not isinstance(reply, dict):
            raise CliError(Exit.PEER, f"the peer's answer to {method} makes no sense")
        if "refused" in reply:
            code = reply.get("code")
            meant = next((e for e in Exit if e and e == code), Exit.PEER)
            raise CliError(meant, f"peer: {reply['refused']}")
        return reply

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        """Call without caring for the answer, or whether anybody is there to give one."""
        with contextlib.suppress(MrcError, OSError, TimeoutError):
            await self.conn.call(method, params, timeout=1.0)

    def serve(self, method: str, handler: Handler) -> None:
        """Answer the peer's calls of `method`; errors become refusals."""

        async def answer(params: dict[str, Any]) -> dict[str, Any]:
            try:
                return await handler(params)
            except CliError as error:
                return {"refused": str(error), "code": int(error.code)}
            except (ValueError, MrcError, OSError) as error:
                known = from_exception(error, "peer")
                code = Exit.FAILED if known is None else known.code
                return {"refused": str(known or error), "code": int(code)}

        self.conn.serve(method, answer)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run beside everything else; its failure is the failure of the connection."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._fail_with)
        return task

    def track(self, write: Write) -> None:
        """A write was posted: its failure is the failure of the connection."""
        self._writes.add(write)
        write.add_done_callback(self._written)

    def _written(self, write: Write) -> None:
        self._writes.discard(write)
        self._fail_with(write)

    def _fail_with(self, future: asyncio.Future[Any]) -> None:
        error = None if future.cancelled() else future.exception()
        if error is not None:
            self.fail(error)

    async def quiet(self) -> None:
        """Wait until no write is under way."""
        while self._writes:
            await asyncio.wait(self._writes)

    def snapshot(self, paths: tuple[PathStats, ...]) -> Snapshot:
        """Counters now, with what `paths` says of the paths; after close(), the last ones."""
        return Snapshot(time.monotonic_ns(), self.conn.stats(), paths, self.path_table)

    def paths(self) -> tuple[PathStats, ...]:
        """Of the path table, now; after close(), the last ones."""
        return tuple(self.conn.path_stats())

    def rtt_anew(self) -> None:
        """A report begins: extremes of round trips that its path table knows are older."""
        if not self.conn.qp.closed:
            self.conn.path.rtt_anew()

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

    def port_counts(self) -> PortCounts:
        """Counters of the I/O port and dropped packets now, both since the program began."""
        return PortCounts(self.conn.port_stats(), self.conn.drops())

    def advice(self) -> str | None:
        """What to change where the kernel gave less socket buffer than wanted (field report 65)."""
        port = self.conn.port_stats()
        for name, got, wanted in (
            ("rmem_max", port.rcvbuf_bytes, RCVBUF_WANTED),
            ("wmem_max", port.sndbuf_bytes, SNDBUF_WANTED),
        ):
            if granted_less(got, wanted):
                what = "receive" if name == "rmem_max" else "send"
                return (
                    f"the {what} buffer of UDP port {port.udp_port} is {got} bytes, wanted "
                    f"{wanted}: raise it by sysctl net.core.{name}={wanted}"
                )
        return None

    @property
    def said_goodbye(self) -> bool:
        """The connection is over because an end closed it, not because it was lost."""
        closed = self.conn.closed
        return closed.done() and closed.result() is None

    async def close(self) -> None:
        """Close the connection; one that is lost already is no error."""
        self._reader.cancel()
        with contextlib.suppress(MrcError, OSError, TimeoutError):
            await self.conn.close(timeout=CLOSE_TIMEOUT_S)


def _unexpected(number: int) -> None:
    raise CliError(Exit.PEER, f"the peer sent message {number} outside of a test")


def seen(future: asyncio.Future[Any]) -> None:
    """Done callback: the exception, if any, is known, so asyncio need not complain about it."""
    if not future.cancelled():
        future.exception()
