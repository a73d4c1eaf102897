# SPDX-License-Identifier: BSD-2-Clause
"""From what was seen of a run to its figures. Pure."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from mrc.fabric.measure import (
    Series,
    goodput_bps,
    longest_gap_s,
    resolution_s,
    reuse_s,
    time_below_s,
    time_to_s,
)
from tools.scorecard.cases import VICTIM, Case, mean_planes, usable_planes
from tools.scorecard.peers import Peer
from tools.scorecard.play import Played
from tools.scorecard.stage import Shape

OUT_SHARE = 0.05
"""A path that carries less than this share of its rate is out of use: probes are still sent."""
SETTLE_S = 0.2
"""Losses count as late from so long after the path went out of use."""


def series(report: dict[str, Any], column: str, begin_s: float) -> Series:
    """A column of an end's samples, in seconds since the measured time began."""
    index = report["columns"].index(column)
    return Series.of((row[0] / 1e9 - begin_s, row[index]) for row in report["samples"])


def figures(peer: Peer, case: Case, shape: Shape, played: Played) -> dict[str, Any]:
    """The figures of one run: bit/s, ms, ratios. None: it did not happen, or does not apply."""
    end_s = played.end_s - played.begin_s
    got = series(played.receiver, "delivered", played.begin_s)
    plane_bps = shape.plane_bps * peer.payload_share(shape)
    goodput = goodput_bps(got, 0.0, end_s)
    delivered = goodput * end_s / 8
    mean = mean_planes(case, peer.planes)
    found: dict[str, Any] = {
        "goodput_bps": goodput,
        "capacity_bps": mean * plane_bps,
        "share_of_capacity": goodput / (mean * plane_bps) if mean else None,
        "gap_ms": longest_gap_s(got, 0.0, end_s) * 1e3,
        "resolution_ms": resolution_s(got, 0.0, end_s) * 1e3,
        "sent_per_delivered": played.wire.bytes / delivered if delivered else None,
        "cpu_s_per_gb": sum(played.cpu_s.values()) / delivered * 1e9 if delivered else None,
        "queue_drops": played.wire.drops,
        "errors": [e for e in (played.sender.get("error"), played.receiver.get("error")) if e],
    }
    if case.key != "flap":
        found |= _recovery(peer, case, got, plane_bps, played)
        found |= _path(case, shape, played)
    if "packets_sent" in played.sender.get("columns", ()):
        found |= _mrc(played, end_s, found.get("out_ms"), case)
    return found


def _after(case: Case, played: Played, at_s: float) -> float:
    """When the event planned for a time began to be applied, since the measured time began."""
    planned = [e.at_s for e in case.events]
    begun: float = played.faults[planned.index(at_s)]["t_s"]
    return begun - played.begin_s


def _recovery(
    peer: Peer, case: Case, got: Series, plane_bps: float, played: Played
) -> dict[str, Any]:
    """How soon the surviving capacity is in use after the fault, and all of it after the heal."""
    found: dict[str, Any] = {}
    end_s = played.end_s - played.begin_s
    fault, mend = case.fault, case.mend
    if fault is None:
        return found
    after = _after(case, played, fault.at_s)
    until = _after(case, played, mend.at_s) if mend else end_s
    planes = len(peer.planes - set(fault.planes))
    if fault.do == "loss" and not planes:
        planes = len(peer.planes)  # it has no other path
    found["surviving_bps"] = planes * plane_bps
    for percent in (70, 95):
        key = f"to{percent}_ms"
        found[key] = None
        if planes:
            rate = planes * plane_bps * percent / 100
            found[key] = _ms(time_to_s(got, after, rate, until_s=until))
    # What holds once it has settled: the second half of the time between fault and heal.
    found["after_fault_bps"] = goodput_bps(got, (after + until) / 2, until)
    if mend is not None:
        full = usable_planes(case, peer.planes)[-1][1] * plane_bps
        found["full_ms"] = _ms(time_to_s(got, until, full * 0.95))
        found["after_heal_bps"] = goodput_bps(got, (until + end_s) / 2, end_s)
    return found


def _path(case: Case, shape: Shape, played: Played) -> dict[str, Any]:
    """When the sender stopped to use the path that suffers, and when it took it up again."""
    fault, mend = case.fault, case.mend
    if fault is None:
        return {}
    sent = series(played.ports, f"tx_plane{VICTIM}", played.begin_s)
    after = _after(case, played, fault.at_s)
    until = _after(case, played, mend.at_s) if mend else None
    out = time_below_s(sent, after, shape.plane_bps * OUT_SHARE, until_s=until)
    found = {"out_ms": _ms(out)}
    if until is not None:
        found["reuse_ms"] = _ms(reuse_s(sent, until))
    return found


def _mrc(played: Played, end_s: float, out_ms: float | None, case: Case) -> dict[str, Any]:
    """What MRC knows of itself: packets sent again, needlessly, and lost once the path was out."""

    def grown(column: str, begin_s: float = 0.0) -> float:
        counter = series(played.sender, column, played.begin_s)
        return counter.at(end_s) - counter.at(begin_s)

    packets = grown("packets_sent")
    found: dict[str, Any] = {
        "packets_sent": packets,
        "resent_share": grown("packets_retransmitted") / packets if packets else None,
        "spurious_share": _duplicates(played, end_s) / packets if packets else None,
        "timeouts": grown("timeouts"),
        "ev_events": [
            {**e, "t": round(e["t"] - played.begin_s, 6)}
            for e in played.sender.get("events", [])
            if 0 <= e["t"] - played.begin_s <= end_s
        ],
    }
    if out_ms is not None and case.fault is not None and case.mend is None:
        late = _after(case, played, case.fault.at_s) + out_ms / 1e3 + SETTLE_S
        if late < end_s and grown("packets_sent", late):
            found["late_loss_share"] = grown("lost", late) / grown("packets_sent", late)
    return found


def _duplicates(played: Played, end_s: float) -> float:
    counter = series(played.receiver, "duplicates", played.begin_s)
    return counter.at(end_s) - counter.at(0.0)


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
