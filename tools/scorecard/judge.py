# SPDX-License-Identifier: BSD-2-Clause
"""From what was seen of a run to its figures. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mrc.fabric import FabricShape, link_states
from mrc.fabric.measure import (
    Series,
    goodput_bps,
    longest_gap_s,
    resolution_s,
    reuse_s,
    time_below_s,
    time_to_s,
)
from tools.scorecard.cases import VICTIM, Case
from tools.scorecard.peers import Peer
from tools.scorecard.play import Played
from tools.scorecard.stage import Shape

OUT_SHARE = 0.05
"""A path that carries less than this share of its rate is out of use: probes are still sent."""
OUT_WINDOW_S = 0.02
"""For so long: in it this share is one train of packets."""
OUT_WANTED_S = 0.1
"""From so long after the fault on the path should carry nothing; what it does is told."""
SETTLE_S = 0.2
"""Losses count as late from so long after the path went out of use."""


def series(report: dict[str, Any], column: str, begin_s: float) -> Series:
    """A column of an end's samples, in seconds since the measured time began."""
    index = report["columns"].index(column)
    return Series.of((row[0] / 1e9 - begin_s, row[index]) for row in report["samples"])


def figures(
    peer: Peer, case: Case, shape: Shape, fabric: FabricShape, played: Played
) -> dict[str, Any]:
    """The figures of one run: bit/s, ms, ratios. None: it did not happen, or does not apply."""
    end_s = played.end_s - played.begin_s
    got = series(played.receiver, "delivered", played.begin_s)
    plane_bps = shape.plane_bps * peer.payload_share(shape)
    goodput = goodput_bps(got, 0.0, end_s)
    delivered = goodput * end_s / 8
    mean = case.mean_planes(fabric, peer.planes)
    found: dict[str, Any] = {
        "goodput_bps": goodput,
        "capacity_bps": mean * plane_bps,
        "share_of_capacity": goodput / (mean * plane_bps) if mean else None,
        "gap_ms": longest_gap_s(got, 0.0, end_s) * 1e3,
        "resolution_ms": resolution_s(got, 0.0, end_s) * 1e3,
        "sent_per_delivered": played.wire.bytes / delivered if delivered else None,
        "cpu_s_per_gb": sum(played.cpu_s.values()) / delivered * 1e9 if delivered else None,
        "queue_drops": played.wire.drops,
        "others_share": max(0.0, played.others),
        "errors": [e for e in (played.sender.get("error"), played.receiver.get("error")) if e],
    }
    fault = _Fault.of(case, fabric, played)
    if fault is not None:
        sent = series(played.ports, f"tx_plane{VICTIM}", played.begin_s)
        found |= _recovery(peer, fault, got, plane_bps, end_s) | _path(fault, shape, sent)
    if "packets_sent" in played.sender.get("columns", ()):
        found |= _mrc(played, end_s)
        if fault is not None and not fault.mended and found["out_ms"] is not None:
            found |= _late(played, fault.begin_s + found["out_ms"] / 1e3 + SETTLE_S, end_s)
    return found


@dataclass(frozen=True, slots=True)
class _Fault:
    """The fault to recover from, in seconds since the measured time began."""

    begin_s: float
    end_s: float
    """When it was mended, or the measured time was over."""
    mended: bool
    planes: frozenset[int]
    """Those that can carry none of it."""

    @classmethod
    def of(cls, case: Case, shape: FabricShape, played: Played) -> _Fault | None:
        if case.fault is None:
            return None
        times = dict.fromkeys((False, True), 0.0)
        for change in reversed(played.faults):  # the first of each
            times[change["on"]] = change["t_s"] - played.begin_s
        mended = case.fault.until_ns is not None
        states = link_states([case.fault], shape)
        return cls(
            times[True],
            times[False] if mended else played.end_s - played.begin_s,
            mended,
            frozenset(link.plane + 1 for link, state in states.items() if state.cut or state.down),
        )


def _recovery(
    peer: Peer, fault: _Fault, got: Series, plane_bps: float, end_s: float
) -> dict[str, Any]:
    """How soon the surviving capacity is in use after the fault, and all of it after the heal."""
    planes = len(peer.planes - (fault.planes or _other(peer)))
    found: dict[str, Any] = {"surviving_bps": planes * plane_bps}
    for percent in (70, 95):
        rate = planes * plane_bps * percent / 100
        reached = time_to_s(got, fault.begin_s, rate, until_s=fault.end_s) if planes else None
        found[f"to{percent}_ms"] = _ms(reached)
    if fault.begin_s > 0:
        # Where this is less than the peer's planes carry, the machine was the limit, not the fault.
        found["before_fault_bps"] = goodput_bps(got, 0.0, fault.begin_s)
    # What holds once it has settled: the second half of the time between fault and heal.
    settled_s = (fault.begin_s + fault.end_s) / 2
    found["after_fault_bps"] = goodput_bps(got, settled_s, fault.end_s)
    if fault.mended:
        full = len(peer.planes) * plane_bps
        found["full_ms"] = _ms(time_to_s(got, fault.end_s, full * 0.95))
        found["after_heal_bps"] = goodput_bps(got, (fault.end_s + end_s) / 2, end_s)
    return found


def _other(peer: Peer) -> frozenset[int]:
    """A lossy path can be left where there are others."""
    return frozenset({VICTIM}) if len(peer.planes) > 1 else frozenset()


def _path(fault: _Fault, shape: Shape, sent: Series) -> dict[str, Any]:
    """When the sender stopped to use the path that suffers, and when it took it up again."""
    limit = shape.plane_bps * OUT_SHARE
    out = time_below_s(
        sent, fault.begin_s, limit, until_s=fault.end_s, window_s=OUT_WINDOW_S
    )  # fmt: skip
    late = goodput_bps(sent, fault.begin_s + OUT_WANTED_S, fault.end_s)
    found = {"out_ms": _ms(out), "still_share": late / shape.plane_bps}
    if fault.mended:
        found["reuse_ms"] = _ms(reuse_s(sent, fault.end_s))
    return found


def _grown(report: dict[str, Any], column: str, played: Played, begin_s: float) -> float:
    """What a counter grew by from a time to the end of the measured time."""
    counter = series(report, column, played.begin_s)
    return counter.at(played.end_s - played.begin_s) - counter.at(begin_s)


def _mrc(played: Played, end_s: float) -> dict[str, Any]:
    """What MRC knows of itself: packets sent again, needlessly, and what became of its paths."""
    packets = _grown(played.sender, "packets_sent", played, 0.0)
    again = _grown(played.sender, "packets_retransmitted", played, 0.0)
    needless = _grown(played.receiver, "duplicates", played, 0.0)
    confirmed = series(played.sender, "completed", played.begin_s)
    return {
        "packets_sent": packets,
        "resent_share": again / packets if packets else None,
        "spurious_share": needless / packets if packets else None,
        "confirmed_gap_ms": longest_gap_s(confirmed, 0.0, end_s) * 1e3,
        "timeouts": _grown(played.sender, "timeouts", played, 0.0),
        "ev_events": [
            {**e, "t": round(e["t"] - played.begin_s, 6)}
            for e in played.sender.get("events", [])
            if 0 <= e["t"] - played.begin_s <= end_s
        ],
    }


def _late(played: Played, from_s: float, end_s: float) -> dict[str, Any]:
    """Packets lost once the path was out of use, as a share of those sent then."""
    packets = _grown(played.sender, "packets_sent", played, from_s) if from_s < end_s else 0.0
    lost = _grown(played.sender, "lost", played, from_s)
    return {"late_loss_share": lost / packets} if packets else {}


def rates(played: Played, step_s: float = 0.02) -> dict[str, Any]:
    """Goodput over time, and what left each port: for figures."""
    end_s = played.end_s - played.begin_s
    steps = [i * step_s for i in range(int(end_s / step_s) + 1)]
    columns = {"delivered": series(played.receiver, "delivered", played.begin_s)}
    for name in played.ports["columns"]:
        if name.startswith("tx_"):
            columns[name] = series(played.ports, name, played.begin_s)
    return {
        "t_s": [round(t, 4) for t in steps[:-1]],
        **{
            name: [round(goodput_bps(counter, a, b)) for a, b in pairwise(steps)]
            for name, counter in columns.items()
        },
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
