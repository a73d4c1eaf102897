# SPDX-License-Identifier: BSD-2-Clause
"""MRC: the commands, the library, and the transport without Python."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from os import sched_getaffinity
from pathlib import Path
from typing import Any

from mrc.options import OptionArgs
from tools.bench.bare import LOAD, round_trips
from tools.bench.link import SPORT_BASE, BenchError, among, pinned, wait_listening
from tools.bench.meter import Meter
from tools.bench.method import PORT, Place, Run, Sample, Unit
from tools.scorecard.process import Process

COMMAND_PORT = 18515
SEND, RECV = (Path(sys.executable).parent / name for name in ("mrc-send", "mrc-recv"))
PUMP = "--pump"
"""The option of the commands that says who moves packets: the event loop, or a thread in C."""


@functools.cache
def _has_pump() -> bool:
    shown = subprocess.run([str(SEND), "--help"], capture_output=True, text=True, check=True)
    return PUMP in shown.stdout


def no_thread_mode() -> str:
    """Why the commands cannot be measured in thread mode; empty when they can."""
    return "" if _has_pump() else f"mrc-send has no {PUMP} yet"


def no_thread_option() -> str:
    """Why the library cannot be measured in thread mode; empty when it can."""
    known = OptionArgs.__annotations__
    return "" if "pump" in known else "connect() has no option for it yet"


def command(*send: str, loop: str = "", pump: str = "", evs: int = 16, raw: bool = False) -> Run:
    """One run of the commands as they are by default, but for what is given.

    ``send`` are further options of mrc-send; ``loop`` and ``pump`` are for both ends.
    """

    def run(place: Place) -> Sample:
        both = ["--loop", loop] if loop else []
        both += [PUMP, pump] if pump and _has_pump() else []
        link, cores = place.link, place.cores
        gives = [str(SEND), link.address, "--json", "-t", str(place.seconds), "-i", "0"]
        takes = [str(RECV), "-B", link.address, "-1", "--json", "-i", "0", *both]
        if raw:
            gives += ["--backend", "raw", "--ev-profile", str(link.profiles[0])]
            takes += ["--backend", "raw", "--ev-profile", str(link.profiles[1])]
        else:
            gives += ["-e", str(evs), "--sport-base", str(SPORT_BASE)]
        gives += [*(["--no-verify"] if "--verify" not in send else []), *send, *both]
        takes, gives = _inside(place, takes, gives)
        with Process.running("mrc-recv", takes) as receiver:
            wait_listening(link, COMMAND_PORT, lambda: receiver.ended)
            with Meter(cores, link.netdev) as meter, Process.running("mrc-send", gives) as sender:
                document = sender.result(place.seconds + 20)
            sample = _sample(document, meter)  # a sender that failed leaves its receiver waiting
            receiver.result(15)
        return sample

    return run


def _inside(place: Place, takes: list[str], gives: list[str]) -> tuple[list[str], list[str]]:
    link, cores = place.link, place.cores
    return (
        link.receiver(pinned(cores.receiver, takes)),
        link.sender(pinned(cores.sender, gives)),
    )


def _sample(document: dict[str, Any], meter: Meter) -> Sample:
    end = document.get("end", {})
    if "error" in document or "sum_received" not in end:
        raise BenchError(f"mrc-send: {document.get('error', 'no result')}")
    core, port = end["mrc"], end["ports"][0]
    gbps = end["sum_received"]["bits_per_second"] / 1e9
    figures = {
        Unit.GBPS: gbps,
        Unit.LOSS: 100 * core["packets_retransmitted"] / max(1, core["packets_sent"]),
        Unit.MWRITES: end["sum_sent"]["messages"] / end["sum_sent"]["seconds"] / 1e6,
        Unit.TRAIN: port["tx_packets"] / max(1, port["tx_trains"]),
        **meter.cost(gbps),
    }
    cwnd = end["streams"][0]["sender"]["snd_cwnd"]
    return Sample(figures, {"mrc": core, "port": port, "cwnd_bytes": cwnd})


def library(mode: str, loop: str, payload: int = 64, **options: Any) -> Run:
    """Writes through the library, ``latency`` or ``pipelined``, on an event loop by name.

    Who moves packets is the event loop unless ``options`` say otherwise.
    """
    if not no_thread_option():
        options.setdefault("pump", "loop")

    def run(place: Place) -> Sample:
        common = [place.link.address, str(PORT), json.dumps(options), loop]
        more = [mode, str(payload), str(place.seconds)]
        program = [sys.executable, "-m", "tools.bench.ends.writes"]
        takes, gives = _inside(
            place, [*program, "recv", *common], [*program, "send", *common, *more]
        )
        return _pair(place, takes, gives, mode == "latency")

    return run


def application(*options: str, latency: bool = False) -> Run:
    """The same by an application in C on the pump."""

    def run(place: Place) -> Sample:
        common = [place.link.address, str(PORT), *options]
        time = ["-t", str(place.seconds), *["-l"] * latency]
        takes, gives = _inside(
            place, [str(LOAD), "recv", *common], [str(LOAD), "send", *common, *time]
        )
        return _pair(place, takes, gives, latency)

    return run


def _pair(place: Place, takes: list[str], gives: list[str], latency: bool) -> Sample:
    with Process.running("receiver", takes) as receiver:
        receiver.wait_ready()
        with (
            Meter(place.cores, place.link.netdev) as meter,
            Process.running("sender", gives) as sender,
        ):
            report = sender.result(place.seconds + 15)
    if latency:
        return round_trips(report)
    return _throughput(report, meter)


def _throughput(report: dict[str, Any], meter: Meter | None) -> Sample:
    """What load.c and ends/writes.py report of many writes."""
    seconds, cpu = report["seconds"], report["cpu_seconds"]
    gbps = report["bytes"] * 8 / seconds / 1e9
    figures = {
        Unit.GBPS: gbps,
        Unit.MWRITES: report["writes"] / seconds / 1e6,
        **(meter.cost(gbps) if meter else {}),
    }
    if meter is None:  # both ends are in this process: its time is all there is
        figures[Unit.MCORE] = report["writes"] / cpu / 1e6
        if "packets" in report:
            figures[Unit.NS] = cpu * 1e9 / report["packets"]
    return Sample(figures, report)


def mem(*options: str) -> Run:
    """Both ends in one thread of a C program, joined by a wire in memory."""

    def run(place: Place) -> Sample:
        argv = [str(LOAD), "mem", *options, "-t", str(place.seconds)]
        with Process.running("load", pinned(place.cores.sender, argv)) as process:
            return _throughput(process.result(place.seconds + 60), None)

    return run


def mem_cores(count: int, processes: int, *options: str) -> Run:
    """``count`` pairs of ends, each on a core of its own and in one of ``processes`` programs."""

    def run(place: Place) -> Sample:
        usable = sorted(sched_getaffinity(0))[:count]
        argv = [str(LOAD), "mem", *options, "-t", str(place.seconds)]
        argv += ["-j", str(count // processes)]
        with ExitStack() as stack:
            all_of_them = [
                stack.enter_context(Process.running("load", among(usable[first::processes], argv)))
                for first in range(processes)
            ]
            reports = [process.result(place.seconds + 60) for process in all_of_them]
        added = ("writes", "bytes", "packets", "trains", "retransmitted", "cpu_seconds")
        whole = {key: sum(report[key] for report in reports) for key in added}
        return _throughput(whole | {"seconds": max(r["seconds"] for r in reports)}, None)

    return run


def mem_library(loop: str, payload: int = 64, **options: Any) -> Run:
    """Both ends in one event loop of a Python program, joined by a wire in memory."""

    def run(place: Place) -> Sample:
        argv = [sys.executable, "-m", "tools.bench.ends.writes", "mem", "-", "0"]
        argv += [json.dumps(options), loop, "pipelined", str(payload), str(place.seconds)]
        with Process.running("writes", pinned(place.cores.sender, argv)) as process:
            return _throughput(process.result(place.seconds + 20), None)

    return run


def once(argv: list[str], read: Callable[[dict[str, Any]], dict[Unit, float]]) -> Run:
    """A program that prints one JSON object."""

    def run(place: Place) -> Sample:
        with Process.running(Path(argv[0]).name, pinned(place.cores.sender, argv)) as process:
            report = process.result(60)
        return Sample(read(report), report)

    return run
