# SPDX-License-Identifier: BSD-2-Clause
"""A case of a scenario as programs: an mrc-send and an mrc-recv for each two hosts. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from mrc.fabric.errors import FabricError
from mrc.fabric.fault import FaultKind
from mrc.fabric.plan import Transport, Work
from mrc.fabric.scenario import Case, Scenario
from mrc.fabric.ways import Pair, flow_name, path_numbers, permuted

from .links import check_value
from .plan import FabricSpec, host_address, paths_between, spec_of
from .profile import Mode, ev_entry, plane_entries

__all__ = [
    "INTERVAL_NS",
    "FlowOf",
    "Job",
    "check_case",
    "check_scenario",
    "jobs_of",
    "profile_text",
    "receiver_address",
]

INTERVAL_NS = 10_000_000
"""The programs report no more often."""

FIRST_PORT = 18515
DEPTH_MAX = 1024
_OUTSTANDING = 8
_TAIL_NS = 60 * 10**9
_KINDS = ("bulk", "pair", "incast", "permutation")
_WAITING = "its messages wait for each other, which needs the emulated fabric (python -m mrc.sim)"
_UNSET = ("min_active", "steady", "base_rtt_ns", "timeout_ns", "loss_rule", "skip_rule")
"""Of a transport, what mrc-send has no option for."""


@dataclass(frozen=True, slots=True)
class FlowOf:
    """A flow of a job: one direction of one of its connections."""

    name: str
    work: str
    src: int
    dst: int
    socket: int
    """Of the connection, from 1, as the programs count."""
    forward: bool
    """From mrc-send to mrc-recv."""


@dataclass(frozen=True, slots=True)
class Job:
    """A pair of programs."""

    number: int
    pair: Pair
    """The first of its queue pairs; mrc-send runs in `src`."""
    src: int
    dst: int
    qps: int
    flows: tuple[FlowOf, ...]
    send: tuple[str, ...]
    """Options of mrc-send besides host, paths and port."""
    port: int
    both: tuple[str, ...] = ()
    """Options of mrc-send and mrc-recv alike."""

    @property
    def work(self) -> Work:
        """What it is a part of."""
        return self.pair.work


def check_scenario(scenario: Scenario) -> None:
    """FabricError: a lab cannot do one of its cases; the message names what."""
    for case in scenario.cases:
        jobs_of(case)


def check_case(case: Case) -> None:
    """FabricError: a lab cannot do that; the message names what."""
    for work in case.works:
        if work.kind not in _KINDS:
            raise _refused(case, f"work {work.name!r} of kind {work.kind}: {_WAITING}")
        if work.outstanding > DEPTH_MAX:
            raise _refused(case, f"outstanding = {work.outstanding}: at most {DEPTH_MAX} in a lab")
    plain = Transport()
    for field in fields(Transport):
        if field.name in _UNSET and getattr(case.transport, field.name) != getattr(
            plain, field.name
        ):
            name = field.name.removesuffix("_ns")
            raise _refused(case, f"transport.{name}: mrc-send has no such option")
    if case.shape.jitter_ns:
        raise _refused(case, "fabric.jitter: a lab delays all packets of a link alike")
    try:
        for fault in case.faults:
            check_value(fault)
        spec_of(case.shape)
    except ValueError as error:
        raise _refused(case, str(error)) from None


def _refused(case: Case, what: str) -> FabricError:
    return FabricError(f"the case {case.id} cannot be run in a lab: {what}")


def jobs_of(case: Case) -> tuple[Job, ...]:
    """All of them, in the order of the work. FabricError: as `check_case`, or no path is left."""
    check_case(case)
    rank = random.Random(case.run.seed)  # noqa: S311 - a draw that can be repeated
    found: list[Job] = []
    taken: set[str] = set()
    for work in case.works:
        for src, dst in _ways(work, rank):
            for numbers in _connections(case, work):
                job = _job(case, Pair(src, dst, work, numbers[0]), numbers, len(found), taken)
                taken |= {flow.name for flow in job.flows}
                found.append(job)
    return tuple(found)


def _connections(case: Case, work: Work) -> Sequence[range]:
    """Those of two hosts by number, as programs have them: in mode rc each has a path of its own.

    A program has the same paths for all its connections.
    """
    count = work.qps or case.transport.qps
    if case.transport.mode == "rc":
        return [range(k, k + 1) for k in range(count)]
    return [range(count)]


def _ways(work: Work, rank: random.Random) -> Sequence[tuple[int, int]]:
    match work.kind:
        case "incast":
            return [(host, work.dst) for host in work.hosts]
        case "permutation":
            return permuted(work, rank)
        case _:
            return [(work.src, work.dst)]


def _job(case: Case, way: Pair, which: range, number: int, taken: set[str]) -> Job:
    src, dst, work = way.a, way.b, way.work
    qps = work.qps or case.transport.qps
    ways = [(src, dst, True), (dst, src, False)][: 2 if work.both else 1]
    flows = []
    for a, b, forward in ways:
        for k in which:
            name = flow_name(a, b, k, qps)
            name = f"{work.name}:{name}" if name in taken else name
            flows.append(FlowOf(name, work.name, a, b, k - which[0] + 1, forward))
    # a below b, as the emulated fabric has them: the same paths are drawn
    pair = Pair(min(src, dst), max(src, dst), work, which[0])
    numbers = path_numbers(case, pair)
    if len(set(numbers)) < len(numbers):
        raise _refused(case, f"transport.evs: {len(numbers)} EVs of {len(set(numbers))} paths")
    return Job(
        number, pair, src, dst, len(which), tuple(flows),
        tuple(_options(case, work, len(which))), FIRST_PORT + number, tuple(_of_both(case)),
    )  # fmt: skip


def _cuts(case: Case) -> bool:
    """Packets may arrive cut, which only a raw socket sees."""
    return case.shape.trim or any(fault.kind is FaultKind.TRIM for fault in case.faults)


def _of_both(case: Case) -> Iterator[str]:
    if case.transport.mode == "rc":
        yield from ("--mode", "rc")
    if _cuts(case):
        yield from ("--backend", "raw")


def _options(case: Case, work: Work, qps: int) -> Iterator[str]:
    transport = case.transport
    depth = work.outstanding or (_OUTSTANDING if work.endless else transport.depth)
    yield from ("-s", str(work.bytes), "-P", str(qps), "--mtu", str(transport.path_mtu))
    yield from ("--cc", transport.cc, "--no-verify", "--seed", str(case.run.seed))
    if depth:
        yield from ("--depth", str(min(depth, DEPTH_MAX)))
    if transport.window_bytes and transport.cc != "none":
        yield from ("--window", str(transport.window_bytes))
    if transport.timestamps:
        yield "--timestamps"
    if transport.train > 1:
        yield from ("--train", str(transport.train))
    if work.both:
        yield "--bidir"
    if work.endless:
        stop = case.run.duration_ns + _TAIL_NS if work.stop_ns is None else work.stop_ns
        yield from ("-t", f"{max(0.05, (stop - work.start_ns) / 1e9):.6f}")
    else:
        yield from ("-n", str(-(-work.count // qps)))


def profile_text(case: Case, spec: FabricSpec, job: Job, *, back: bool = False) -> str:
    """The EV profile of one end of a job. `back`: of the receiver, for what it sends."""
    src, dst = (job.dst, job.src) if back else (job.src, job.dst)
    paths = paths_between(spec, src, dst)
    numbers = path_numbers(case, job.pair)
    plain = case.transport.mode == "rc" or job.pair.work.paths
    backups = 0 if plain else case.transport.backups
    mode = Mode.SRV6 if _cuts(case) else Mode.UDP
    parts = [f'format = "{mode}"\n']
    for k, number in enumerate(numbers):
        spare = k >= len(numbers) - backups
        parts.append(ev_entry(paths[number], mode) + "backup = true\n" * spare)
    return "\n".join([*parts, *plane_entries(paths[number] for number in numbers)])


def receiver_address(job: Job) -> str:
    """Where mrc-send finds it."""
    return str(host_address(job.dst))
