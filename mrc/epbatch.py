# SPDX-License-Identifier: BSD-2-Clause
"""The endpoint batch call: many requests out, their answers in order of arrival (C.7, F.1)."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from ._typed import named
from .device import Context
from .endpoint import CONTROL_CLASS, ID_MAX, IN_FLIGHT
from .errors import MrcControlError, MrcUsageError
from .path import PathTable
from .types import ProbeResult

__all__ = [
    "Batch",
    "BatchResult",
    "EndpointOp",
    "EndpointRequest",
    "EndpointResponse",
    "send_and_wait",
]

_GRACE_NS = 1_000_000_000


class EndpointOp(Enum):
    """What is asked: does this EV reach you; or, know that these ports of mine are up."""

    PORT_STATUS = 0
    EV_PROBE = 1


@named
@dataclass(frozen=True, slots=True)
class EndpointRequest:
    """One request. The path table says who asks whom and in which format.

    request_id: 0..0xEFFF, not used again while an old answer may be on its way. port_status_mask:
    bit N is port N, of PORT_STATUS only. service_time: the peer corrects timestamps (H11).
    """

    request_id: int
    path: PathTable
    ev: int
    port_status_mask: int = 0
    service_time: bool = False


@dataclass(frozen=True, slots=True)
class EndpointResponse:
    """One answer. `port`: as in ProbeResult, 1-based; `adjusted`: the peer's own time is not in."""

    request_id: int
    port: int
    rtt_ns: int
    adjusted: bool


@dataclass(frozen=True, slots=True)
class BatchResult:
    """Answers in order of arrival, and the ids of those that did not come in time."""

    responses: tuple[EndpointResponse, ...]
    missing: tuple[int, ...]

    @property
    def error(self) -> int:
        """0, or ETIMEDOUT: some are missing."""
        return errno.ETIMEDOUT if self.missing else 0


class Batch:
    """A call on its way: post() until `done`, take() what the endpoint gives.

    MrcControlError, and nothing was sent: EINVAL for a request that cannot be, EAGAIN for an id
    that is in use. drop() when it is over, however that came.
    """

    def __init__(
        self,
        ctx: Context,
        requests: Sequence[EndpointRequest],
        *,
        op: EndpointOp,
        timeout_ns: int,
        dscp: int,
    ) -> None:
        self.ctx = ctx
        if type(timeout_ns) is not int or type(dscp) is not int:
            _refuse(errno.EINVAL, f"timeout {timeout_ns!r} or class {dscp!r} is not a number")
        self.ends_ns = ctx.now() + timeout_ns
        self._op = op
        self._dscp = dscp
        if not isinstance(requests, Sequence):
            _refuse(errno.EINVAL, f"requests {requests!r:.60} are no EndpointRequests")
        self._check(requests, timeout_ns)
        self._claimed = {r.request_id for r in requests}  # not posted yet; the engine frees others
        ctx.endpoint.in_use |= self._claimed
        self._todo = deque(requests)
        self._out: set[int] = set()
        self._responses: list[EndpointResponse] = []
        self._missing: list[int] = []

    def _check(self, requests: Sequence[EndpointRequest], timeout_ns: int) -> None:
        if not isinstance(self._op, EndpointOp):
            _refuse(errno.EINVAL, f"{self._op!r} is no EndpointOp")
        seen: set[int] = set()
        tables: dict[PathTable, set[int]] = {}
        for r in requests:
            _check_types(r)
            if not 0 <= r.request_id <= ID_MAX:
                _refuse(errno.EINVAL, f"request id {r.request_id} is not in 0..{ID_MAX:#x}")
            if r.request_id in seen:
                _refuse(errno.EINVAL, f"request id {r.request_id} occurs twice")
            seen.add(r.request_id)
            if r.path.closed or r.path.ctx is not self.ctx:
                _refuse(errno.EINVAL, f"request {r.request_id}: no path table of this context")
            if r.path not in tables:
                tables[r.path] = _evs(r.path)
            if r.ev not in tables[r.path]:
                _refuse(errno.EINVAL, f"request {r.request_id}: no EV is {r.ev:#x}")
        if not self.ctx.endpoint.possible(timeout_ns, self._dscp):
            _refuse(errno.EINVAL, f"timeout {timeout_ns} ns or class {self._dscp} is out of range")
        for number in sorted(seen & self.ctx.endpoint.in_use):
            _refuse(errno.EAGAIN, f"request {number}: its id waits for an answer of another call")

    @property
    def done(self) -> bool:
        """Every request was answered or has failed."""
        return not self._todo and not self._out

    def post(self) -> None:
        """Send what there is room for. What lost its EV or its table meanwhile is missing."""
        while self._todo and len(self._out) < IN_FLIGHT:
            left = self.ends_ns - self.ctx.now()
            if left <= 0:
                self._missing += [r.request_id for r in self._todo]
                self._todo.clear()
                return
            if self.early_ns > 0:
                return
            r = self._todo[0]
            try:
                posted = self.ctx.endpoint.post_one(
                    r.path.number,
                    r.ev,
                    r.request_id,
                    timeout_ns=left,
                    dscp=self._dscp,
                    service_time=r.service_time,
                    port_status=r.port_status_mask if self._op is EndpointOp.PORT_STATUS else None,
                )
            except MrcUsageError as exc:
                if not r.path.closed and r.ev in _evs(r.path):
                    _refuse(errno.EINVAL, f"request {r.request_id}: {exc}")
                self._missing.append(self._todo.popleft().request_id)
                continue
            if not posted:
                return  # the engine's pool is full for the moment
            self._todo.popleft()
            self._claimed.discard(r.request_id)
            self._out.add(r.request_id)
            self.ctx.endpoint.pace.sent(self.ctx.now())

    @property
    def early_ns(self) -> int:
        """For how long post() would send nothing for its pace; 0: it is not that."""
        return self.ctx.endpoint.pace.early(self.ctx.now()) if self._todo else 0

    def take(self, number: int, result: ProbeResult) -> bool:
        """One result; whether it was ours."""
        if number not in self._out:
            return False
        self._out.discard(number)
        if result.rtt_ns is None:
            self._missing.append(number)
        else:
            self._responses.append(
                EndpointResponse(number, result.port, result.rtt_ns, result.adjusted)
            )
        return True

    def drop(self) -> None:
        """Ids that were not sent are free."""
        self.ctx.endpoint.in_use -= self._claimed
        self._claimed.clear()

    def result(self) -> BatchResult:
        """What came; the rest is missing."""
        rest = [*self._out, *(r.request_id for r in self._todo)]
        return BatchResult(tuple(self._responses), tuple(self._missing + rest))


def send_and_wait(
    ctx: Context,
    requests: Sequence[EndpointRequest],
    *,
    timeout_ns: int,
    op: EndpointOp = EndpointOp.EV_PROBE,
    dscp: int = CONTROL_CLASS,
) -> BatchResult:
    """Send all, wait for all or for timeout_ns. For a context that nobody else drives.

    timeout_ns: above 0, at most 60 s. dscp: request class, 0..63. Answers are not kept between
    calls. EINVAL, EAGAIN, EIO; one that is missing is no exception but in the result. In asyncio
    use mrc.Prober.send_and_wait().
    """
    if not isinstance(ctx, Context):
        _refuse(errno.EINVAL, f"ctx {ctx!r:.60} is no Context")
    if ctx.attached is not None:
        _refuse(
            errno.EINVAL,
            "asyncio drives the context; await mrc.Prober.of(context).send_and_wait()",
        )
    batch = Batch(ctx, requests, op=op, timeout_ns=timeout_ns, dscp=dscp)
    try:
        while True:
            batch.post()
            if batch.done or ctx.now() > batch.ends_ns + _GRACE_NS:
                return batch.result()
            left = batch.early_ns or batch.ends_ns + _GRACE_NS - ctx.now()
            ctx.wait(max(1, left // 1_000_000))
            for number, result in ctx.endpoint.poll():
                batch.take(number, result)
    except MrcControlError:
        raise
    except OSError as exc:
        raise MrcControlError(errno.EIO, f"a port failed: {exc}") from exc
    finally:
        batch.drop()


def _evs(table: PathTable) -> set[int]:
    """Those it has now: the controller may have replaced some of its profile."""
    return {s.ev for s in table.stats()}


def _check_types(r: EndpointRequest) -> None:
    if not isinstance(r, EndpointRequest) or not isinstance(r.path, PathTable):
        _refuse(errno.EINVAL, f"{r!r:.60} is no EndpointRequest with a path table")
    if any(type(n) is not int for n in (r.request_id, r.ev, r.port_status_mask)):
        _refuse(errno.EINVAL, f"request {r.request_id!r}: id, EV or mask is not a number")
    if not 0 <= r.port_status_mask <= 0xFFFFFFFF or not isinstance(r.service_time, bool):
        _refuse(errno.EINVAL, f"request {r.request_id}: mask or service_time is out of range")


def _refuse(number: int, reason: str) -> NoReturn:
    raise MrcControlError(number, reason)
