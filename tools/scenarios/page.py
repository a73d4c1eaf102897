# SPDX-License-Identifier: BSD-2-Clause
"""The page docs/reference/scenarios.md out of records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mrc.fabric.record import Record
from mrc.fabric.result import case_name
from mrc.fabric.scenario import Scenario
from mrc.units import format_rate

__all__ = ["page"]

_HEAD = """\
# Scenarios: the published experiments, on the emulated fabric

Written by `make scenarios`: edit `mrc/scenarios/*.toml`, not this page. Each row is one file, run
as `python -m mrc.sim NAME`; the same file and seed give the same figures on every machine. How to
read and write such files: [scenario-files.md](scenario-files.md). Sections G.x are those of the
protocol document's numbers reported for NICs and switches at 400 to 1600 Gbit/s. Here rates are
scaled down and times up by the same factor, so that as many packets are in flight and as many fit
into a queue; faults follow each other sooner than in the originals. What was published is compared
with what we got. What is judged are the expectations of the file, which the last column names: they
are not always the published figure itself. What a lab of namespaces shows of them:
[scenarios-on-a-lab.md](scenarios-on-a-lab.md).

| scenario | published | here | judged |
| --- | --- | --- | --- |
"""


def page(done: Sequence[tuple[str, Scenario, Record]], figures: Mapping[str, str]) -> str:
    """The whole page. figures: names of those that have one, and its address from the page."""
    rows = [_row(name, scenario, record) for name, scenario, record in done]
    return "".join([_HEAD, *rows, *(part for one in done for part in _section(*one, figures))])


def _row(name: str, scenario: Scenario, record: Record) -> str:
    said = record.verdict.partition(": ")[2].partition(". Published: ")[0]
    met = [check.words for check in record.expect if check.met]
    missed = [check.words for check in record.expect if not check.met]
    judged = [f"**not met**: {'; '.join(missed)}"] if missed else []
    judged += [f"met: {'; '.join(met)}"] if met else []
    cells = (f"[{name}](#{name})", scenario.claim, said, ". ".join(judged) or "nothing")
    return f"| {' | '.join(map(_cell, cells))} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _section(
    name: str, scenario: Scenario, record: Record, figures: Mapping[str, str]
) -> Iterator[str]:
    yield f"\n## {name}\n\n{scenario.name[0].upper()}{scenario.name[1:]}.\n"
    shape, run = scenario.main.shape, scenario.main.run
    yield (
        f"\n{shape.hosts} hosts, {shape.planes} plane{'s' * (shape.planes > 1)} of {shape.t0} T0"
        f" and {shape.t1} T1 switches, {format_rate(shape.rate_bps)} a port, round trip"
        f" {record.run['base_rtt_s'] * 1e3:.3g} ms, {run.duration_ns / 1e9:g} s, seed {run.seed}."
        f" Scaled: {scenario.scaling}.\n"
    )
    yield "\n| | goodput | of capacity | sent / delivered | lost | cut | timeouts | finish |\n"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
    for case in (record, *record.compare):
        yield _case(case)
    yield "\n"
    for check in record.expect:
        yield f"* {'met' if check.met else '**not met**'}: {check.words} (`{check.expression}`)\n"
    if name in figures:
        yield f"\n![{scenario.name}]({figures[name]})\n"


def _case(case: Record) -> str:
    result = case.result
    share, finish = result["share_of_capacity"], result["finish_s"]
    cells = (
        case_name(case),
        format_rate(result["goodput_bps"]),
        "" if share is None else f"{share:.1%}",
        f"{result['sent_per_delivered'] or 0:.3f}",
        result["lost"],
        result["trimmed"],
        result["timeouts"],
        "" if finish is None else f"{finish:.3g} s",
    )
    return f"| {' | '.join(str(cell) for cell in cells)} |\n"


def figures_for(folder: Path, names: Sequence[str], most: int) -> dict[str, Path]:
    """The figures that are small enough to be kept beside the page."""
    found = {name: folder / f"{name}.svg" for name in names}
    return {n: p for n, p in found.items() if p.exists() and p.stat().st_size < most}
