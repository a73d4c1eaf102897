# SPDX-License-Identifier: BSD-2-Clause
"""The documents both commands report: iperf3's names, with paths and MRC counters added.

Everything printed, for people or for programs, is made from these plain dictionaries.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

from mrc.cli.options import SendOptions
from mrc.cli.parser import version
from mrc.cli.protocol import count_in
from mrc.dscp import DscpClasses
from mrc.telemetry import Snapshot, combine_paths, grown, mrc_json, path_json, paths_up
from mrc.units import rate

if TYPE_CHECKING:
    from mrc.cli.link import Link
    from mrc.cli.run import TestRun


def flow(start: float, end: float, byte_count: int, **more: Any) -> dict[str, Any]:
    """What moved in one period: the record that iperf3 repeats everywhere."""
    seconds = max(0.0, end - start)
    return {
        "start": round(start, 6),
        "end": round(end, 6),
        "seconds": round(seconds, 6),
        "bytes": byte_count,
        "bits_per_second": round(rate(byte_count, seconds), 1),
        **more,
    }


def start(
    program: str, links: Sequence[Link], peer: dict[str, Any], test: dict[str, Any], cookie: str
) -> dict[str, Any]:
    """The `start` document."""
    now = time.time()
    port = links[0].port_counts().port
    return {
        "connected": [link.describe() for link in links],
        "version": f"{program} {version()}",
        "system_info": " ".join(platform.uname()).strip(),
        "timestamp": {"time": formatdate(now, usegmt=True), "timesecs": int(now)},
        "pid": os.getpid(),
        "cookie": cookie,
        "sndbuf_actual": port.sndbuf_bytes,
        "rcvbuf_actual": port.rcvbuf_bytes,
        **peer,
        "test_start": {"protocol": "MRC", **test},
    }


def _stream_flows(
    index: int, more: Snapshot, period: tuple[float, float], *, sends: bool, receives: bool
) -> list[dict[str, Any]]:
    start_s, end_s = period
    flows = []
    if sends:
        flows.append(
            flow(
                start_s,
                end_s,
                more.qp.bytes_acked,
                socket=index,
                sender=True,
                omitted=False,
                retransmits=more.qp.packets_retransmitted,
                snd_cwnd=cwnd(more),
                paths_up=paths_up(more.paths),
                paths_total=len(more.paths),
            )
        )
    if receives:
        flows.append(
            flow(
                start_s,
                end_s,
                more.qp.bytes_received,
                socket=index,
                sender=False,
                omitted=False,
                duplicates=more.qp.duplicates_received,
                out_of_order=more.qp.ooo_received,
            )
        )
    return flows


def cwnd(more: Snapshot) -> int:
    """Bytes; 0 where there is no window (`--cc none` has all ones)."""
    return more.qp.cwnd_bytes if more.qp.cwnd_bytes < 1 << 62 else 0


def _add_up(flows: Sequence[dict[str, Any]], sender: bool) -> dict[str, Any] | None:
    mine = [f for f in flows if f["sender"] is sender]
    if not mine:
        return None
    total = flow(
        mine[0]["start"],
        mine[0]["end"],
        sum(f["bytes"] for f in mine),
        sender=sender,
        omitted=False,
    )
    if sender:
        total["retransmits"] = sum(f["retransmits"] for f in mine)
        total["paths_up"] = min(f["paths_up"] for f in mine)
        total["paths_total"] = max(f["paths_total"] for f in mine)
    else:
        total["duplicates"] = sum(f["duplicates"] for f in mine)
        total["out_of_order"] = sum(f["out_of_order"] for f in mine)
    return total


def interval(
    run: TestRun, before: Sequence[Snapshot], now: Sequence[Snapshot], events: list[dict[str, Any]]
) -> dict[str, Any]:
    """One element of `intervals`."""
    more = grown(now, before)
    start_s = (before[0].time_ns - run.clock_ns) / 1e9
    end_s = (now[0].time_ns - run.clock_ns) / 1e9
    sends = run.sends or run.params.bidir
    flows = [
        f
        for link, g in zip(run.links, more, strict=True)
        for f in _stream_flows(link.index, g, (start_s, end_s), sends=sends, receives=run.receives)
    ]
    document: dict[str, Any] = {"streams": flows, "sum": _add_up(flows, run.sends)}
    reverse = _add_up(flows, not run.sends)
    if reverse is not None:
        document["sum_bidir_reverse"] = reverse
    document["paths"] = [path_json(p) for p in combine_paths(more)]
    document["mrc"] = {**mrc_json(g.qp for g in more), "ev_events": events}
    return document


def gap(run: TestRun) -> dict[str, float]:
    """Longest time without new bytes at this end, and how exactly that is known."""
    return {
        "longest_gap_ms": round(run.progress.longest_gap_ns / 1e6, 3),
        "longest_gap_resolution_ms": round(run.progress.resolution_ns / 1e6, 3),
    }


def cpu(host: Sequence[float], remote: Sequence[float]) -> dict[str, float]:
    """`cpu_utilization_percent`: percent of one core."""
    names = ("total", "user", "system")
    return {
        f"{side}_{name}": float(value)
        for side, values in (("host", host), ("remote", remote))
        for name, value in zip(names, values, strict=True)
    }


def fairness(rates: Sequence[float]) -> dict[str, float]:
    """How equally connections shared: Jain's index (1 = equally), slowest and fastest."""
    squares = sum(r * r for r in rates)
    return {
        "jain_index": round(sum(rates) ** 2 / (len(rates) * squares), 4) if squares else 0.0,
        "min_bits_per_second": round(min(rates), 1),
        "max_bits_per_second": round(max(rates), 1),
    }


def total(runs: Sequence[TestRun]) -> list[Snapshot]:
    """What each link counted from the beginning of the first run to the end of the last."""
    return grown(runs[-1].last(), runs[0].base)


def common_end(runs: Sequence[TestRun]) -> dict[str, Any]:
    """What both ends put into `end`: paths, counters, events; all of these runs alone."""
    counted = total(runs)
    events = [event for run in runs for event in run.events]
    return {
        "paths": [path_json(p) for p in combine_paths(counted)],
        "mrc": {
            **mrc_json(one.qp for one in counted),
            "ev_events": events,
            "ev_events_dropped": sum(run.events_dropped for run in runs),
        },
        **runs[-1].port_last().since(runs[0].port_base).as_json(),
    }


def remote_figures(reply: dict[str, Any]) -> dict[str, Any]:
    """The receiver's own measurements out of its answer to `finish`; ValueError if malformed."""
    seconds, cpu_percent = reply.get("seconds"), reply.get("cpu")
    gap_ms, step_ms = reply.get("longest_gap_ms"), reply.get("longest_gap_resolution_ms")
    if not isinstance(cpu_percent, list) or len(cpu_percent) != 3:
        raise ValueError("no processor time")
    numbers = [seconds, gap_ms, step_ms, *cpu_percent]
    if not all(isinstance(n, int | float) and 0 <= n < 1e18 for n in numbers):
        raise ValueError("a figure is no number")
    return {
        "seconds": seconds,
        "duplicates": count_in(reply, "duplicates"),
        "cpu": tuple(cpu_percent),
        "gap": {
            "longest_gap_ms": gap_ms,
            "longest_gap_resolution_ms": step_ms,
            "longest_gap_source": "receiver",
        },
    }


def test_start(options: SendOptions) -> dict[str, Any]:
    """`start.test_start` of mrc-send."""
    return {
        "num_streams": options.parallel,
        "blksize": options.size,
        "duration": options.seconds if not options.files and not options.messages else 0,
        "blocks": options.messages or 0,
        "bidir": options.bidir,
        "kind": "latency" if options.latency else "file" if options.files else "bulk",
        "sweep": list(options.sweep) if options.sweep else None,
        "verify": options.verify,
        "imm": options.imm or options.verify,
        "evs": options.evs,
        "ev_profile": options.common.ev_profile,
        "backend": options.common.backend,
        "mtu": options.mtu,
        "depth": options.depth,
        "cc": options.cc,
        "window": options.window,
        "train": options.train or "auto",
        "seed": options.seed,
        "udp_port": options.common.udp_port,
        "dynamic_mpr": options.dynamic_mpr,
        "timestamps": options.timestamps,
        "mode": options.common.mode,
        "pump": options.common.pump,
        "dscp": ",".join(
            f"{name}={dscp}" for name, dscp in asdict(options.common.dscp or DscpClasses()).items()
        ),
    }
