# SPDX-License-Identifier: BSD-2-Clause
"""What both roles of a queue pair speak of: arrivals, completions, reasons for a drop."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from mrc.model.wire import Bth, NackReason, Packet

H = TypeVar("H")

HEADERS_ABOVE = 40  # what a nominal size counts on top of the UDP length (E.1)
DATA_HEADERS = 40  # BTH, METH, RETH, TSETH and ImmDt of a Write, in bytes
UDP_HEADER, ICRC = 8, 4


class Status(Enum):
    """How a work request ended (B.13, B.14)."""

    SUCCESS = "success"
    WR_FLUSH_ERR = "flushed: the queue pair had failed"
    RETRY_EXC_ERR = "retry counter exceeded"
    REM_INV_REQ_ERR = "remote invalid request"
    REM_ACCESS_ERR = "remote access error"
    REM_OP_ERR = "remote operation error"
    LOC_QP_OP_ERR = "local queue pair error"


class Drop(Enum):
    """Why a packet counted for nothing, or for a NACK or NAK only."""

    QP_STATE = "the queue pair is in no state that takes it"
    PSN_STALE = "far outside the window (H8)"
    PSN_WINDOW = "just outside the window: NACKed"
    PAYLOAD = "a length that its opcode cannot have"
    ACCESS = "key, rights or bounds: NAKed"
    WIMM_LIMIT = "too many immediates: NAKed"
    NO_RECV = "an immediate without a receive work request: NAKed"
    PROBE_RATE = "too many probes"
    NO_BITMAP = "no room to track it: NACKed"
    NO_BUFFER = "no room for an early immediate: NACKed"
    PAUSED = "the application takes nothing for now: NACKed"
    RQMSN = "an immediate whose number contradicts its place"
    TRIM_OFF = "trimmed, and trim NACKs are off"
    SACK_RANGE = "acknowledges what was never sent"
    ACK_RANGE = "completes what was never sent"
    NACK_RANGE = "refuses what was never sent"


@dataclass(frozen=True, slots=True)
class Ends:
    """The two QPNs and what both sides agreed on."""

    qpn: int
    peer: int
    mtu: int  # payload bytes of every packet but a message's last (A.1)

    def bth(self, opcode: int, psn: int, **more: int) -> Bth:
        """Return the base header of a packet of ours (A.4)."""
        return Bth(opcode=opcode, dqp=self.peer, psn=psn % (1 << 24), **more)

    @property
    def ids(self) -> dict[str, int]:
        """Sender's and receiver's QPN as SETH, NETH and PETH carry them (H5)."""
        return {"spdcid": self.qpn % (1 << 16), "dpdcid": self.peer % (1 << 16)}


@dataclass(frozen=True, slots=True)
class Arrival:
    """A packet that passed the checks of B.15, with what the headers above it said."""

    packet: Packet
    ev: int  # as far as it was carried (A.12)
    nominal: int  # UDP length + 40 (E.1)
    ce: bool = False  # marked, by the outer or the inner header (A.13.1)
    trim: NackReason | None = None  # class TRIMMED or TRIMMED_LASTHOP (A.13.6)


@dataclass(frozen=True, slots=True)
class Completion:
    """What a completion queue says. Empty byte_len: it means nothing."""

    wr_id: int
    status: Status = Status.SUCCESS
    recv: bool = False
    byte_len: frozenset[int] = frozenset()  # what it may say
    imm: int | None = None
    solicited: bool = False


@dataclass(slots=True)
class Region:
    """Registered memory."""

    key: int
    start: int
    data: bytearray
    writable: bool = True  # by the peer, and of the queue pair's domain

    def holds(self, va: int, length: int) -> bool:
        """Return whether the bytes lie inside; addresses do not wrap."""
        return self.start <= va and va + length <= self.start + len(self.data)


@dataclass(slots=True)
class Memory:
    """All regions by key."""

    regions: dict[int, Region] = field(default_factory=dict)

    def add(self, region: Region) -> None:
        """Register."""
        self.regions[region.key] = region

    def allows(self, key: int, va: int, length: int) -> bool:
        """Return whether the peer may write there (B.3)."""
        region = self.regions.get(key)
        return region is not None and region.writable and region.holds(va, length)

    def write(self, key: int, va: int, payload: bytes) -> None:
        """Place what is allowed."""
        region = self.regions[key]
        offset = va - region.start
        region.data[offset : offset + len(payload)] = payload


def nominal_bytes(packet_bytes: int) -> int:
    """Return the nominal size of a packet of that many bytes from BTH to the pad (E.1)."""
    return UDP_HEADER + packet_bytes + ICRC + HEADERS_ABOVE


def differences(said: object, expected: object, names: Iterable[str]) -> str:
    """Name the fields in which two records differ."""
    pairs = ((n, getattr(said, n), getattr(expected, n)) for n in names)
    return ", ".join(f"{n} is {a!r}, not {b!r}" for n, a, b in pairs if a != b)


def stamp(p: Packet) -> int:
    """Return the timestamp to reflect: TSETH's, or 0 (A.8)."""
    return p.tseth.tx_timestamp if p.tseth is not None else 0


def header_of(header: H | None) -> H:
    """Return a header that its opcode has."""
    if header is None:
        raise ValueError("the packet lacks a header of its opcode")
    return header
