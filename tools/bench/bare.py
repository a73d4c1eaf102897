# SPDX-License-Identifier: BSD-2-Clause
"""The bare loops: what this kernel moves with no protocol on top."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tools.bench.link import SPORT_BASE, BenchError, pinned
from tools.bench.meter import Meter
from tools.bench.method import PORT, Place, Run, Sample, Unit
from tools.scorecard.process import Process
from tools.scorecard.stage import ROOT

BUILT = ROOT / "build" / "bench"
BARE, PING, LOAD, CRC = (BUILT / name for name in ("bare", "ping", "load", "crc"))
WORK, URING, RINGS, WAKE, WALK, PATHS = (
    BUILT / name for name in ("work", "uring", "rings", "wake", "walk", "paths")
)
"""Experiments."""
RULERS = (BARE, PING, LOAD, CRC, WORK, URING, RINGS, WAKE, WALK, PATHS)

HEADERS = 36
"""BTH, METH, RETH before the data and the iCRC behind it (MRC A.1): all in the UDP payload."""
TRAIN_BYTES = 65535 - 8 - 40 - 128
"""What our udp backend puts into one message at most: room for an outer header and an SRH."""
UDP_PORT = 4791


def datagram(payload: int) -> int:
    """Bytes of UDP payload of an MRC packet with so much data."""
    return payload + HEADERS


def longest_train(payload: int) -> int:
    """Packets in the longest train our udp backend would make."""
    return min(16, TRAIN_BYTES // datagram(payload))


def bare(payload: int, *, lanes: int = 1, train: int = 1, batch: int = 16) -> Run:
    """``lanes`` connected sockets in turn, trains of ``train`` datagrams, ``batch`` a call."""

    def run(place: Place) -> Sample:
        send = ["-n", str(lanes), "-k", str(train), "-b", str(batch), "-p", str(SPORT_BASE)]
        return _run(place, payload, send, ["-g"] if train > 1 else [])

    return run


def bare_raw(payload: int, batch: int = 32) -> Run:
    """One raw socket, outer header by the sender, a raw socket at the other end.

    Where there is no SRv6 the outer header leads straight to the receiver.
    """

    def run(place: Place) -> Sample:
        send = [
            "-o",
            ",".join(place.link.outer or [place.link.address]),
            "-b",
            str(batch),
            "-p",
            str(SPORT_BASE),
        ]
        return _run(place, payload, send, ["-r"])

    return run


def _run(place: Place, payload: int, send: list[str], recv: list[str]) -> Sample:
    return one_way(place, payload, (BARE, recv), (BARE, send))


End = tuple[Path, list[str]]
"""A program that knows ``send ADDRESS PORT`` or ``recv ADDRESS PORT``, and its further options."""


def one_way(place: Place, payload: int, takes: End, gives: End) -> Sample:
    """One run of two such programs, the receiver pinned to one core and the sender to another."""
    link, cores, address = place.link, place.cores, [place.link.address, str(UDP_PORT)]
    size = ["-t", str(place.seconds), "-s", str(datagram(payload))]
    recv = [str(takes[0]), "recv", *address, *takes[1]]
    send = [str(gives[0]), "send", *address, *size, *gives[1]]
    with Process.running("bare receiver", link.receiver(pinned(cores.receiver, recv))) as receiver:
        receiver.wait_ready()
        with (
            Meter(cores, link.netdev) as meter,
            Process.running("bare sender", link.sender(pinned(cores.sender, send))) as sender,
        ):
            sent = sender.result(place.seconds + 10)
        got = receiver.result(10)
    span = float(got["seconds"])
    if span < place.seconds / 2:
        raise BenchError(f"the receiver saw packets for {span:.3f} s of {place.seconds} s only")
    gbps = got["packets"] * payload * 8 / span / 1e9
    loss = max(0.0, 1.0 - got["packets"] / max(1, sent["packets"]))
    figures = {
        Unit.GBPS: gbps,
        Unit.LOSS: 100 * loss,
        Unit.MWRITES: got["packets"] / span / 1e6,
        **meter.cost(gbps),
    }
    return Sample(figures, {"sent": sent, "received": got})


def ping(payload: int, serve: End = (PING, []), go: End = (PING, [])) -> Run:
    """A datagram there and one back; the size of a packet with so much data.

    Blocking sockets, unless the ends are other programs than those of ping.c.
    """

    def run(place: Place) -> Sample:
        link, cores, at = place.link, place.cores, [place.link.address, str(PORT)]
        answers = [str(serve[0]), "serve", *at, *serve[1]]
        asks = [str(go[0]), "go", *at, "-t", str(place.seconds), "-s", str(datagram(payload))]
        asks += go[1]
        with Process.running("ping", link.receiver(pinned(cores.receiver, answers))) as server:
            server.wait_ready()
            with Process.running("ping", link.sender(pinned(cores.sender, asks))) as client:
                return round_trips(client.result(place.seconds + 10))

    return run


def round_trips(report: dict[str, Any]) -> Sample:
    """What ping.c, load.c and ends/writes.py report of round trips."""
    if not report["count"]:
        raise BenchError("no round trip was made")
    figures = {Unit.P50: float(report["p50_us"]), Unit.P99: float(report["p99_us"])}
    return Sample(figures, report)
