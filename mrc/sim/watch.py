# SPDX-License-Identifier: BSD-2-Clause
"""What is read of an emulation while it runs: samples of flows, works and all, changes of EVs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mrc.fabric.record import TOTAL, EvChange, FlowSum, Sample
from mrc.fabric.scenario import Case
from mrc.types import EvReason, EvState

from ._fab import Emulation, Table
from ._tables import EventKind, FlowCol, PathCol
from .traffic import Flow, Traffic

__all__ = ["FLOWS_MAX", "Watch"]

FLOWS_MAX = 16
"""Flows that are sampled one by one; with more of them only works and all."""

EVENTS_MAX = 2000
"""Changes of EVs kept of a run; the others are counted."""

_LETTERS = {
    EvState.GOOD: "g",
    EvState.SKIP: "s",
    EvState.ASSUMED_BAD: "b",
    EvState.DENIED: "d",
}
_NO_WINDOW = (1 << 64) - 1
_COLUMNS = {
    "sent_bytes": FlowCol.SENT_BYTES,
    "sent": FlowCol.SENT,
    "retransmitted": FlowCol.RETRANSMITTED,
    "spurious": FlowCol.DUPLICATES,
    "lost": FlowCol.LOST,
    "timeouts": FlowCol.TIMEOUTS,
    "marked": FlowCol.MARKED,
    "trimmed": FlowCol.TRIMMED,
}


class Watch:
    """Looks on, and remembers."""

    def __init__(self, case: Case, traffic: Traffic, emulation: Emulation) -> None:
        self._planes = case.shape.planes
        self._duration_s = case.run.duration_ns / 1e9
        self._emulation = emulation
        self._flows = list(traffic.flows.values())
        self._works: dict[str, list[int]] = {}
        for flow in self._flows:
            self._works.setdefault(flow.work, []).append(flow.index)
        # Queue pairs between the same hosts with the same EVs have one table between them.
        self._tables = {
            flow.index: (flow.src, flow.dst, emulation.qps[flow.index // 2].evs)
            for flow in self._flows
        }
        self.samples: list[Sample] = []
        self.events: list[EvChange] = []
        self.left_out = 0
        self.failed: dict[int, int] = {}
        """Errors by flow."""

    def look(self) -> None:
        """A sample of everybody, now."""
        t_s = self._emulation.now_ns / 1e9
        table = self._emulation.flows()
        columns = {name: table.column(column) for name, column in _COLUMNS.items()}
        delivered = table.column(FlowCol.DELIVERED)
        groups = [(TOTAL, [flow.index for flow in self._flows])]
        groups += list(self._works.items()) if len(self._works) > 1 else []
        ones = self._flows if len(self._flows) <= FLOWS_MAX else []
        paths = {flow.index: self._emulation.paths(flow.index) for flow in ones}
        for name, indices in groups:
            sums: dict[str, Any] = {k: sum(v[i] for i in indices) for k, v in columns.items()}
            if ones:
                tables = {self._tables[i]: paths[i] for i in indices}
                sums["planes"] = self._per_plane(list(tables.values()))
            count = sum(delivered[i] for i in indices)
            self.samples.append(Sample(t_s=t_s, flow=name, delivered_bytes=count, **sums))
        for flow in ones:
            self.samples.append(self._one(t_s, flow, table, columns, paths[flow.index]))
        self._take_events()

    def _one(
        self,
        t_s: float,
        flow: Flow,
        table: Table[FlowCol],
        columns: dict[str, list[int]],
        paths: Table[PathCol],
    ) -> Sample:
        row = table[flow.index]
        window = row[FlowCol.CWND]
        return Sample(
            t_s=t_s,
            flow=flow.name,
            delivered_bytes=row[FlowCol.DELIVERED],
            **{key: values[flow.index] for key, values in columns.items()},
            cwnd_bytes=None if window == _NO_WINDOW else window,
            planes=self._per_plane([paths]),
            evs=tuple(paths.column(PathCol.BYTES)),
            ev_states="".join(_letter(row) for row in paths),
        )

    def _per_plane(self, tables: Sequence[Table[PathCol]]) -> tuple[int, ...]:
        found = [0] * self._planes
        for table in tables:
            for row in table:
                found[row[PathCol.PLANE] - 1] += row[PathCol.BYTES]
        return tuple(found)

    def _take_events(self) -> None:
        for event in self._emulation.take_events():
            if event.kind is EventKind.FAILED:
                self.failed[event.ev] = self.failed.get(event.ev, 0) + 1
            elif event.kind is EventKind.EV and len(self.events) < EVENTS_MAX:
                self.events.append(
                    EvChange(
                        t_s=event.time_ns / 1e9,
                        host=event.host + 1,
                        peer=0 if event.peer is None else event.peer + 1,
                        ev=event.ev,
                        plane=event.plane,
                        before=EvState(event.from_state).name.lower(),
                        after=EvState(event.to_state).name.lower(),
                        reason=EvReason(event.reason).name.lower(),
                    )
                )
            else:
                self.left_out += event.kind is EventKind.EV

    def sums(self, last_arrival_s: dict[int, float]) -> tuple[FlowSum, ...]:
        """Each flow over the whole run; of flows of messages until their last one arrived."""
        table = self._emulation.flows()
        now = self._emulation.now_ns / 1e9
        found = []
        for flow in self._flows:
            row = table[flow.index]
            stop = now if flow.stop_ns is None else min(now, flow.stop_ns / 1e9)
            start, end = flow.start_ns / 1e9, last_arrival_s.get(flow.index, stop)
            count = row[FlowCol.DELIVERED]
            found.append(
                FlowSum(
                    flow=flow.name,
                    work=flow.work,
                    src=flow.src + 1,
                    dst=flow.dst + 1,
                    bytes=count,
                    start_s=start,
                    end_s=end,
                    goodput_bps=count * 8 / (end - start) if end > start else 0.0,
                    completions=row[FlowCol.MESSAGES],
                    errors=self.failed.get(flow.index, 0),
                )
            )
        return tuple(found)


def _letter(row: memoryview) -> str:
    letter = _LETTERS[EvState(row[PathCol.STATE])]
    return letter.upper() if row[PathCol.BACKUP] else letter
