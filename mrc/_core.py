# SPDX-License-Identifier: BSD-2-Clause
"""The only importer of the compiled module: typed calls, error translation, pins.

Everything here is one call into C, or the packing around it. Objects with a life of their own
(protection domains, regions, queues, pairs) are in the modules above.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ._check import U32_MAX, whole
from ._ffi import ffi, lib
from ._typed import typed
from .errors import MrcForkError, MrcResourceError, MrcUsageError
from .types import (
    Backend,
    DropReason,
    EvEvent,
    EvReason,
    EvState,
    PortCap,
    PortStats,
    QpState,
    QpStats,
    WcStatus,
)

__all__ = ["MemWire", "Pin", "Pump", "ev_event", "ffi", "fill", "lib", "records"]

_EVENT_BATCH = 256
POST_NOW: int = lib.MRC_POST_NOW
POST_LATER: int = lib.MRC_POST_LATER
NEVER = (1 << 64) - 1  # MRC_NEVER of mrc_base.h
_ERRNO_BASE = 1000  # the pump returns -(1000 + errno) for what the system refused

_QP_STAT_FIELDS = tuple(QpStats.__dataclass_fields__)
_PORT_STAT_FIELDS = tuple(PortStats.__dataclass_fields__)


class Pin:
    """The memory of one buffer object, held in place until `release`.

    While it lives the exporter cannot resize or free the memory. Raises MrcUsageError for what
    is no contiguous buffer, is empty, or is read-only although `writable` is asked for.
    """

    __slots__ = ("_cdata", "addr", "nbytes")

    def __init__(self, buffer: Any, *, writable: bool) -> None:
        try:
            self._cdata = ffi.from_buffer("uint8_t[]", buffer, require_writable=writable)
        except (TypeError, ValueError, BufferError) as exc:
            raise MrcUsageError(f"cannot register {type(buffer).__name__}: {exc}") from exc
        self.nbytes = int(ffi.sizeof(self._cdata))
        if self.nbytes == 0:
            raise MrcUsageError("cannot register an empty buffer")
        self.addr = int(ffi.cast("uintptr_t", self._cdata))

    def release(self) -> None:
        ffi.release(self._cdata)


def records(cdecl: str, count: int) -> tuple[Any, memoryview]:
    """A zeroed C array of structs, and its bytes for packing and unpacking by offset."""
    array = ffi.new(f"struct {cdecl}[]", count)
    return array, memoryview(ffi.buffer(array)).cast("B")


class MemWire:
    """A wire in memory between two contexts of one process, for tests and examples.

    `ring` packets fit each way; faults are drawn from `seed`. Contexts on it keep it alive.
    """

    __slots__ = ("__weakref__", "ptr")

    @typed
    def __init__(self, ring: int = 4096, seed: int = 1) -> None:
        whole("ring", ring, 1, U32_MAX)
        self.ptr = lib.mrc_mem_wire_create(ring, seed & (1 << 64) - 1)
        if self.ptr == ffi.NULL:
            raise MrcUsageError(f"cannot make a memory wire of {ring} packets")

    @typed
    def faults(self, *, loss_ppm: int = 0, dup_ppm: int = 0, ev: int | None = None) -> None:
        """Lose and duplicate that many packets per million; `ev` restricts both to one EV."""
        target = -1 if ev is None else whole("ev", ev, 0, U32_MAX)
        for name, value in (("loss_ppm", loss_ppm), ("dup_ppm", dup_ppm)):
            whole(name, value, 0, 1_000_000)
        if lib.mrc_mem_wire_faults(self.ptr, target, loss_ppm, dup_ppm) < 0:
            raise MrcUsageError("loss and duplication are 0..1000000 per million")

    def __del__(self) -> None:
        if getattr(self, "ptr", ffi.NULL) != ffi.NULL:
            lib.mrc_mem_wire_destroy(self.ptr)


_USAGE_TEXT = {
    lib.MRC_ERR_INVAL: "an argument is out of range",
    lib.MRC_ERR_STATE: "not possible in the present state",
    lib.MRC_ERR_NOENT: "no such object",
    lib.MRC_ERR_BUSY: "the object is in use",
    lib.MRC_ERR_ACCESS: "key, access flags or bounds refuse the memory",
}


def _fill(target: Any, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        try:
            setattr(target, name, value)
        except (OverflowError, TypeError) as exc:
            raise MrcUsageError(f"{name}: {value!r} is out of range") from exc


fill = _fill


class Pump:
    """Owner of one C pump.

    Every method raises MrcForkError in a child process (field report 77), MrcUsageError once
    closed, and otherwise translates the negative returns of mrc_pump.h.
    """

    __slots__ = ("__weakref__", "_closed", "_forks", "_ptr", "_stop")

    def __init__(self, **cfg: int) -> None:
        native = ffi.new("struct mrc_engine_cfg *")
        _fill(native, cfg)
        self._forks = lib.mrc_fork_count()
        self._closed = False
        self._ptr = lib.mrc_pump_create(native)
        if self._ptr == ffi.NULL:
            raise MrcUsageError("the context limits are out of range, or there is no memory")
        self._stop: weakref.finalize[..., Pump] | None = None

    @property
    def ptr(self) -> Any:
        if lib.mrc_fork_count() != self._forks:
            raise MrcForkError(
                "this object belongs to the process that made it; "
                "after fork() a child needs a Context of its own"
            )
        if self._closed:
            raise MrcUsageError("the context is closed")
        return self._ptr

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def foreign(self) -> bool:
        """In a forked child of the process that made it, which shares its descriptors."""
        return lib.mrc_fork_count() != self._forks

    @property
    def threaded(self) -> bool:
        """A thread of its own takes the turns."""
        return self._stop is not None

    def start(self, spin_us: int) -> None:
        """From now on a thread takes the turns: mrc_pump_start.

        MrcResourceError: the system gives none; the pump is closed.
        """
        try:
            self._checked(lib.mrc_pump_start(self.ptr, spin_us), "pump='thread'")
        except OSError as exc:
            self.close()
            raise MrcResourceError(exc.strerror) from exc
        # At the end of the process it must stop before the memory goes that it may write to.
        self._stop = weakref.finalize(self, lib.mrc_pump_stop, self._ptr)

    def spin(self, spin_us: int) -> None:
        """How long turns say SOON after a packet: mrc_pump_spin."""
        self._checked(lib.mrc_pump_spin(self.ptr, spin_us), "spin_us")

    def stop(self) -> None:
        """Take no more turns: for an owner that was lost without a close."""
        if self._stop is not None:
            self._stop()

    def require_idle(self) -> None:
        """MrcUsageError while another thread is inside, or waits."""
        self._checked(lib.mrc_pump_idle(self.ptr), "close")

    def closing(self) -> None:
        """Nobody begins to wait, or a turn, any more: close() will succeed.

        MrcUsageError, and nothing changes, while another thread is inside, or waits.
        """
        self._checked(lib.mrc_pump_closing(self.ptr), "close")

    def close(self) -> None:
        """Free everything. MrcUsageError, and nothing was: another thread is inside, or waits.

        In a forked child nothing is touched: descriptors are shared.
        """
        if self._closed:
            return
        if not self.foreign:
            self._checked(lib.mrc_pump_close(self._ptr), "close")
            if self._stop is not None:
                self._stop.detach()
            # A thread may hold the pointer already; it finds a closed pump. The rest goes with us.
            self._ptr = ffi.gc(self._ptr, lib.mrc_pump_destroy)
        self._closed = True

    def _checked(self, rc: int, what: str) -> int:
        if rc >= 0:
            return rc
        words = ffi.string(lib.mrc_pump_error(self._ptr)).decode(errors="replace")
        if rc <= -_ERRNO_BASE:
            errno = -rc - _ERRNO_BASE
            raise OSError(errno, f"{what}: {words or os.strerror(errno)}")
        if rc == lib.MRC_ERR_FULL:
            raise MrcResourceError(f"{what}: {words or 'no room'}")
        raise MrcUsageError(f"{what}: {words or _USAGE_TEXT.get(rc, f'error {rc}')}")

    checked = _checked

    # -- the loop ----------------------------------------------------------------------------

    def fd(self) -> int:
        return lib.mrc_pump_fd(self.ptr)

    def turn(self, budget: int) -> int:
        rc: int = lib.mrc_pump_turn(self.ptr, budget)
        return rc if rc >= 0 else self._checked(rc, "turn")

    def catch_up(self) -> None:
        """Deal with what has arrived, in this thread whoever takes the turns."""
        self._checked(lib.mrc_pump_catch_up(self.ptr), "turn")

    def push(self) -> None:
        """What was posted to leave later leaves now, in thread mode; a turn does so as well."""
        self._checked(lib.mrc_pump_push(self.ptr), "push")

    def wait(self, timeout_ms: int) -> int:
        return self._checked(lib.mrc_pump_wait(self.ptr, timeout_ms), "wait")

    def now(self) -> int:
        return lib.mrc_pump_now(self.ptr)

    def drops(self) -> dict[str, int]:
        return {d.name.lower(): self._drops(d) for d in DropReason}

    def _drops(self, reason: int) -> int:
        count: int = lib.mrc_pump_drops(self.ptr, reason)
        if count == NEVER:  # every reason there is has a count: the pump let nobody in
            words = ffi.string(lib.mrc_pump_error(self._ptr)).decode(errors="replace")
            raise MrcUsageError(f"drops: {words}")
        return count

    def events(self) -> list[EvEvent]:
        out = ffi.new("struct mrc_ev_event[]", _EVENT_BATCH)  # not shared: others may call as well
        found: list[EvEvent] = []
        while True:
            n = self._checked(lib.mrc_pump_events(self.ptr, out, _EVENT_BATCH), "events")
            found.extend(ev_event(out[i]) for i in range(n))
            if n < _EVENT_BATCH:
                return found

    # -- ports, paths, controllers -----------------------------------------------------------

    def port_add(self, kind: Backend, addr: bytes, wire: MemWire | None, **cfg: int) -> int:
        native = ffi.new("struct mrc_port_cfg *")
        _fill(native, cfg)
        native.kind = kind.value
        native.addr = list(addr)
        if wire is not None:
            native.wire = wire.ptr
        return self._checked(lib.mrc_pump_port_add(self.ptr, native), f"{kind.name.lower()} port")

    def port_stats(self, port: int) -> PortStats:
        out = ffi.new("struct mrc_port_stats *")
        self._checked(lib.mrc_pump_port_stats(self.ptr, port, out), "port statistics")
        values = {name: getattr(out, name) for name in _PORT_STAT_FIELDS}
        values["caps"] = PortCap(values["caps"])
        values["kind"] = Backend(values["kind"])
        return PortStats(**values)

    def rx_pause(self, paused: bool) -> None:
        self._checked(lib.mrc_pump_rx_pause(self.ptr, paused), "pause")

    def cc_create(self, cfg: Mapping[str, int | float | bool]) -> int:
        native = ffi.new("struct mrc_cc_cfg *")
        _fill(native, cfg)
        return self._checked(lib.mrc_pump_cc_create(self.ptr, native), "congestion controller")

    def cc_destroy(self, cc: int) -> None:
        self._checked(lib.mrc_pump_cc_destroy(self.ptr, cc), "close congestion controller")

    def cc_query(self, cc: int, names: Iterable[str]) -> dict[str, int]:
        out = ffi.new("struct mrc_cc_info *")
        self._checked(lib.mrc_pump_cc_query(self.ptr, cc, out), "query congestion controller")
        return {name: getattr(out, name) for name in names}

    # -- memory, completion queues -----------------------------------------------------------

    def mr_register(self, pd: int, pin: Pin, access: int, key: int) -> int:
        rkey = ffi.new("uint32_t *")
        addr = ffi.cast("void *", pin.addr)
        rc = lib.mrc_pump_mr_register(self.ptr, pd, addr, pin.nbytes, access, key, rkey)
        self._checked(rc, "register memory")
        return int(rkey[0])

    def mr_deregister(self, rkey: int) -> None:
        self._checked(lib.mrc_pump_mr_deregister(self.ptr, rkey), "close memory region")

    def cq_create(self, depth: int) -> int:
        return self._checked(lib.mrc_pump_cq_create(self.ptr, depth), "completion queue")

    def cq_destroy(self, cq: int) -> None:
        self._checked(lib.mrc_pump_cq_destroy(self.ptr, cq), "close completion queue")

    def cq_poll(self, cq: int, array: Any, size: int) -> int:
        rc: int = lib.mrc_pump_cq_poll(self.ptr, cq, array, size)
        return rc if rc >= 0 else self._checked(rc, "poll")

    def cq_overrun(self, cq: int) -> bool:
        return self._checked(lib.mrc_pump_cq_overrun(self.ptr, cq), "completion queue") != 0

    # -- queue pairs -------------------------------------------------------------------------

    def qp_create(self, **init: int) -> int:
        native = ffi.new("struct mrc_qp_init *")
        _fill(native, init)
        return self._checked(lib.mrc_pump_qp_create(self.ptr, native), "queue pair")

    def qp_modify(self, qpn: int, values: Mapping[str, Any], mask: int) -> int:
        """The queue pair's new number when it went to RESET, else 0."""
        native = ffi.new("struct mrc_qp_attr *")
        _fill(native, {k: list(v) if isinstance(v, bytes) else v for k, v in values.items()})
        rc = lib.mrc_pump_qp_modify(self.ptr, qpn, native, mask)
        return self._checked(rc, f"modify QP {qpn}")

    def qp_query(self, qpn: int, mask: int) -> dict[str, Any]:
        out = ffi.new("struct mrc_qp_attr *")
        self._checked(lib.mrc_pump_qp_query(self.ptr, qpn, out, mask), f"query QP {qpn}")
        plain = {name: getattr(out, name) for name in dir(out) if not name.endswith("_")}
        return plain | {name: bytes(plain[name]) for name in ("src", "dst", "vendor")}

    def qp_destroy(self, qpn: int) -> None:
        self._checked(lib.mrc_pump_qp_destroy(self.ptr, qpn), f"close QP {qpn}")

    def post_send(self, qpn: int, array: Any, count: int) -> int:
        """How many were accepted, in order; 0 when the queue is full."""
        rc = lib.mrc_pump_post_send(self.ptr, qpn, array, count)
        return 0 if rc == lib.MRC_ERR_FULL else self._checked(rc, f"post to QP {qpn}")

    def post(self, qpn: int, array: Any, when: int) -> bool:
        """One work request, POST_NOW or POST_LATER; False: the queue is full."""
        rc = lib.mrc_pump_post(self.ptr, qpn, array, 1, when)
        if rc not in (1, lib.MRC_ERR_FULL):
            self._checked(rc, f"post to QP {qpn}")
        return rc == 1

    def post_recv(self, qpn: int, wr_ids: Sequence[int]) -> int:
        try:
            native = ffi.new("uint64_t[]", list(wr_ids))
        except (OverflowError, TypeError) as exc:
            raise MrcUsageError(f"a work request id is no number of 64 bits: {exc}") from exc
        rc = lib.mrc_pump_post_recv(self.ptr, qpn, native, len(wr_ids))
        return 0 if rc == lib.MRC_ERR_FULL else self._checked(rc, f"post receive to QP {qpn}")

    def qp_stats(self, qpn: int) -> QpStats:
        out = ffi.new("struct mrc_qp_stats *")
        self._checked(lib.mrc_pump_qp_stats(self.ptr, qpn, out), f"statistics of QP {qpn}")
        values = {name: getattr(out, name) for name in _QP_STAT_FIELDS}
        values["state"] = QpState(values["state"])
        values["error"] = WcStatus(values["error"])
        return QpStats(**values)


def ev_event(e: Any) -> EvEvent:
    return EvEvent(
        time=e.time,
        ev=e.ev,
        plane=e.plane,
        from_state=EvState(getattr(e, "from")),
        to_state=EvState(e.to),
        reason=EvReason(e.reason),
        drop_count=e.drop_count,
        path=e.table,
    )
