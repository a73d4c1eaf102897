# SPDX-License-Identifier: BSD-2-Clause
"""What lies around a packet: IP, UDP, SRv6 headers, entropy, iCRC (MRC A.1, A.2, A.12, A.13)."""

from dataclasses import dataclass, replace
from zlib import crc32

from mrc.model import wire
from mrc.model.bits import bits, pack, reserved, size, unpack

UDP_PORT = 4791  # H1
NEXT_UDP, NEXT_IPV6, NEXT_ROUTING = 17, 41, 43
DSCP_TRIMMED, DSCP_TRIMMED_LASTHOP = 12, 16  # A.13.5, defaults


@dataclass(frozen=True, slots=True)
class Ipv6:
    """IPv6 header; addresses are 128-bit numbers."""

    version: int = bits(4, 6)
    dscp: int = bits(6)
    ecn: int = bits(2)
    flow_label: int = bits(20)
    payload_length: int = bits(16)
    next_header: int = bits(8, NEXT_UDP)
    hop_limit: int = bits(8, 64)
    src: int = bits(128)
    dst: int = bits(128)


@dataclass(frozen=True, slots=True)
class Ipv4:
    """IPv4 header without options; don't-fragment set (A.2)."""

    version: int = bits(4, 4)
    ihl: int = bits(4, 5)
    dscp: int = bits(6)
    ecn: int = bits(2)
    total_length: int = bits(16)
    identification: int = bits(16)
    _evil: int = reserved(1)
    df: int = bits(1, 1)
    mf: int = bits(1)
    offset: int = bits(13)
    ttl: int = bits(8, 64)
    protocol: int = bits(8, NEXT_UDP)
    checksum: int = bits(16)
    src: int = bits(32)
    dst: int = bits(32)


@dataclass(frozen=True, slots=True)
class Udp:
    """UDP header."""

    sport: int = bits(16)
    dport: int = bits(16, UDP_PORT)
    length: int = bits(16)
    checksum: int = bits(16)


@dataclass(frozen=True, slots=True)
class Srh:
    """Segment routing header with the one entry MRC uses, A.13.2."""

    next_header: int = bits(8, NEXT_IPV6)
    hdr_ext_len: int = bits(8, 2)
    routing_type: int = bits(8, 4)
    segments_left: int = bits(8)
    last_entry: int = bits(8)
    flags: int = bits(8)
    tag: int = bits(16)
    segment: int = bits(128)


@dataclass(frozen=True, slots=True)
class Frame:
    """A whole IP packet: ip stands directly above UDP, outer and srh are what SRv6 puts before."""

    ip: Ipv6 | Ipv4
    udp: Udp
    packet: wire.Packet
    outer: Ipv6 | None = None
    srh: Srh | None = None
    trimmed: bool = False

    @property
    def entropy(self) -> int:
        """The EV as far as it is carried: flow label's low half, then source port (A.12)."""
        high = self.ip.flow_label % (1 << 16) if isinstance(self.ip, Ipv6) else 0
        return high << 16 | self.udp.sport

    @property
    def ce(self) -> bool:
        """Congestion experienced on the way, said by either header (A.13.1)."""
        return self.ip.ecn == 3 or (self.outer is not None and self.outer.ecn == 3)

    @property
    def nominal_bytes(self) -> int:
        """What the packet counts in windows, at both ends (E.1)."""
        return self.udp.length + 40


class BadIcrcError(Exception):
    """The iCRC does not match: drop silently and count (A.13.3)."""


def with_entropy(frame: Frame, ev: int) -> Frame:
    """Return frame with the 32-bit EV in the fields that carry it (A.12)."""
    ip = replace(frame.ip, flow_label=ev >> 16) if isinstance(frame.ip, Ipv6) else frame.ip
    return replace(frame, ip=ip, udp=replace(frame.udp, sport=ev % (1 << 16)))


def internet_checksum(data: bytes) -> int:
    """Return the complement of the ones' complement sum of 16-bit words (RFC 1071)."""
    total = sum(
        int.from_bytes(data[i : i + 2].ljust(2, b"\0"), "big") for i in range(0, len(data), 2)
    )
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def udp_checksum(ip: Ipv6, datagram: bytes) -> int:
    """Return the checksum of a UDP datagram whose own checksum field is zero, over IPv6."""
    pseudo = pack(ip)[8:40] + len(datagram).to_bytes(4, "big") + NEXT_UDP.to_bytes(4, "big")
    return internet_checksum(pseudo + datagram) or 0xFFFF


def icrc(ip: Ipv6 | Ipv4, udp: Udp, transport: bytes) -> bytes:
    """Return the four iCRC bytes as sent (A.13.3). transport runs from BTH to the pad."""
    if isinstance(ip, Ipv6):
        masked_ip = pack(replace(ip, dscp=63, ecn=3, flow_label=0xFFFFF, hop_limit=255))
    else:
        masked_ip = pack(replace(ip, dscp=63, ecn=3, ttl=255, checksum=0xFFFF))
    masked_udp = pack(replace(udp, checksum=0xFFFF))
    masked_transport = transport[:4] + b"\xff" + transport[5:]
    value = crc32(b"\xff" * 8 + masked_ip + masked_udp + masked_transport)
    return value.to_bytes(4, "little")


def completed(frame: Frame) -> Frame:
    """Return frame with lengths, next headers, pad, ts and the IPv4 checksum filled in."""
    packet = wire.completed(frame.packet)
    length = size(Udp) + len(wire.encode(packet)) + wire.ICRC_LEN
    udp, ip, outer = replace(frame.udp, length=length), frame.ip, frame.outer
    if isinstance(ip, Ipv6):
        ip = replace(ip, payload_length=length)
    else:
        ip = replace(ip, total_length=size(Ipv4) + length, checksum=0)
        ip = replace(ip, checksum=internet_checksum(pack(ip)))
    if outer is not None:
        around = size(Srh) if frame.srh else 0
        outer = replace(
            outer,
            payload_length=around + size(Ipv6) + length,
            next_header=NEXT_ROUTING if frame.srh else NEXT_IPV6,
        )
    return replace(frame, packet=packet, udp=udp, ip=ip, outer=outer)


def encode(frame: Frame) -> bytes:
    """Return the bytes of a completed, untrimmed frame, iCRC included."""
    transport = wire.encode(frame.packet)
    headers = [h for h in (frame.outer, frame.srh, frame.ip, frame.udp) if h is not None]
    return b"".join(map(pack, headers)) + transport + icrc(frame.ip, frame.udp, transport)


def decode(data: bytes) -> Frame:
    """Return the frame in data, an IP packet, checked in the order of B.15.

    A length field may promise more than there is, if the packet was trimmed (A.13.6).
    Raises ValueError for what is not IP and UDP, wire.RefusedError, BadIcrcError.
    """
    outer, srh = None, None
    if data[:1] and data[0] >> 4 == 6 and unpack(Ipv6, data).next_header != NEXT_UDP:
        outer, data = unpack(Ipv6, data), data[size(Ipv6) :]
        if outer.next_header == NEXT_ROUTING:
            srh, data = unpack(Srh, data), data[size(Srh) :]
        if (srh.next_header if srh else outer.next_header) != NEXT_IPV6:
            raise ValueError("no IPv6 packet inside")
    ip: Ipv6 | Ipv4 = unpack(Ipv6, data) if data[:1] and data[0] >> 4 == 6 else unpack(Ipv4, data)
    udp = unpack(Udp, data[size(ip) :])
    present = data[size(ip) + size(Udp) :][: max(udp.length - size(Udp), 0)]
    if ip.dscp in (DSCP_TRIMMED, DSCP_TRIMMED_LASTHOP):
        return Frame(ip, udp, wire.decode(present, trimmed=True), outer, srh, trimmed=True)
    transport = present[: -wire.ICRC_LEN]
    if icrc(ip, udp, transport) != present[-wire.ICRC_LEN :]:
        raise BadIcrcError
    return Frame(ip, udp, wire.decode(present), outer, srh)
