# SPDX-License-Identifier: BSD-2-Clause
"""The emulated fabric from Python: the only importer of mrc._sim.

    with Emulation(Config(planes=4, t0=2, t1=4, hosts=2, rate_bps=10**9),
                   ev_sets=[evs], ccs=[Cc(mtu_bytes=4096)], qps=[Qp(a=0, b=1)],
                   bulks=[Bulk(flow=0, bytes=1 << 20)]) as emu:
        emu.run_until(10_000_000)
        emu.set_link(emu.link(Tier.T0_T1, 0, 0, 1), Knob.CUT, 1)
        emu.run_until(20_000_000)
        print(emu.flows()[0][FlowCol.DELIVERED])

Calls are made per interval, never per packet. One thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from enum import IntEnum
from ipaddress import IPv6Address
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from mrc._sim import ffi, lib
from mrc.errors import MrcError, MrcUsageError
from mrc.types import DropReason

from ._tables import (
    NONE,
    Bulk,
    Cc,
    Config,
    Drop,
    Ev,
    Event,
    EventKind,
    FlowCol,
    Knob,
    LinkCol,
    Messages,
    MsgCol,
    PathCol,
    Qp,
    Sizes,
    SwitchKnob,
    Tier,
    Totals,
)

__all__ = ["Emulation", "EmulationError", "Table"]

_WHY = 256
_EVENTS = 1024
_NOT_COPIED = {"queue_bytes", "control_bytes", "trimmed_bytes", "weights"}

_Column = TypeVar("_Column", bound=IntEnum)


class EmulationError(MrcError):
    """What must never happen has: the emulation's own checks failed. The message says what."""


class Table(Generic[_Column]):
    """Rows of unsigned numbers. `table[row][COLUMN]`, `table.column(COLUMN)`."""

    __slots__ = ("_cells", "_columns", "_kind")

    def __init__(self, cells: memoryview, columns: int, kind: type[_Column]) -> None:
        self._cells = cells
        self._columns = columns
        self._kind = kind

    def __len__(self) -> int:
        return len(self._cells) // self._columns

    def __getitem__(self, row: int) -> memoryview:
        if not 0 <= row < len(self):
            raise IndexError(row)
        return self._cells[row * self._columns : (row + 1) * self._columns]

    def __iter__(self) -> Iterator[memoryview]:
        return (self[i] for i in range(len(self)))

    def column(self, column: _Column) -> list[int]:
        """One value of every row."""
        values: list[int] = self._cells[column :: self._columns].tolist()
        return values

    def as_dict(self, row: int) -> dict[_Column, int]:
        """A row by its columns, for people."""
        return dict(zip(self._kind, self[row], strict=True))


def _buffer(rows: int, columns: int) -> tuple[Any, memoryview]:
    """An array C writes to, and the view of it that Python reads."""
    owner = memoryview(bytearray(rows * columns * 8))
    return ffi.from_buffer("uint64_t[]", owner, require_writable=True), owner.cast("Q")


def _configuration(config: Config) -> Any:
    cfg = ffi.new("struct fab_cfg *")
    for f in fields(config):
        if f.name not in _NOT_COPIED:
            setattr(cfg, f.name, getattr(config, f.name))
    for i, limit in enumerate((config.queue_bytes, config.control_bytes, config.trimmed_bytes)):
        cfg.queue_bytes[i] = limit
    for i, weight in enumerate(config.weights):
        cfg.weight[i] = weight
    return cfg


def _copy(rows: Sequence[Any], array: Any, leave: frozenset[str] = frozenset()) -> None:
    """Dataclasses into an array of structs of the same field names."""
    names = [f.name for f in fields(rows[0]) if f.name not in leave] if rows else []
    for to, row in zip(array, rows, strict=True):
        for name in names:
            setattr(to, name, getattr(row, name))


class Emulation:
    """One fabric, its hosts, its work. Everything is allocated here; closing frees it.

    MrcUsageError: a table that makes no sense; the message names the row.
    """

    NEVER = (1 << 64) - 1
    """A time that has not come."""

    def __init__(
        self,
        config: Config,
        *,
        ev_sets: Sequence[Sequence[Ev]],
        ccs: Sequence[Cc],
        qps: Sequence[Qp],
        messages: Messages | None = None,
        bulks: Sequence[Bulk] = (),
    ) -> None:
        self.config = config
        self.qps = tuple(qps)
        self._messages = len(messages) if messages is not None else 0
        keep, tables = self._tables(ev_sets, ccs, messages, bulks)
        why = ffi.new("char[]", _WHY)
        raw = lib.fab_create(_configuration(config), tables, why)
        del keep
        if raw == ffi.NULL:
            raise MrcUsageError(f"the fabric cannot be made: {ffi.string(why).decode()}")
        self._fab = ffi.gc(raw, lib.fab_destroy)
        self._ev_counts = [len(ev_sets[q.evs]) for q in self.qps]
        self._open = True

    def _tables(
        self,
        ev_sets: Sequence[Sequence[Ev]],
        ccs: Sequence[Cc],
        messages: Messages | None,
        bulks: Sequence[Bulk],
    ) -> tuple[list[Any], Any]:
        """The structs, and what they point to."""
        evs = [ev for one in ev_sets for ev in one]
        first = [0]
        for one in ev_sets:
            first.append(first[-1] + len(one))
        arrays = {
            "ev": ffi.new("struct fab_ev[]", max(1, len(evs))),
            "cc": ffi.new("struct mrc_cc_cfg[]", max(1, len(ccs))),
            "qp": ffi.new("struct fab_qp[]", max(1, len(self.qps))),
            "bulk": ffi.new("struct fab_bulk[]", max(1, len(bulks))),
        }
        _copy(evs, list(arrays["ev"])[: len(evs)])
        _copy(ccs, list(arrays["cc"])[: len(ccs)])
        _copy(self.qps, list(arrays["qp"])[: len(self.qps)], frozenset({"evs"}))
        _copy(bulks, list(arrays["bulk"])[: len(bulks)])
        for to, qp in zip(arrays["qp"], self.qps, strict=False):
            if not 0 <= qp.evs < len(ev_sets):
                raise MrcUsageError(f"there is no EV profile {qp.evs}")
            to.ev_first = first[qp.evs]
            to.ev_count = len(ev_sets[qp.evs])
        tables = ffi.new("struct fab_tables *")
        for name, array in arrays.items():
            setattr(tables, name, array)
        keep: list[Any] = list(arrays.values())
        if messages is not None and len(messages) > 0:
            packed = ffi.from_buffer("struct fab_msg[]", messages.packed())
            tables.msg = packed
            keep.append(packed)
        tables.evs, tables.ccs, tables.qps = len(evs), len(ccs), len(self.qps)
        tables.bulks, tables.msgs = len(bulks), self._messages
        return keep, tables

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free everything. May be called twice."""
        if self._open:
            self._open = False
            ffi.release(self._fab)

    @property
    def _f(self) -> Any:
        if not self._open:
            raise MrcUsageError("the emulation is closed")
        return self._fab

    # ---- time ----

    def run_until(self, time_ns: int, *, stop_when_done: bool = False) -> None:
        """Everything up to and at that time; or until no message is left that can arrive.

        EmulationError: a check of the emulation failed: bytes, order, or a deadline.
        """
        if not 0 <= time_ns <= self.NEVER:
            raise MrcUsageError(f"{time_ns} ns is no time from the start")
        if lib.fab_run(self._f, time_ns, stop_when_done) < 0:
            raise EmulationError(ffi.string(lib.fab_failure(self._f)).decode())

    @property
    def now_ns(self) -> int:
        """Virtual time since the start."""
        return lib.fab_now(self._f)

    @property
    def trace_hash(self) -> int:
        """Of all that happened: the same tables, seed and calls give the same."""
        return lib.fab_hash(self._f)

    @property
    def messages_left(self) -> int:
        """Messages that have neither arrived nor been given up."""
        return lib.fab_messages_left(self._f)

    # ---- faults ----

    def link(self, tier: Tier, plane: int, a: int, b: int = 0) -> int:
        """Number of a directed link: host `a`; or T0 `a` and T1 `b`. MrcUsageError: no such."""
        found = lib.fab_link_id(self._f, tier, plane, a, b) if min(plane, a, b) >= 0 else NONE
        if found == NONE:
            raise MrcUsageError(f"no link {tier.name} {a}, {b} in plane {plane}")
        return found

    def switch(self, plane: int, number: int, *, t1: bool) -> int:
        """Number of a switch. MrcUsageError: no such."""
        found = lib.fab_switch_id(self._f, t1, plane, number) if min(plane, number) >= 0 else NONE
        if found == NONE:
            raise MrcUsageError(f"no {'T1' if t1 else 'T0'} {number} in plane {plane}")
        return found

    def set_link(self, link: int, knob: Knob, value: int) -> None:
        """From now on. MrcUsageError: no such link, or a value out of its range."""
        if lib.fab_link_set(self._f, link, knob, value) < 0:
            raise MrcUsageError(f"link {link}: {knob.name} cannot be {value}")

    def set_switch(self, switch: int, knob: SwitchKnob, *, on: bool) -> None:
        """From now on. MrcUsageError: no such switch."""
        if lib.fab_switch_set(self._f, switch, knob, on) < 0:
            raise MrcUsageError(f"there is no switch {switch}")

    # ---- reading ----

    def totals(self) -> Totals:
        """Packets and messages of the whole fabric."""
        raw = ffi.new("struct fab_totals *")
        lib.fab_totals(self._f, raw)
        dropped = {d: raw.dropped[d] for d in Drop}
        names = [f.name for f in fields(Totals) if f.name != "dropped"]
        return Totals(**{n: getattr(raw, n) for n in names}, dropped=dropped)

    def sizes(self) -> Sizes:
        """Memory, links, switches, the largest tables."""
        raw = ffi.new("struct fab_sizes *")
        lib.fab_sizes(self._f, raw)
        return Sizes(**{f.name: getattr(raw, f.name) for f in fields(Sizes)})

    def address(self, src: int, dst: int, ev: int) -> IPv6Address:
        """Outer destination of packets between two hosts on this EV (D.9)."""
        out = ffi.new("uint8_t[16]")
        if min(src, dst) < 0 or lib.fab_address(self._f, src, dst, ev, out) < 0:
            raise MrcUsageError(f"there is no host {src}, or no host {dst}")
        return IPv6Address(bytes(ffi.buffer(out)))

    def flows(self, first: int = 0, count: int | None = None) -> Table[FlowCol]:
        """A row per flow."""
        rows = count if count is not None else 2 * len(self.qps) - first
        out, view = _buffer(max(0, rows), lib.FAB_F_COLS)
        n = lib.fab_read_flows(self._f, out, first, max(0, rows))
        return Table(view[: n * lib.FAB_F_COLS], lib.FAB_F_COLS, FlowCol)

    def paths(self, flow: int) -> Table[PathCol]:
        """A row per EV of the flow's sender; flows of the same hosts and EVs share them."""
        if not 0 <= flow < 2 * len(self.qps):
            raise MrcUsageError(f"there is no flow {flow}")
        out, view = _buffer(self._ev_counts[flow // 2], lib.FAB_P_COLS)
        n = lib.fab_read_paths(self._f, flow, out, self._ev_counts[flow // 2])
        return Table(view[: n * lib.FAB_P_COLS], lib.FAB_P_COLS, PathCol)

    def links(
        self, first: int = 0, count: int | None = None, *, reset_peaks: bool = False
    ) -> Table[LinkCol]:
        """A row per directed link; `reset_peaks`: the next PEAK is since now."""
        rows = count if count is not None else self.sizes().links - first
        out, view = _buffer(max(0, rows), lib.FAB_L_COLS)
        n = lib.fab_read_links(self._f, out, first, max(0, rows), reset_peaks)
        return Table(view[: n * lib.FAB_L_COLS], lib.FAB_L_COLS, LinkCol)

    def messages(self, first: int = 0, count: int | None = None) -> Table[MsgCol]:
        """A row per message."""
        rows = count if count is not None else self._messages - first
        out, view = _buffer(max(0, rows), lib.FAB_M_COLS)
        n = lib.fab_read_messages(self._f, out, first, max(0, rows))
        return Table(view[: n * lib.FAB_M_COLS], lib.FAB_M_COLS, MsgCol)

    def drops(self, host: int) -> dict[DropReason, int]:
        """Why the engine of a host dropped packets."""
        out, view = _buffer(1, lib.MRC_DROP_COUNT)
        if lib.fab_read_drops(self._f, host, out) == 0:
            raise MrcUsageError(f"there is no host {host}")
        return {d: view[d] for d in DropReason}

    def take_events(self) -> list[Event]:
        """What engines have told since the last call, in order of time."""
        raw = ffi.new("struct fab_event[]", _EVENTS)
        found: list[Event] = []
        while (n := lib.fab_take_events(self._f, raw, _EVENTS)) > 0:
            found += [_event(raw[i]) for i in range(n)]
        return found


def _event(raw: Any) -> Event:
    return Event(
        time_ns=raw.time,
        kind=EventKind(raw.kind),
        host=raw.host,
        peer=raw.peer if raw.peer != NONE else None,
        ev=raw.ev,
        plane=raw.plane,
        from_state=getattr(raw, "from"),
        to_state=raw.to,
        reason=raw.reason,
        lost=raw.lost,
    )
