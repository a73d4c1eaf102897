# SPDX-License-Identifier: BSD-2-Clause
"""Between the model's packets and the C core's `struct mrc_pkt`."""

from dataclasses import fields
from functools import cache
from typing import Any

from mrc.model import ip, wire
from mrc.model.bits import pack
from tests.wire.guard import Guard

# What the C structure calls a field of a header, where it is not the field's own name.
_NAMES = {
    ("bth", "m"): "m_bit",
    ("immdt", "data"): "imm",
    ("aeth", "msn"): "aeth_msn",
    ("seth", "m"): "mark",
    ("neth", "nack_psn"): "cack_psn",
    ("erth", "op"): "ep_op",
    ("eeth", "op"): "ep_op",
}


def values(packet: wire.Packet) -> dict[str, int]:
    """Return what the C structure must hold for this packet; what is not named must be zero."""
    found: dict[str, int] = {}
    for header in (f.name for f in fields(packet) if f.name != "payload"):
        record: Any = getattr(packet, header)
        if record is not None:
            for f in fields(record):
                if f.init:
                    name = _NAMES.get((header, f.name), f.name)
                    found[name] = int(getattr(record, f.name))
    if packet.seth is not None and packet.seth.pr:
        found["probe_id"] = packet.seth.probe_id
        del found["ack_psn_offset"]
    found["payload_len"] = len(packet.payload)
    return found


def received(packet: wire.Packet, *, trimmed: bool = False) -> dict[str, int]:
    """Return what decoding gives: either bit says solicited (H2), ts is about TSETH (A.4)."""
    told = {"se": packet.bth.solicited, "ts": packet.tseth is not None, "icrc_absent": trimmed}
    return values(packet) | {name: int(value) for name, value in told.items()}


def struct_values(unit: Any, pkt: Any) -> dict[str, int]:
    """Return the fields of a C structure that are not zero."""
    every = {n: int(getattr(pkt, n)) for n, _ in unit.ffi.typeof(pkt[0]).fields if n != "payload"}
    return {name: value for name, value in every.items() if value}


def nonzero(found: dict[str, int]) -> dict[str, int]:
    """Return the entries that are not zero."""
    return {name: value for name, value in found.items() if value}


def encode(unit: Any, packet: wire.Packet) -> bytes:
    """Return BTH to pad as the core writes it."""
    pkt = unit.ffi.new("struct mrc_pkt *", values(packet))
    out = unit.ffi.new("uint8_t[48]")
    return bytes(unit.ffi.buffer(out, unit.lib.mrc_wire_encode(out, pkt))) + (
        packet.payload + bytes(packet.bth.pad)
    )


@cache
def _guard(ffi: Any) -> Guard:
    return Guard(ffi, 8192)


def guarded(unit: Any, data: bytes) -> Any:
    """Return a pointer to data in memory that ends with it."""
    return _guard(unit.ffi).hold(data)


def decode(unit: Any, data: bytes, *, trimmed: bool = False) -> tuple[int, Any, bytes]:
    """Return the verdict, the structure, and the payload it points at."""
    pkt = unit.ffi.new("struct mrc_pkt *")
    verdict = unit.lib.mrc_wire_decode(pkt, guarded(unit, data), len(data), trimmed)
    kept = verdict == unit.lib.MRC_WIRE_OK and pkt.payload_len
    payload = bytes(unit.ffi.buffer(pkt.payload, pkt.payload_len)) if kept else b""
    return verdict, pkt, payload


def icrc(unit: Any, crc: Any, frame: ip.Frame, transport: bytes) -> bytes:
    """Return the iCRC as the core computes it, in pieces as the engine does."""
    udp, out = frame.udp, unit.ffi.new("uint8_t[4]")
    header = pack(frame.ip)
    if isinstance(frame.ip, ip.Ipv6):
        reg = unit.lib.mrc_icrc6_begin(
            crc, header[8:24], header[24:40], udp.sport, udp.dport, udp.length
        )
    else:
        reg = unit.lib.mrc_icrc4_begin(crc, header, udp.sport, udp.dport, udp.length)
    reg = unit.lib.mrc_icrc_bth(crc, reg, transport[:12], 12)
    unit.lib.mrc_icrc_end(crc(reg, transport[12:], len(transport) - 12), out)
    return bytes(out)
