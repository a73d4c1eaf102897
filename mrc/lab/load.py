# SPDX-License-Identifier: BSD-2-Clause
"""How busy the machine was while a run was on: whether it, and not the fabric, was the limit."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mrc.fabric.record import Check, Record
from mrc.fabric.result import case_name

__all__ = ["Load", "kept_up", "load_now", "used"]

BUSY = 0.9
"""A process that ran, or waited for a processor, for so much of the time could not do more."""
SHARE = 0.9
"""A run that reaches so much of what the fabric can carry was not held back by anything."""

Task = tuple[int, int]
"""Process and thread."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the kernel has counted until a moment, in seconds."""

    at_s: float
    idle_s: float
    """Of all processors together."""
    tasks: Mapping[Task, float]
    """How long each ran, or could have run and had no processor."""


def load_now(pids: Iterable[int], root: Path = Path("/proc")) -> Load:
    """The counters of the machine, and of these processes."""
    words = (root / "stat").read_text("ascii").split("\n", 1)[0].split()
    idle_s = (int(words[4]) + int(words[5])) / float(os.sysconf("SC_CLK_TCK"))
    tasks = {}
    for pid in pids:
        for file in (root / str(pid) / "task").glob("*/schedstat"):
            with contextlib.suppress(OSError):  # it has ended
                ran_ns, waited_ns = (int(word) for word in file.read_text("ascii").split()[:2])
                tasks[pid, int(file.parent.name)] = (ran_ns + waited_ns) / 1e9
    return Load(time.monotonic(), idle_s, tasks)


def used(before: Load, after: Load, processors: int | None = None) -> dict[str, float]:
    """`machine_busy`: share of all processors; `process_busy`: of its time, the busiest one's."""
    passed = max(after.at_s - before.at_s, 1e-9)
    idle = (after.idle_s - before.idle_s) / passed / (processors or os.cpu_count() or 1)
    each = (time_s - before.tasks.get(task, 0.0) for task, time_s in after.tasks.items())
    return {
        "machine_busy": round(min(1.0, max(0.0, 1.0 - idle)), 3),
        "process_busy": round(max(each, default=0.0) / passed, 3),
    }


def kept_up(records: Iterable[Record]) -> tuple[Check, ...]:
    """An expectation nobody has to write: not met by a run that says more of the machine."""
    found = []
    for record in records:
        busy, share = record.run["process_busy"], record.result.get("share_of_capacity")
        if share is not None and share < SHARE and busy >= BUSY:
            words = f"this machine kept up with the fabric ({case_name(record)})"
            text = f"share_of_capacity >= {SHARE} or process_busy < {BUSY}"
            values = {"share_of_capacity": share, "process_busy": busy}
            found.append(Check(words, text, False, values))
    return tuple(found)
