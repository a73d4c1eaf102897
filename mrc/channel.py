# SPDX-License-Identifier: BSD-2-Clause
"""The out-of-band channel on asyncio: frames over one stream, and calls with answers over it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import MrcPeerLost, MrcRemoteError, MrcUsageError
from .oob import FRAME_BYTES_MAX, HELLO_BYTES_MAX, FrameError, cost, decode_body, encode_frame
from .peertext import printable

__all__ = ["Calls", "Channel", "Handler"]

Handler = Callable[[dict[str, Any]], Awaitable[Mapping[str, Any] | None]]

_BACKLOG_BYTES_MAX = 16 << 20  # a peer that does not read is given up at this point
_PARKED_MAX = 64  # calls that wait for their handler
_PARKED_SECONDS = 10.0  # who has just connected may not have said yet what it serves
_PARKED_COST_MAX = 8 << 20  # bytes of memory, see oob.cost()
_RUNNING_MAX = 1024  # calls whose handler runs
_RUNNING_COST_MAX = 64 << 20

# The kernel notices a vanished host: 10 s idle, then 5 probes 2 s apart; unsent data for 20 s.
_KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 5),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 20_000),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)


class Channel:
    """Frames over a stream. What is read has passed decode_body; what is no frame is FrameError."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._body_max = HELLO_BYTES_MAX
        self.cost = 0  # of the latest message, bytes of memory
        sock = writer.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            for level, option, value in _KEEPALIVE:
                sock.setsockopt(level, option, value)

    @property
    def sockname(self) -> Any:
        """Local address of the stream."""
        return self._writer.get_extra_info("sockname")

    @property
    def peername(self) -> Any:
        """Address of the other end."""
        return self._writer.get_extra_info("peername")

    @property
    def trusted(self) -> bool:
        """The peer has said hello."""
        return self._body_max == FRAME_BYTES_MAX

    def trust(self) -> None:
        """The peer has said hello: larger messages are accepted from now on."""
        self._body_max = FRAME_BYTES_MAX

    def send(self, message: Mapping[str, Any]) -> None:
        """Queue a frame. FrameError: not expressible. MrcPeerLost: the peer does not read."""
        frame = encode_frame(message)
        if self._writer.is_closing():
            raise MrcPeerLost("the TCP connection to the peer is closed")
        if self._writer.transport.get_write_buffer_size() > _BACKLOG_BYTES_MAX:
            self.abort()
            raise MrcPeerLost("the peer does not read its TCP connection")
        try:
            self._writer.write(frame)
        except RuntimeError as exc:  # the event loop has ended
            raise MrcPeerLost("the TCP connection to the peer is closed") from exc

    async def recv(self) -> dict[str, Any] | None:
        """The next message; None: the stream ended between frames or was reset.

        FrameError: not a frame, or too large a one.
        """
        try:
            head = await self._reader.readexactly(4)
            size = int.from_bytes(head, "big")
            if size > self._body_max:
                raise FrameError(f"a frame of {size} bytes is above the limit of {self._body_max}")
            body = await self._reader.readexactly(size)
            self.cost = cost(body)
            return decode_body(body)
        except asyncio.IncompleteReadError as exc:
            if exc.partial:
                raise FrameError("the stream ended inside a frame") from exc
            return None
        except OSError:
            return None

    async def close(self, timeout: float | None = 1.0) -> None:
        """Send what is queued, then close; after `timeout` seconds close all the same.

        Errors of a dead stream are of no interest here.
        """
        self._writer.close()
        try:
            async with asyncio.timeout(timeout):
                await self._writer.wait_closed()
        except TimeoutError:
            self.abort()
        except OSError:
            pass

    def abort(self) -> None:
        """Close now, whatever is queued."""
        self._writer.transport.abort()


@dataclass(frozen=True, slots=True)
class _Parked:
    """A call that nobody serves yet."""

    message: dict[str, Any]
    cost_bytes: int
    end: asyncio.TimerHandle  # of its patience


class Calls:
    """Calls with answers over a channel, both ways."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._handlers: dict[str, Handler] = {}
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._parked: dict[int, _Parked] = {}
        self._running: dict[asyncio.Task[None], int] = {}  # and what each costs
        self._parks = 0
        self._last_id = 0
        self._error: Exception | None = None

    async def call(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """What the peer's handler returns; dropped when it comes after a cancellation.

        MrcRemoteError: the handler raised, or the peer has none.
        """
        if self._error is not None:
            raise self._error.with_traceback(None)
        if not isinstance(method, str):
            raise MrcUsageError(f"the method of a call is text, not {method!r}")
        if not isinstance(params, Mapping):
            raise MrcUsageError(f"the params of a call are a mapping, not {params!r:.60}")
        self._last_id += 1
        call_id = self._last_id
        message = {"type": "call", "id": call_id, "method": method, "params": dict(params)}
        try:
            self._channel.send(message)
        except FrameError as exc:
            raise MrcUsageError(str(exc)) from exc
        fut: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = fut
        try:
            return await fut
        finally:
            self._waiting.pop(call_id, None)

    def serve(self, method: str, handler: Handler) -> None:
        """Answer calls of this method; calls that came earlier are answered now."""
        self._handlers[method] = handler
        for key, call in list(self._parked.items()):
            if call.message["method"] == method:
                del self._parked[key]
                call.end.cancel()
                self._start(call.message, call.cost_bytes)

    def on_call(self, message: dict[str, Any]) -> None:
        """A call came in, just now. One without a handler is kept a while for one to come."""
        method, params = message.get("method"), message.get("params")
        if not isinstance(method, str) or not isinstance(params, dict):
            raise FrameError("a call without method or params")
        if not isinstance(message.get("id"), int):
            raise FrameError("a call without an id")
        self._start(message, self._channel.cost)

    def _start(self, message: dict[str, Any], cost_bytes: int) -> None:
        method, call_id = message["method"], message["id"]
        handler = self._handlers.get(method)
        if handler is None:
            self._park(message, cost_bytes)
            return
        if len(self._running) >= _RUNNING_MAX:
            self._answer(call_id, error=f"{_RUNNING_MAX} calls are running here")
            return
        if self._running and sum(self._running.values()) + cost_bytes > _RUNNING_COST_MAX:
            self._answer(call_id, error="the calls that are running here hold too much memory")
            return
        run = self._run(handler, call_id, message["params"])
        task = asyncio.get_running_loop().create_task(run)
        self._running[task] = cost_bytes
        task.add_done_callback(self._running.pop)

    def _park(self, message: dict[str, Any], cost_bytes: int) -> None:
        held = sum(each.cost_bytes for each in self._parked.values())
        if len(self._parked) >= _PARKED_MAX or held + cost_bytes > _PARKED_COST_MAX:
            self._unserved(message)
            return
        self._parks += 1
        key = self._parks
        end = asyncio.get_running_loop().call_later(_PARKED_SECONDS, self._unpark, key)
        self._parked[key] = _Parked(message, cost_bytes, end)

    def _unpark(self, key: int) -> None:
        self._unserved(self._parked.pop(key).message)

    def _unserved(self, message: dict[str, Any]) -> None:
        served = ", ".join(sorted(self._handlers)) or "nothing"
        name = printable(message["method"], 80)
        text = f"nobody serves {name!r} here (served: {printable(served, 400)})"
        self._answer(message["id"], error=text)

    async def _run(self, handler: Handler, call_id: int, params: dict[str, Any]) -> None:
        try:
            answer = await handler(params)
            result = {} if answer is None else dict(answer)
        except asyncio.CancelledError:
            self._answer(call_id, error="CancelledError: the handler was cancelled")
            raise
        except Exception as exc:  # noqa: BLE001 - whatever it is, the caller is told
            self._answer(call_id, error=f"{type(exc).__name__}: {exc}"[:2000])
        else:
            self._answer(call_id, result=result)

    def _answer(self, call_id: int, **content: Any) -> None:
        try:
            try:
                self._channel.send({"type": "answer", "id": call_id, **content})
            except FrameError as exc:
                self._channel.send({"type": "answer", "id": call_id, "error": str(exc)})
        except MrcPeerLost:
            pass  # nobody is left to be told

    def on_answer(self, message: dict[str, Any]) -> None:
        """An answer came in; one that nobody waits for any more is dropped."""
        call_id = message.get("id")
        if not isinstance(call_id, int):
            raise FrameError("an answer without an id")
        fut = self._waiting.get(call_id)
        if fut is None or fut.done():
            return
        result = message.get("result")
        if isinstance(result, dict):
            fut.set_result(result)
        else:
            fut.set_exception(MrcRemoteError(printable(message.get("error", "no result"), 2000)))

    def fail(self, exc: Exception) -> None:
        """No answers will come. Handlers that still run are left to find out by themselves."""
        self._error = self._error or exc
        for call in self._parked.values():
            call.end.cancel()
        self._parked.clear()
        for fut in self._waiting.values():
            if not fut.done():
                fut.set_exception(self._error)
