# SPDX-License-Identifier: BSD-2-Clause
"""Reports for people: lines and tables in the manner of iperf3 and perftest."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from mrc.cli import tables
from mrc.cli.output import Lines, say
from mrc.peertext import printable
from mrc.units import format_bytes, format_rate

_EVENTS_SHOWN = 8
_LINE_MAX = 4000
_RULE = "- " * 40
_BOLD, _RED, _GREEN, _YELLOW, _PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"


class HumanOutput:
    """Writes text to `lines`; colour only on a terminal, and never with NO_COLOR."""

    def __init__(self, program: str, lines: Lines) -> None:
        self._program = program
        self._lines = lines
        self._colour = lines.is_terminal and not os.environ.get("NO_COLOR")
        self._table: str | None = None
        self._streams = 1
        self._both = False
        self._faults_told = 0

    def _line(self, text: str, colour: str = "") -> None:
        text = printable(text, _LINE_MAX)
        if colour and self._colour:
            text = f"{colour}{text}{_PLAIN}"
        self._lines.write(text)

    def start(self, data: dict[str, Any]) -> None:
        """Who talks to whom, and the head of the table that follows."""
        test = data["test_start"]
        self._streams = test["num_streams"]
        for connected in data["connected"] if not test.get("test") else ():
            self._line(tables.connection(connected))
        self._line(tables.plan(test))
        self._table = None
        if test.get("sweep"):
            self._table = "sweep"
            head = tables.SWEEP_LATENCY_HEAD if test["kind"] == "latency" else tables.SWEEP_HEAD
            self._line(head, _BOLD)

    def interval(self, data: dict[str, Any]) -> None:
        """One line a connection and direction, their sum, and what happened to paths."""
        if self._table == "sweep":
            return
        if self._table is None:
            self._table = "interval"
            roles = {flow["sender"] for flow in data["streams"]}
            self._both = len(roles) == 2
            self._line(tables.interval_head(True in roles, False in roles), _BOLD)
        for flow in data["streams"]:
            self._flow(f"{flow['socket']:3}", flow)
        if self._streams > 1:
            for key in ("sum", "sum_bidir_reverse"):
                if key in data:
                    self._flow("SUM", data[key])
        faults = data.get("faults", ())
        self._faults_told += len(faults)
        self._happened(faults, data["mrc"]["ev_events"])

    def _flow(self, label: str, flow: dict[str, Any]) -> None:
        down = flow.get("paths_up", 1) < flow.get("paths_total", 1)
        self._line(tables.interval_line(label, flow, self._both), _YELLOW if down else "")

    def _happened(self, faults: Sequence[dict[str, Any]], events: Sequence[dict[str, Any]]) -> None:
        """Faults and changes of paths, in order of time."""
        changes = [e for e in events if "SKIP" not in (e["from"], e["to"]) and e["from"] != e["to"]]
        lines = [(fault["t"], tables.fault_line(fault), _YELLOW) for fault in faults]
        for event in changes[:_EVENTS_SHOWN]:
            colour = _RED if event["to"] != "GOOD" else _GREEN
            lines.append((event["t"], tables.event_line(event), colour))
        for _, line, colour in sorted(lines, key=lambda item: item[0]):
            self._line(line, colour)
        if len(changes) > _EVENTS_SHOWN:
            self._line(f"      ... and {len(changes) - _EVENTS_SHOWN} more changes of paths")

    def step(self, data: dict[str, Any]) -> None:
        """One row of a sweep."""
        self._line(tables.sweep_line(data))

    def end(self, data: dict[str, Any]) -> None:
        """The closing summary."""
        self._happened(data.get("faults", ())[self._faults_told :], ())
        for idle in data.get("faults_idle", ()):
            self._line(tables.idle_fault_line(idle), _YELLOW)
        self._line(_RULE)
        for label, key in (
            ("sent", "sum_sent"),
            ("received", "sum_received"),
            ("sent back", "sum_sent_bidir_reverse"),
            ("received back", "sum_received_bidir_reverse"),
        ):
            source = data[key].get("source") if key in data else "unknown"
            if source != "unknown":
                words = "acknowledged" if source == "acknowledged" else label
                self._line(_sum_line(words, data[key]), _BOLD if key == "sum_received" else "")
        for latency in [data["latency_us"]] if "latency_us" in data else []:
            self._line(tables.latency_line(latency))
        if "fairness" in data:
            self._line(tables.fairness_line(data["fairness"]))
        for line in tables.path_table(data["paths"]):
            self._line(line)
        for line in tables.counters_lines(data["mrc"]):
            self._line(line)
        self._line(tables.gap_line(data["mrc"]))
        self._line(tables.cpu_line(data["cpu_utilization_percent"]))
        for line in tables.port_lines(data["ports"], data["drops"]):
            self._line(line)
        for text in data["errors"]:
            self._line(f"  error: {text}", _RED)
        verified = data["verified"]
        self._line(tables.verified_line(data), _GREEN if verified else _YELLOW)

    def error(self, text: str) -> None:
        """On stderr, where scripts expect it."""
        say(self._program, text)

    def note(self, text: str) -> None:
        """A line in between."""
        self._line(text)

    def finish(self) -> None:
        """Nothing is held back."""


def _sum_line(label: str, flow: dict[str, Any]) -> str:
    return (
        f"{label:14} {format_bytes(flow['bytes']):>14} in {flow['seconds']:.2f} s  "
        f"{format_rate(flow['bits_per_second']):>16}"
    )
