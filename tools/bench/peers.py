# SPDX-License-Identifier: BSD-2-Clause
"""What there is without MRC: iperf3, libfabric, SRT, QUIC, sockperf."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tools.bench.bare import datagram
from tools.bench.link import BenchError, Link, pinned, wait_for, wait_listening
from tools.bench.meter import Meter
from tools.bench.method import PORT, Place, Run, Sample, Unit
from tools.scorecard.peers import RXD, SRT_MSS
from tools.scorecard.process import Process

IPERF_PORT = 5201
BLOCK_BYTES = 65536


def not_installed(program: str) -> Callable[[], str]:
    """Why a peer that is one program is missing."""
    return lambda: "" if shutil.which(program) else f"{program} is not installed"


def no_rxd() -> str:
    """Why the libfabric peer is missing."""
    return "" if RXD.exists() else "libfabric's headers are not installed"


def no_quic() -> str:
    """Why QUIC is missing."""
    return "" if importlib.util.find_spec("aioquic") else "aioquic is not installed"


def no_offload_switch() -> str:
    """Why TCP without offloads is missing."""
    return not_installed("iperf3")() or not_installed("ethtool")()


def iperf3(*client: str, udp_payload: int = 0, offloads: bool = True) -> Run:
    """An iperf3 run: TCP, or UDP with datagrams as long as MRC packets with so much data."""

    def run(place: Place) -> Sample:
        link = place.link
        options = ["-J", "-t", str(place.seconds), *client]
        if udp_payload:
            options += ["-u", "-b", "0", "-l", str(datagram(udp_payload))]
        with ExitStack() as stack:
            if not offloads:
                stack.callback(link.offloads, on=True)
                link.offloads(on=False)
            server = stack.enter_context(
                _running(link.receiver, place.cores.receiver, ["iperf3", "-s", "-1", "-J"])
            )
            wait_listening(link, IPERF_PORT, lambda: server.ended)
            meter = stack.enter_context(Meter(place.cores, link.netdev))
            argv = ["iperf3", "-c", link.peer_address, *options]
            sender = stack.enter_context(_running(link.sender, place.cores.sender, argv))
            report = sender.result(place.seconds + 15)
        return _iperf3(report, meter, udp=bool(udp_payload))

    return run


def _running(host: Any, core: int | None, argv: list[str]) -> Any:
    return Process.running(argv[0], host(pinned(core, argv)))


def _iperf3(report: dict[str, Any], meter: Meter, *, udp: bool) -> Sample:
    if "error" in report:
        raise BenchError(f"iperf3: {report['error']}")
    end = report["end"]
    # Older versions report a UDP receiver only as what the sender's summary says was lost.
    lost = float(end.get("sum", {}).get("lost_percent", 0.0))
    got = end.get("sum_received") or end["sum"]
    gbps = float(got["bits_per_second"]) / 1e9
    if udp and "sum_received" not in end:
        gbps *= 1 - lost / 100
    figures = {Unit.GBPS: gbps, Unit.LOSS: lost, **meter.cost(gbps)}
    return Sample(figures, {"cpu": end.get("cpu_utilization_percent", {})})


def _until_told(receive: Callable[[str], list[str]], send: Callable[[str], list[str]]) -> Run:
    """Ends that work until SIGTERM; the receiver samples what it has."""

    def run(place: Place) -> Sample:
        link, cores = place.link, place.cores
        with _running(link.receiver, cores.receiver, receive(link.peer_address)) as receiver:
            receiver.wait_ready()
            with (
                Meter(cores, link.netdev) as meter,
                _running(link.sender, cores.sender, send(link.peer_address)) as sender,
            ):
                sender.wait_ready()
                time.sleep(place.seconds + 0.5)  # the first half second does not count
            report = receiver.finish()
        gbps = rate_of(report["samples"], place.seconds)
        return Sample({Unit.GBPS: gbps, **meter.cost(gbps)})

    return run


def rate_of(samples: list[list[int]], seconds: float) -> float:
    """Gbit/s over the last so many seconds in which bytes came. BenchError: none did."""
    moved = [s for s, before in zip(samples[1:], samples, strict=False) if s[1] > before[1]]
    if len(moved) < 2:
        raise BenchError("nothing arrived")
    last = moved[-1]
    first = next(s for s in moved if s[0] >= last[0] - seconds * 1e9)
    if first is last:
        raise BenchError("what arrived came all at once")
    return (last[1] - first[1]) * 8 / (last[0] - first[0])


def rxd() -> Run:
    """Reliable datagrams of libfabric over UDP."""
    return _until_told(
        lambda address: [str(RXD), "recv", address, str(PORT)],
        lambda address: [str(RXD), "send", address, str(PORT)],
    )


def _module(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", name, *arguments]


def quic() -> Run:
    """aioquic, one stream."""
    return _until_told(
        lambda address: _module("tools.bench.ends.quic", "recv", address, str(PORT)),
        lambda address: _module("tools.bench.ends.quic", "send", address, str(PORT)),
    )


def srt() -> Run:
    """SRT's file mode through srt-live-transmit."""
    options = f"transtype=file&messageapi=false&mss={SRT_MSS}"
    tool = ["srt-live-transmit", "-q", f"-chunk:{BLOCK_BYTES}", "-loglevel", "fatal"]
    stream = "tools.scorecard.ends.stream"

    def url(address: str, mode: str) -> str:
        return f"srt://[{address}]:{PORT}?mode={mode}&{options}"

    return _until_told(
        lambda a: _module(stream, "sink", *tool, url(a, "listener"), "file://con"),
        lambda a: _module(stream, "source", *tool, "file://con", url(a, "caller")),
    )


def sockperf(payload: int) -> Run:
    """Ping-pong by sockperf, with datagrams as long as MRC packets with so much data.

    Over IPv4: Debian's 3.7 knows no other.
    """

    def run(place: Place) -> Sample:
        link, cores = place.link, place.cores
        server = ["sockperf", "server", "-i", link.ipv4_address, "-p", str(PORT)]
        client = ["sockperf", "ping-pong", "-i", link.ipv4_address, "-p", str(PORT), "--full-rtt"]
        client += ["-t", str(place.seconds), "-m", str(datagram(payload))]
        with _running(link.receiver, cores.receiver, server):
            wait_for(lambda: _udp_bound(link, PORT), 5, "sockperf's server")
            with _running(link.sender, cores.sender, client) as process:
                text = process.text(place.seconds + 15)
        found = dict(re.findall(r"percentile (\d+\.\d+) = +(\d+\.\d+)", text))
        try:
            figures = {Unit.P50: float(found["50.000"]), Unit.P99: float(found["99.000"])}
        except KeyError:
            raise BenchError(f"sockperf printed no percentiles: {text[-200:]!r}") from None
        return Sample(figures)

    return run


def _udp_bound(link: Link, port: int) -> bool:
    table = link.netdev.with_name("udp").read_text().splitlines()[1:]
    return any(int(line.split()[1].rpartition(":")[2], 16) == port for line in table)
