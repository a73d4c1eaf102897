# SPDX-License-Identifier: BSD-2-Clause
"""Figures: goodput over time of every peer, one SVG for each case. Needs matplotlib."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.scorecard.report import Record, grouped

COLORS = {"mrc": "C0", "tcp": "C7", "mptcp": "C1", "rxd": "C2", "srt": "C4"}


MARKS_MAX = 16
"""More marks of faults would hide the curves."""


def possible() -> bool:
    """Whether matplotlib is there."""
    return importlib.util.find_spec("matplotlib") is not None


def figures(document: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw all cases; the files written."""
    return [
        _draw(document, case, mtu, peers, folder / f"{case}-{mtu}.svg")
        for (mtu, case), peers in grouped(document["records"]).items()
        if any("failed" not in r for records in peers.values() for r in records)
    ]


def _draw(
    document: Mapping[str, Any], case: str, mtu: int, peers: Mapping[str, list[Record]], file: Path
) -> Path:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "mrc"  # the same figure is the same file
    mpl.rcParams["svg.fonttype"] = "none"  # text, not outlines
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9.0, 3.2), layout="constrained")
    for key, records in peers.items():
        good = [r for r in records if "failed" not in r]
        if not good:
            continue
        samples = good[len(good) // 2]["samples"]
        rates = [bps / 1e9 for bps in samples["delivered"]]
        name = document["peers"][key]
        axes.plot(samples["t_s"], rates, label=name, color=COLORS.get(key), linewidth=1.0)
        if key == next(iter(peers)):
            for fault in good[0]["faults"][:MARKS_MAX]:
                axes.axvline(fault["t_s"], color="0.6", linewidth=0.7, linestyle=":")
    axes.set(xlabel="s", ylabel="Gbit/s delivered", title=f"{document['cases'][case]}, MTU {mtu}")
    axes.set_ylim(bottom=0)
    figure.legend(fontsize="small", loc="outside right upper")
    axes.grid(visible=True, alpha=0.3)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
    return file
