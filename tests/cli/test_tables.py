# SPDX-License-Identifier: BSD-2-Clause
"""Lines and tables of the text report."""

from __future__ import annotations

from typing import Any

import pytest

from mrc.cli import tables
from mrc.cli.ports import RCVBUF_WANTED

from .schema import MRC_COUNTERS


def path(ev: int, state: str = "GOOD") -> dict[str, Any]:
    return {
        "ev": ev,
        "plane": 1 + ev % 4,
        "state": state,
        "packets_sent": 10,
        "packets_lost": 0,
        "retransmits": 0,
        "ecn_marks": 0,
        "rtt_us": {"min": 1.0, "avg": 2.0, "max": 3.0},
    }


def test_few_paths_have_a_row_each_and_many_a_row_a_plane():
    assert len(list(tables.path_table([path(i) for i in range(16)]))) == 17
    rows = list(tables.path_table([path(i) for i in range(256)]))
    assert len(rows) == 5
    assert "64 EVs" in rows[1]


@pytest.mark.parametrize(("kind", "shown"), [("bulk", True), ("file", True), ("latency", False)])
def test_a_ping_pong_has_no_depth(kind, shown):
    test = {"kind": kind, "blksize": 64, "num_streams": 1, "bidir": False, "depth": 16}
    assert ("depth 16" in tables.plan(test | {"verify": True, "seed": 1})) is shown


FLOW = {"start": 0, "end": 1, "bytes": 5 << 20, "bits_per_second": 4e7}
SENT = FLOW | {"sender": True, "retransmits": 12, "paths_up": 15, "paths_total": 16}
TAKEN = FLOW | {"sender": False, "out_of_order": 123, "duplicates": 45}


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize(
    ("flow", "values"),
    [(SENT, {"Retr": "12", "Paths": "15/16"}), (TAKEN, {"OOO": "123", "Dup": "45"})],
)
def test_each_value_stands_under_its_title(flow, values, both):
    head = tables.interval_head(both or flow["sender"], both or not flow["sender"])
    line = tables.interval_line("  1", flow, both)
    for title, value in values.items():
        start, end = head.index(title), head.index(title) + len(title)
        assert line[start:].startswith(value) or line[:end].endswith(" " + value), (head, line)
    assert ("Dir" in head) is both
    assert line.startswith(f"[  1]{('TX' if flow['sender'] else 'RX') if both else ''}")


@pytest.mark.parametrize(
    ("gap", "step", "words"),
    [
        (31.3, 4.2, "about 31.3 ms (+- 4.2)"),
        (31.3, 79.7, "at most 111.0 ms"),
        (0, 0, "at most 0.0"),
    ],
)
def test_a_gap_is_not_said_more_exactly_than_it_is_known(gap, step, words):
    line = tables.gap_line(
        {
            "longest_gap_ms": gap,
            "longest_gap_resolution_ms": step,
            "longest_gap_source": "receiver",
        }
    )
    assert words in line


@pytest.mark.parametrize(
    ("granted", "words"),
    [
        (RCVBUF_WANTED - 1, "raise net.core.rmem_max"),
        (RCVBUF_WANTED, "the receiver did not keep up"),
        (0, "the receiver did not keep up"),
    ],
)
def test_a_larger_buffer_is_advised_only_where_the_kernel_gave_a_small_one(granted, words):
    port = {"udp_port": 4791, "rx_socket_drops": 7, "rcvbuf_bytes": granted}
    (line,) = tables.port_lines([port], {})
    assert line == f"the socket of UDP port 4791 dropped 7 packets: {words}"


def test_counters_of_one_direction_stand_together():
    mrc: dict[str, Any] = dict.fromkeys(MRC_COUNTERS, 0) | {"ev_events": []}
    mrc |= {"packets_sent": 11, "sacks_received": 12, "packets_received": 13, "sacks_sent": 14}
    mrc |= dict.fromkeys(("duplicates_received", "ooo_received", "nacks_sent"), 0)
    sent, received = tables.counters_lines(mrc)
    assert "sent 11" in sent
    assert "12 SACKs" in sent
    assert "received 13" in received
    assert "14 SACKs" in received


def test_only_what_changes_is_a_path_change():
    counters: dict[str, Any] = dict.fromkeys(MRC_COUNTERS, 0)
    counters |= dict.fromkeys(("packets_received", "duplicates_received", "ooo_received"), 0)
    counters |= dict.fromkeys(("sacks_sent", "nacks_sent"), 0)
    events = [
        {"from": "GOOD", "to": "GOOD"},  # what is behind the path has changed, not its state
        {"from": "GOOD", "to": "ASSUMED_BAD"},
    ]
    assert list(tables.counters_lines(counters | {"ev_events": events}))[-1] == "1 path changes"
    lines = list(tables.counters_lines(counters | {"ev_events": events[:1]}))
    assert not any("path changes" in line for line in lines)


def test_a_sweep_of_latencies_counts_what_was_measured():
    us = dict.fromkeys(("min", "p50", "mean", "p99", "p999", "max"), 1.0) | {"samples": 100}
    line = tables.sweep_line({"bytes": 64, "messages": 116, "latency_us": us})
    assert line.split()[:2] == ["64", "100"]
