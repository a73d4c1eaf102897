# SPDX-License-Identifier: BSD-2-Clause
"""The `fields` of a test vector as scapy packets, and back."""

from typing import Any

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrSegmentRouting
from scapy.packet import Packet

from mrc import scapy_layers as layers

HEADERS: dict[str, type[Packet]] = {  # in wire order (A.1)
    "meth": layers.METH,
    "tseth": layers.TSETH,
    "reth": layers.RETH,
    "immdt": layers.ImmDt,
    "aeth": layers.MrcAETH,
    "seth": layers.SETH,
    "cc_state": layers.CCState,
    "neth": layers.NETH,
    "peth": layers.PETH,
    "erth": layers.ERTH,
    "eeth": layers.EETH,
}


def values_of(fields: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the values of one header under the names scapy knows."""
    if name == "immdt":
        return {"data": fields[name]}
    values = dict(fields[name])
    if name == "bth":
        values["opcode"] = values.pop("op")
    if name == "seth" and values["pr"]:
        values["probe_id"] = values.pop("ack_psn_offset")
    return values


def _ipv6(values: dict[str, Any], label: int) -> IPv6:
    traffic_class = values["dscp"] << 2 | values["ecn"]
    return IPv6(
        src=values["src"], dst=values["dst"], tc=traffic_class, hlim=values["hlim"], fl=label
    )


def build(fields: dict[str, Any]) -> Packet:
    """Return the whole packet, lengths, checksums, pad and iCRC left to scapy."""
    label = fields["ev"] >> 16
    ip: Packet
    if "ip4" in fields:
        four = fields["ip4"]
        tos = four["dscp"] << 2 | four["ecn"]
        ip = IP(src=four["src"], dst=four["dst"], ttl=four["ttl"], tos=tos, flags="DF", id=0)
    else:
        ip = _ipv6(fields["ip6"], label)
    if "outer" in fields:
        outer: Packet = _ipv6(fields["outer"], label)
        if "srh" in fields["outer"]:
            srh = fields["outer"]["srh"]
            outer /= IPv6ExtHdrSegmentRouting(
                addresses=srh["segments"], segleft=srh["segments_left"]
            )
        ip = outer / ip
    checksum = None if fields.get("udp_checksum") == "computed" else 0
    pkt = ip / UDP(sport=fields["ev"] & 0xFFFF, dport=fields["udp_dport"], chksum=checksum)
    pkt /= layers.MrcBTH(**values_of(fields, "bth"))
    for name, cls in HEADERS.items():
        if name in fields:
            pkt /= cls(**values_of(fields, name))
    return pkt / bytes.fromhex(fields["payload_hex"]) if fields.get("payload_hex") else pkt
