# SPDX-License-Identifier: BSD-2-Clause
"""What namespaces on one machine cannot show, on the emulated fabric, in virtual time.

Seven hosts that send to one need more cores than there are; that a peer stops within a round trip
needs a clock finer than a scheduler. The same engine, exactly repeatable, and MRC only.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mrc.fabric import library
from mrc.fabric.record import Record
from mrc.fabric.scenario import load_scenario
from mrc.sim.run import run_scenario

TITLES = {
    "incast": "7:1 incast with a victim, emulated fabric",
    "update": "port status update, emulated fabric",
}
PLANE = 1
"""The one whose port goes down in port-update.toml."""


def _incast(record: Record) -> dict[str, Any]:
    alone = next(other for other in record.compare if other.run["case"] == "alone")
    single = next(other for other in record.compare if other.run["case"] == "rc")
    rate = {
        name: one.result["works"]["victim"]["goodput_bps"]
        for name, one in (("mrc", record), ("alone", alone), ("single", single))
    }
    return {
        "victim_share": rate["mrc"] / rate["alone"],
        "jain": record.result["works"]["incast"]["jain"],
        "incast_bps": record.result["works"]["incast"]["goodput_bps"],
        "single_path_victim_share": rate["single"] / rate["alone"],
    }


def _update(record: Record) -> dict[str, Any]:
    """From the loss of the carrier, which is not later than the update, to the last packet sent."""
    down_s = record.faults[0].t_s
    path = record.plane_series(PLANE - 1)
    last = next(t for t, count in zip(path.t_s, path.count, strict=True) if count == path.count[-1])
    return {
        "stopped_ms": max(0.0, last - down_s) * 1e3,
        "rtt_ms": float(record.run["base_rtt_s"]) * 1e3,
        "lost": record.result["lost"],
    }


_HERE = Path(__file__).resolve().parent
_SCENARIOS: dict[str, tuple[Callable[[], Path], Callable[[Record], dict[str, Any]]]] = {
    "incast": (lambda: library.find("incast-victim"), _incast),
    "update": (lambda: _HERE / "port-update.toml", _update),
}


def emulate(key: str) -> dict[str, Any]:
    """The figures of one of TITLES. The same on every machine."""
    file, figures = _SCENARIOS[key]
    return figures(run_scenario(load_scenario(file())))
