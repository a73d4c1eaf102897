# SPDX-License-Identifier: BSD-2-Clause
"""Out-of-band exchange: what two programs tell each other before the first packet (C.4).

Plain objects, pure functions and the frame format; no socket. Programs with a channel of their
own exchange ConnectionInfo.to_dict(), call negotiate(), and set the queue pair's attributes from
the result; mrc.channel carries the same objects over one TCP connection.

A frame is a 32-bit big-endian length and that many bytes of strict JSON, one object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from ipaddress import AddressValueError, IPv6Address
from typing import Any, NoReturn, Self

from .errors import MrcHandshakeError
from .peertext import printable
from .planes import PlaneAddresses, address_problem
from .types import MPR_MAX, PATH_MTUS, PLANE_MAX, UDP_PORT, QpCap

__all__ = [
    "OOB_VERSION",
    "REFUSED",
    "TEXT_MAX",
    "WIRE_VERSIONS",
    "Agreement",
    "ConnectionInfo",
    "FrameError",
    "QpInfo",
    "RemoteRegion",
    "cost",
    "decode_body",
    "encode_frame",
    "hello",
    "negotiate",
    "parse_hello",
]

OOB_VERSION = 1
REFUSED = "refused by the peer"  # what a peer's own reason is introduced with
WIRE_VERSIONS = 1  # bitmap of C.2: bit 0 is wire version 1
FRAME_BYTES_MAX = 4 << 20
HELLO_BYTES_MAX = 64 << 10  # of a peer that has not said hello yet
_VALUES_MAX = 1 << 18
_VALUE_BYTES = 64
_DEPTH_MAX = 256
TEXT_MAX = 255  # characters of a name
_HEAD = 4


class FrameError(ValueError):
    """Bytes that are no frame of ours; the sentence says why."""


# ---- frames ------------------------------------------------------------------------------------


def _values(body: bytes) -> int:
    """At most so many values are in it. A parsed one takes tens of bytes, written perhaps two."""
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def cost(body: bytes) -> int:
    """Bytes of memory that the body takes once it is parsed, roughly and rather too many."""
    return len(body) + _VALUE_BYTES * _values(body)


def _check_keys(value: Any, depth: int = 0) -> None:
    """Keys 1 and "1" would be the same one; and what is nested too deep the peer cannot read."""
    if depth > _DEPTH_MAX:
        raise FrameError(f"nested more than {_DEPTH_MAX} deep")
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise FrameError("cannot send this as JSON: a key is no text")
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            if isinstance(item, dict | list | tuple):
                _check_keys(item, depth + 1)


def encode_frame(message: Mapping[str, Any]) -> bytes:
    """Length and body. FrameError: too large, or not expressible in strict JSON."""
    try:
        _check_keys(message)
        body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    except FrameError:
        raise
    except (TypeError, ValueError, RecursionError) as exc:
        raise FrameError(f"cannot send this as JSON: {exc}") from exc
    if len(body) > FRAME_BYTES_MAX:
        raise FrameError(f"a message of {len(body)} bytes is above the limit of {FRAME_BYTES_MAX}")
    if _values(body) > _VALUES_MAX:
        raise FrameError(f"a message of more than {_VALUES_MAX} values")
    return len(body).to_bytes(_HEAD, "big") + body


def _no_constant(text: str) -> NoReturn:
    raise FrameError(f"{text} is not strict JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise FrameError("a key occurs twice in one object")
    return found


def decode_body(body: bytes) -> dict[str, Any]:
    """The object in a frame. FrameError for anything else."""
    if _values(body) > _VALUES_MAX:
        raise FrameError(f"a message of more than {_VALUES_MAX} values")
    try:
        message = json.loads(body, parse_constant=_no_constant, object_pairs_hook=_unique)
    except FrameError:
        raise
    except (ValueError, RecursionError) as exc:  # ValueError: also an integer of 4300 digits
        raise FrameError(f"not JSON: {exc}") from exc
    if not isinstance(message, dict):
        raise FrameError("not a JSON object")
    return message


# ---- records -----------------------------------------------------------------------------------


def _integer(values: Mapping[str, Any], key: str, low: int, high: int) -> int:
    value = values.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise FrameError(f"{key}: {printable(value, 80)} is not an integer in {low}..{high}")
    return value


def _boolean(values: Mapping[str, Any], key: str) -> bool:
    value = values.get(key)
    if not isinstance(value, bool):
        raise FrameError(f"{key}: {printable(value, 80)} is not true or false")
    return value


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    if not isinstance(value, str) or not value or len(value) > TEXT_MAX:
        raise FrameError(f"{key}: not a string of 1..{TEXT_MAX} characters")
    return value


def _address(values: Mapping[str, Any], key: str) -> IPv6Address:
    try:
        return IPv6Address(_text(values, key))
    except AddressValueError as exc:
        raise FrameError(f"{key}: {printable(exc, 80)}") from exc


def _plane_addresses(values: Mapping[str, Any], gid: IPv6Address) -> PlaneAddresses:
    """The peer's address in each plane that has one of its own; who names none has one for all.

    A peer that is not reached over our loopback has no addresses there.
    """
    listed = values.get("plane_addresses", [])
    if not isinstance(listed, list) or len(listed) > PLANE_MAX:
        raise FrameError(f"plane_addresses: not a list of at most {PLANE_MAX}")
    found: dict[int, IPv6Address] = {}
    for item in listed:
        if not isinstance(item, dict):
            raise FrameError("plane_addresses: an element is no object")
        plane = _integer(item, "plane", 1, PLANE_MAX)
        if plane in found:
            raise FrameError(f"plane_addresses: plane {plane} occurs twice")
        found[plane] = _address(item, "gid")
        problem = address_problem(found[plane])
        if found[plane].is_loopback and not gid.is_loopback:
            problem = f"{found[plane]} is ours"
        if problem is not None:
            raise FrameError(f"plane_addresses: plane {plane}: {problem}")
    return tuple(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class QpInfo:
    """Where packets for a queue pair go: address, UDP port, number, and its first PSN."""

    gid: IPv6Address
    qpn: int
    psn: int
    udp_port: int = UDP_PORT

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"gid": str(self.gid), "qpn": self.qpn, "psn": self.psn, "udp_port": self.udp_port}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """FrameError: a value is missing or out of range."""
        gid = _address(values, "gid")
        if gid.scope_id is not None:  # of the peer's host; the zone here is our own matter
            raise FrameError("gid: an address with a zone")
        if gid.is_multicast or gid.is_unspecified or gid.ipv4_mapped is not None:
            raise FrameError(f"gid: {gid} is no unicast IPv6 address")
        return cls(
            gid,
            _integer(values, "qpn", 3, 0xFFFFFF),
            _integer(values, "psn", 0, 0xFFFFFF),
            _integer(values, "udp_port", 1, 0xFFFF),
        )


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """One side's half of table 10-1, and what our extensions add to it.

    versions: bitmap, bit 0 is wire version 1. max_wimm, mpr: own limits as requestor;
    max_wimm_dest, mpr_dest: as responder (mpr in units of 128 PSNs). trim_nack, service_time:
    this side's responder has the capability. ports_up: bit N is plane N. plane_addresses: where
    planes have others than qp.gid; packets come from any of them. Ours: evs and sport_base
    let the passive side make lanes of its own; imm_queue is how many immediates this side's
    application may leave unread; mode is "mrc", or "rc" for comparisons (ADR 95).
    """

    qp: QpInfo
    versions: int = WIRE_VERSIONS
    path_mtu: int = 4096
    max_wimm: int = 128
    max_wimm_dest: int = 128
    mpr: int = 16
    mpr_dest: int = 16
    dynamic_mpr: bool = False
    trim_nack: bool = False
    service_time: bool = False
    ports_up: int = 0xFFFFFFFE
    evs: int = 16
    sport_base: int = 49152
    imm_queue: int = 1024
    backend: str = "udp"
    plane_addresses: PlaneAddresses = ()
    mode: str = "mrc"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        planes = [{"plane": p, "gid": str(gid)} for p, gid in self.plane_addresses]
        return {**plain, "qp": self.qp.to_dict(), "plane_addresses": planes}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """FrameError: a value is missing or out of range. Unknown keys are for later versions."""
        qp = values.get("qp")
        if not isinstance(qp, dict):
            raise FrameError("qp: is missing")
        mtu = values.get("path_mtu")
        if mtu not in PATH_MTUS:
            raise FrameError(f"path_mtu: {printable(mtu, 80)} is not one of {PATH_MTUS}")
        where = QpInfo.from_dict(qp)
        return cls(
            qp=where,
            versions=_integer(values, "versions", 0, 0xFFFFFFFF),
            path_mtu=int(mtu),
            max_wimm=_integer(values, "max_wimm", 0, 0xFFFF),
            max_wimm_dest=_integer(values, "max_wimm_dest", 0, 0xFFFF),
            mpr=_integer(values, "mpr", 0, 0xFF),
            mpr_dest=_integer(values, "mpr_dest", 0, 0xFF),
            dynamic_mpr=_boolean(values, "dynamic_mpr"),
            trim_nack=_boolean(values, "trim_nack"),
            service_time=_boolean(values, "service_time"),
            ports_up=_integer(values, "ports_up", 0, 0xFFFFFFFF),
            evs=_integer(values, "evs", 1, 4096),
            sport_base=_integer(values, "sport_base", 1, 0xFFFF),
            imm_queue=_integer(values, "imm_queue", 0, 1 << 24),
            backend=_text(values, "backend"),
            plane_addresses=_plane_addresses(values, where.gid),
            mode=_text(values, "mode") if "mode" in values else "mrc",
        )


@dataclass(frozen=True, slots=True)
class RemoteRegion:
    """A memory region a peer has advertised: what a write needs to reach it."""

    name: str
    addr: int
    length: int
    rkey: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """FrameError: a value is missing or out of range, or the region wraps at 2^64."""
        addr = _integer(values, "addr", 0, (1 << 64) - 1)
        return cls(
            _text(values, "name"),
            addr,
            _integer(values, "length", 1, (1 << 64) - addr),
            _integer(values, "rkey", 0, 0xFFFFFFFF),
        )


# ---- agreement ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Agreement:
    """What both sides keep to: C.4's rules applied to two ConnectionInfo."""

    version: int
    path_mtu: int
    mpr: int
    mpr_dest: int
    max_wimm: int
    max_wimm_dest: int
    cap: QpCap

    @property
    def service_time(self) -> bool:
        """The peer corrects the timestamps it reflects by its own time (H11)."""
        return not self.cap & QpCap.NO_SERVICE_TIME


def negotiate(own: ConnectionInfo, peer: ConnectionInfo) -> Agreement:
    """Limits as requestor are the smaller of own and peer's; features need both (C.4).

    MrcHandshakeError: no wire version in common, different modes, or a limit of zero, with which
    nothing could be sent (B.14: incompatible attributes).
    """
    common = own.versions & peer.versions
    if common == 0:
        raise MrcHandshakeError(
            f"no MRC wire version in common: one side speaks {_versions(peer.versions)}, "
            f"the other {_versions(own.versions)}"
        )
    if own.mode != peer.mode:
        modes = " and ".join(sorted((own.mode, printable(peer.mode, 20))))  # read at either side
        raise MrcHandshakeError(f"incompatible attributes: modes {modes}; both sides need the same")
    for name in ("mpr", "mpr_dest", "max_wimm", "max_wimm_dest"):
        if 0 in (getattr(own, name), getattr(peer, name)):
            raise MrcHandshakeError(f"incompatible attributes: a side's {name} is 0")
    cap = QpCap.NONE
    if not peer.trim_nack:
        cap |= QpCap.NO_TRIM_NACK
    if own.dynamic_mpr and peer.dynamic_mpr:
        cap |= QpCap.DYNAMIC_MPR
    if not peer.service_time:
        cap |= QpCap.NO_SERVICE_TIME
    return Agreement(
        version=common.bit_length(),
        path_mtu=min(own.path_mtu, peer.path_mtu),
        mpr=min(own.mpr, peer.mpr_dest, MPR_MAX),
        mpr_dest=own.mpr_dest,
        max_wimm=min(own.max_wimm, peer.max_wimm_dest),
        max_wimm_dest=own.max_wimm_dest,
        cap=cap,
    )


def _versions(bitmap: int) -> str:
    return ", ".join(str(b + 1) for b in range(32) if bitmap >> b & 1) or "none"


def hello(info: ConnectionInfo) -> dict[str, Any]:
    """The first message of each side."""
    return {"type": "hello", "oob": OOB_VERSION, "info": info.to_dict()}


def parse_hello(message: Mapping[str, Any]) -> ConnectionInfo:
    """The info in a peer's first message.

    MrcHandshakeError: it refuses, or speaks another version. FrameError: it makes no sense.
    """
    version = message.get("oob")
    if isinstance(version, int) and version != OOB_VERSION:
        number = printable(version, 20)
        raise MrcHandshakeError(f"peer speaks mrc oob version {number}, we speak {OOB_VERSION}")
    if message.get("type") == "refuse":
        raise MrcHandshakeError(f"{REFUSED}: {printable(message.get('reason', ''))}")
    if message.get("type") != "hello" or version != OOB_VERSION:
        raise FrameError("the first message is no hello")
    info = message.get("info")
    if not isinstance(info, dict):
        raise FrameError("the hello has no info")
    return ConnectionInfo.from_dict(info)
