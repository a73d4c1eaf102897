# SPDX-License-Identifier: BSD-2-Clause
"""A stand-in for the library: two ends in one loop, memory copied by hand, faults on demand.

It exists for what a real network will not do when asked: placed bytes that differ, a write that
never completes, a peer that answers nonsense. The real library is used by test_commands.py.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable
from typing import Any

from mrc.errors import MrcPeerLost, MrcRemoteError, MrcUsageError
from mrc.types import Backend, EvState, PathStats, PortCap, PortStats, QpState, QpStats, WcStatus

_COUNTERS = dict.fromkeys(QpStats.__dataclass_fields__, 0)


class FakeMr:
    def __init__(self, buf: Any, remote_write: bool) -> None:
        self.buf = memoryview(buf)
        self.remote_write = remote_write
        self.closed = False

    def close(self) -> None:
        self.closed = True


class FakeConn:
    """One end. `net` is shared by both and holds the faults."""

    def __init__(self, net: FakeNet, evs: int) -> None:
        self.net = net
        self.other: FakeConn = self
        self.counters = dict(_COUNTERS)
        self.counters["cwnd_bytes"] = 1 << 20
        self.evs = evs
        self.mrs: list[FakeMr] = []
        self.regions: dict[str, FakeMr] = {}
        self.changed = asyncio.Event()
        self.handlers: dict[str, Callable[..., Any]] = {}
        self.imms: asyncio.Queue[Any] = asyncio.Queue()
        self.events: list[Any] = []
        self.lost: Exception | None = None
        self.writes = 0
        self.passive = False
        self.qp = types.SimpleNamespace(closed=False, stats=self.stats)
        self.closed: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self.context = net
        self.path_id = 0
        self.path = types.SimpleNamespace(rtt_anew=lambda: None)
        where = types.SimpleNamespace(gid="::1", udp_port=4791, qpn=3, psn=0)
        self.local = types.SimpleNamespace(qp=where)
        self.peer = types.SimpleNamespace(qp=where)
        self.agreed = types.SimpleNamespace(path_mtu=4096)

    def register(self, buf: Any, *, remote_write: bool = True) -> FakeMr:
        self.mrs.append(FakeMr(buf, remote_write))
        return self.mrs[-1]

    def advertise(self, name: str, mr: FakeMr) -> None:
        self.regions[name] = mr
        self.other.changed.set()

    async def remote_region(self, name: str, timeout: float) -> FakeMr:
        async with asyncio.timeout(timeout):
            while name not in self.other.regions:
                self._alive()
                self.changed.clear()
                await self.changed.wait()
        return self.other.regions[name]

    def _alive(self) -> None:
        if self.lost is not None:
            raise self.lost

    def write_nowait(
        self,
        mr: FakeMr,
        remote: FakeMr,
        *,
        local_offset: int = 0,
        remote_offset: int = 0,
        length: int | None = None,
        imm: int | None = None,
    ) -> asyncio.Future[None]:
        self._alive()
        assert length is not None
        assert remote.remote_write
        assert not mr.closed
        assert not remote.closed
        assert local_offset + length <= len(mr.buf)
        assert remote_offset + length <= len(remote.buf)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        number = self.writes
        self.writes += 1
        target = remote.buf[remote_offset : remote_offset + length]

        def place() -> None:
            if future.done():
                return
            if future.cancelled() or self.lost is not None:
                if not future.done():
                    future.set_exception(self.lost or MrcUsageError("gone"))
                return
            if not (length and self.net.skip_write == number):
                target[:] = mr.buf[local_offset : local_offset + length]
                self.other.counters["bytes_received"] += length
            if length and number == (
                self.net.corrupt_reverse if self.passive else self.net.corrupt_write
            ):
                target[length // 2] ^= 1
            self.counters["bytes_acked"] += length
            self.counters["packets_sent"] += max(1, length // 4096)
            if imm is not None:
                self.other.imms.put_nowait(types.SimpleNamespace(imm=imm, byte_len=length))
            future.set_result(None)

        if self.net.stall_at is not None and number >= self.net.stall_at and length:
            self.net.stalled.append((self, future, place))
        elif self.net.delay_s:
            loop.call_later(self.net.delay_s, place)
        else:
            loop.call_soon(place)
        return future

    async def receive_imm(self) -> Any:
        self._alive()
        got = await self.imms.get()
        if isinstance(got, Exception):
            raise got
        return got

    async def call(self, method: str, params: dict[str, Any], *, timeout: float | None) -> Any:
        self._alive()
        if method in self.net.answers:
            return self.net.answers[method]
        async with asyncio.timeout(timeout):
            while method not in self.other.handlers:
                await asyncio.sleep(0)
                self._alive()
            task = asyncio.ensure_future(self.other.handlers[method](dict(params)))
            try:
                while not task.done():
                    await asyncio.wait({task}, timeout=0.05)
                    if not task.done():
                        self._alive()
            except BaseException:
                task.cancel()
                raise
        if task.exception() is not None:
            raise MrcRemoteError(str(task.exception()))
        return task.result()

    def serve(self, method: str, handler: Callable[..., Any]) -> None:
        self.handlers[method] = handler

    def stats(self) -> QpStats:
        values: dict[str, Any] = {**self.counters, "state": QpState.RTS, "error": WcStatus.SUCCESS}
        return QpStats(**values)

    def path_stats(self) -> list[PathStats]:
        share = self.counters["packets_sent"] // self.evs
        return [
            PathStats(
                share,
                share * 4096,
                0,
                0,
                0,
                0,
                0,
                0,
                share,
                share * 20_000,
                10_000 if share else 0,
                40_000 if share else 0,
                0,
                0,
                49152 + i,
                1 + i % 4,
                EvState.GOOD,
                backup=False,
            )
            for i in range(self.evs)
        ]

    def ev_events(self) -> list[Any]:
        events, self.events = self.events, []
        return events

    def drops(self) -> dict[str, int]:
        return {"icrc": self.net.drops, "short": 0}

    def port_stats(self) -> PortStats:
        values: dict[str, Any] = dict.fromkeys(PortStats.__dataclass_fields__, 0)
        values |= {"rx_socket_drops": self.net.drops, "caps": PortCap.GSO, "kind": Backend.MEM}
        return PortStats(**values)

    def lose(self, why: str = "the peer vanished", goodbye: bool = False) -> None:
        """As seen from this end: the connection is gone."""
        if self.lost is None:
            self.lost = MrcPeerLost(why)
            self.closed.set_result(None if goodbye else self.lost)
            self.imms.put_nowait(self.lost)
            self.changed.set()
            for conn, future, _ in self.net.stalled:
                if conn in (self, self.other) and not future.done():
                    future.set_exception(self.lost)

    async def close(self, timeout: float) -> None:
        if self.lost is None:
            self.lost = MrcPeerLost("the connection is closed")
            self.other.lose("the peer closed the connection", goodbye=True)
        if self.passive:
            await asyncio.sleep(self.net.farewell_s)


class FakeServer:
    def __init__(self) -> None:
        self.arrivals: asyncio.Queue[FakeConn] = asyncio.Queue()
        self.sockname = ("::", 18515, 0, 0)

    def __aiter__(self) -> FakeServer:
        return self

    async def __anext__(self) -> FakeConn:
        return await self.arrivals.get()

    def close(self) -> None:
        pass

    async def wait_closed(self, timeout: float) -> None:
        pass


class FakeNet:
    """What both ends are given instead of mrc.connect and mrc.listen."""

    def __init__(self) -> None:
        self.delay_s = 0.0
        self.farewell_s = 0.0  # what closing takes at the receiver
        self.drops = 0  # packets lost at either port since the program began
        self.corrupt_write: int | None = None
        self.corrupt_reverse: int | None = None
        self.skip_write: int | None = None
        self.stall_at: int | None = None
        self.stalled: list[tuple[FakeConn, asyncio.Future[None], Callable[[], None]]] = []
        self.answers: dict[str, Any] = {}
        self.clients: list[FakeConn] = []
        self.dialled: list[dict[str, Any]] = []
        self.listening = asyncio.Event()
        self._server: FakeServer | None = None

    def release(self) -> None:
        """The stalled writes go on, behind those that were on their way; no further ones stall."""
        self.stall_at = None
        for *_, place in self.stalled:
            asyncio.get_running_loop().call_soon(place)
        self.stalled.clear()

    async def listen(self, address: str, **options: Any) -> FakeServer:
        self._server = FakeServer()
        self.listening.set()
        return self._server

    async def connect(self, host: str, port: int, **options: Any) -> FakeConn:
        if self._server is None:
            raise ConnectionRefusedError(111, "Connection refused")
        self.dialled.append(options)
        evs = options.get("evs") or 16
        here, there = FakeConn(self, evs), FakeConn(self, evs)
        here.other, there.other = there, here
        there.passive = True
        self.clients.append(here)
        self._server.arrivals.put_nowait(there)
        return here
