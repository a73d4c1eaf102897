# SPDX-License-Identifier: BSD-2-Clause
"""MRC as scapy layers, for people, tools and tests: build and dissect any packet of MRC part A.

    >>> from scapy.layers.inet6 import IPv6, UDP
    >>> from mrc.scapy_layers import *
    >>> p = IPv6(dst="fd00::2") / UDP(sport=49152) / MrcBTH(opcode="WRITE_ONLY", dqp=772, psn=1)
    >>> p = p / METH(msn=1) / RETH(va=0x1000, r_key=7, dmalen=5) / b"hello"
    >>> IPv6(bytes(p))[MrcBTH].icrc_ok()
    True

Left at None, `pad`, `ts` and `icrc` are worked out when the packet is built. Importing this module
gives MRC the packets on UDP port 4791 whose opcode begins with the bits 110 (A.3). All others on
that port go where scapy would have sent them without us: to `scapy.contrib.roce` if that is loaded,
whichever was imported first. `bind_port` adds ports.
Headers that RoCE knows by the same name have the prefix Mrc.
"""

from typing import Any, ClassVar
from zlib import crc32

from scapy import fields as f
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrSegmentRouting
from scapy.packet import Packet, Raw, bind_layers, bind_top_down

from .dscp import DscpClasses

__all__ = [
    "EETH",
    "ERTH",
    "METH",
    "MRC_UDP_PORT",
    "NETH",
    "PETH",
    "RETH",
    "SETH",
    "TSETH",
    "CCState",
    "ImmDt",
    "MrcAETH",
    "MrcBTH",
    "bind_port",
    "entropy",
]

MRC_UDP_PORT = 4791  # H1

_OPCODES = {
    0xC6: "WRITE_FIRST",
    0xC7: "WRITE_MIDDLE",
    0xC8: "WRITE_LAST",
    0xC9: "WRITE_LAST_IMM",
    0xCA: "WRITE_ONLY",
    0xCB: "WRITE_ONLY_IMM",
    0xD1: "ACK",
    0xD8: "EP_REQ",
    0xD9: "EP_RSP",
    0xDC: "SACK",
    0xDD: "NACK",
    0xDE: "PROBE",
}
_NACK_REASONS = {
    0x01: "TRIMMED",
    0x02: "TRIMMED_LASTHOP",
    0x06: "NO_BITMAP",
    0x07: "NO_PKT_BUFFER",
    0x0A: "NO_RESOURCE",
    0x0B: "PSN_OOR_WINDOW",
    0x19: "UNEXP_EVENT",
}
_SYNDROME = {
    0x1F: "ACK",
    0x60: "NAK_PSN_SEQUENCE",
    0x61: "NAK_INVALID_REQUEST",
    0x62: "NAK_REMOTE_ACCESS",
    0x63: "NAK_REMOTE_OPERATION",
}
_EP_OPS = {0: "PORT_STATUS", 1: "EV_PROBE"}
_MARKS = {0: "none", 1: "skip", 2: "always-skip"}
_ICRC_BYTES = 4
_WRITES = frozenset(range(0xC6, 0xCC))
_WITH_IMM = frozenset({0xC9, 0xCB})


class _Header(Packet):
    """A header whose successor depends on the BTH in front of it."""

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return the next header of the chain, or Raw."""
        bth: Packet | None = self
        while bth is not None and not isinstance(bth, MrcBTH):
            bth = bth.underlayer
        chain = bth.chain() if bth else []
        place = chain.index(type(self)) + 1 if type(self) in chain else 0
        # A trimmed packet may end anywhere (A.13.6): what is no whole header is raw.
        if place < len(chain) and len(payload) >= len(chain[place]()):
            return chain[place]
        return Raw


class _Icrc(f.XIntField):
    """The last four bytes; reading also takes off the pad before them, writing is post_build's."""

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, Any]:
        if pkt.trimmed() or len(s) < _ICRC_BYTES:
            return s, None
        rest = s[:-_ICRC_BYTES]
        return rest[: max(len(rest) - pkt.pad, 0)], int.from_bytes(s[-_ICRC_BYTES:], "big")

    def addfield(self, pkt: Any, s: bytes, val: int | None) -> bytes:  # noqa: ARG002
        return s


class MrcBTH(_Header):
    """Base transport header (A.4), with the pad and the iCRC behind the payload (A.5, A.13.3).

    `icrc` is the four bytes as they are on the wire, read as a big-endian number; a packet whose
    inner DSCP is in `trimmed_dscp` has none, and its payload is what the switch left.
    """

    trimmed_dscp: ClassVar[frozenset[int]] = DscpClasses().cut  # A.13.5; set it to follow others
    name = "MRC BTH"
    fields_desc: ClassVar = [
        f.ByteEnumField("opcode", 0xCA, _OPCODES),
        f.BitField("m", 0, 1),
        f.BitField("se", 0, 1),
        f.BitField("pad", None, 2),
        f.BitField("tver", 0, 4),
        f.XShortField("p_key", 0xFFFF),
        f.XByteField("var_res", 0),
        f.XBitField("dqp", 0, 24),
        f.BitField("a", 0, 1),
        f.BitField("r", 0, 1),
        f.BitField("rtx", 0, 1),
        f.BitField("ts", None, 1),
        f.BitField("inv_res", 0, 4),
        f.BitField("psn", 0, 24),
        _Icrc("icrc", None),
    ]

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *_: Any, **kargs: Any) -> type[Packet]:
        """Take what has an opcode of ours; leave the rest to whoever else is bound to the port."""
        udp = kargs.get("_underlayer")
        if not _pkt or not isinstance(udp, UDP) or _pkt[0] >> 5 == 0b110:
            return cls
        for values, other in UDP.payload_guess:
            if other is not cls and all(udp.getfieldval(k) == v for k, v in values.items()):
                return other
        return Raw

    def chain(self) -> list[type[Packet]]:
        """Return the headers that follow this one (A.1)."""
        if self.opcode in _WRITES:
            stamp = [TSETH] if self.ts else []
            return [METH, *stamp, RETH, *([ImmDt] if self.opcode in _WITH_IMM else [])]
        return _CONTROL.get(self.opcode, [])

    def trimmed(self) -> bool:
        """Return whether the IP header above UDP has a DSCP that only trimming gives (A.13.6)."""
        ip = self.underlayer and self.underlayer.underlayer
        if isinstance(ip, IPv6):
            return ip.tc >> 2 in self.trimmed_dscp
        return isinstance(ip, IP) and ip.tos >> 2 in self.trimmed_dscp

    def compute_icrc(self, transport: bytes) -> int | None:
        """Return the iCRC of the bytes from BTH to the pad, None when not in UDP in IP (A.13.3)."""
        udp = self.underlayer
        if not isinstance(udp, UDP) or not isinstance(udp.underlayer, IP | IPv6):
            return None
        ip = udp.underlayer
        length = 8 + len(transport) + _ICRC_BYTES if udp.len is None else udp.len
        header = bytearray(bytes(type(ip)(**ip.fields)))
        if isinstance(ip, IPv6):
            header[4:6] = (length if ip.plen is None else ip.plen).to_bytes(2, "big")
            header[6] = ip.nh
            header[0] |= 0x0F  # traffic class and flow label
            header[1:4] = b"\xff\xff\xff"
            header[7] = 0xFF  # hop limit
        else:
            header[2:4] = (len(header) + length if ip.len is None else ip.len).to_bytes(2, "big")
            header[9] = ip.proto
            header[1] = header[8] = header[10] = header[11] = 0xFF  # TOS, TTL, checksum
        ports = udp.sport.to_bytes(2, "big") + udp.dport.to_bytes(2, "big")
        masked = b"".join((ports, length.to_bytes(2, "big"), b"\xff\xff", transport[:4], b"\xff"))
        value = crc32(b"\xff" * 8 + header + masked + transport[5:])
        return int.from_bytes(value.to_bytes(_ICRC_BYTES, "little"), "big")

    def icrc_ok(self) -> bool | None:
        """Return whether the iCRC of a dissected packet is right; None when there is none."""
        there = self.icrc is not None and self.original
        expected = self.compute_icrc(self.original[:-_ICRC_BYTES]) if there else None
        return None if expected is None else bool(self.icrc == expected)

    def post_dissect(self, s: bytes) -> bytes:
        """Forget scapy's copy of the header."""
        self.raw_packet_cache = None  # what scapy kept does not know of the bytes at the end
        return s

    def post_build(self, p: bytes, pay: bytes) -> bytes:
        """Fill in pad and ts, append pad and iCRC."""
        trimmed = self.trimmed()
        pad = self.pad if self.pad is not None else 0 if trimmed else -len(pay) % 4
        ts = self.ts if self.ts is not None else int(self.payload.haslayer(TSETH))
        head = bytearray(p)
        head[1] |= pad << 4
        head[8] |= ts << 4
        if trimmed and self.icrc is None:
            return bytes(head) + pay
        transport = bytes(head) + pay + bytes(pad)
        value = self.icrc if self.icrc is not None else self.compute_icrc(transport)
        return transport + (value or 0).to_bytes(_ICRC_BYTES, "big")

    def mysummary(self) -> str:
        """Return one line."""
        return str(self.sprintf("MRC %opcode% qp=%dqp% psn=%psn%"))


class METH(_Header):
    """Message header of Write packets, A.5."""

    name = "MRC METH"
    fields_desc: ClassVar = [f.ShortField("rqmsn", 0), f.ShortField("msn", 0)]


def _timestamp() -> list[Any]:
    return [
        f.ShortField("tx_timestamp", 0),
        f.BitField("tsr", 0, 1),
        f.BitField("ts_res", 0, 11),
        f.BitField("ftype", 1, 4),
    ]


class TSETH(_Header):
    """Timestamp header of Write packets with ts=1, A.5; 128 ns units when tsr=0."""

    name = "MRC TSETH"
    fields_desc: ClassVar = _timestamp()


class RETH(_Header):
    """Where the payload goes, A.5; dmalen is the length of the whole message."""

    name = "MRC RETH"
    fields_desc: ClassVar = [
        f.XLongField("va", 0),
        f.XIntField("r_key", 0),
        f.IntField("dmalen", 0),
    ]


class ImmDt(_Header):
    """Immediate data, A.5."""

    name = "MRC ImmDt"
    fields_desc: ClassVar = [f.XIntField("data", 0)]


class MrcAETH(_Header):
    """Transport ACK or NAK, A.6."""

    name = "MRC AETH"
    fields_desc: ClassVar = [f.ByteEnumField("syndrome", 0x1F, _SYNDROME), f.BitField("msn", 0, 24)]


class SETH(_Header):
    """SACK, A.7. With pr=1 it answers a probe and has probe_id instead of ack_psn_offset."""

    name = "MRC SETH"
    fields_desc: ClassVar = [
        f.BitField("type", 0, 4),
        f.BitField("nxt", 0, 5),
        f.BitEnumField("m", 0, 2, _MARKS),
        f.BitField("res1", 0, 3),
        f.BitField("pr", 0, 1),
        f.BitField("res2", 0, 1),
        f.ConditionalField(f.SignedShortField("ack_psn_offset", 0), lambda pkt: not pkt.pr),
        f.ConditionalField(f.XShortField("probe_id", 0), lambda pkt: pkt.pr),
        f.XIntField("entropy", 0),
        f.XShortField("spdcid", 0),
        f.XShortField("dpdcid", 0),
        f.ByteField("res3", 0),
        f.BitField("cack_psn", 0, 24),
        f.BitField("cc_type", 0, 4),
        f.BitField("cc_fl", 0, 4),
        f.ByteField("mpr", 0),
        f.SignedShortField("sack_offset", 1),
        f.XLongField("sack_bitmap", 0),
    ]


class CCState(_Header):
    """Congestion state behind SETH, A.8; rcvd_bytes in units of 256."""

    name = "MRC CC_STATE"
    fields_desc: ClassVar = [
        f.ShortField("tx_timestamp", 0),
        f.BitField("res", 0, 1),
        f.BitField("ooo_count", 0, 15),
        f.BitField("restore_cwnd", 0, 1),
        f.BitField("rcv_cwnd_pen", 0, 7),
        f.BitField("rcvd_bytes", 0, 24),
    ]


class NETH(_Header):
    """NACK, A.9."""

    name = "MRC NETH"
    fields_desc: ClassVar = [
        f.XShortField("type_nxt_res", 0),
        f.ByteEnumField("nack_reason", 0, _NACK_REASONS),
        f.XByteField("vendor_info", 0),
        f.XIntField("entropy", 0),
        f.XShortField("spdcid", 0),
        f.XShortField("dpdcid", 0),
        f.ByteField("res1", 0),
        f.BitField("nack_psn", 0, 24),
        f.BitField("cc_type", 2, 4),
        f.BitField("cc_fl", 0, 4),
        f.ByteField("res2", 0),
        f.ShortField("tx_timestamp", 0),
    ]


class PETH(_Header):
    """Reliability probe request, A.10."""

    name = "MRC PETH"
    fields_desc: ClassVar = [
        f.XShortField("type_nh_res", 0),
        f.ByteField("res1", 0),
        f.XByteField("vendor_info", 0),
        f.XShortField("probe_id", 0),
        f.ShortField("res2", 0),
        f.XShortField("spdcid", 0),
        f.XShortField("dpdcid", 0),
        *_timestamp(),
    ]


class ERTH(_Header):
    """Endpoint request, A.11; the request id is in BTH.psn[15:0]."""

    name = "MRC ERTH"
    fields_desc: ClassVar = [
        f.XBitField("type_nxt_res", 0, 14),
        f.BitEnumField("op", 1, 2, _EP_OPS),
        f.ByteField("res1", 0),
        f.XByteField("vendor_info", 0),
        f.XIntField("port_status_mask", 0),
        f.IntField("res2", 0),
        *_timestamp(),
    ]


class EETH(_Header):
    """Endpoint response, A.11; op in bits 3:2 of the first word (H3)."""

    name = "MRC EETH"
    fields_desc: ClassVar = [
        f.XBitField("type_nxt_res", 0, 12),
        f.BitEnumField("op", 1, 2, _EP_OPS),
        f.BitField("res1", 0, 2),
        f.XBitField("res2", 0, 208),
        f.ShortField("tx_timestamp", 0),
        f.XBitField("res3", 0, 48),
    ]


_CONTROL: dict[int, list[type[Packet]]] = {
    0xD1: [MrcAETH],
    0xD8: [ERTH],
    0xD9: [EETH],
    0xDC: [SETH, CCState],
    0xDD: [NETH],
    0xDE: [PETH],
}


def bind_port(port: int) -> None:
    """Dissect UDP packets to this port too; `split_layers(UDP, MrcBTH, dport=port)` undoes it."""
    binding = ({"dport": port}, MrcBTH)
    if binding not in UDP.payload_guess:
        UDP.payload_guess = [binding, *UDP.payload_guess]  # first, so that dispatch_hook decides


def entropy(pkt: Packet) -> int:
    """Return the EV as far as it is carried: flow label's low half, then source port (A.12)."""
    udp = pkt[UDP]
    high = udp.underlayer.fl & 0xFFFF if isinstance(udp.underlayer, IPv6) else 0
    return int(high << 16 | udp.sport)


bind_top_down(UDP, MrcBTH, dport=MRC_UDP_PORT)
bind_port(MRC_UDP_PORT)
bind_layers(IPv6ExtHdrSegmentRouting, IPv6, nh=41)  # A.13.2; scapy binds IPv6 in IPv6 only
for _opcode, _headers in _CONTROL.items():
    bind_top_down(MrcBTH, _headers[0], opcode=_opcode)
