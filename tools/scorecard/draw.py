# SPDX-License-Identifier: BSD-2-Clause
"""Figures: goodput over time of every peer, one SVG for each case. Needs matplotlib."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.scorecard.rows import Record, grouped
from tools.scorecard.wanted import Verdict, verdicts

COLORS = {"mrc": "C0", "tcp": "C7", "mptcp": "C1", "rxd": "C2", "srt": "C4"}


MARKS_MAX = 16
"""More marks of faults would hide the curves."""


def possible() -> bool:
    """Whether matplotlib is there."""
    return importlib.util.find_spec("matplotlib") is not None


def figures(document: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw all cases; the files written."""
    judged = verdicts(document)
    drawn = []
    for (mtu, case), peers in grouped(document["records"]).items():
        if not any("failed" not in r for records in peers.values() for r in records):
            continue
        notes = _verdict_lines([v for v in judged if (v.mtu, v.case) == (mtu, case)])
        title = f"{document['cases'][case]}, MTU {mtu}"
        file = folder / f"{case}-{mtu}.svg"
        _draw(document["peers"], title, peers, [*notes, *_absent(document, peers, mtu)], file)
        drawn.append(file)
    return drawn


def _verdict_lines(judged: Sequence[Verdict]) -> list[str]:
    word = {True: "met", False: "NOT met", None: "not measured"}
    return [f"MRC, {v.what}: {v.found}, wanted {v.wanted}: {word[v.met]}" for v in judged]


def _absent(document: Mapping[str, Any], peers: Mapping[str, list[Record]], mtu: int) -> list[str]:
    """Peers without a curve, and why."""
    names = document["peers"]
    lines = [f"{names[key]}: missing, {why}" for key, why in document["missing"].items()]
    lines += [
        f"{names[left_out['peer']]}: not run, {left_out['why']}"
        for left_out in document.get("unfit", ())
        if left_out["mtu"] == mtu
    ]
    for key, records in peers.items():
        failed = [r["failed"] for r in records if "failed" in r]
        if failed and len(failed) == len(records):
            lines.append(f"{names[key]}: failed, {failed[0]}")
    return lines


def _draw(
    names: Mapping[str, str],
    title: str,
    peers: Mapping[str, list[Record]],
    notes: Sequence[str],
    file: Path,
) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "mrc"  # the same figure is the same file
    mpl.rcParams["svg.fonttype"] = "none"  # text, not outlines
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9.0, 3.2 + 0.17 * len(notes)), layout="constrained")
    for key, records in peers.items():
        good = [r for r in records if "failed" not in r]
        if not good:
            continue
        samples = good[len(good) // 2]["samples"]
        rates = [bps / 1e9 for bps in samples["delivered"]]
        name = names[key]
        axes.plot(samples["t_s"], rates, label=name, color=COLORS.get(key), linewidth=1.0)
        if key == next(iter(peers)):
            for fault in good[0]["faults"][:MARKS_MAX]:
                axes.axvline(fault["t_s"], color="0.6", linewidth=0.7, linestyle=":")
    axes.set(xlabel="s", ylabel="Gbit/s delivered", title=title)
    axes.set_ylim(bottom=0)
    if notes:
        figure.supxlabel("\n".join(notes), fontsize="x-small", x=0.01, ha="left")
    figure.legend(fontsize="small", loc="outside right upper")
    axes.grid(visible=True, alpha=0.3)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
