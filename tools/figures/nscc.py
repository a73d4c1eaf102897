# SPDX-License-Identifier: BSD-2-Clause
"""Draw the convergence curves of tests/golden/nscc as SVG.

    python -m tools.figures.nscc [OUTPUT_DIR]

One file a group of cases: a column for each case; windows of all flows above, queueing delay and
utilisation below. Standard library only; the same data gives the same bytes.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "nscc"
OUTPUT = ROOT / "docs" / "explanation" / "img"

FIGURES = {
    "nscc-flows": ["drop-ecn-1", "drop-ecn-2", "drop-ecn-8", "drop-ecn-32"],
    "nscc-flows-trimming": ["trim-ecn-1", "trim-ecn-2", "trim-ecn-8", "trim-ecn-32"],
    "nscc-changes": ["step-8", "join-leave-4"],
    "nscc-limits": ["trim-8", "drop-8", "software-8", "software-steady-8"],
}

WIDTH, HEIGHT, LEFT, TOP, GAP = 230, 110, 62, 40, 34
INK, GRID = "#333", "#ddd"
COLOURS = ["#0b6e99", "#c4451c", "#3a7d34", "#8a4fa3", "#b8860b", "#444c5c", "#c2185b", "#00838f"]


@dataclass(frozen=True, slots=True)
class Curve:
    """One golden file: its heading and its columns."""

    name: str
    heading: str
    rtt: list[int]
    utilisation: list[float]  # percent
    queue_us: list[float]
    cwnd_kb: list[list[float]]  # by flow


def load(name: str) -> Curve:
    """Read a golden file."""
    lines = (GOLDEN / f"{name}.csv").read_text().splitlines()
    rows = list(csv.DictReader(lines[1:]))
    flows = sum(column.startswith("cwnd") for column in rows[0])
    return Curve(
        name=name,
        heading=lines[0].removeprefix("# "),
        rtt=[int(r["rtt"]) for r in rows],
        utilisation=[int(r["utilisation_permille"]) / 10 for r in rows],
        queue_us=[int(r["queue_ns"]) / 1000 for r in rows],
        cwnd_kb=[[int(r[f"cwnd{i}"]) / 1000 for r in rows] for i in range(flows)],
    )


def nice(top: float) -> float:
    """The end of an axis: 1, 2 or 5 times a power of ten."""
    step = 1.0
    while step * 10 < top:
        step *= 10
    return next(step * k for k in (1, 2, 5, 10) if step * k >= top)


class Panel:
    """A pair of axes at a place of the drawing."""

    def __init__(self, x: float, y: float, xmax: float, ymax: float, label: str) -> None:
        self.x, self.y, self.xmax, self.ymax = x, y, xmax, ymax
        self.out = [
            f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="{GRID}"/>'
        ]
        for share in (0.0, 0.5, 1.0):
            py = y + HEIGHT * (1 - share)
            self.out.append(
                f'<line x1="{x}" x2="{x + WIDTH}" y1="{py}" y2="{py}" stroke="{GRID}"/>'
            )
            self.text(x - 5, py + 4, f"{ymax * share:g}", anchor="end")
        self.text(x + 4, y - 6, label)

    def text(self, x: float, y: float, words: str, anchor: str = "start") -> None:
        """Words at a place of the drawing."""
        self.out.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{words}</text>')

    def line(self, xs: Sequence[float], ys: Sequence[float], colour: str) -> None:
        """A line through points in the units of the axes, cut at the top."""
        points = " ".join(
            f"{self.x + WIDTH * x / self.xmax:.1f},"
            f"{self.y + HEIGHT * (1 - min(y, self.ymax) / self.ymax):.1f}"
            for x, y in zip(xs, ys, strict=True)
        )
        self.out.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')


def column(curve: Curve, x: float) -> list[str]:
    """The three panels of one case."""
    xmax = float(curve.rtt[-1])
    late = [max(flow[2:]) for flow in curve.cwnd_kb]
    rows = [
        ("window of each flow, kB", nice(max(late)), curve.cwnd_kb),
        ("queueing delay, us", nice(max(curve.queue_us[2:])), [curve.queue_us]),
        ("utilisation, %", 100.0, [curve.utilisation]),
    ]
    out = [f'<text x="{x}" y="18" font-weight="bold">{curve.name}</text>']
    for i, (label, ymax, lines) in enumerate(rows):
        panel = Panel(x, TOP + 12 + i * (HEIGHT + GAP), xmax, ymax, label)
        for k, ys in enumerate(lines):
            panel.line(curve.rtt, ys, COLOURS[k % len(COLOURS)])
        out += panel.out
    bottom = TOP + 12 + 3 * (HEIGHT + GAP) - 8
    for share in (0.0, 0.5, 1.0):
        out.append(
            f'<text x="{x + WIDTH * share:g}" y="{bottom}" text-anchor="middle">'
            f"{xmax * share:g}</text>"
        )
    return out


def figure(names: Sequence[str]) -> str:
    """A whole SVG."""
    curves = [load(name) for name in names]
    places = [LEFT + i * (WIDTH + LEFT) for i in range(len(curves))]
    width = places[-1] + WIDTH + 20
    height = TOP + 3 * (HEIGHT + GAP) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"',
        f'  height="{height}" font-family="sans-serif" font-size="11" fill="{INK}">',
        "<title>" + "; ".join(f"{c.name}: {c.heading}" for c in curves) + "</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for curve, x in zip(curves, places, strict=True):
        parts += column(curve, x)
    parts.append(f'<text x="{LEFT}" y="{height - 6}">time in base round trips</text></svg>')
    return "\n".join(parts) + "\n"


def main() -> int:
    """Write all figures; names of those written on stdout."""
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT
    where.mkdir(parents=True, exist_ok=True)
    for name, cases in FIGURES.items():
        path = where / f"{name}.svg"
        path.write_text(figure(cases))
        print(path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
