# SPDX-License-Identifier: BSD-2-Clause
"""All runs of a scorecard, one after the other, and the document they make."""

from __future__ import annotations

import platform
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from os import sched_getaffinity
from pathlib import Path
from typing import Any

from mrc.lab import FabricUnavailableError
from tools.scorecard import judge
from tools.scorecard.cases import PLANES, Case
from tools.scorecard.peers import Peer, congestion_control, mrc
from tools.scorecard.play import Played, play
from tools.scorecard.process import PlayError
from tools.scorecard.rows import grouped
from tools.scorecard.stage import RATE_MBIT, ROOT, Shape, Stage, stage

SCHEMA = 1
START_S = 1.5
"""What a run takes beside its traffic, for the time that is left."""
VERIFY = Case("verify", "every byte compared", 1.0, warm_s=0.5)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run."""

    peers: tuple[Peer, ...]
    cases: tuple[Case, ...]
    shapes: tuple[Shape, ...]
    runs: int
    first: int = 0
    """Number of the first run: with it rotates who begins."""

    @property
    def seconds(self) -> float:
        """How long all of it takes, about."""
        once = sum(c.warm_s + c.seconds + START_S for c in self.cases)
        return once * self.runs * sum(len(self.fit(shape)) for shape in self.shapes)

    @property
    def count(self) -> int:
        """How many runs."""
        peers = sum(len(self.fit(shape)) for shape in self.shapes)
        return peers * len(self.cases) * self.runs

    def fit(self, shape: Shape) -> tuple[Peer, ...]:
        """The peers that can run over such links."""
        return tuple(peer for peer in self.peers if not peer.unfit(shape))

    def unfit(self) -> list[dict[str, Any]]:
        """Who cannot run over which links, and why."""
        return [
            {"peer": peer.key, "mtu": shape.mtu, "why": why}
            for shape in self.shapes
            for peer in self.peers
            if (why := peer.unfit(shape))
        ]


def carry_out(plan: Plan, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Run everything; a peer that fails is a record, too. FabricError: no fabric here."""
    records: list[dict[str, Any]] = []
    unverified: list[str] = []
    not_run: dict[str, str] = {}
    end_s = time.monotonic() + plan.seconds
    started, measured = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), commit()
    for left_out in plan.unfit():
        say("{peer} is not run at MTU {mtu}: {why}".format_map(left_out))
    for shape in plan.shapes:
        if any(peer.key == "mrc" for peer in plan.peers):
            unverified += _verify(plan, shape, folder, say)
        for case in plan.cases:
            try:
                with stage(shape.of(case), folder) as here:
                    here.prepare(case)
                    for record in _case(plan, here, case):
                        records.append(record | {"started": started, "commit": measured})
                        left = max(0.0, end_s - time.monotonic())
                        say(f"[{len(records)}/{plan.count}, {left:.0f} s left] {_line(record)}")
            except FabricUnavailableError as error:
                say(f"{case.key} is not run: {error}")
                not_run[case.key] = str(error)
    return {
        "schema": SCHEMA,
        "started": started,
        "where": {
            "planes": PLANES,
            "rate_mbit": RATE_MBIT,
            "kernel": f"Linux {platform.release()}",
            "cores": len(sched_getaffinity(0)),
            "tcp_congestion": congestion_control(),
            "version": version("mrc"),
            "runs": plan.runs,
        },
        "records": records,
        "emulated": {},
        "unverified": unverified,
        "not_run": not_run,
        "unfit": plan.unfit(),
    }


def join(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One document of several: all runs, and of the rest what the first says."""
    first = documents[0]
    records = [record for document in documents for record in document["records"]]
    ran = {record["run"]["peer"] for record in records}
    scenarios = {record["scenario"] for record in records}
    runs = [len(found) for peers in grouped(records).values() for found in peers.values()]
    return {
        **first,
        "where": {**first["where"], "runs": max(runs, default=0)},
        "peers": {k: title for d in documents for k, title in d["peers"].items()},
        "cases": {k: title for d in documents for k, title in d["cases"].items()},
        "records": records,
        "quick": any(document.get("quick") for document in documents),
        "emulated": {k: v for d in documents for k, v in d.get("emulated", {}).items()},
        "unverified": [why for document in documents for why in document["unverified"]],
        "missing": _left(documents, "missing", ran),
        "not_run": _left(documents, "not_run", scenarios),
        "unfit": _once(left_out for d in documents for left_out in d.get("unfit", ())),
    }


def _left(documents: Sequence[dict[str, Any]], what: str, ran: set[str]) -> dict[str, str]:
    """Reasons that none of the documents has made void."""
    return {k: why for document in documents for k, why in document[what].items() if k not in ran}


def _once(items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found


def commit() -> str:
    """Of what was measured; "-dirty" behind it where files were changed since."""
    argv = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def _case(plan: Plan, here: Stage, case: Case) -> Iterator[dict[str, Any]]:
    """All peers, one after the other in the same fabric, and nobody always first."""
    for number in range(plan.first, plan.first + plan.runs):
        peers = plan.fit(here.shape)
        turn = number % max(len(peers), 1)
        for peer in (*peers[turn:], *peers[:turn]):
            yield _one(here, case, peer, number)
            here.mend()
            here.wait_quiet()


def _one(here: Stage, case: Case, peer: Peer, number: int) -> dict[str, Any]:
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "scenario": case.key,
        "on": "lab",
        "run": {
            "peer": peer.key,
            "number": number,
            "mtu": here.shape.mtu,
            "path_mtu": here.shape.path_mtu,
            "rate_mbit": here.shape.rate_mbit,
            "options": dict(peer.options),
        },
    }
    try:
        return record | _seen(peer, case, here, play(here, peer, case))
    except PlayError as error:
        return record | {"failed": str(error)}


def _seen(peer: Peer, case: Case, here: Stage, played: Played) -> dict[str, Any]:
    found = judge.figures(peer, case, here.shape, here.fabric.spec.shape, played)
    events = found.pop("ev_events", [])
    return {
        "faults": [{**f, "t_s": f["t_s"] - played.begin_s} for f in played.faults],
        "events": events,
        "samples": judge.rates(played),
        "result": found,
    }


def _verify(plan: Plan, shape: Shape, folder: Path, say: Callable[[str], None]) -> list[str]:
    """A short run in which the receiver compares every byte; what was wrong with it."""
    peer = next(p for p in plan.peers if p.key == "mrc")
    try:
        with stage(shape, folder) as here:
            played = play(here, mrc({**peer.options, "verify": True}), VERIFY)
    except PlayError as error:
        return [f"MTU {shape.mtu}: {error}"]
    checked, wrong = played.receiver["checked"], played.receiver["wrong"]
    say(f"MTU {shape.mtu}: MRC moved {checked} MiB, every byte compared, {wrong} MiB wrong")
    if wrong or not checked:
        return [f"MTU {shape.mtu}: {wrong} of {checked} messages are wrong"]
    return []


def _line(record: dict[str, Any]) -> str:
    run = record["run"]
    head = f"MTU {run['mtu']}, {record['scenario']}, {run['peer']}"
    if "failed" in record:
        return f"{head}: FAILED, {record['failed']}"
    result = record["result"]
    rate, gap = result["goodput_bps"] / 1e9, result["gap_ms"]
    return f"{head}: {rate:.3f} Gbit/s, longest gap {gap:.0f} ms"
