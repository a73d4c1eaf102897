# SPDX-License-Identifier: BSD-2-Clause
"""Records made by hand: a rate in each part of a run, and what happened between."""

from __future__ import annotations

from dataclasses import replace

from mrc.fabric.record import TOTAL, FaultMark, FlowSum, Record, Sample
from mrc.fabric.result import result_of

STEP_S = 0.01
LINE = 1e9


def flow_sum(name, count, end_s, work="bulk", errors=0):
    return FlowSum(name, work, 1, 2, count, 0.0, end_s, count * 8 / end_s, 10, errors)


def record(parts, faults=(), *, case="main", name="", flows=1, capacity_bps=LINE, **last):
    """From (seconds, bit/s) parts, shared by `flows` equal flows; `last`: counters of the end."""
    samples, t, count = [], 0, 0.0
    per_flow = [0.0] * flows
    for seconds, bps in [(0, 0.0), *parts]:
        for _ in range(round(seconds / STEP_S) or 1):
            if seconds:
                t += 1
                count += bps * STEP_S / 8
                per_flow = [n + bps * STEP_S / 8 / flows for n in per_flow]
            samples.append(Sample(t * STEP_S, TOTAL, round(count), planes=(round(count / 2),) * 2))
            samples += [
                Sample(t * STEP_S, f"h1>h2#{k + 1}", round(n), evs=(round(n / 2), round(n / 2)))
                for k, n in enumerate(per_flow)
            ]
    end = t * STEP_S
    if last:
        samples[-1 - flows] = replace(samples[-1 - flows], **last)
    made = Record(
        scenario="made by hand",
        on="sim",
        run={"case": case, "name": name, "capacity_bps": capacity_bps, "skip_s": 0.0},
        flows=tuple(flow_sum(f"h1>h2#{k + 1}", round(n), end) for k, n in enumerate(per_flow)),
        samples=tuple(samples),
        faults=tuple(faults),
    )
    return replace(made, result=result_of(made))


def mark(t_s, *, on, capacity_bps=LINE, paths=()):
    return FaultMark(t_s, "fail p1.t1.2" if on else "end of fail p1.t1.2", on, capacity_bps, paths)
