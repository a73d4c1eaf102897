# SPDX-License-Identifier: BSD-2-Clause
"""A scenario in a lab: each of its cases in real time, and the record of all."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mrc.fabric.console import Progress, Tell
from mrc.fabric.record import FaultMark, Record
from mrc.fabric.result import judged, result_of
from mrc.fabric.scenario import Case, Scenario
from mrc.fabric.script import Marks
from mrc.fabric.timeline import Step
from mrc.fabric.ways import base_rtt_ns

from .crew import Crew, Programs
from .errors import FabricError
from .jobs import INTERVAL_NS, Job, check_scenario, jobs_of, profile_text, receiver_address
from .launch import launch, take_down
from .load import kept_up, load_now, used
from .plan import spec_of
from .remote import Remote
from .reports import Ends, Story, Track, events_of, samples_of, sums_of
from .state import Place, sweep

__all__ = ["Lab", "run_case", "run_scenario"]

_LEAD_NS = 500_000_000
_TELL_S = 0.1
_GONE_S = 15.0
_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class Lab:
    """Where and how runs are made."""

    place: Place
    programs: Programs
    userns: bool = False
    version: str = ""


@dataclass
class _Played:
    """What a run was."""

    zero_ns: int
    """CLOCK_MONOTONIC of second 0: the work that begins at once has begun everywhere."""
    stop_s: float = 0.0
    marks: list[FaultMark] = field(default_factory=list)
    late_ms: float = 0.0
    failed: dict[int, str] = field(default_factory=dict)
    load: dict[str, float] = field(default_factory=dict)


def run_scenario(scenario: Scenario, lab: Lab, tell: Tell | None = None) -> Record:
    """All cases one after the other, each in a lab of its own that is gone afterwards.

    mrc.fabric.FabricError: a lab cannot do one of them; then none is begun. FabricUnavailableError,
    FabricError: this machine cannot, something else failed.
    """
    check_scenario(scenario)
    cases = scenario.cases
    records = []
    for number, case in enumerate(cases):
        begin = time.monotonic()

        def told(now_ns: int, case: Case = case, number: int = number, at: float = begin) -> None:
            if tell is not None:
                tell(Progress(case, number, len(cases), now_ns, time.monotonic() - at))

        records.append(run_case(scenario.name, case, lab, told))
    return judged(scenario, records, kept_up(records))


def run_case(name: str, case: Case, lab: Lab, told: Callable[[int], None] | None = None) -> Record:
    """One case. Nothing of it is left, however it ends."""
    jobs = jobs_of(case)
    marks = Marks(case, jobs[0].pair, jobs[0].src, jobs[0].dst)
    run = _run_facts(case, marks, lab.version)
    keeper = launch(lab.place, spec_of(case.shape), userns=True if lab.userns else None)
    try:
        with Remote(lab.place) as remote:
            remote.ask("lease")
            script = [str(fault) for fault in marks.settled]
            remote.ask("check", script=script, pair=marks.pair)
            with Crew(remote.ask("status"), lab.place.folder, lab.programs) as crew:
                stage = _Stage(case, jobs, lab, crew, remote)
                played = stage.play(marks, script, told or (lambda _: None))
                ends = [
                    Ends(
                        job,
                        Track(crew.senders[job.number].said),
                        Track(crew.receivers[job.number].said),
                    )
                    for job in jobs
                ]
    finally:
        _remove(lab.place, keeper)
    story = Story(case, ends, played.zero_ns, played.stop_s)
    return _record(name, run, story, played)


def _remove(place: Place, keeper: int) -> None:
    """Wait until the lab is gone: with its lease it goes by itself, without it is told to."""
    limit = time.monotonic() + _GONE_S
    while place.alive():
        with contextlib.suppress(FabricError):
            take_down(place)
        if time.monotonic() > limit:
            raise FabricError(f"the lab {place.name} does not end; its log: {place.log}")
        time.sleep(_PAUSE_S)
    os.waitpid(keeper, 0)
    sweep()


class _Stage:
    """One case while it runs."""

    def __init__(
        self, case: Case, jobs: tuple[Job, ...], lab: Lab, crew: Crew, remote: Remote
    ) -> None:
        self._case = case
        self._jobs = jobs
        self._lab = lab
        self._crew = crew
        self._remote = remote
        self._gone: set[int] = set()
        self._interval = max(INTERVAL_NS, case.run.sample_ns) / 1e9

    def play(self, marks: Marks, script: list[str], told: Callable[[int], None]) -> _Played:
        """From the first receiver to the last byte that counts."""
        crew = self._crew
        for job in self._jobs:
            crew.receive(job, self._options(job, back=True))
            more = self._options(job, back=False)
            crew.prepare(job, [receiver_address(job), *job.send, *more])
        crew.wait_until("all programs were ready", crew.ready)
        zero_ns, lead_ns = self._begin()
        pids = [*crew.pids(), *self._remote.ask("processes")["pids"]]
        before = load_now(pids)
        played = _Played(zero_ns)
        asked = self._remote.ask(
            "faults", script=script, pair=marks.pair, bound=True, start_ns=zero_ns
        )
        crew.listen(self._remote)
        crew.heard += self._remote.heard
        self._remote.heard = []
        self._until_the_end(played, lead_ns, told)
        played.load = used(before, load_now(pids))
        played.failed = crew.failed()
        number = {fault: k for k, fault in enumerate(asked["numbers"])}
        for event in crew.heard:
            self._mark(played, marks, number, event)
        return played

    def _begin(self) -> tuple[int, int]:
        """Start what begins at once: second 0, and how long a start takes, in ns."""
        first = [job for job in self._jobs if job.work.start_ns == 0]
        endless = [job for job in first if job.work.endless]
        chosen = endless or first
        if not chosen:
            return time.monotonic_ns() + _LEAD_NS, _LEAD_NS
        for job in chosen:
            self._go(job)
        crew = self._crew
        crew.wait_until("all had begun to send", lambda: crew.started_ns(chosen) is not None)
        zero_ns = crew.started_ns(chosen) or 0
        senders = [crew.senders[job.number] for job in chosen]
        lead = min((s.said.started_ns or zero_ns) - s.told_ns for s in senders)
        return zero_ns, lead

    def _go(self, job: Job) -> None:
        self._gone.add(job.number)
        self._crew.go(job)

    def _options(self, job: Job, *, back: bool) -> list[str]:
        file = self._lab.place.folder / f"run-{job.number}{'-back' * back}.toml"
        text = profile_text(self._case, spec_of(self._case.shape), job, back=back)
        file.write_text(text, encoding="ascii")
        more = ["-1"] if back else []
        return [
            *more, "-p", str(job.port), "--ev-profile", str(file), "--json-stream",
            "-i", f"{self._interval:.6f}", *job.both,
        ]  # fmt: skip

    def _until_the_end(self, played: _Played, lead_ns: int, told: Callable[[int], None]) -> None:
        crew, plan = self._crew, self._case.run
        waiting = sorted(
            (job for job in self._jobs if job.number not in self._gone),
            key=lambda job: job.work.start_ns,
        )
        while True:
            now = time.monotonic_ns() - played.zero_ns
            while waiting and waiting[0].work.start_ns - lead_ns <= now:
                self._go(waiting.pop(0))
            done = plan.done and not waiting and self._finished()
            if now >= plan.duration_ns or done:
                played.stop_s = min(now, plan.duration_ns) / 1e9
                crew.turn(0.0)
                return
            told(max(0, now))
            due = [plan.duration_ns]
            if waiting:
                due.append(waiting[0].work.start_ns - lead_ns)
            crew.turn(min(_TELL_S, (min(due) - now) / 1e9))

    def _finished(self) -> bool:
        """All messages have arrived; with endless work never."""
        senders = self._crew.senders
        return all(not job.work.endless and senders[job.number].said.ended for job in self._jobs)

    def _mark(
        self, played: _Played, marks: Marks, number: dict[int, int], event: dict[str, Any]
    ) -> None:
        index = number.get(event["fault"])
        at_s = (event["done_ns"] - played.zero_ns) / 1e9
        if index is None or at_s > played.stop_s:
            return
        due_ns = max(0, event["due_ns"] - played.zero_ns)
        step = Step(due_ns, event["on"], marks.settled[index], index)
        played.marks.append(marks.step(step, max(0.0, at_s)))
        played.late_ms = max(played.late_ms, (event["done_ns"] - event["due_ns"]) / 1e6)


def _record(name: str, run: dict[str, Any], story: Story, played: _Played) -> Record:
    events, left_out = events_of(story)
    flows = sums_of(story, played.failed)
    finite = [flow.end_s for ends, flow in _finite(story, flows) if ends.sender.end]
    record = Record(
        scenario=name,
        on="lab",
        run={
            **run,
            "finish_s": max(finite, default=None),
            "events_left_out": left_out,
            "faults_late_ms": played.late_ms,
            "failures": list(played.failed.values()),
            **played.load,
        },
        flows=flows,
        samples=samples_of(story, run["sample_s"]),
        faults=tuple(played.marks),
        events=events,
    )
    return replace(record, result=result_of(record))


def _finite(story: Story, flows: tuple[Any, ...]) -> list[tuple[Ends, Any]]:
    """Flows of messages with their programs; `flows` are in the order of the story."""
    every = [ends for ends in story.ends for _ in ends.job.flows]
    return [(e, f) for e, f in zip(every, flows, strict=True) if not e.job.work.endless]


def _run_facts(case: Case, marks: Marks, version: str) -> dict[str, Any]:
    return {
        "case": case.id,
        "name": case.name,
        "seed": case.run.seed,
        "version": version,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "duration_s": case.run.duration_ns / 1e9,
        "sample_s": max(INTERVAL_NS, case.run.sample_ns) / 1e9,
        "skip_s": case.run.skip_ns / 1e9,
        "capacity_bps": marks.capacity_bps(),
        "base_rtt_s": (case.transport.base_rtt_ns or base_rtt_ns(case)) / 1e9,
        "shape": asdict(case.shape),
        "transport": asdict(case.transport),
    }
