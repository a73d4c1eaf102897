# SPDX-License-Identifier: BSD-2-Clause
"""One test while it runs, seen from one end: baselines, interval reports, the last figures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from mrc.cli import report
from mrc.cli.link import Link
from mrc.cli.measure import PERIOD_S, CpuClock, Progress
from mrc.cli.ports import PortCounts
from mrc.cli.protocol import TestParams
from mrc.telemetry import Snapshot, event_json, grown

EVENTS_MAX = 10_000
PARTIAL_MIN_NS = 10_000_000
"""The last interval is as long as it is; one that says next to nothing is left out."""


class TestRun:
    """Takes snapshots of all links of a test; `clock_ns` is the zero of the times it reports."""

    __test__ = False  # not a test case, whatever pytest thinks of the name

    def __init__(
        self,
        links: Sequence[Link],
        params: TestParams,
        sends: bool,
        on_progress: Callable[[], None] | None = None,
        clock_ns: int | None = None,
    ) -> None:
        self.links = links
        self.params = params
        self.sends = sends
        """This end sends the main direction; with bidir the other one, too, is measured."""
        self.start_ns = time.monotonic_ns()
        self.clock_ns = self.start_ns if clock_ns is None else clock_ns
        if clock_ns is None:  # else the report goes on, as that of a sweep does
            for link in self._tables().values():
                link.rtt_anew()
        self.base = self.snapshots()
        self.port_base = links[0].port_counts()
        self.cpu = CpuClock()
        self.events: list[dict[str, Any]] = []
        self.events_dropped = 0
        self.end_ns = 0
        self.cpu_percent = (0.0, 0.0, 0.0)
        self._final: list[Snapshot] | None = None
        self._port_final: PortCounts | None = None
        # a look costs some 20 us a connection: with many, look less often rather than use the core
        period_s = PERIOD_S * max(1, len(links) // 4)
        self.progress = Progress(self._bytes, on_progress, period_s)
        self._ticker: asyncio.Task[None] | None = None
        self._emit: Callable[[dict[str, Any]], None] | None = None
        self._told = self.base
        for link in links:
            link.take_events()  # what happened before is not ours

    def snapshots(self) -> list[Snapshot]:
        """All links, now; a table of paths that they share is read once."""
        paths = {table: link.paths() for table, link in self._tables().items()}
        return [link.snapshot(paths[link.path_table]) for link in self.links]

    def _bytes(self) -> int:
        """Placed at the receiver; acknowledged at the sender, and with --bidir what came back."""
        count = sum(link.bytes_acked() for link in self.links) if self.sends else 0
        if not self.sends or self.params.bidir:
            count += sum(link.bytes_received() for link in self.links)
        return count

    @property
    def receives(self) -> bool:
        """Data (not only credits) comes in at this end."""
        return not self.sends or self.params.bidir or self.params.kind == "latency"

    def start_intervals(self, seconds: float, emit: Callable[[dict[str, Any]], None]) -> None:
        """Call `emit` with a report every `seconds`; 0 for never."""
        if seconds > 0:
            self._emit = emit
            self._ticker = self.links[0].spawn(self._tick(seconds))

    async def _tick(self, seconds: float) -> None:
        due = time.monotonic() + seconds
        while True:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due += seconds
            self._tell(self.snapshots(), self.take_events())

    def _tell(self, now: list[Snapshot], events: list[dict[str, Any]]) -> None:
        """Report what came since the last time."""
        if self._emit is not None:
            self._emit(report.interval(self, self._told, now, events))
            self._told = now

    def take_events(self) -> list[dict[str, Any]]:
        """EV events since the last call; the first EVENTS_MAX are kept for the end as well."""
        new = [
            event_json(event, self.clock_ns)
            for link in self._tables().values()
            for event in link.take_events()
            if event.time >= self.start_ns
        ]
        new.sort(key=lambda event: event["t"])
        kept = new[: EVENTS_MAX - len(self.events)]
        self.events.extend(kept)
        self.events_dropped += len(new) - len(kept)
        return new

    def _tables(self) -> dict[tuple[int, int], Link]:
        """One link of each path table: links that share one are all told the same."""
        return {link.path_table: link for link in self.links}

    def stop(self, aborted: bool = False) -> None:
        """End of the measured time; later calls change nothing."""
        if self.end_ns:
            return
        self.end_ns = time.monotonic_ns()
        if self._ticker is not None:
            self._ticker.cancel()
        self.progress.stop(aborted)
        events = self.take_events()
        self.cpu_percent = self.cpu.percent()
        self._final = self.snapshots()
        self._port_final = self.links[0].port_counts()
        if events or self._final[0].time_ns - self._told[0].time_ns >= PARTIAL_MIN_NS:
            self._tell(self._final, events)

    @property
    def seconds(self) -> float:
        """Length of the test so far, or as it was."""
        return ((self.end_ns or time.monotonic_ns()) - self.start_ns) / 1e9

    def last(self) -> list[Snapshot]:
        """All links as they were when the test ended, or now."""
        return self._final if self._final is not None else self.snapshots()

    def port_last(self) -> PortCounts:
        """The port, which all links share, as it was when the test ended, or now."""
        return self._port_final or self.links[0].port_counts()

    def grown(self) -> list[Snapshot]:
        """What each link counted during the test."""
        return grown(self.last(), self.base)
