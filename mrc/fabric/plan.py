# SPDX-License-Identifier: BSD-2-Clause
"""What a scenario asks for besides a fabric and faults: transport, work, run.

Read from its tables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mrc.types import EV_MAX, PATH_MTUS
from mrc.units import time_text

from .errors import FabricError, PlacedError
from .fault import Fault, parse_kind, parse_spot
from .shape import HOSTS_MAX, FabricShape
from .tomltext import Table

__all__ = [
    "RunPlan",
    "Transport",
    "Work",
    "read_fault",
    "read_shape",
    "read_transport",
    "read_work",
]

MODES = ("mrc", "rc")
CONTROLLERS = ("nscc", "fixed", "none")
KINDS = ("bulk", "pair", "incast", "permutation", "ring-allreduce", "all-to-all")
MESSAGE_MAX = 1 << 31  # H20
_HOST = re.compile(r"h([1-9]\d{0,6})(?:\.\.h?([1-9]\d{0,6}))?")


@dataclass(frozen=True, slots=True)
class Transport:
    """How the hosts send. 0 stands for a default that follows from the fabric."""

    mode: str = "mrc"
    """rc: one path, in order, go-back-N, as RoCE does; evs is then 1 for each queue pair."""
    evs: int = 0
    """Entries of the EV profile of a pair, backups among them; 0: every path."""
    backups: int = 0
    """Of those, healthy reserves, spread over the planes (D.7)."""
    min_active: int = 0
    deny: tuple[str, ...] = ()
    """Targets; paths through them are not in the profile: a denylist kept from the start."""
    path_mtu: int = 4096
    cc: str = "nscc"
    window_bytes: int = 0
    """fixed: the window; nscc: its ceiling."""
    steady: bool = False
    base_rtt_ns: int = 0
    qps: int = 1
    """Queue pairs between two hosts; messages take turns."""
    depth: int = 0
    timeout_ns: int = 0
    """Of a packet (B.9); the next 1.024 us x 2^n above."""
    train: int = 1
    timestamps: bool = True
    loss_rule: str = "compared"
    skip_rule: str = "compared"


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of traffic. Hosts are 0-based."""

    kind: str
    name: str
    src: int = 0
    dst: int = 1
    hosts: tuple[int, ...] = ()
    """Of a collective or a permutation; the senders of an incast."""
    bytes: int = 0
    """Of a message; of a collective: what each host holds (all-reduce) or sends (all-to-all)."""
    count: int = 1
    """Messages of a pair; repetitions of a collective."""
    outstanding: int = 0
    both: bool = False
    """bulk, pair: the other way, too."""
    shift: int = 0
    """Permutation: host i of the list sends to host i + shift; 0: a drawn permutation."""
    paths: tuple[int, ...] = ()
    """Paths the pairs may use, by number; empty: as the transport says."""
    qps: int = 0
    """0: as the transport says."""
    start_ns: int = 0
    stop_ns: int | None = None

    @property
    def endless(self) -> bool:
        """Runs until it is stopped."""
        return self.kind in ("bulk", "incast", "permutation")


@dataclass(frozen=True, slots=True)
class RunPlan:
    """How long, from which seed, how often looked at."""

    duration_ns: int = 10 * 10**9
    seed: int = 1
    sample_ns: int = 10**7
    done: bool = False
    """End when all messages have arrived; duration is then a limit."""
    skip_ns: int = 0
    """Not counted in the means: the start, in which windows open."""


def read_shape(table: Table) -> FabricShape:
    """[fabric]. FabricError: with the line."""
    queue = table.size("queue", 200 << 10)
    ecn = table.flag("ecn", default=False)
    low, high = table.size("ecn_lo", queue // 5), table.size("ecn_hi", queue * 4 // 5)
    try:
        shape = FabricShape(
            planes=table.integer("planes", 4, 1, 31),
            t1=table.integer("t1", 4, 1, 512),
            hosts=table.integer("hosts", 2, 2, HOSTS_MAX),
            t0=table.integer("t0", 0, 0, 512),
            rate_bps=table.bps("rate", 500_000_000),
            t1_rate_bps=table.bps("t1_rate", 0),
            delay_ns=table.time_ns("delay", 1000),
            jitter_ns=table.time_ns("jitter", 0),
            mtu=table.integer("mtu", 9500, 1280, 65535),
            queue_bytes=queue,
            ecn_lo=low if ecn else None,
            ecn_hi=high if ecn else None,
            trim=table.flag("trim", default=False),
        )
    except PlacedError:
        raise
    except FabricError as error:
        table.fail("", str(error))
    table.done()
    return shape


def read_transport(table: Table) -> Transport:
    """[transport]. FabricError: with the line."""
    found = Transport(
        mode=table.choice("mode", MODES, "mrc"),
        evs=table.integer("evs", 0, 0, EV_MAX),
        backups=table.integer("backups", 0, 0, EV_MAX),
        min_active=table.integer("min_active", 0, 0, EV_MAX),
        deny=tuple(table.words("deny")),
        path_mtu=table.integer("path_mtu", 4096, min(PATH_MTUS), max(PATH_MTUS)),
        cc=table.choice("cc", CONTROLLERS, "nscc"),
        window_bytes=table.size("window", 0),
        steady=table.flag("steady", default=False),
        base_rtt_ns=table.time_ns("base_rtt", 0),
        qps=table.integer("qps", 1, 1, 256),
        depth=table.integer("depth", 0, 0, 4096),
        timeout_ns=table.time_ns("timeout", 0),
        train=table.integer("train", 1, 1, 16),
        timestamps=table.flag("timestamps", default=True),
        loss_rule=table.choice("loss_rule", ("compared", "first"), "compared"),
        skip_rule=table.choice("skip_rule", ("compared", "turn"), "compared"),
    )
    if found.path_mtu not in PATH_MTUS:
        table.fail("path_mtu", f"{found.path_mtu} is not one of {', '.join(map(str, PATH_MTUS))}")
    if found.cc == "fixed" and not found.window_bytes:
        table.fail("cc", "a fixed window needs its size: window = ..")
    if found.evs and found.backups >= found.evs:
        table.fail("backups", f"{found.backups} of {found.evs} EVs: none would be active")
    table.done()
    return found


def _host(table: Table, key: str, default: str, shape: FabricShape) -> int:
    found = _hosts_of(table, key, [table.text(key, default)], shape)
    if len(found) != 1:
        table.fail(key, "one host, such as h1")
    return found[0]


def _hosts_of(table: Table, key: str, words: list[str], shape: FabricShape) -> tuple[int, ...]:
    found: list[int] = []
    for word in words:
        match = _HOST.fullmatch(word)
        if match is None:
            table.fail(key, f"{word!r} is no host; they are like h1, or h1..h8")
        last = int(match[2] or match[1])
        if last > shape.hosts:
            table.fail(key, f"{word}: there is no host {last}: h1 to h{shape.hosts}")
        found += range(int(match[1]) - 1, last)
    if len(set(found)) != len(found):
        table.fail(key, "a host is named twice")
    return tuple(found)


def read_work(table: Table, number: int, shape: FabricShape, run: RunPlan) -> Work:
    """A [[work]]. FabricError: with the line."""
    kind = table.choice("kind", KINDS)
    pairwise = kind in ("bulk", "pair")
    words = [] if pairwise else table.words("hosts")
    hosts = _hosts_of(table, "hosts", words, shape) or tuple(range(shape.hosts))
    src = _host(table, "src", "h1", shape) if pairwise else 0
    dst = _host(table, "dst", "h2", shape) if pairwise or kind == "incast" else 0
    if kind == "incast":
        hosts = tuple(h for h in hosts if h != dst)
    endless = kind in ("bulk", "incast", "permutation")
    stop = table.time_ns("stop", None) if endless else None
    found = Work(
        kind=kind,
        name=table.text("name", kind if number == 0 else f"{kind}{number + 1}"),
        src=src,
        dst=dst,
        hosts=hosts,
        bytes=table.size("bytes", 1 << 20),
        count=1 if endless else table.integer("count", 1, 1, 1_000_000),
        outstanding=table.integer("outstanding", 0, 0, 4096) if endless else 0,
        both=table.flag("both", default=False) if pairwise else False,
        shift=table.integer("shift", 0, 0, HOSTS_MAX) if kind == "permutation" else 0,
        paths=tuple(table.integers("paths", 0, EV_MAX)),
        qps=table.integer("qps", 0, 0, 256),
        start_ns=table.time_ns("start", 0),
        stop_ns=stop,
    )
    _check_work(table, found, run)
    table.done()
    return found


def _check_work(table: Table, work: Work, run: RunPlan) -> None:
    if not 1 <= work.bytes <= MESSAGE_MAX:
        table.fail("bytes", f"{work.bytes}: a message has 1 byte to {MESSAGE_MAX}")
    if work.kind in ("bulk", "pair") and work.src == work.dst:
        table.fail("dst", f"h{work.dst + 1} would send to itself")
    if work.kind not in ("bulk", "pair") and len(work.hosts) < (1 if work.kind == "incast" else 2):
        table.fail("hosts", f"{work.kind} needs more hosts")
    if work.shift and work.shift % len(work.hosts) == 0:
        table.fail("shift", "every host would send to itself")
    if work.start_ns >= run.duration_ns:
        table.fail("start", "begins when the run is over")
    if work.stop_ns is not None and work.stop_ns <= work.start_ns:
        table.fail("stop", "ends before it begins")


def read_fault(table: Table, shape: FabricShape, run: RunPlan) -> Fault:
    """A [[fault]]: do, target, value, at, until, silent. FabricError: with the line."""
    try:
        kind = parse_kind(table.text("do"))
        target = table.text("target", "all" if kind == "heal" else None)
        value = table.text("value") if "value" in table else ""
        at, until = table.time_ns("at", 0), table.time_ns("until", None)
        when = f"@{at}ns" + ("" if until is None else f"..{until}ns")
        spot = f"{target}{'=' if value else ''}{value}{when}"
        fault = parse_spot(kind, spot, silent=table.flag("silent", default=False))
        fault.check(shape)
    except PlacedError:
        raise
    except FabricError as error:
        table.fail("", str(error))
    if fault.at_ns >= run.duration_ns:
        begins, ends = time_text(fault.at_ns), time_text(run.duration_ns)
        table.fail("at", f"{begins} is not before the end of the run, {ends}")
    table.done()
    return fault


def read_run(table: Table) -> RunPlan:
    """[run]. FabricError: with the line."""
    found = RunPlan(
        duration_ns=table.time_ns("duration", 10**10),
        seed=table.integer("seed", 1, 0, 2**63 - 1),
        sample_ns=table.time_ns("sample", 10**7),
        done=table.choice("until", ("time", "done"), "time") == "done",
        skip_ns=table.time_ns("skip", 0),
    )
    if not 1000 <= found.sample_ns <= found.duration_ns:
        table.fail("sample", "must be 1us at least, and the duration at most")
    if found.duration_ns // found.sample_ns > 100_000:
        table.fail("sample", "more than 100000 samples")
    if found.skip_ns >= found.duration_ns:
        table.fail("skip", "nothing would be left")
    table.done()
    return found
