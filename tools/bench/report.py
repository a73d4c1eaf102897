# SPDX-License-Identifier: BSD-2-Clause
"""Medians, ratios within a round, and how they are shown."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from tools.bench.method import Group, Sample, Target, Unit

OTHERS_MAX = 0.03
"""Share of the machine that other programs may have; more is pointed out."""
JUDGING_ROUNDS = 3
"""With fewer of them targets are shown, and judged by nobody."""

Rounds = Sequence[Mapping[str, Sample]]


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, least and greatest."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def group_document(
    group: Group, rounds: Rounds, missing: Mapping[str, str], wrong: Mapping[str, str]
) -> dict[str, Any]:
    """A group as JSON: its rows, its targets, all samples, and what did not run."""
    rows: dict[str, Any] = {}
    for method in group.methods:
        samples = [r[method.name] for r in rounds if method.name in r]
        if method.name not in wrong and samples:
            rows[method.name] = {"what": method.what, "figures": _figures(samples)}
    for name, row in rows.items():
        row["ratios"] = {
            peer: found for peer in group.against if (found := _ratio(group, name, peer, rounds))
        }
    return {
        "title": group.title,
        "columns": list(group.columns),
        "rows": rows,
        "targets": [found for t in group.targets if (found := _judge(t, rounds, rows)) is not None],
        "rounds": [
            {name: {"figures": s.figures, "detail": s.detail} for name, s in r.items()}
            for r in rounds
        ],
        "missing": dict(missing),
        "wrong": dict(wrong),
    }


def _figures(samples: Sequence[Sample]) -> dict[Unit, dict[str, float]]:
    units = [u for u in Unit if all(u in s.figures for s in samples)]
    return {u: spread([s.figures[u] for s in samples]) for u in units}


def _ratio(group: Group, name: str, peer: str, rounds: Rounds) -> dict[str, float] | None:
    """One row to another within each round; None when they never ran in the same one."""
    found = _within(rounds, group.columns[0], (name, peer))
    return spread(found) if found else None


def _within(rounds: Rounds, unit: Unit, names: tuple[str, ...]) -> list[float]:
    """Of each round the figure of one row, or its ratio to that of another."""
    values = []
    for samples in rounds:
        found = [samples[n].figures[unit] for n in names if _has(samples, n, unit)]
        if len(found) == len(names) and (len(found) == 1 or found[1] > 0):
            values.append(found[0] if len(found) == 1 else found[0] / found[1])
    return values


def _judge(target: Target, rounds: Rounds, rows: Mapping[str, Any]) -> dict[str, Any] | None:
    """What was measured for a target; None when one side of it did not run.

    A ratio compares two runs of one round, a minute apart at most, so that a machine that drifts
    moves both.
    """
    names = (target.ours,) if target.peer is None else (target.ours, target.peer)
    if any(name not in rows for name in names):
        return None
    values = _within(rounds, target.unit, names)
    if not values:
        return None
    measured = spread(values)
    return {
        "what": target.what,
        "wanted": target.wanted,
        "at_least": target.at_least,
        "measured": measured,
        "met": target.met(measured["median"]),
    }


def _has(samples: Mapping[str, Sample], name: str, unit: Unit) -> bool:
    return name in samples and unit in samples[name].figures


# -- for people --------------------------------------------------------------------------------


def number(value: float) -> str:
    """At least three digits that mean something, never an exponent."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 100 or not value else f"{value:.{2 if value >= 0.1 else 4}f}"


def show(document: Mapping[str, Any]) -> str:
    """All of it as text."""
    parts = [group_table(group) for group in document["groups"].values()]
    parts.append(target_table(document))
    if document["interrupted"]:
        parts.append("interrupted: what is above was complete by then")
    return "\n\n".join(part for part in parts if part)


def group_table(group: Mapping[str, Any]) -> str:
    """The rows of one group: medians, and the range of the first column."""
    seen = {unit for row in group["rows"].values() for unit in row["figures"]}
    columns = [c for c in group["columns"] if c in seen]
    lines = [group["title"]]
    peers = list(dict.fromkeys(p for row in group["rows"].values() for p in row.get("ratios", {})))
    if columns:
        heads = "".join(f"{c:>11}" for c in columns[1:])
        heads += "".join(f"{'/ ' + peer:>18}" for peer in peers)
        lines.append(f"  {'':18}{columns[0]:>9} {'min..max':>15}{heads}")
    for name, row in group["rows"].items():
        ratios = [row.get("ratios", {}).get(peer) for peer in peers]
        cells = "".join(f"{number(ratio['median']) if ratio else '':>18}" for ratio in ratios)
        lines.append(f"  {name:18}{_cells(row['figures'], columns)}{cells}  {row['what']}")
    if (others := group.get("others", 0.0)) > OTHERS_MAX:
        lines.append(f"  other programs had {others:.0%} of the machine: measure again")
    for why in ("missing", "wrong"):
        lines += [f"  {name:18}{why}: {text}" for name, text in group[why].items()]
    return "\n".join(lines)


def _cells(figures: Mapping[str, Any], columns: Sequence[str]) -> str:
    first = figures.get(columns[0])
    cells = f"{'':>25}"
    if first:
        least, most = number(first["min"]), number(first["max"])
        cells = f"{number(first['median']):>9} {least + '..' + most:>15}"
    for column in columns[1:]:
        cell = figures.get(column)
        cells += f"{number(cell['median']) if cell else '':>11}"
    return cells


def target_table(document: Mapping[str, Any]) -> str:
    """What is wanted, what was measured, and whether that is enough."""
    targets = [t for g in document["groups"].values() for t in g["targets"]]
    if not targets:
        return ""
    lines = [f"{'Targets':50}{'wanted':>10}{'measured':>10} {'min..max':>15}"]
    for t in targets:
        measured = t["measured"]
        wanted = (">= " if t["at_least"] else "<= ") + number(t["wanted"])
        between = f"{number(measured['min'])}..{number(measured['max'])}"
        lines.append(
            f"{t['what']:50}{wanted:>10}{number(measured['median']):>10} {between:>15}"
            f"  {'met' if t['met'] else 'MISSED'}"
        )
    if document.get("start", {}).get("rounds", JUDGING_ROUNDS) < JUDGING_ROUNDS:
        lines.append("  so few rounds show that it runs; they judge nothing")
    return "\n".join(lines)
