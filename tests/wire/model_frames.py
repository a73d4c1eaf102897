# SPDX-License-Identifier: BSD-2-Clause
"""The `fields` of a test vector as the model's objects."""

from dataclasses import replace
from ipaddress import ip_address
from typing import Any

from mrc.model import ip, psn, wire
from mrc.model.bits import pack

_HEADERS: dict[str, type[Any]] = {
    "meth": wire.Meth,
    "tseth": wire.Tseth,
    "reth": wire.Reth,
    "aeth": wire.Aeth,
    "seth": wire.Seth,
    "cc_state": wire.CcState,
    "neth": wire.Neth,
    "peth": wire.Peth,
    "erth": wire.Erth,
    "eeth": wire.Eeth,
}


def packet(fields: dict[str, Any]) -> wire.Packet:
    """Return the packet from BTH on; pad and ts are filled in."""
    bth = dict(fields["bth"])
    opcode = wire.Op[bth.pop("op")]
    headers = {name: cls(**fields[name]) for name, cls in _HEADERS.items() if name in fields}
    if "seth" in headers and headers["seth"].pr:
        as_signed = psn.diff(headers["seth"].ack_psn_offset, 0, bits=16)
        headers["seth"] = replace(headers["seth"], ack_psn_offset=as_signed)
    if "immdt" in fields:
        headers["immdt"] = wire.ImmDt(fields["immdt"])
    payload = bytes.fromhex(fields.get("payload_hex", ""))
    return wire.completed(wire.Packet(wire.Bth(opcode=opcode, **bth), payload=payload, **headers))


def _ipv6(values: dict[str, Any], flow_label: int) -> ip.Ipv6:
    return ip.Ipv6(
        dscp=values["dscp"],
        ecn=values["ecn"],
        hop_limit=values["hlim"],
        flow_label=flow_label,
        src=int(ip_address(values["src"])),
        dst=int(ip_address(values["dst"])),
    )


def frame(fields: dict[str, Any]) -> ip.Frame:
    """Return the whole IP packet, completed; the outer flow label copies the inner one (A.13.1)."""
    label = fields["ev"] >> 16
    inner: ip.Ipv6 | ip.Ipv4
    if "ip4" in fields:
        four = fields["ip4"]
        src, dst = (int(ip_address(four[k])) for k in ("src", "dst"))
        inner = ip.Ipv4(dscp=four["dscp"], ecn=four["ecn"], ttl=four["ttl"], src=src, dst=dst)
    else:
        inner = _ipv6(fields["ip6"], label)
    outer, srh = None, None
    if "outer" in fields:
        outer = _ipv6(fields["outer"], label)
        if "srh" in fields["outer"]:
            (segment,) = fields["outer"]["srh"]["segments"]
            left = fields["outer"]["srh"]["segments_left"]
            srh = ip.Srh(segments_left=left, segment=int(ip_address(segment)))
    whole = ip.Frame(inner, ip.Udp(dport=fields["udp_dport"]), packet(fields), outer, srh)
    whole = ip.completed(ip.with_entropy(whole, fields["ev"]))
    if fields.get("udp_checksum") == "computed":
        assert isinstance(whole.ip, ip.Ipv6)
        transport = wire.encode(whole.packet)
        transport += ip.icrc(whole.ip, whole.udp, transport)
        checksum = ip.udp_checksum(whole.ip, pack(whole.udp) + transport)
        whole = replace(whole, udp=replace(whole.udp, checksum=checksum))
    return whole
