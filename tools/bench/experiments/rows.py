# SPDX-License-Identifier: BSD-2-Clause
"""The programs of the experiments as rows, and why one cannot run here."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable
from pathlib import Path

from tools.bench.bare import (
    BARE,
    PATHS,
    RINGS,
    UDP_PORT,
    URING,
    WAKE,
    WORK,
    one_way,
    round_trips,
)
from tools.bench.link import SPORT_BASE, BenchError, output, pinned
from tools.bench.method import Place, Run, Sample, Unit
from tools.scorecard.process import Process

LANES = 16


@functools.cache
def _reason(program: Path, *way: str) -> str:
    if not program.exists():
        return f"{program.name} is not compiled"
    argv = [str(program), "can", *way]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()


def no_uring() -> str:
    """Why io_uring cannot be tried; empty when it can."""
    return _reason(URING)


def no_ring(way: str) -> Callable[[], str]:
    """Why frames cannot be sent in that way."""
    return lambda: _reason(RINGS, way)


def never(why: str) -> Callable[[], str]:
    """For what no software network device offers."""
    return lambda: why


def nothing(place: Place) -> Sample:
    """The run of what is always missing."""
    raise NotImplementedError(place)


def _lanes(train: int, batch: int) -> list[str]:
    return ["-n", str(LANES), "-p", str(SPORT_BASE), "-k", str(train), "-b", str(batch)]


def _gro(train: int) -> list[str]:
    return ["-g"] if train > 1 else []


def uring_send(payload: int, train: int, batch: int, *more: str) -> Run:
    """Sends by io_uring; the receiver is that of the bare loops."""
    gives = (URING, [*_lanes(train, batch), *more])
    return lambda place: one_way(place, payload, (BARE, _gro(train)), gives)


def uring_recv(payload: int, train: int) -> Run:
    """Receives by io_uring what the bare GSO loop sends."""
    gives = (BARE, _lanes(train, 1))
    return lambda place: one_way(place, payload, (URING, []), gives)


def work(payload: int, train: int, batch: int, recv: str = "", send: str = "") -> Run:
    """The bare loop with more to do, or with less; the options of work.c."""
    takes = (WORK, ["-p", str(SPORT_BASE), *recv.split()])
    gives = (WORK, [*_lanes(train, batch), *send.split()])
    return lambda place: one_way(place, payload, takes, gives)


def frames(payload: int, way: str, train: int, batch: int) -> Run:
    """Sends whole frames, with an outer header on a fabric; the receiver is the bare loops'."""

    def run(place: Place) -> Sample:
        roads = ["-r", ",".join(place.link.roads), "-f", place.link.source]
        gives = (RINGS, [*_lanes(train, batch), "-m", way, *roads])
        return one_way(place, payload, (BARE, _gro(train)), gives)

    return run


def with_source(run: Run) -> Run:
    """``run`` while the sender's outer headers have a source that is given.

    Without one the kernel chooses one for each packet that it encapsulates.
    """

    def given(place: Place) -> Sample:
        link = place.link
        output(link.sender(["ip", "sr", "tunsrc", "set", link.source]))
        try:
            return run(place)
        finally:
            output(link.sender(["ip", "sr", "tunsrc", "set", "::"]))

    return given


def spread(run: Run, paths: int = LANES) -> Run:
    """``run``, and then once more while what it sends is looked at: how even its paths are.

    The second time counts for evenness only, the first for all else: looking costs time.
    """

    def again(place: Place) -> Sample:
        link, sample = place.link, run(place)
        watch = [str(PATHS), str(UDP_PORT), "-n", str(paths), "-p", str(SPORT_BASE)]
        watch += ["-t", str(place.seconds)]
        with Process.running("watcher", link.sender(watch)) as watcher:
            watcher.wait_ready()
            run(place)
            seen = watcher.result(20)
        if not seen["windows"]:
            raise BenchError("too little was sent to tell how even it is")
        figures = {
            Unit.UNEVEN: 100 * seen["cov_bytes"],
            Unit.UNEVEN_MS: 100 * seen["cov_time"],
            Unit.ROW: seen["bytes"] / seen["rows"] / 1000,
        }
        return Sample(sample.figures | figures, sample.detail | {"paths": seen})

    return again


def hand(way: str) -> Run:
    """Two threads of one core wake each other, there and back."""

    def run(place: Place) -> Sample:
        argv = [str(WAKE), "hand", "-m", way, "-t", str(place.seconds)]
        with Process.running("wake", pinned(place.cores.sender, argv)) as process:
            return round_trips(process.result(place.seconds + 10))

    return run
