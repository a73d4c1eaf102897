# SPDX-License-Identifier: BSD-2-Clause
"""Runs of the core in simulated networks, judged by the checker, which never saw the core."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from mrc.model.checker import check
from mrc.model.trace import Event, In, Out, read
from mrc.model.wire import NackReason

ROOT = Path(__file__).parents[2]
VOPR = Path("build/c/vopr")
SEEDS = 400
RUNS = 36
PACKETS = range(60, 1000)  # small enough to be judged in a moment
LINE = re.compile(r"seed (\d+) ok .* data (\d+) ")


@pytest.fixture(scope="module")
def seeds() -> list[int]:
    """Seeds without a hostile host, whose packets the log does not explain, and not too long."""
    subprocess.run(["make", "-s", str(VOPR)], cwd=ROOT, check=True)
    lines = _vopr("1", str(SEEDS)).splitlines()
    honest = [m for line in lines if "hostile" not in line and (m := LINE.match(line))]
    found = [int(m[1]) for m in honest if int(m[2]) in PACKETS]
    assert len(found) >= RUNS
    return found[:RUNS]


def _vopr(*args: str) -> str:
    run = subprocess.run([VOPR, *args], cwd=ROOT, check=True, capture_output=True, text=True)
    return run.stdout


@pytest.fixture(scope="module")
def logs(seeds: list[int], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One log for each of those seeds."""
    folder = tmp_path_factory.mktemp("traces")
    for seed in seeds:
        _vopr("-t", str(folder / f"{seed}"), str(seed))
    return sorted(folder.iterdir())


def test_runs_of_the_core_have_nothing_forbidden(logs: list[Path]) -> None:
    for log in logs:
        with log.open(encoding="ascii") as lines:
            verdicts = check(lines)
        assert not verdicts, f"seed {log.name}: {verdicts[0]}"


def test_those_runs_have_what_the_rules_are_about(logs: list[Path]) -> None:
    seen: Counter[str] = Counter()
    for log in logs:
        with log.open(encoding="ascii") as lines:
            for record in read(lines):
                seen.update(_kinds(record))
    wanted = {"rtx", "mark", "probe answer", "ack", "walk", "NO_RESOURCE", "event", "broken", "imm"}
    assert wanted <= seen.keys(), wanted - seen.keys()


def _kinds(record: object) -> list[str]:
    if isinstance(record, Event):
        return ["event"]
    if isinstance(record, In):
        return [] if record.intact else ["broken"]
    if not isinstance(record, Out):
        return []
    p = record.packet
    said = {
        "rtx": p.meth is not None and bool(p.bth.rtx),
        "imm": p.meth is not None and p.meth.rqmsn > 0,
        "mark": p.seth is not None and p.seth.m == 1,
        "probe answer": p.seth is not None and bool(p.seth.pr),
        "walk": p.seth is not None and p.seth.sack_offset > 1,
        "ack": p.aeth is not None,
    }
    names = [name for name, true in said.items() if true]
    return names + ([NackReason(p.neth.nack_reason).name] if p.neth else [])
