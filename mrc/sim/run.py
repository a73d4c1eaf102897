# SPDX-License-Identifier: BSD-2-Clause
"""A scenario on the emulated fabric: each of its cases in virtual time, and the record of all."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from mrc.fabric.console import Progress, Tell
from mrc.fabric.record import FaultMark, Record
from mrc.fabric.result import judged, result_of
from mrc.fabric.scenario import Case, Scenario
from mrc.fabric.ways import base_rtt_ns

from ._fab import Emulation
from ._tables import MsgCol
from .breakage import Script
from .setup import build
from .traffic import Traffic, make_traffic
from .watch import Watch

__all__ = ["Progress", "run_case", "run_scenario"]


def run_scenario(scenario: Scenario, tell: Tell | None = None, *, version: str = "") -> Record:
    """All cases one after the other.

    MrcUsageError: a case that cannot be. EmulationError: the emulation found an error of its own.
    """
    cases = scenario.cases
    records = []
    for number, case in enumerate(cases):
        begin = time.monotonic()

        def told(now_ns: int, case: Case = case, number: int = number, at: float = begin) -> None:
            if tell is not None:
                tell(Progress(case, number, len(cases), now_ns, time.monotonic() - at))

        records.append(run_case(scenario.name, case, told, version=version))
    return judged(scenario, records)


def run_case(
    name: str, case: Case, told: Callable[[int], None] | None = None, *, version: str = ""
) -> Record:
    """One case. The same case gives the same record, whenever and wherever it is run."""
    traffic = make_traffic(case)
    script = Script(case, traffic)
    with build(case, traffic) as emulation:
        watch = Watch(case, traffic, emulation)
        run = _run_facts(case, script, version)
        marks = _run(case, script, emulation, watch, told)
        arrived = _arrivals(emulation, traffic)
        run["finish_s"] = max(arrived.values(), default=None)
        run["messages_left"] = emulation.messages_left
        run["trace_hash"] = f"{emulation.trace_hash:016x}"
        run["events_left_out"] = watch.left_out
        totals = asdict(emulation.totals())
        totals["dropped"] = {d.name.lower(): n for d, n in totals["dropped"].items()}
        run["packets"] = totals
        record = Record(
            scenario=name,
            on="sim",
            run=run,
            flows=watch.sums(arrived),
            samples=tuple(watch.samples),
            faults=tuple(marks),
            events=tuple(watch.events),
        )
    return replace(record, result=result_of(record))


def _run(
    case: Case,
    script: Script,
    emulation: Emulation,
    watch: Watch,
    told: Callable[[int], None] | None,
) -> list[FaultMark]:
    """Until the end, stopping for samples and faults."""
    plan = case.run
    marks = script.play(emulation, 0)
    watch.look()
    next_look = plan.sample_ns
    while emulation.now_ns < plan.duration_ns:
        due = script.next_ns
        until = min(next_look, plan.duration_ns, plan.duration_ns if due is None else due)
        emulation.run_until(until, stop_when_done=plan.done)
        finished = plan.done and emulation.messages_left == 0
        marks += script.play(emulation, emulation.now_ns)
        if emulation.now_ns >= next_look or finished or emulation.now_ns >= plan.duration_ns:
            watch.look()
            next_look += plan.sample_ns
            if told is not None:
                told(emulation.now_ns)
        if finished:
            break
    return marks


def _arrivals(emulation: Emulation, traffic: Traffic) -> dict[int, float]:
    """By flow: when the last of its messages arrived, in seconds; none for flows that lack some."""
    found: dict[int, float] = {}
    missing = set()
    table = emulation.messages()
    for flow, at in zip(traffic.message_flow, table.column(MsgCol.ARRIVED_NS), strict=True):
        if at == Emulation.NEVER:
            missing.add(flow)
        else:
            found[flow] = max(found.get(flow, 0.0), at / 1e9)
    return {flow: at for flow, at in found.items() if flow not in missing}


def _run_facts(case: Case, script: Script, version: str) -> dict[str, Any]:
    return {
        "case": case.id,
        "name": case.name,
        "seed": case.run.seed,
        "version": version,
        "duration_s": case.run.duration_ns / 1e9,
        "sample_s": case.run.sample_ns / 1e9,
        "skip_s": case.run.skip_ns / 1e9,
        "capacity_bps": script.capacity_bps(),
        "base_rtt_s": (case.transport.base_rtt_ns or base_rtt_ns(case)) / 1e9,
        "shape": asdict(case.shape),
        "transport": asdict(case.transport),
    }
