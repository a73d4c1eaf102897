# SPDX-License-Identifier: BSD-2-Clause
"""Pages with figures of the bench: made of a document, never typed.

``--page`` puts tables between two marks of each page, keeps what they were made of beside them, so
that a test can make them again, and draws the figure of trains where it can.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.bench import draw
from tools.bench.experiments.limits import KNOWN, Limit, Trial
from tools.bench.method import Unit
from tools.bench.report import OTHERS_MAX, number
from tools.scorecard.report import table_lines
from tools.scorecard.stage import ROOT

FOLDER = ROOT / "docs" / "explanation"
DATA = FOLDER / "bench.json"
FIGURE = FOLDER / "img" / "trains.svg"
DIGITS = 5
LESS_IS_BETTER = {Unit.P50, Unit.P99, Unit.CPU, Unit.NS, Unit.BYTES, Unit.SECONDS}
LITTLE = 1.05
"""A smaller factor says nothing: rounds differ by more."""

Document = Mapping[str, Any]
Spread = Mapping[str, float]


def slim(document: Document) -> dict[str, Any]:
    """What the pages need: without samples, figures to DIGITS digits."""
    groups = {
        name: {key: _rounded(value) for key, value in group.items() if key != "rounds"}
        for name, group in document["groups"].items()
    }
    return {**document, "groups": groups}


def _rounded(value: Any) -> Any:
    match value:
        case float():
            return float(f"{value:.{DIGITS}g}")
        case Mapping():
            return {key: _rounded(inner) for key, inner in value.items()}
        case list():
            return [_rounded(inner) for inner in value]
        case _:
            return value


# -- trains --------------------------------------------------------------------------------------


def trains(document: Document) -> list[str]:
    """A row for each length."""
    group = document["groups"].get("trains")
    if group is None:
        return ["Not measured yet."]
    units = (Unit.GBPS, Unit.CPU, Unit.TRAIN, Unit.ROW, Unit.UNEVEN, Unit.UNEVEN_MS)
    heads = ("", "Gbit/s", "CPU s/GB, both ends", "packets in a train", "KB in a row",
             "uneven while 1 MB leaves, %", "uneven within 1 ms, %")  # fmt: skip
    body = [
        [row["what"], *(_median(row["figures"].get(unit)) for unit in units)]
        for row in group["rows"].values()
    ]
    lines = ["![How uneven the paths are against processor time](img/trains.svg)", ""]
    return [*lines, *table_lines(heads, body), "", _origin(document, ["trains"])]


def _median(spread: Spread | None) -> str:
    return number(spread["median"]) if spread else ""


def _range(spread: Spread) -> str:
    return f"{number(spread['median'])} ({number(spread['min'])} to {number(spread['max'])})"


def _origin(document: Document, names: Sequence[str]) -> str:
    runs = [group for name in names if "run" in (group := document["groups"][name])]
    start = document["start"]
    if not runs:
        return f"Linux {start['kernel']}, {start['cores']} cores, {start['time']}."
    times = sorted({group["run"]["time"] for group in runs})
    commits = ", ".join(f"`{name}`" for name in sorted({group["run"]["commit"] for group in runs}))
    rounds = sorted({(group["run"]["rounds"], group["run"]["seconds"]) for group in runs})
    often = ", ".join(f"{count} of {seconds} s" for count, seconds in rounds)
    busy = [n for n in names if document["groups"][n].get("others", 0) > OTHERS_MAX]
    text = (
        f"Linux {start['kernel']}, {start['cores']} cores, {times[0]}"
        + (f" to {times[-1]}" if times[1:] else "")
        + f", commits measured: {commits}; rounds: {often}. Medians of ratios within a round, with"
        " the least and the greatest."
    )
    if busy:
        text += f" Other programs had part of the machine during: {', '.join(busy)}."
    return text


# -- limits --------------------------------------------------------------------------------------


def limits(document: Document) -> list[str]:
    """All targets, and for each that is missed what was tried."""
    targets = [t for group in document["groups"].values() for t in group["targets"]]
    if not targets:
        return ["Not measured yet."]
    body = [[t["what"], _wanted(t), _range(t["measured"]), _met(t)] for t in targets]
    lines = ["### What is wanted", "", *table_lines(("", "wanted", "measured", ""), body)]
    missed = [t for t in targets if not t["met"]]
    for limit in KNOWN:
        if ours := [t for t in missed if limit.explains(t["what"])]:
            lines += ["", *_limit(document, limit, ours)]
    if left := [t["what"] for t in missed if not any(k.explains(t["what"]) for k in KNOWN)]:
        lines += ["", "### No experiment yet", "", *(f"* {what}" for what in left)]
    return [*lines, "", _origin(document, list(document["groups"]))]


def _wanted(target: Mapping[str, Any]) -> str:
    return (">= " if target["at_least"] else "<= ") + number(target["wanted"])


def _met(target: Mapping[str, Any]) -> str:
    return "met" if target["met"] else "**missed**"


def _limit(document: Document, limit: Limit, targets: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [f"### {limit.title}", ""]
    lines += [f"* {t['what']}: {_range(t['measured'])}, wanted {_wanted(t)}" for t in targets]
    lines += ["", limit.cost, ""]
    body = [row for trial in limit.tried if (row := _trial(document, trial))]
    if body:
        lines += [*table_lines(("tried", "compared with", "ratio or figure", "so it"), body), ""]
    return [*lines, f"**What would remove it**: {limit.remedy}"]


def _trial(document: Document, trial: Trial) -> list[str] | None:
    """One row of the table; None when its group did not run."""
    group = document["groups"].get(trial.group)
    if group is None:
        return None
    if why := group["missing"].get(trial.row) or group["wrong"].get(trial.row):
        return [f"`{trial.row}`", f"`{trial.against}`", "missing", why]
    row = group["rows"].get(trial.row)
    if row is None:
        return None
    name = f"`{trial.row}`: {row['what']}"
    if not trial.against:
        return [name, "", *_first(row, group["columns"])]
    ratio = row.get("ratios", {}).get(trial.against)
    if ratio is None:
        return None
    said = verdict(ratio, Unit(group["columns"][0]))
    return [name, f"`{trial.against}`", _range(ratio), said]


def _first(row: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    """The first of the group's figures that the row has, and its unit."""
    unit = next(c for c in columns if c in row["figures"])
    return [_range(row["figures"][unit]), unit]


def verdict(ratio: Spread, unit: Unit) -> str:
    """In words: what ratios of this unit mean."""
    if ratio["min"] <= 1 <= ratio["max"] or 1 / LITTLE < ratio["median"] < LITTLE:
        return "makes no clear difference"
    more = ratio["median"] > 1
    what = "takes" if unit in LESS_IS_BETTER else "moves"
    percent = f"{100 * abs(ratio['median'] - 1):.0f} % {'more' if more else 'less'}"
    return f"{what} {percent}: {'worse' if more == (unit in LESS_IS_BETTER) else 'better'}"


# -- files ---------------------------------------------------------------------------------------

PAGES: dict[str, Callable[[Document], list[str]]] = {"trains": trains, "limits-of-speed": limits}
"""Name of a page in FOLDER, and what stands between its marks."""
NAMES = {"trains": "trains", "limits-of-speed": "limits"}
"""Of its marks."""


def text(written: str, name: str, document: Document) -> str:
    """A page with its tables made anew. ValueError: it has no marks."""
    begin, end = (f"<!-- {NAMES[name]}: {word} -->" for word in ("begin", "end"))
    before, found, rest = written.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"no {begin} ... {end} in {name}.md")
    return "\n".join([before + begin, "", *PAGES[name](document), "", end + after])


def write(document: Document) -> list[Path]:
    """The pages, what they are made of, and the figure; the files written."""
    short = slim(document)
    made = {FOLDER / f"{name}.md": name for name in PAGES}
    for file, name in made.items():
        file.write_text(text(file.read_text(encoding="utf-8"), name, short), encoding="utf-8")
    groups = ",\n".join(f"{json.dumps(n)}: {json.dumps(g)}" for n, g in short.pop("groups").items())
    rest = json.dumps(short)[1:]
    DATA.write_text(f'{{"groups": {{\n{groups}\n}},\n{rest}\n', encoding="utf-8")
    written = [*made, DATA]
    if not draw.impossible(document):
        draw.figure(slim(document), FIGURE)
        written.append(FIGURE)
    return written
