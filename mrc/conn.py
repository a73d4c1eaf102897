# SPDX-License-Identifier: BSD-2-Clause
"""Connection: one queue pair with its out-of-band channel, awaitable."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Unpack

from ._children import AsyncClosing, warn_unclosed
from ._typed import typed
from ._waits import limit
from .bringup import Whole
from .channel import Calls, Channel, Handler
from .errors import MrcPeerLost, MrcUsageError
from .mr import MemoryRegion
from .oob import FrameError, RemoteRegion
from .peertext import printable
from .qp import QpAttr, SendWr
from .regions import Regions
from .transfer import Immediate, Transfer, WriteArgs, write_request
from .types import (
    Access,
    EvEvent,
    PathStats,
    PortStats,
    ProbeResult,
    QpState,
    QpStats,
    WcStatus,
    WorkCompletion,
)

__all__ = ["Connection"]

_EVENTS_MAX = 65536


class _Stats(NamedTuple):
    qp: QpStats
    paths: list[PathStats]
    port: PortStats
    drops: dict[str, int]


class Connection(AsyncClosing):
    """Writes to the peer's advertised regions, sprayed over all paths; see connect().

    Usable while `closed` is not done. A peer that closes lets its writes finish, and ours; then
    `closed` is done with None. A peer that vanishes, or an error of the queue pair, fails all that
    waits with MrcPeerLost, and `closed` is done with that error as its result. Either way close()
    is still to be called, or use `async with`. Use it in the event loop's thread only.
    """

    def __init__(self, whole: Whole, channel: Channel) -> None:
        half = whole.half
        self.local = half.info
        self.peer = whole.peer
        self.agreed = whole.agreed
        self.options = half.options
        self.context = half.driver.ctx
        self.port = half.local.port
        self.path = whole.path
        self.path_id = whole.path.number
        self.pd = half.pd
        self.qp = half.qp
        self._whole = whole
        self._driver = half.driver
        self._channel = channel
        self._calls = Calls(channel)
        self._transfer = Transfer(half, whole.peer.imm_queue, self._on_wc_error, self._on_credit)
        self._regions = Regions()
        self._events: deque[EvEvent] = deque(maxlen=_EVENTS_MAX)
        loop = half.driver.loop
        self.closed: asyncio.Future[Exception | None] = loop.create_future()
        self._peer_bye: asyncio.Future[None] = loop.create_future()
        self._said_bye = False
        self._refusal: Exception | None = None
        self._closing: asyncio.Task[None] | None = None
        self._final: _Stats | None = None
        self._kept: list[MemoryRegion] = []  # the caller need not: closed with us, at the latest
        self._keep_max = 64
        half.driver.hold()
        half.driver.join(self)
        self._tasks: set[asyncio.Task[None]] = {loop.create_task(self._read())}

    # -- memory ------------------------------------------------------------------------------

    def register(self, buffer: Any, remote_write: bool = True) -> MemoryRegion:
        """Pin a buffer for this connection, until the region or the connection is closed.

        Any writable contiguous buffer; without remote_write also read-only memory.
        """
        access = Access.LOCAL_WRITE | Access.REMOTE_WRITE if remote_write else Access.NONE
        mr = MemoryRegion(self.pd, buffer, access)
        if len(self._kept) >= self._keep_max:
            self._kept = [kept for kept in self._kept if not kept.closed]
            self._keep_max = max(64, 2 * len(self._kept))
        self._kept.append(mr)
        return mr

    def advertise(self, name: str, mr: MemoryRegion) -> None:
        """Tell the peer where it may write; it asks for it by name. A name can be used again.

        MrcUsageError: another connection's region, no remote write access (field report 45), a name
        that is no text of 1 to 255 characters, or more than 4096 names.
        """
        self._require_usable()
        self._require_own(mr)
        self._channel.send({"type": "region", **self._regions.offer(name, mr).to_dict()})

    async def remote_region(self, name: str, timeout: float | None = None) -> RemoteRegion:
        """The region the peer advertised by this name, waiting for it. TimeoutError."""
        async with limit(timeout, f"the peer did not advertise a region {name!r}"):
            return await self._regions.wait(name)

    def _require_own(self, mr: MemoryRegion) -> None:
        if not isinstance(mr, MemoryRegion) or mr.pd is not self.pd:
            raise MrcUsageError("mr is no memory region that this connection registered")

    def _require_usable(self) -> None:
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)

    # -- writing -----------------------------------------------------------------------------

    async def write(
        self,
        mr: MemoryRegion,
        remote: RemoteRegion,
        *,
        timeout: float | None = None,
        **part: Unpack[WriteArgs],
    ) -> WorkCompletion:
        """Write bytes of `mr` into the peer's region; returns when they are placed there.

        By default all of `mr` that the remote region has room for; WriteArgs names a part, and an
        immediate. Waits for room while `depth` writes are in flight, and, with an immediate,
        while the peer has `imm_queue` unread.

        MrcWorkError: it failed. MrcPeerLost: the peer went away. TimeoutError. When cancelled or
        timed out before it was handed over nothing happens. After that it cannot be recalled: the
        transport completes it, it keeps its place in the queue and the region busy until then,
        and its completion is dropped.
        """
        wr = self._request(mr, remote, part)
        if timeout is None:
            return await self._transfer.write(wr)
        async with limit(timeout, "a write did not complete"):
            return await self._transfer.write(wr)

    def write_nowait(
        self, mr: MemoryRegion, remote: RemoteRegion, **part: Unpack[WriteArgs]
    ) -> asyncio.Future[WorkCompletion]:
        """Like write(), but returns its future at once. MrcResourceError: no room now."""
        return self._transfer.write_nowait(self._request(mr, remote, part))

    def _request(self, mr: MemoryRegion, remote: RemoteRegion, part: WriteArgs) -> SendWr:
        self._require_usable()
        self._require_own(mr)
        return write_request(self._transfer.next_id(), mr, remote, **part)

    @property
    def in_flight(self) -> int:
        """Writes handed over and not completed, cancelled ones included."""
        return self._transfer.in_flight

    async def drain(self, timeout: float | None = None) -> None:
        """Wait until every write handed over has completed, one way or the other. TimeoutError."""
        await self._transfer.drain(timeout)

    # -- immediates, calls -------------------------------------------------------------------

    async def receive_imm(self, timeout: float | None = None) -> Immediate:
        """The next immediate, in the order of the peer's writes (B.8).

        When cancelled none is lost. TimeoutError. MrcPeerLost once the peer is gone and all that
        came was received.
        """
        return await self._transfer.receive_imm(timeout)

    async def call(
        self, method: str, params: Mapping[str, Any] | None = None, timeout: float | None = None
    ) -> dict[str, Any]:
        """Ask the peer's handler of that name, over the out-of-band channel, for its answer.

        MrcRemoteError: it raised, or there was none for 10 s. TimeoutError. MrcPeerLost.
        """
        async with limit(timeout, f"no answer to the call {method!r}"):
            return await self._calls.call(method, params or {})

    @typed
    def serve(self, method: str, handler: Handler) -> None:
        """Answer calls of this name by awaiting handler(params), which returns a dict or None."""
        self._calls.serve(method, handler)

    # -- what is going on --------------------------------------------------------------------

    def _stats(self) -> _Stats:
        """All of it, to be kept: what is asked for often is read alone."""
        return self._final or _Stats(
            self.qp.stats(), self.path.stats(), self.port.stats(), self.context.drops()
        )

    def stats(self) -> QpStats:
        """Counters of the queue pair; after close(), the last ones."""
        return self._final.qp if self._final else self.qp.stats()

    def path_stats(self) -> list[PathStats]:
        """One record per EV; connections between the same two ports share them."""
        return self._final.paths if self._final else self.path.stats()

    def port_stats(self) -> PortStats:
        """The local port, shared by all connections of the context."""
        return self._final.port if self._final else self.port.stats()

    def drops(self) -> dict[str, int]:
        """Packets dropped by the context, by reason."""
        return self._final.drops if self._final else self.context.drops()

    def ev_events(self) -> list[EvEvent]:
        """EV events of the path table since the last call, at most the latest 65536 (C.6)."""
        found = list(self._events)
        self._events.clear()
        return found

    @typed
    async def probe_paths(
        self, evs: Sequence[int] | None = None, timeout: float = 0.25
    ) -> list[ProbeResult]:
        """Probe these EVs, default all; no answer in `timeout` seconds: rtt_ns None (F.1, C.7)."""
        self._require_usable()
        wanted = [s.ev for s in self.path_stats()] if evs is None else evs
        told = self.agreed.service_time
        return await self._driver.prober.probe(self.path, wanted, timeout, service_time=told)

    def deny(self, ev: int) -> None:
        """Use this EV no more, for all connections that share the paths (field report 37)."""
        self.path.deny(ev)

    def allow(self, ev: int) -> None:
        """Lift a denial."""
        self.path.allow(ev)
        self._driver.kick()

    # -- what the driver tells ---------------------------------------------------------------

    def on_completions(self) -> None:
        """Driver: completions may be waiting."""
        self._transfer.on_completions()

    def on_events(self, events: list[EvEvent]) -> None:
        """Driver: EV events of our path table."""
        self._events.extend(events)

    def on_context_lost(self, exc: Exception) -> None:
        """Driver: the context cannot go on."""
        self._lose(exc, tell=True)
        self._final = self._stats()

    def _on_wc_error(self, status: WcStatus) -> None:
        """A completion failed, so the queue pair is in error; say why to both sides."""
        if status is WcStatus.WR_FLUSH_ERR and not self.qp.closed:
            status = self.qp.stats().error
        self._lose(MrcPeerLost(f"the queue pair is in error: {status.text}"), tell=True)

    def _on_credit(self, count: int) -> None:
        with suppress(MrcPeerLost):
            self._channel.send({"type": "credit", "count": count})

    # -- what the peer tells -----------------------------------------------------------------

    async def _read(self) -> None:
        try:
            while (message := await self._channel.recv()) is not None:
                self._on_message(message)
        except Exception as exc:  # noqa: BLE001 - whatever it is, nobody reads the channel any more
            self._lose(MrcPeerLost(f"the TCP connection to the peer: {exc}"), tell=True)
            return
        if not self._peer_bye.done():
            self._lose(MrcPeerLost("the peer vanished: the TCP connection to it ended"))

    def _on_message(self, message: dict[str, Any]) -> None:
        match message.get("type"):
            case "region":
                self._regions.add(RemoteRegion.from_dict(message))
            case "credit":
                count = message.get("count")
                if not isinstance(count, int) or not 0 < count <= self.peer.imm_queue:
                    raise FrameError("a credit out of range")
                self._transfer.add_credits(count)
            case "call":
                self._calls.on_call(message)
            case "answer":
                self._calls.on_answer(message)
            case "abort":
                reason = printable(message.get("reason", ""))
                self._lose(MrcPeerLost(f"the peer gave up the connection: {reason}"))
            case "bye":
                self._on_bye()
            case _:
                pass  # of a later version

    def _on_bye(self) -> None:
        """The peer has no work left; once we have none, we say bye too, and it is over."""
        if self._peer_bye.done():
            return
        self._peer_bye.set_result(None)
        if self._closing is None:
            self._refuse(MrcPeerLost("the peer closed the connection"))
            self._tasks.add(self._driver.loop.create_task(self._answer_bye()))

    async def _answer_bye(self) -> None:
        await self._transfer.drain(None)
        self._say_bye()
        self._end(None, MrcPeerLost("the peer closed the connection"))

    # -- the end -----------------------------------------------------------------------------

    def _refuse(self, exc: Exception) -> None:
        self._refusal = self._refusal or exc
        self._transfer.refuse(exc)

    def _say_bye(self) -> None:
        if not self._said_bye:
            self._said_bye = True
            with suppress(MrcPeerLost):
                self._channel.send({"type": "bye"})

    def _lose(self, exc: Exception, *, tell: bool = False) -> None:
        """It cannot go on. The first reason counts: that of a completion, if there is one."""
        if not self.closed.done() and not self.context.closed:
            self._transfer.last_words()
        if self.closed.done():
            return
        if tell:
            with suppress(MrcPeerLost):
                self._channel.send({"type": "abort", "reason": str(exc)})
        self._transfer.lose(exc)
        self._end(exc, exc)
        self.qp.modify(QpAttr(state=QpState.ERR))  # flushes all work
        self._transfer.on_completions()

    def _end(self, result: Exception | None, exc: Exception) -> None:
        self._refuse(exc)
        self._transfer.finish(exc)
        self._calls.fail(exc)
        self._regions.fail(exc)
        if not self._peer_bye.done():
            self._peer_bye.set_result(None)
        if not self.closed.done():
            self.closed.set_result(result)

    async def wait_closed(self, timeout: float | None = None) -> Exception | None:
        """Wait until the connection is over: None when it was closed, else why it was lost."""
        async with limit(timeout, "the connection is still open"):
            return await asyncio.shield(self.closed)

    async def close(self, timeout: float | None = 5.0) -> None:
        """Let all writes complete, tell the peer, wait until it is done too, free everything.

        The connection's memory regions are closed with it. After `timeout` seconds, or when the
        peer is lost, what is still in flight fails with its completion. Twice is once.
        """
        if self._closing is None:
            self._closing = self._driver.loop.create_task(self._close(timeout))
        await asyncio.shield(self._closing)

    async def _close(self, timeout: float | None) -> None:
        over = MrcUsageError("the connection is closed")
        end = None if timeout is None else self._driver.loop.time() + timeout
        self._refuse(over)
        with suppress(TimeoutError):
            async with limit(timeout, "the connection did not close"):
                await self._transfer.drain(None)
                if not self.closed.done():
                    self._say_bye()
                    await self._peer_bye
        self._driver.leave(self)
        for task in self._tasks:
            task.cancel()
        self._final = self._stats()
        self._end(None, over)
        self.qp.close()  # flushes what is still in flight into the completion queue
        self._transfer.on_completions()
        self._whole.close()
        self._kept.clear()  # a connection is in many a cycle, their buffers need not be
        self._driver.drop()
        await self._channel.close(None if end is None else max(0.1, end - self._driver.loop.time()))

    @property
    def freed(self) -> bool:
        """Whether close() has given everything back."""
        return self._closing is not None and self._closing.done()

    def __del__(self) -> None:
        if getattr(self, "_closing", self) is None:
            warn_unclosed(self)
