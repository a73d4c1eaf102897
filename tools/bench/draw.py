# SPDX-License-Identifier: BSD-2-Clause
"""The figure of trains: how uneven paths are against what a gigabyte costs. Needs matplotlib."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.bench.method import Unit

OURS, BARE = "mrc-train-", "bare-gso"
PANELS = {
    Unit.UNEVEN: ("bytes of a path while 1 MB leaves", "standard deviation, % of the mean"),
    Unit.ROW: ("what leaves in a row on one path", "KB, on average"),
}
"""Title and axis of each."""


def impossible(document: Mapping[str, Any]) -> str:
    """Why it cannot be drawn; empty when it can."""
    if importlib.util.find_spec("matplotlib") is None:
        return "matplotlib is not installed: make .venv/.figures"
    rows = document["groups"].get("trains", {}).get("rows", {})
    return "" if any(_shown(name, row) for name, row in rows.items()) else "trains did not run"


def _shown(name: str, row: Mapping[str, Any]) -> bool:
    return name.startswith((OURS, BARE)) and {Unit.CPU, *PANELS} <= row["figures"].keys()


def figure(document: Mapping[str, Any], file: Path) -> None:
    """Write it as SVG: the same figures give the same file."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "mrc"
    mpl.rcParams["svg.fonttype"] = "none"  # text, not outlines
    from matplotlib import pyplot as plt

    rows = document["groups"]["trains"]["rows"]
    shown = {name: row["figures"] for name, row in rows.items() if _shown(name, row)}
    plot, panels = plt.subplots(1, len(PANELS), figsize=(9.0, 3.8), layout="constrained")
    for panel, (unit, (title, axis)) in zip(panels, PANELS.items(), strict=True):
        for prefix, color, label in ((OURS, "C0", "MRC"), (BARE, "C7", "bare loop, paths in turn")):
            chosen = {n.removeprefix(prefix): f for n, f in shown.items() if n.startswith(prefix)}
            _points(panel, chosen, unit, {"color": color, "label": label})
        panel.set(xlabel="processor time, s/GB, both ends", ylabel=axis, title=title)
        panel.set_xscale("log")
        panel.set_ylim(bottom=0)
        panel.grid(visible=True, which="both", alpha=0.3)
    panels[0].legend(fontsize="small")
    file.parent.mkdir(parents=True, exist_ok=True)
    plot.savefig(file, metadata={"Date": None})
    plt.close(plot)


def _points(panel: Any, rows: Mapping[str, Any], unit: Unit, style: Mapping[str, str]) -> None:
    """A point for each length, with the range of the rounds in both directions."""
    if not rows:
        return
    x, y = ([f[u]["median"] for f in rows.values()] for u in (Unit.CPU, unit))
    ranges = {
        f"{axis}err": [
            [f[u]["median"] - f[u]["min"] for f in rows.values()],
            [f[u]["max"] - f[u]["median"] for f in rows.values()],
        ]
        for axis, u in (("x", Unit.CPU), ("y", unit))
    }
    panel.errorbar(x, y, fmt="o", markersize=4, linewidth=0.8, **ranges, **style)
    for name, *at in zip(rows, x, y, strict=True):
        panel.annotate(name, at, xytext=(4, 4), textcoords="offset points", fontsize="small")
