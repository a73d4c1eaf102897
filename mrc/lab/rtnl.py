# SPDX-License-Identifier: BSD-2-Clause
"""The few changes that must be quick, straight to the kernel: losing packets, losing a carrier.

`tc` takes some 5 ms to start, a plane has a dozen namespaces, and a fault that creeps in over 50 ms
is not the fault that was asked for. One message by rtnetlink takes 50 us. The sockets live in the
fabric's namespaces; the holder opens them. In a user namespace the kernel allows this to the user
who owns it.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from .errors import FabricError

if TYPE_CHECKING:
    from .client import HolderClient

Instruction = tuple[int, int, int, int]
"""Of classic BPF: code, jump if true, jump if false, operand."""

_HEADER = struct.Struct("=IHHII")
_LINK = struct.Struct("=BxHiII")
_TRAFFIC = struct.Struct("=BxxxiIII")
_REQUEST, _ACK, _CREATE, _EXCL = 1, 4, 0x400, 0x200
_ERROR, _NEWLINK, _GETLINK, _NEWQDISC, _NEWFILTER, _DELFILTER = 2, 16, 18, 36, 44, 45
_IFF_UP = 1
_IFLA_IFNAME, _IFLA_GSO_MAX_SEGS = 3, 40
_TCA_KIND, _TCA_OPTIONS = 1, 2
_TCA_BPF_OPS_LEN, _TCA_BPF_OPS, _TCA_BPF_FD, _TCA_BPF_NAME, _TCA_BPF_FLAGS = 4, 5, 6, 7, 8
_ACT_DIRECT = 1
_CLSACT, _CLSACT_HANDLE, _INGRESS, _EGRESS = 0xFFFFFFF1, 0xFFFF0000, 0xFFFFFFF2, 0xFFFFFFF3
_ALL_PROTOCOLS = socket.htons(0x0003)
RECEIVE_MAX = 1 << 16
WAIT_S = 5.0


class Verb(Enum):
    """What is changed about an interface."""

    DROP = "drop"
    """At ingress, packets for which `program` says so; an empty program ends it."""
    SEGMENTS = "segments"
    """Trains leave with at most `number` packets."""
    DOWN = "down"
    QUEUE = "queue"
    """The eBPF program whose descriptor is `number` at egress, for good."""
    WIRE = "wire"
    """The same at ingress, behind the filter that drops."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one interface."""

    ns: str
    dev: str
    verb: Verb
    number: int = 0
    program: tuple[Instruction, ...] = ()


def attribute(kind: int, data: bytes) -> bytes:
    """One attribute, padded."""
    return struct.pack("=HH", len(data) + 4, kind) + data + b"\0" * (-len(data) % 4)


def requests(change: Change, index: int, pref: int) -> list[tuple[int, int, bytes]]:
    """(type, flags, body) of each message for an interface with that index. Pure."""
    match change.verb:
        case Verb.DOWN:
            return [(_NEWLINK, 0, _LINK.pack(0, 0, index, 0, _IFF_UP))]
        case Verb.SEGMENTS:
            body = _LINK.pack(0, 0, index, 0, 0)
            segments = struct.pack("=I", change.number)
            return [(_NEWLINK, 0, body + attribute(_IFLA_GSO_MAX_SEGS, segments))]
        case Verb.DROP:
            return _drop(index, pref, change.program)
        case Verb.QUEUE:
            return _program(index, _EGRESS, pref, change.number)
        case Verb.WIRE:
            return _program(index, _INGRESS, pref + 1, change.number)


def _drop(index: int, pref: int, program: Sequence[Instruction]) -> list[tuple[int, int, bytes]]:
    where = _TRAFFIC.pack(0, index, 1, _INGRESS, pref << 16 | _ALL_PROTOCOLS)
    kind = attribute(_TCA_KIND, b"bpf\0")
    if not program:
        return [(_DELFILTER, 0, where + kind)]
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    options = (
        attribute(_TCA_BPF_OPS_LEN, struct.pack("=H", len(program)))
        + attribute(_TCA_BPF_OPS, code)
        + attribute(_TCA_BPF_FLAGS, struct.pack("=I", _ACT_DIRECT))
    )
    return [_clsact(index), (_NEWFILTER, _CREATE, where + kind + attribute(_TCA_OPTIONS, options))]


def _program(index: int, parent: int, pref: int, fd: int) -> list[tuple[int, int, bytes]]:
    where = _TRAFFIC.pack(0, index, 1, parent, pref << 16 | _ALL_PROTOCOLS)
    options = (
        attribute(_TCA_BPF_FD, struct.pack("=I", fd))
        + attribute(_TCA_BPF_NAME, b"mrc_fabric\0")
        + attribute(_TCA_BPF_FLAGS, struct.pack("=I", _ACT_DIRECT))
    )
    body = where + attribute(_TCA_KIND, b"bpf\0") + attribute(_TCA_OPTIONS, options)
    return [_clsact(index), (_NEWFILTER, _CREATE, body)]


def _clsact(index: int) -> tuple[int, int, bytes]:
    body = _TRAFFIC.pack(0, index, _CLSACT_HANDLE, _CLSACT, 0)
    return (_NEWQDISC, _CREATE | _EXCL, body + attribute(_TCA_KIND, b"clsact\0"))


class Kernel:
    """The namespaces of one fabric by rtnetlink. Not for use by two threads at a time."""

    def __init__(self, client: HolderClient, pref: int) -> None:
        """`pref` is that of the filters this makes."""
        self._client = client
        self._pref = pref
        self._sockets: dict[str, socket.socket] = {}
        self._indices: dict[tuple[str, str], int] = {}

    def close(self) -> None:
        """Close the sockets."""
        for sock in self._sockets.values():
            sock.close()
        self._sockets.clear()

    def carry_out(self, changes: Iterable[Change]) -> None:
        """All of them, in order within a namespace; returns when they are in force."""
        wanted: dict[str, list[tuple[int, int, bytes]]] = {}
        for change in changes:
            index = self._index(change.ns, change.dev)
            wanted.setdefault(change.ns, []).extend(requests(change, index, self._pref))
        for ns, messages in wanted.items():
            data = b"".join(
                _HEADER.pack(16 + len(body), kind, flags | _REQUEST | _ACK, number, 0) + body
                for number, (kind, flags, body) in enumerate(messages)
            )
            self._socket(ns).send(data)
        for ns, messages in wanted.items():
            self._await_acks(ns, messages)

    def _await_acks(self, ns: str, messages: Sequence[tuple[int, int, bytes]]) -> None:
        waiting = set(range(len(messages)))
        while waiting:
            data = self._socket(ns).recv(RECEIVE_MAX)
            while data:
                length, kind, _, number, _ = _HEADER.unpack_from(data)
                if kind == _ERROR:
                    waiting.discard(number)
                    self._check(ns, -struct.unpack_from("=i", data, 16)[0], messages[number])
                data = data[(length + 3) & ~3 :]

    @staticmethod
    def _check(ns: str, code: int, message: tuple[int, int, bytes]) -> None:
        there_already = code == errno.EEXIST and message[0] == _NEWQDISC
        if code and not there_already:
            raise FabricError(f"{ns}: rtnetlink message {message[0]}: {os.strerror(code)}")

    def _index(self, ns: str, dev: str) -> int:
        found = self._indices.get((ns, dev))
        if found is None:
            sock = self._socket(ns)
            body = _LINK.pack(0, 0, 0, 0, 0) + attribute(_IFLA_IFNAME, dev.encode() + b"\0")
            sock.send(_HEADER.pack(16 + len(body), _GETLINK, _REQUEST, 0, 0) + body)
            data = sock.recv(RECEIVE_MAX)
            if _HEADER.unpack_from(data)[1] != _NEWLINK:
                raise FabricError(f"{ns}: there is no interface {dev}")
            found = self._indices[ns, dev] = int(_LINK.unpack_from(data, 16)[2])
        return found

    def _socket(self, ns: str) -> socket.socket:
        sock = self._sockets.get(ns)
        if sock is None:
            sock = self._client.socket(ns, socket.AF_NETLINK, socket.SOCK_RAW, 0)
            sock.settimeout(WAIT_S)
            self._sockets[ns] = sock
        return sock
