# SPDX-License-Identifier: BSD-2-Clause
"""python -m tools.scenarios: run all scenarios that come with the package, or those named.

Records and figures go to build/scenarios. Only a run of all writes docs/reference/scenarios.md and
the figures beside it. Exit code 0: every expectation is met; 1: there is no scenario of that name;
2: some are not met, the page says which.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

from mrc.fabric import figure, library, report
from mrc.fabric.errors import near
from mrc.fabric.record import Record, dump
from mrc.fabric.scenario import Scenario, load_scenario
from mrc.sim.run import run_scenario

from .page import figures_for, page

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "scenarios"
PAGE = ROOT / "docs" / "reference" / "scenarios.md"
IMAGES = PAGE.parent / "img"
IMAGE_BYTES = 60_000


def run_one(name: str) -> tuple[str, Scenario, Record]:
    """Run it, keep record and figure."""
    scenario = load_scenario(library.find(name))
    begin = time.monotonic()
    record = run_scenario(scenario)
    (BUILD / f"{name}.json").write_text(dump(record), encoding="utf-8")
    figure.draw(record, scenario.figure, BUILD / f"{name}.svg")
    print(f"{name} ({time.monotonic() - begin:.1f} s)")
    for line in list(report.lines(record))[1:]:
        print(line, flush=True)
    return name, scenario, record


def write(done: list[tuple[str, Scenario, Record]]) -> None:
    """The page, and the figures that are small enough beside it."""
    IMAGES.mkdir(exist_ok=True)
    kept = figures_for(BUILD, [name for name, _, _ in done], IMAGE_BYTES)
    for name, path in kept.items():
        shutil.copyfile(path, IMAGES / f"scenario-{name}.svg")
    PAGE.write_text(page(done, {name: f"img/scenario-{name}.svg" for name in kept}), "utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)} and {len(kept)} figures")


def main(argv: list[str]) -> int:
    """All, or the ones named."""
    for name in argv:
        if name not in library.names():
            print(
                f"scenarios: there is no {name!r}; {near(name, library.names())}", file=sys.stderr
            )
            return 1
    BUILD.mkdir(parents=True, exist_ok=True)
    done = [run_one(name) for name in argv or library.names()]
    if not argv:
        write(done)
    met = all(check.met for _, _, record in done for check in record.expect)
    return 0 if met else 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
