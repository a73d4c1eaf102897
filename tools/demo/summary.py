# SPDX-License-Identifier: BSD-2-Clause
"""The closing judgement: figures out of the reports, and what was wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from .scenario import Result
from .story import USABLE, Story, is_turn

SPREAD = (0.7, 1.3)
GAP_MS = 50.0
BACK_MS = 500.0


def figures(story: Story, result: Result) -> dict[str, Any]:
    """Everything the summary says, as plain values; None where it was not measured."""
    end, mrc = result.bulk_end, result.bulk_end.get("mrc", {})
    steady = list(story.steady.values())
    mean = sum(steady) / len(steady) if steady else 0.0
    sent = mrc.get("packets_sent", 0)
    found: dict[str, Any] = {
        "stage": story.title,
        "file": {
            "name": result.file.name,
            "bytes": result.file_end.get("sum_sent", {}).get("bytes"),
            "seconds": result.file_end.get("sum_sent", {}).get("seconds"),
            "sha256": result.file_sha256,
            "equal": result.file_equal,
        },
        "goodput_bits_per_second": end.get("sum_received", {}).get("bits_per_second"),
        "bytes": end.get("sum_received", {}).get("bytes"),
        "seconds": end.get("sum_received", {}).get("seconds"),
        "verified": bool(end.get("verified")),
        "paths": _paths(story, result),
        "spread": [round(min(steady) / mean, 3), round(max(steady) / mean, 3)] if mean else None,
        "packets_sent": sent,
        "packets_retransmitted": mrc.get("packets_retransmitted"),
        "spurious_retransmits": mrc.get("spurious_retransmits"),
        "timeouts": mrc.get("timeouts"),
        "longest_gap_ms": mrc.get("longest_gap_ms"),
        "cut": _cut(story, mrc.get("ev_events", [])),
        "healthy_paths_suspected": _suspected(story, mrc.get("ev_events", [])),
        "problems": list(result.problems),
    }
    found["problems"] += _faults(found)
    return found


def _paths(story: Story, result: Result) -> list[dict[str, Any]]:
    found = []
    for path in result.bulk_end.get("paths", []):
        plane, spine = story.places.get(path["ev"], (None, None))
        found.append({**path, "plane": plane, "spine": spine, "wire": result.wire.get(path["ev"])})
    return found


def _cut(story: Story, events: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """When the path over the cut spine went and came back, in ms after the cut and the heal."""
    if story.cut_at is None or story.cut_spine is None:
        return None
    turns = [e for e in events if e["ev"] == story.cut_ev and is_turn(e)]
    mine = [(story.clock.monotonic(e["t"]), e["to"]) for e in turns]
    out = [at for at, to in mine if to == "ASSUMED_BAD" and at >= story.cut_at]
    heal_at = story.heal_at or float("inf")
    back = [at for at, to in mine if to in USABLE and at >= heal_at]
    early = [at for at, to in mine if to in USABLE and out and out[0] <= at < heal_at]
    return {
        "plane": story.cut_spine[0],
        "spine": story.cut_spine[1],
        "ev": story.cut_ev,
        "healed": story.heal_at is not None,
        "retired_ms": round((out[0] - story.cut_at) * 1e3, 1) if out else None,
        "back_ms": round((back[0] - heal_at) * 1e3, 1) if back else None,
        "back_too_early": len(early),
    }


def _suspected(story: Story, events: Sequence[Mapping[str, Any]]) -> int:
    """How often a path that nobody cut was taken for dead."""
    bad = [e for e in events if e["to"] == "ASSUMED_BAD" and e["from"] != "ASSUMED_BAD"]
    return sum(e["ev"] != story.cut_ev for e in bad)


def _faults(found: Mapping[str, Any]) -> list[str]:
    """What must not be. Timing belongs to the remarks: a busy machine is no fault of ours."""
    wrong = []
    idle = [p["ev"] for p in found["paths"] if not p["packets_sent"]]
    if idle or not found["paths"]:
        wrong.append(f"paths without traffic: {idle or 'all'}")
    cut = found["cut"]
    if cut is not None:
        if not cut["healed"]:
            wrong.append("the transfer ended before the heal")
        if cut["retired_ms"] is None:
            wrong.append("the dead path was never retired")
        if cut["back_too_early"]:
            wrong.append("the dead path was used again before it was healed")
        if cut["healed"] and cut["back_ms"] is None:
            wrong.append("the healed path did not come back")
    return wrong


def remarks(found: Mapping[str, Any]) -> list[str]:
    """Figures outside what we expect of a machine that has nothing else to do."""
    notes = []
    if found["spread"] and not SPREAD[0] <= found["spread"][0] <= found["spread"][1] <= SPREAD[1]:
        notes.append(f"spread outside {SPREAD[0]}..{SPREAD[1]} of the mean")
    if (found["longest_gap_ms"] or 0.0) > GAP_MS:
        notes.append(f"longest gap above {GAP_MS:.0f} ms")
    if found["cut"] and (found["cut"]["back_ms"] or 0.0) > BACK_MS:
        notes.append(f"path back later than {BACK_MS:.0f} ms")
    if found["healthy_paths_suspected"]:
        times = found["healthy_paths_suspected"]
        notes.append(f"healthy paths were taken for dead {times} times, as on a machine too busy")
    return notes


def show(found: Mapping[str, Any], console: Console) -> None:
    """Print it for people."""
    console.print(_path_table(found))
    facts = Table(box=None, show_header=False, padding=(0, 1))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, text in _facts(found):
        facts.add_row(name, text)
    console.print(facts)
    for note in remarks(found):
        console.print(f"note: {note}", style="yellow", highlight=False)
    for problem in found["problems"]:
        console.print(f"WRONG: {problem}", style="bold red", highlight=False, markup=False)


def _facts(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    lines = [("file", _file_fact(found["file"])), ("bulk", _bulk_fact(found))]
    if found["spread"]:
        low, high = found["spread"]
        when = " before the cut" if found["cut"] else ""
        lines.append(("spread", f"least {low:.2f}, most {high:.2f} of a path's mean share{when}"))
    if found["cut"]:
        lines.append(("cut spine", _cut_fact(found["cut"])))
    gap = found["longest_gap_ms"]
    lines.append(("longest gap", f"{gap:.1f} ms without new bytes" if gap is not None else "?"))
    resent = f"{found['packets_retransmitted']} retransmitted"
    needless = f"({found['spurious_retransmits']} needlessly)"
    sent, timeouts = found["packets_sent"], found["timeouts"]
    lines.append(("packets", f"{sent} sent, {resent} {needless}, {timeouts} timeouts"))
    return lines


def _file_fact(file: Mapping[str, Any]) -> str:
    took = f"{(file['bytes'] or 0) / 1e6:.0f} MB in {file['seconds'] or 0:.2f} s"
    verdict = "equals the sent one" if file["equal"] else "DIFFERS"
    return f"{took}, received file {verdict} (SHA-256 {file['sha256'][:16]}...)"


def _bulk_fact(found: Mapping[str, Any]) -> str:
    moved = f"{(found['bytes'] or 0) / 1e9:.2f} GB in {found['seconds'] or 0:.1f} s"
    speed = f"{(found['goodput_bits_per_second'] or 0) / 1e9:.2f} Gbit/s goodput"
    return f"{moved} = {speed}, {'every byte verified' if found['verified'] else 'NOT VERIFIED'}"


def _cut_fact(cut: Mapping[str, Any]) -> str:
    def when(ms: float | None, what: str) -> str:
        return "never" if ms is None else f"{ms:.1f} ms after the {what}"

    out, back = when(cut["retired_ms"], "cut"), when(cut["back_ms"], "heal")
    return f"plane {cut['plane']} spine {cut['spine']}: path retired {out}, back {back}"


def _path_table(found: Mapping[str, Any]) -> Table:
    paths = found["paths"]
    mean = sum(p["bytes_sent"] for p in paths) / len(paths) if paths else 0.0
    wire = any(p["wire"] is not None for p in paths)
    switches = any(p["plane"] is not None for p in paths)
    table = Table(title="what each path carried in the bulk transfer", box=None, padding=(0, 1))
    names = ["EV", *(["plane", "spine"] if switches else []), "MB", "x mean"]
    names += ["lost", "resent", "RTT us", *(["MB at spine"] if wire else [])]
    for name in names:
        table.add_column(name, justify="right")
    table.add_column("state")
    for p in paths:
        cells = [p["ev"], *([p["plane"], p["spine"]] if switches else [])]
        cells += [f"{p['bytes_sent'] / 1e6:.0f}"]
        cells += [f"{p['bytes_sent'] / mean:.2f}" if mean else "-", p["packets_lost"]]
        cells += [p["retransmits"], f"{p['rtt_us']['avg']:.0f}"]
        cells += [f"{p['wire'] / 1e6:.0f}" if p["wire"] is not None else "-"] if wire else []
        table.add_row(*(str(cell) for cell in cells), p["state"])
    return table
