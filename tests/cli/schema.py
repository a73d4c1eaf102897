# SPDX-License-Identifier: BSD-2-Clause
"""What every report must look like, whatever happened."""

from __future__ import annotations

import json
from typing import Any, NoReturn

EV_STATES = {"GOOD", "SKIP", "ASSUMED_BAD", "DENIED"}
MRC_COUNTERS = (
    "packets_sent",
    "packets_retransmitted",
    "spurious_retransmits",
    "sacks_received",
    "nacks_received",
    "timeouts",
)
FLOW = ("start", "end", "seconds", "bytes", "bits_per_second")


def strict(text: str) -> Any:
    """Parse JSON as a strict reader does: NaN, Infinity and double keys are refused."""

    def refuse(constant: str) -> NoReturn:
        raise AssertionError(f"{constant} in JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({key for key, _ in pairs}) == len(pairs), "a key occurs twice"
        return dict(pairs)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)


def check_flow(flow: dict[str, Any]) -> None:
    for name in FLOW:
        assert isinstance(flow[name], int | float), (name, flow)
        assert flow[name] >= 0, (name, flow)  # field reports 73, 469: never negative
    assert flow["end"] >= flow["start"]


def check_paths(paths: list[dict[str, Any]]) -> None:
    for path in paths:
        assert path["state"] in EV_STATES
        for name in ("ev", "plane", "packets_sent", "packets_lost", "retransmits", "ecn_marks"):
            assert type(path[name]) is int
            assert path[name] >= 0
        assert set(path["rtt_us"]) == {"min", "avg", "max"}


def check_mrc(mrc: dict[str, Any]) -> None:
    for name in MRC_COUNTERS:
        assert type(mrc[name]) is int
        assert mrc[name] >= 0
    for event in mrc["ev_events"]:
        assert {"t", "ev", "from", "to", "reason"} <= set(event)


def check_interval(interval: dict[str, Any]) -> None:
    for flow in interval["streams"]:
        check_flow(flow)
    check_flow(interval["sum"])
    check_paths(interval["paths"])
    check_mrc(interval["mrc"])


def check_end(end: dict[str, Any], sender: bool) -> None:
    check_flow(end["sum_received"])
    if sender:
        check_flow(end["sum_sent"])
    assert type(end["verified"]) is bool
    check_paths(end["paths"])
    check_mrc(end["mrc"])
    assert end["mrc"]["longest_gap_ms"] >= 0
    cpu = end["cpu_utilization_percent"]
    assert {"host_total", "host_user", "host_system", "remote_total"} <= set(cpu)
    assert all(value >= 0 for value in cpu.values())


def check_document(document: dict[str, Any], sender: bool) -> None:
    """One whole report of --json."""
    assert {"start", "intervals", "end"} <= set(document)
    if document["start"]:
        assert {"connected", "version", "system_info", "timestamp", "test_start"} <= set(
            document["start"]
        )
        assert document["start"]["test_start"]["pump"] in ("loop", "thread")
    for interval in document["intervals"]:
        check_interval(interval)
    if document["end"]:
        check_end(document["end"], sender)
    assert isinstance(document.get("error", ""), str)
