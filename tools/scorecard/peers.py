# SPDX-License-Identifier: BSD-2-Clause
"""Who sends: MRC, and what is there without it. Each as two command lines."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.scorecard.cases import PLANES, VICTIM
from tools.scorecard.ends.stream import PROTOCOL
from tools.scorecard.roads import plane_address
from tools.scorecard.stage import RECEIVER, ROOT, SENDER, Shape, Stage

PORT = 5001
RXD = ROOT / "build" / "scorecard" / "rxd"
HEADER = Path("/usr/include/rdma/fabric.h")
"""Of libfabric, as the Makefile looks for it."""
LIBFABRIC = "libfabric-dev"
NO_LIBRARY = 127
ETHERNET, IPV6, UDP, TCP = 14, 40, 8, 32
"""Bytes of headers; of TCP with timestamps."""
TUNNEL = ETHERNET + IPV6
"""What the fabric adds to everybody's packets: the frame, and the outer header of SRv6."""
MRC_HEADERS = IPV6 + UDP + 32 + 4
"""Inner IPv6 and UDP, BTH with METH and RETH, iCRC (MRC A.1)."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One protocol."""

    key: str
    title: str
    planes: frozenset[int]
    """The planes it can use."""
    receiver: Callable[[Stage], list[str]]
    sender: Callable[[Stage], list[str]]
    payload_share: Callable[[Shape], float]
    """Of the wire, in full packets."""
    missing: Callable[[], str] = lambda: ""
    """Why it cannot run on this machine; empty when it can."""
    unfit: Callable[[Shape], str] = lambda _: ""
    """Why it cannot run over links of this shape; empty when it can."""
    packages: tuple[str, ...] = ()
    """What Debian calls it."""
    options: Mapping[str, Any] = field(default_factory=dict)


ALL = frozenset(range(1, PLANES + 1))
ONE = frozenset({VICTIM})


def mrc(options: Mapping[str, Any]) -> Peer:
    """MRC with keyword arguments of connect() and listen() on top of what the fabric needs."""

    def arguments(stage: Stage, end: int) -> list[str]:
        chosen = {
            "backend": "udp",
            "ev_profile": str(stage.profiles[end]),
            "mtu": stage.shape.path_mtu,
            **options,
        }
        address = str(stage.fabric.hosts[RECEIVER].address)
        return [address, str(PORT), json.dumps(chosen)]

    return Peer(
        "mrc",
        "MRC",
        ALL,
        lambda stage: stage.end(RECEIVER, "mrc_end", "recv", *arguments(stage, RECEIVER)),
        lambda stage: stage.end(SENDER, "mrc_end", "send", *arguments(stage, SENDER)),
        lambda shape: shape.path_mtu / (shape.path_mtu + MRC_HEADERS + TUNNEL),
        options=options,
    )


def _stream(kind: str, title: str, planes: frozenset[int]) -> Peer:
    address = str(plane_address(VICTIM, RECEIVER))

    def share(shape: Shape) -> float:
        packet = shape.mtu - IPV6  # within the outer header
        return (packet - IPV6 - TCP) / (shape.mtu + ETHERNET)

    return Peer(
        kind,
        title,
        planes,
        # Bound to no address: further subflows of MPTCP arrive at other ones.
        lambda stage: stage.end(RECEIVER, "stream", "recv", kind, "::", str(PORT)),
        lambda stage: stage.end(SENDER, "stream", "send", kind, address, str(PORT)),
        share,
        missing=lambda: _no_protocol(kind),
    )


def _no_protocol(kind: str) -> str:
    try:
        socket.socket(socket.AF_INET6, socket.SOCK_STREAM, PROTOCOL[kind]).close()
    except OSError as error:
        return f"the kernel has no {kind.upper()} over IPv6: {error.strerror}"
    return ""


def _datagrams(shape: Shape, payload: int, headers: int) -> float:
    del shape
    return payload / (payload + headers + UDP + IPV6 + TUNNEL)


RXD_DATAGRAM = 1472
"""What libfabric's udp provider sends at most, and rxd fills: what IPv4 leaves of 1500. Neither an
attribute nor a FI_* variable of libfabric changes it (fi_info -v -p udp: max_msg_size)."""
RXD_HEADERS = 32
"""Of rxd, in a packet of data."""


def _rxd_unfit(shape: Shape) -> str:
    needed = RXD_DATAGRAM + UDP + IPV6 + IPV6
    if needed <= shape.mtu:
        return ""
    return (
        f"its datagrams have {RXD_DATAGRAM} bytes, with IPv6 twice (SRv6) {needed}: the kernel"
        " cuts them in two behind the outer header, no SRv6 endpoint joins that, none arrives"
    )


def _rxd() -> Peer:
    address = str(plane_address(VICTIM, RECEIVER))
    return Peer(
        "rxd",
        "libfabric udp;ofi_rxd",
        ONE,
        lambda stage: stage.command(RECEIVER, [str(RXD), "recv", address, str(PORT)]),
        lambda stage: stage.command(SENDER, [str(RXD), "send", address, str(PORT)]),
        lambda shape: _datagrams(shape, RXD_DATAGRAM - RXD_HEADERS, RXD_HEADERS),
        missing=_no_rxd,
        unfit=_rxd_unfit,
        packages=(LIBFABRIC, "libfabric-bin"),
    )


def _no_rxd() -> str:
    if RXD.exists():
        # The loader's own answer where the library has gone since it was compiled.
        done = subprocess.run([RXD], capture_output=True, check=False)
        return "" if done.returncode != NO_LIBRARY else "libfabric is not installed any more"
    if not HEADER.exists():
        return "libfabric's headers are not installed"
    return f"tools/scorecard/ends/rxd.c is not compiled (make {RXD.relative_to(ROOT)})"


SRT_MSS = 1400
"""Its own default of 1500 counts an IPv4 header: over IPv6 in SRv6 no packet would fit MTU 1500.
With an MSS of 8000 srt-live-transmit 1.5.1 delivered nothing."""
SRT_PAYLOAD = SRT_MSS - 28 - 16


def _srt() -> Peer:
    url = f"srt://[{plane_address(VICTIM, RECEIVER)}]:{PORT}"
    options = f"transtype=file&messageapi=false&mss={SRT_MSS}"
    tool = ["srt-live-transmit", "-q", "-chunk:65536", "-loglevel", "fatal"]
    receive = [*tool, f"{url}?mode=listener&{options}", "file://con"]
    send = [*tool, "file://con", f"{url}?mode=caller&{options}"]
    return Peer(
        "srt",
        "SRT",
        ONE,
        lambda stage: stage.end(RECEIVER, "stream", "sink", *receive),
        lambda stage: stage.end(SENDER, "stream", "source", *send),
        lambda shape: _datagrams(shape, SRT_PAYLOAD, 16),
        missing=lambda: "" if shutil.which(tool[0]) else "srt-live-transmit is not installed",
        packages=("srt-tools",),
    )


def every(options: Mapping[str, Any]) -> tuple[Peer, ...]:
    """All peers, MRC first."""
    return (
        mrc(options),
        _stream("tcp", "TCP, one stream", ONE),
        _stream("mptcp", "MPTCP, 4 subflows", ALL),
        _rxd(),
        _srt(),
    )


def congestion_control() -> str:
    """What the kernel's TCP uses unless told otherwise."""
    file = Path("/proc/sys/net/ipv4/tcp_congestion_control")
    return file.read_text().strip() if file.exists() else "unknown"
