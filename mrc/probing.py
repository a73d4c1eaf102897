# SPDX-License-Identifier: BSD-2-Clause
"""Prober: EV probes of a driven context, awaitable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ._check import nanoseconds
from ._waits import Gate
from .device import Context
from .endpoint import CONTROL_CLASS, IN_FLIGHT
from .epbatch import Batch, BatchResult, EndpointOp, EndpointRequest
from .errors import MrcUsageError
from .path import PathTable
from .types import ProbeResult

__all__ = ["Prober"]


class Prober:
    """Endpoint requests of a context that asyncio drives; Prober.of(context) gives its one.

    At most 128 are on their way, and no more than a peer answers.
    """

    def __init__(self, ctx: Context, kick: Callable[[], None]) -> None:
        self._ctx = ctx
        self._kick = kick
        self._gate = Gate(IN_FLIGHT)
        self._waiting: dict[int, asyncio.Future[ProbeResult]] = {}
        self._batches: list[Batch] = []
        self._batch_news = asyncio.Event()

    @staticmethod
    def of(context: Context) -> Prober:
        """That of this context. MrcUsageError: asyncio does not drive it; see send_and_wait()."""
        prober = getattr(getattr(context, "attached", None), "prober", None)
        if not isinstance(prober, Prober):
            raise MrcUsageError(f"no connection or server drives the context {context!r:.60}")
        return prober

    async def probe(
        self,
        path: PathTable,
        evs: Sequence[int],
        timeout: float,
        dscp: int = CONTROL_CLASS,
        *,
        service_time: bool = False,
    ) -> list[ProbeResult]:
        """One result for each of these EVs, in their order; see Connection.probe_paths()."""
        timeout_ns = nanoseconds(timeout)
        futures = []
        for ev in evs:
            await self._pace()
            await self._gate.acquire()
            futures.append(self._post(path, ev, timeout_ns, dscp, service_time))
        return list(await asyncio.gather(*futures))

    async def send_and_wait(
        self,
        requests: Sequence[EndpointRequest],
        *,
        timeout_ns: int,
        op: EndpointOp = EndpointOp.EV_PROBE,
        dscp: int = CONTROL_CLASS,
    ) -> BatchResult:
        """mrc.controller.send_and_wait() for a driven context (C.7)."""
        batch = Batch(self._ctx, requests, op=op, timeout_ns=timeout_ns, dscp=dscp)
        loop = asyncio.get_running_loop()
        self._batches.append(batch)
        try:
            while True:
                batch.post()
                self._kick()
                if batch.done:
                    return batch.result()
                self._batch_news.clear()
                if early := batch.early_ns:
                    await asyncio.sleep(early / 1e9)
                    continue
                left = (batch.ends_ns - self._ctx.now()) / 1e9
                async with asyncio.timeout_at(loop.time() + left + 1):
                    await self._batch_news.wait()
        except TimeoutError:
            return batch.result()
        finally:
            self._batches.remove(batch)
            batch.drop()

    async def _pace(self) -> None:
        """Return when one more probe keeps to the burst and the pace."""
        pace, now = self._ctx.endpoint.pace, self._ctx.now()
        early = pace.early(now)
        pace.sent(now)
        if early:
            await asyncio.sleep(early / 1e9)

    def _post(
        self, path: PathTable, ev: int, timeout_ns: int, dscp: int, service_time: bool
    ) -> asyncio.Future[ProbeResult]:
        try:
            ids = self._ctx.endpoint.post(
                path.number, [ev], timeout_ns=timeout_ns, dscp=dscp, service_time=service_time
            )
        except BaseException:
            self._gate.release()
            raise
        future: asyncio.Future[ProbeResult] = asyncio.get_running_loop().create_future()
        self._waiting[ids[0]] = future  # there is room: the gate is narrower than the pool
        self._kick()
        return future

    def on_results(self) -> None:
        """Driver: results are waiting. Those nobody waits for any more are let go."""
        for number, result in self._ctx.endpoint.poll():
            if any(batch.take(number, result) for batch in self._batches):
                self._batch_news.set()
                continue
            future = self._waiting.pop(number, None)
            if future is None:  # posted past us, by the context's owner
                continue
            self._gate.release()
            if not future.done():
                future.set_result(result)

    def fail(self, exc: Exception) -> None:
        """No result will come any more."""
        self._gate.fail(exc)
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(exc)
                future.exception()  # whoever waits gets it; nobody need
        self._waiting.clear()
