# SPDX-License-Identifier: BSD-2-Clause
"""Medians, ratios within a round, and how they are shown."""

from __future__ import annotations

import os
import platform
import statistics
import time
from typing import Any

from tools.bench.methods import Method, Sample

Rounds = list[dict[str, Sample]]
"""One mapping a round: method name to what it delivered."""


def spread(values: list[float]) -> dict[str, float]:
    """Median, least and greatest."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def summary(rounds: Rounds, methods: list[Method]) -> dict[str, Any]:
    """Goodput and loss of each method, and ours over each peer, taken round by round.

    A ratio compares two runs of one round, minutes apart at most, so that a machine that drifts
    moves both.
    """
    ran = [m for m in methods if all(m.name in r for r in rounds)]
    rows = {
        m.name: {
            "what": m.what,
            "gbps": spread([r[m.name].goodput_bps / 1e9 for r in rounds]),
            "loss": spread([r[m.name].loss for r in rounds]),
        }
        for m in ran
    }
    ratios = {
        f"{own.name}/{peer.name}": spread(
            [r[own.name].goodput_bps / max(1.0, r[peer.name].goodput_bps) for r in rounds]
        )
        for own in ran
        if own.ours
        for peer in ran
        if not peer.ours
    }
    return {"methods": rows, "ratios": ratios}


def document(
    rounds: Rounds, methods: list[Method], failed: dict[str, str], where: dict[str, Any]
) -> dict[str, Any]:
    """Everything that was measured, as one JSON object."""
    return {
        "start": {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "kernel": platform.release(),
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            **where,
        },
        "rounds": [
            {
                n: {"gbps": s.goodput_bps / 1e9, "loss": s.loss, "detail": s.detail}
                for n, s in r.items()
            }
            for r in rounds
        ],
        "end": summary(rounds, methods) if rounds else {},
        "not_run": {m.name: m.missing for m in methods if m.missing} | failed,
    }


def table(doc: dict[str, Any]) -> str:
    """The same for people; Gbit/s of user data that arrived."""
    lines = [f"{'':12} {'Gbit/s':>7} {'min':>6} {'max':>6} {'loss %':>7}"]
    for name, row in doc["end"].get("methods", {}).items():
        g = row["gbps"]
        figures = f"{g['median']:7.2f} {g['min']:6.2f} {g['max']:6.2f}"
        lines.append(f"{name:12} {figures} {row['loss']['median'] * 100:7.2f}  {row['what']}")
    ratios = doc["end"].get("ratios", {})
    if ratios:
        lines += ["", f"{'ratio in one round':24} {'median':>7} {'min':>6} {'max':>6}"]
    for name, r in ratios.items():
        lines.append(f"{name:24} {r['median']:7.2f} {r['min']:6.2f} {r['max']:6.2f}")
    lines += [f"not run: {name}: {why}" for name, why in doc["not_run"].items()]
    return "\n".join(lines)
