# SPDX-License-Identifier: BSD-2-Clause
"""The figure of a record: throughput over time with marks of the faults, or bars side by side.

Drawn with matplotlib, which is optional (the extra `figures`) and imported by nothing else here.
Colours can be told apart by everybody (Okabe and Ito); lines differ in dashes, too. The same
record gives the same file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from . import expression
from .errors import FabricError
from .measure import Series
from .record import TOTAL, FaultMark, Record
from .result import case_name, names_of
from .scenario import Figure

__all__ = ["check", "draw"]

SUFFIXES = (".svg", ".png", ".pdf")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#888888")
DASHES = ("-", "--", "-.", ":")
POINTS_MAX = 240
"""Of a line; a figure in a page is not wider in pixels that matter."""
POINTS_ALL = 1900
"""Of all lines together, twice as many in areas: what 60 KB of SVG hold."""
LABELS_MAX = 4
CASES_MAX = {"planes": 2, "evs": 1, "works": 3}
"""Panels of areas, the scenario's own first: more would be too small to read."""
_DIGITS = re.compile(r"(?<=[ML ])(-?\d+\.\d)\d+(?=[ \n])")
_PANEL = (4.6, 2.9)
_STYLE = {
    "font.size": 8,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "mrc",
    "legend.frameon": False,
    "figure.dpi": 110,
}


def check(path: str) -> None:
    """FabricError: that is no name of a figure. ImportError: matplotlib is not here."""
    if not path.endswith(SUFFIXES):
        raise FabricError(f"{path}: a figure ends with {', '.join(SUFFIXES)}")
    import matplotlib as mpl  # noqa: F401 - whether it is there


def draw(record: Record, figure: Figure, path: Path) -> None:
    """Write it. OSError; FabricError: nothing was sampled that it could show."""
    check(str(path))
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context(_STYLE):
        if figure.show == "bars":
            canvas = Canvas(figsize=(6.4, 3.0), layout="constrained")
            _bars(canvas.add_subplot(), record, figure)
        else:
            canvas = _lines(Canvas, record, figure)
        canvas.suptitle(record.scenario, fontsize=9)
        FigureCanvasAgg(canvas)
        canvas.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    if path.suffix == ".svg":
        # Six digits behind the point say nothing at this size, and are half of the file.
        short = _DIGITS.sub(r"\1", path.read_text(encoding="utf-8"))
        path.write_text(short, encoding="utf-8")


def _lines(canvas_class: Any, record: Record, figure: Figure) -> Any:
    """One panel for all cases where each is one line, else one for each case."""
    cases = [record, *record.compare]
    together = figure.show in ("total", "lost")
    if not together:
        cases = cases[: CASES_MAX[figure.show]]
    count = 1 if together else len(cases)
    width = 6.4 if count == 1 else _PANEL[0] * min(count, 2)
    rows = -(-count // 2)
    canvas = canvas_class(figsize=(width, _PANEL[1] * rows), layout="constrained")
    axes = canvas.subplots(rows, min(count, 2), sharey=True, squeeze=False).flat
    if together:
        ax = next(axes)
        for i, case in enumerate(cases):
            _line(ax, _rate(case, figure, TOTAL, len(cases)), case_name(case), i)
        _finish(ax, record, figure, "")
        return canvas
    for ax, case in zip(axes, cases, strict=False):
        several = list(_several(case, figure, len(cases)))
        if figure.show in ("planes", "evs") and len(several) > 1:
            _stack(ax, several)
        else:
            for i, (label, points) in enumerate(several):
                _line(ax, points, label, i)
        _finish(ax, case, figure, case_name(case) if count > 1 else "")
    for ax in axes:
        ax.set_visible(False)
    return canvas


Points = tuple[list[float], list[float]]


def _several(case: Record, figure: Figure, cases: int) -> Iterator[tuple[str, Points]]:
    if figure.show == "works":
        works = dict.fromkeys(flow.work for flow in case.flows)
        for work in works:
            yield work, _rate(case, figure, work, cases * len(works))
        return
    if figure.show == "planes":
        count = max((len(s.planes) for s in case.samples if s.planes), default=0)
        for plane in range(count):
            yield f"plane {plane + 1}", _slopes(case.plane_series(plane), 8e-9, 2 * count * cases)
        return
    flow = case.flows[0].flow
    count = max((len(s.evs) for s in case.samples if s.flow == flow and s.evs), default=0)
    for ev in range(count):
        yield f"EV {ev}", _slopes(case.ev_series(flow, ev), 8e-9, 2 * count * cases)


def _rate(case: Record, figure: Figure, who: str, lines: int) -> Points:
    if figure.show == "lost":
        return _slopes(case.counter("lost", who), 1.0, lines)
    return _slopes(case.series(who), 8e-9, lines)


def _slopes(series: Series, factor: float, lines: int = 1) -> Points:
    """Means between samples, as many as can be seen, each at the end of its time."""
    most = min(POINTS_MAX, max(20, POINTS_ALL // lines))
    step = -(-(len(series.t_s) - 1) // most) or 1
    picked = list(zip(series.t_s[::step], series.count[::step], strict=True))
    xs, ys = [], []
    for (t0, n0), (t1, n1) in pairwise(picked):
        xs.append(t1)
        ys.append((n1 - n0) / (t1 - t0) * factor)
    return xs, ys


def _line(ax: Any, points: Points, label: str, i: int) -> None:
    colour = COLOURS[i % len(COLOURS)]
    dash = DASHES[i // len(COLOURS) % len(DASHES)]
    ax.plot(*points, dash, color=colour, linewidth=1.1, label=label)


def _stack(ax: Any, several: Sequence[tuple[str, Points]]) -> None:
    """One over the other, so that their sum is seen as well."""
    ax.stackplot(
        several[0][1][0],
        *(ys for _, (_, ys) in several),
        labels=[label for label, _ in several],
        colors=[COLOURS[i % len(COLOURS)] for i in range(len(several))],
        edgecolor="white",
        linewidth=0.3,
        alpha=0.85,
    )


def _finish(ax: Any, case: Record, figure: Figure, title: str) -> None:
    ax.set_xlabel("s")
    ax.set_ylabel("lost packets / s" if figure.show == "lost" else figure.unit or "Gbit/s")
    ax.margins(y=0.3 if case.faults else 0.1)
    ax.set_ylim(bottom=0)
    ax.set_xlim(left=0, right=case.samples[-1].t_s)
    if title:
        ax.set_title(title, fontsize=8, loc="left")
    _marks(ax, case.faults)
    count = len(ax.get_legend_handles_labels()[1])
    if count > 1:
        ax.legend(fontsize=6.5, loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.2)


def _marks(ax: Any, marks: Sequence[FaultMark]) -> None:
    """A line for each time; words for the first few, for more would hide each other."""
    times: dict[tuple[float, bool], str] = {}
    for mark in marks:
        key = (mark.t_s, mark.on)
        times[key] = f"{times[key].removesuffix(', ..')}, .." if key in times else mark.what
    for i, ((t_s, on), what) in enumerate(times.items()):
        ax.axvline(t_s, color="#555555", linewidth=0.7, linestyle="--" if on else ":")
        if i < LABELS_MAX:
            ax.annotate(
                what,
                (t_s, 0.95 - 0.055 * i),
                xycoords=("data", "axes fraction"),
                xytext=(2, 0),
                textcoords="offset points",
                fontsize=6,
                color="#333333",
            )


def _bars(ax: Any, record: Record, figure: Figure) -> None:
    """A group for each expression, a bar for each case."""
    cases = [record, *record.compare]
    width = 0.8 / len(cases)
    for i, case in enumerate(cases):
        names = names_of(case)
        heights = [float(expression.evaluate(text, names) or 0.0) for text in figure.bars]
        places = [group + (i - (len(cases) - 1) / 2) * width for group in range(len(heights))]
        bars = ax.bar(
            places,
            heights,
            width * 0.92,
            label=case_name(case),
            color=COLOURS[i % len(COLOURS)],
            hatch=("", "//", "..", "xx")[i // len(COLOURS) % 4],
        )
        ax.bar_label(bars, fmt="%.3g", fontsize=6, padding=1)
    ax.set_xticks(range(len(figure.bars)), figure.labels or figure.bars)
    ax.set_ylabel(figure.unit)
    ax.grid(visible=False, axis="x")
    ax.legend(fontsize=6.5, ncols=2, loc="best")
