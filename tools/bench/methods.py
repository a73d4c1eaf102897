# SPDX-License-Identifier: BSD-2-Clause
"""The ways to move bytes that are compared, each as one short run over a link."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.bench.link import SPORT_BASE, BenchError, Link, Within, pinned, wait_listening

ROOT = Path(__file__).resolve().parents[2]
BARE = ROOT / "build" / "bench" / "bare"

PAYLOAD = 4096
"""Bytes of user data in a full MRC packet."""
DATAGRAM = 32 + PAYLOAD + 4
"""UDP payload of that packet: BTH, METH, RETH before it and the iCRC behind it (MRC A.1)."""
EVS = 16


@dataclass(frozen=True, slots=True)
class Sample:
    """What one run delivered."""

    goodput_bps: float
    """User bytes that arrived, in bits per second; headers of MRC's size are not counted."""
    loss: float = 0.0
    """Share of the packets sent that did not arrive, 0..1."""
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cores:
    """Which core each end is pinned to; None: not pinned."""

    sender: int | None
    receiver: int | None


Run = Callable[[Link, Cores, int], Sample]


@dataclass(frozen=True, slots=True)
class Method:
    """One row of the table."""

    name: str
    what: str
    ours: bool
    run: Run
    missing: str = ""
    """Why it cannot run here; empty when it can."""
    tcp: bool = False
    """Whether its data travel by TCP."""


def _json(text: str, who: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as bad:
        raise BenchError(f"{who} printed no JSON: {text.strip()[:200]!r}") from bad
    if not isinstance(value, dict):
        raise BenchError(f"{who} printed {type(value).__name__}, not an object")
    return value


def _finish(process: subprocess.Popen[str], who: str, seconds: float) -> str:
    """Standard output of a process that should end by itself."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise BenchError(f"{who} did not end within {seconds:.0f} s") from None
    if process.returncode != 0:
        raise BenchError(f"{who} ended with {process.returncode}: {(err or out).strip()[-300:]}")
    return out


def _start(host: Within, core: int | None, argv: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        host(pinned(core, argv)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def bare(*send: str, gro: bool = False) -> Run:
    """The bare loop; ``send`` are options of ``bare send``."""

    def run(link: Link, cores: Cores, seconds: int) -> Sample:
        address = [link.receiver_address, "4791"]
        argv = [str(BARE), "recv", *address, *["-g"] * gro]
        receiver = _start(link.receiver, cores.receiver, argv)
        try:
            assert receiver.stdout is not None
            if receiver.stdout.readline() != "ready\n":
                raise BenchError(f"bare recv: {_finish(receiver, 'bare recv', 5)}")
            argv = [str(BARE), "send", *address, "-t", str(seconds), "-s", str(DATAGRAM)]
            argv += ["-p", str(SPORT_BASE), *send]
            sender = _start(link.sender, cores.sender, argv)
            sent = _json(_finish(sender, "bare send", seconds + 10), "bare send")
            got = _json(_finish(receiver, "bare recv", 10), "bare recv")
        finally:
            receiver.kill()
            receiver.wait()
        span = float(got["seconds"])
        if span < seconds / 2:
            raise BenchError(f"the receiver saw packets for {span:.3f} s of {seconds} s only")
        return Sample(
            goodput_bps=got["packets"] * PAYLOAD * 8 / span,
            loss=max(0.0, 1.0 - got["packets"] / max(1, sent["packets"])),
            detail={"sent": sent, "received": got},
        )

    return run


def iperf3(*client: str) -> Run:
    """An iperf3 run; ``client`` are further options of the client."""

    def run(link: Link, cores: Cores, seconds: int) -> Sample:
        server = _start(link.receiver, cores.receiver, ["iperf3", "-s", "-1", "-J"])
        try:
            wait_listening(link.receiver, 5201, server)
            argv = ["iperf3", "-c", link.receiver_address, "-J", "-t", str(seconds), *client]
            sender = _start(link.sender, cores.sender, argv)
            end = _json(_finish(sender, "iperf3", seconds + 15), "iperf3")["end"]
        finally:
            server.kill()
            server.wait()
        # Older versions report a UDP receiver only as what the sender's summary says was lost.
        lost = float(end.get("sum", {}).get("lost_percent", 0.0)) / 100
        got = end.get("sum_received") or end["sum"]
        bps = float(got["bits_per_second"])
        if "-u" in client and "sum_received" not in end:
            bps *= 1 - lost
        return Sample(bps, lost, {"cpu": end.get("cpu_utilization_percent", {})})

    return run


def ours(*send: str) -> Run:
    """One mrc-send run; ``send`` are further options."""

    def run(link: Link, cores: Cores, seconds: int) -> Sample:
        bin_dir = Path(sys.executable).parent
        argv = [str(bin_dir / "mrc-recv"), "-B", link.receiver_address, "-1", "--json"]
        receiver = _start(link.receiver, cores.receiver, argv)
        try:
            wait_listening(link.receiver, 18515, receiver)
            argv = [str(bin_dir / "mrc-send"), link.receiver_address, "--json", "-t", str(seconds)]
            argv += ["-e", str(EVS), "--sport-base", str(SPORT_BASE), *send]
            sender = _start(link.sender, cores.sender, argv)
            end = _json(_finish(sender, "mrc-send", seconds + 20), "mrc-send")["end"]
            _finish(receiver, "mrc-recv", 15)
        finally:
            receiver.kill()
            receiver.wait()
        core = end.get("mrc", {})
        sent = max(1, int(core.get("packets_sent", 1)))
        return Sample(
            goodput_bps=float(end["sum_received"]["bits_per_second"]),
            loss=float(core.get("packets_retransmitted", 0)) / sent,
            detail={"mrc": core, "cpu": end.get("cpu_utilization_percent", {})},
        )

    return run


def methods() -> list[Method]:
    """All rows, those that cannot run here with the reason."""
    no_iperf = "" if shutil.which("iperf3") else "iperf3 is not installed"
    lanes = ("-n", str(EVS), "-b", "1")
    return [
        Method("mrc", "mrc-send, trains as it decides", True, ours("--no-verify")),
        Method("mrc-verify", "the same, every byte checked", True, ours("--verify")),
        Method("mrc-no-cc", "the same without congestion control", True,
               ours("--no-verify", "--cc", "none")),
        Method("mrc-single", "the same, single packets", True, ours("--no-verify", "--train", "1")),
        Method("bare-gso", f"{EVS} sockets, trains of 15, GRO", False,
               bare(*lanes, "-k", "15", gro=True)),
        Method("bare-gso8", f"{EVS} sockets, trains of 8, GRO", False,
               bare(*lanes, "-k", "8", gro=True)),
        Method("bare-single", "one socket, sendmmsg of single datagrams", False, bare("-b", "32")),
        Method("iperf3-tcp", "one TCP stream", False, iperf3(), no_iperf, tcp=True),
        Method("iperf3-udp", f"UDP, datagrams of {PAYLOAD}", False,
               iperf3("-u", "-b", "0", "-l", str(PAYLOAD)), no_iperf),
    ]  # fmt: skip
