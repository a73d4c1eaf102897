# SPDX-License-Identifier: BSD-2-Clause
"""The log of a simulated run, read: docs/reference/trace.md. One record per line, in order of time.

Holds what a bystander sees: packets as bytes when they leave and when they are handed to a host,
work posted and completed, path events, what was done to the hosts. PSNs are as on the wire.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from mrc.model.wire import ICRC_LEN, Packet, decode, headers_of

_BTH_LEN = 12
_HEADER_BYTES = {"meth": 4, "tseth": 4, "reth": 16, "immdt": 4}


@dataclass(frozen=True, slots=True)
class World:
    """The network: what all hosts share."""

    hosts: int
    paths: int
    min_active: int
    trims: bool  # switches trim, and hosts answer it
    service: bool  # reflected timestamps are moved by the dwell time (H11)
    skip: bool  # hosts may send the verdict "always skip" (H29)


@dataclass(frozen=True, slots=True)
class Path:
    """An entropy value of a host."""

    host: int
    ev: int
    plane: int
    backup: bool


@dataclass(frozen=True, slots=True)
class Flow:
    """One direction of a connection, from the moment it may send."""

    id: int
    host: int  # requestor
    peer: int  # responder
    qpn: int
    peer_qpn: int
    psn: int  # first
    mtu: int
    window: int  # PSNs, requestor
    peer_window: int  # PSNs, responder
    dynamic: bool
    wimm: int
    t0_ns: int
    threshold: int  # bytes, SACK trigger 1
    tseth: bool
    reverse: int
    msn: int  # of the message before the first
    rqmsn: int
    rcvd: int  # bytes the responder counts from
    done: int  # messages it counts from


@dataclass(frozen=True, slots=True)
class Out:
    """A packet leaves."""

    now: int
    id: int
    host: int
    peer: int
    tclass: int
    label: int
    sport: int
    payload_len: int
    nominal: int  # bytes, E.1
    digest: int
    packet: Packet

    @property
    def ev(self) -> int:
        """The entropy value the packet carries (A.12)."""
        return (self.label & 0xFFFF) << 16 | self.sport


@dataclass(frozen=True, slots=True)
class In:
    """A packet is handed to a host; `out` is what left, None when nobody sent it."""

    now: int
    host: int
    tclass: int
    intact: bool
    src: int
    out: Out | None

    @property
    def ce(self) -> bool:
        """Whether it arrived marked."""
        return self.tclass & 3 == 3

    @property
    def dscp(self) -> int:
        """Its class on arrival."""
        return self.tclass >> 2


@dataclass(frozen=True, slots=True)
class Turn:
    """A host looks: the packets that follow, then time, then it sends."""

    now: int
    host: int


@dataclass(frozen=True, slots=True)
class Post:
    """A work request is accepted."""

    now: int
    flow: int
    wr: int
    length: int
    imm: bool
    signaled: bool
    raddr: int


@dataclass(frozen=True, slots=True)
class Done:
    """A completion: of work request n, or of the receive that takes immediate n."""

    now: int
    flow: int
    n: int
    status: int
    receive: bool


@dataclass(frozen=True, slots=True)
class Event:
    """An EV event (C.6): states by number, reason as the engine gives it."""

    now: int
    host: int
    peer: int
    ev: int
    was: int
    becomes: int
    reason: int


@dataclass(frozen=True, slots=True)
class Note:
    """Something was done from outside."""

    now: int
    what: str
    args: tuple[int, ...] = field(default=())


_T = TypeVar("_T")


def there(value: _T | None) -> _T:
    """Return what must be there, as the packet's kind says. Raises ValueError."""
    if value is None:
        raise ValueError("a header that this packet must have is missing")
    return value


Record = World | Path | Flow | Out | In | Turn | Post | Done | Event | Note


def _values(words: Iterable[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words if "=" in word)


def _flow(number: int, v: dict[str, str]) -> Flow:
    n = {k: int(x) for k, x in v.items()}
    return Flow(
        id=number,
        host=n["from"],
        peer=n["to"],
        qpn=n["qpn_from"],
        peer_qpn=n["qpn_to"],
        psn=n["psn"],
        mtu=n["mtu"],
        window=n["mpr"] * 128,
        peer_window=n["mpr_dest"] * 128,
        dynamic=bool(n["dynamic"]),
        wimm=n["wimm"],
        t0_ns=1024 << n["timeout"],
        threshold=n["threshold"] or 16384,
        tseth=bool(n["tseth"]),
        reverse=n["reverse"],
        msn=n["msn"],
        rqmsn=n["rqmsn"],
        rcvd=n["rcvd"],
        done=n["done"],
    )


def _headers(data: bytes) -> Packet:
    """Decode what the log has of a packet: its headers and the beginning of its payload."""
    return decode(data, trimmed=True)


def _out(now: int, v: dict[str, str]) -> Out:
    packet = _headers(bytes.fromhex(v["bytes"]))
    length = int(v["len"])
    size = _BTH_LEN
    if packet.meth is not None:
        size += sum(_HEADER_BYTES[name] for name in headers_of(packet.bth.opcode, packet.bth.ts))
        payload = length - ICRC_LEN - size - packet.bth.pad
    else:
        payload = 0
    return Out(
        now=now,
        id=int(v["id"]),
        host=int(v["from"]),
        peer=int(v["to"]),
        tclass=int(v["tclass"]),
        label=int(v["label"]),
        sport=int(v["sport"]),
        payload_len=payload,
        nominal=8 + length + 40,
        digest=int(v["digest"], 16),
        packet=packet,
    )


def read(lines: Iterable[str]) -> Iterator[Record]:
    """Give the records of a log. Raises ValueError for a line that is none."""
    left: dict[int, Out] = {}
    for line in lines:
        kind, *words = line.split()
        v = _values(words)
        if kind == "trace":
            left.clear()
            continue
        if kind == "world":
            yield World(
                int(v["hosts"]),
                int(v["paths"]),
                int(v["min_active"]),
                v["trim"] != "0",
                v["service"] != "0",
                v["skip"] != "0",
            )
        elif kind == "path":
            yield Path(int(v["host"]), int(v["ev"], 16), int(v["plane"]), v["backup"] != "0")
        elif kind == "flow":
            yield _flow(int(words[0]), v)
        elif kind == "out":
            out = left[int(v["id"])] = _out(int(words[0]), v)
            yield out
        elif kind == "in":
            yield In(
                int(words[0]),
                int(v["host"]),
                int(v["tclass"]),
                v["intact"] == "1",
                int(v["src"]),
                left.get(int(v["id"])),
            )
        else:
            yield _other(kind, words, v)


def _other(kind: str, words: list[str], v: dict[str, str]) -> Record:
    now = int(words[0])
    if kind == "turn":
        return Turn(now, int(v["host"]))
    if kind == "post":
        imm, signaled = v["imm"] != "0", v["signaled"] != "0"
        wr, length, raddr = int(v["wr"]), int(v["length"]), int(v["raddr"])
        return Post(now, int(v["flow"]), wr, length, imm, signaled, raddr)
    if kind in ("send", "recv"):
        return Done(now, int(v["flow"]), int(v["n"]), int(v["status"]), receive=kind == "recv")
    if kind == "event":
        host, peer, ev = int(v["host"]), int(v["peer"]), int(v["ev"], 16)
        return Event(now, host, peer, ev, int(v["was"]), int(v["now"]), int(v["reason"]))
    if kind == "note":
        return Note(now, words[1], tuple(map(int, words[2:])))
    raise ValueError(f"no such record: {kind}")
