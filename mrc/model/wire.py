# SPDX-License-Identifier: BSD-2-Clause
"""Everything from BTH to the pad, in both directions (MRC A.3 to A.11)."""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from mrc.model.bits import bits, pack, reserved, size, unpack

ICRC_LEN = 4


class Op(IntEnum):
    """Opcodes, A.3."""

    WRITE_FIRST = 0xC6
    WRITE_MIDDLE = 0xC7
    WRITE_LAST = 0xC8
    WRITE_LAST_IMM = 0xC9
    WRITE_ONLY = 0xCA
    WRITE_ONLY_IMM = 0xCB
    ACK = 0xD1
    EP_REQ = 0xD8
    EP_RSP = 0xD9
    SACK = 0xDC
    NACK = 0xDD
    PROBE = 0xDE


WRITES = frozenset(op for op in Op if op <= Op.WRITE_ONLY_IMM)
WITH_IMM = frozenset({Op.WRITE_LAST_IMM, Op.WRITE_ONLY_IMM})


class NackReason(IntEnum):
    """NETH.nack_reason, A.9."""

    TRIMMED = 0x01
    TRIMMED_LASTHOP = 0x02
    NO_BITMAP = 0x06
    NO_PKT_BUFFER = 0x07
    NO_RESOURCE = 0x0A
    PSN_OOR_WINDOW = 0x0B
    UNEXP_EVENT = 0x19


class Syndrome(IntEnum):
    """AETH.syndrome, A.6."""

    ACK = 0x1F
    NAK_PSN_SEQUENCE = 0x60
    NAK_INVALID_REQUEST = 0x61
    NAK_REMOTE_ACCESS = 0x62
    NAK_REMOTE_OPERATION = 0x63


class Refusal(IntEnum):
    """Why bytes are not a packet, in the order of the checks of B.15."""

    SHORT = 1  # headers do not fit the bytes
    TVER = 2  # transport header version is not 0
    OPCODE = 3  # unknown opcode
    LENGTH = 4  # more pad than payload, or bytes behind a packet without payload


class RefusedError(Exception):
    """The bytes are not a packet of this protocol."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(reason.name)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Bth:
    """Base transport header, A.4."""

    opcode: int = bits(8)
    m: int = bits(1)
    se: int = bits(1)
    pad: int = bits(2)
    tver: int = bits(4)
    p_key: int = bits(16, 0xFFFF)
    var_res: int = bits(8)
    dqp: int = bits(24)
    a: int = bits(1)
    _r: int = reserved(1)
    rtx: int = bits(1)
    ts: int = bits(1)
    inv_res: int = bits(4)
    psn: int = bits(24)

    @property
    def solicited(self) -> bool:
        """Either bit counts on receive (H2)."""
        return bool(self.se or self.m)


@dataclass(frozen=True, slots=True)
class Meth:
    """Message header of every Write packet, A.5."""

    rqmsn: int = bits(16)
    msn: int = bits(16)


@dataclass(frozen=True, slots=True)
class Tseth:
    """Timestamp header, present when BTH.ts is set, A.5."""

    tx_timestamp: int = bits(16)
    tsr: int = bits(1)
    _res: int = reserved(11)
    ftype: int = bits(4, 1)


@dataclass(frozen=True, slots=True)
class Reth:
    """Where this packet's payload goes, and how long the message is, A.5."""

    va: int = bits(64)
    r_key: int = bits(32)
    dmalen: int = bits(32)


@dataclass(frozen=True, slots=True)
class ImmDt:
    """Immediate data, A.5."""

    data: int = bits(32)


@dataclass(frozen=True, slots=True)
class Aeth:
    """Transport ACK or NAK, A.6."""

    syndrome: int = bits(8, Syndrome.ACK)
    msn: int = bits(24)


@dataclass(frozen=True, slots=True)
class Seth:
    """SACK, A.7. With pr=1 the bits of ack_psn_offset are the probe's id."""

    _type_nxt: int = reserved(9)
    m: int = bits(2)
    _r1: int = reserved(3)
    pr: int = bits(1)
    _r2: int = reserved(1)
    ack_psn_offset: int = bits(16, signed=True)
    entropy: int = bits(32)
    spdcid: int = bits(16)
    dpdcid: int = bits(16)
    _r3: int = reserved(8)
    cack_psn: int = bits(24)
    cc_type: int = bits(4)
    cc_fl: int = bits(4)
    mpr: int = bits(8)
    sack_offset: int = bits(16, 1, signed=True)
    sack_bitmap: int = bits(64)

    @property
    def probe_id(self) -> int:
        """Unsigned reading of the offset field, for pr=1."""
        return self.ack_psn_offset % (1 << 16)


@dataclass(frozen=True, slots=True)
class CcState:
    """Congestion state behind SETH, A.8."""

    tx_timestamp: int = bits(16)
    _r: int = reserved(1)
    ooo_count: int = bits(15)
    restore_cwnd: int = bits(1)
    rcv_cwnd_pen: int = bits(7)
    rcvd_bytes: int = bits(24)


@dataclass(frozen=True, slots=True)
class Neth:
    """NACK, A.9."""

    _type_nxt_res: int = reserved(16)
    nack_reason: int = bits(8)
    vendor_info: int = bits(8)
    entropy: int = bits(32)
    spdcid: int = bits(16)
    dpdcid: int = bits(16)
    _r1: int = reserved(8)
    nack_psn: int = bits(24)
    cc_type: int = bits(4, 2)
    cc_fl: int = bits(4)
    _r2: int = reserved(8)
    tx_timestamp: int = bits(16)


@dataclass(frozen=True, slots=True)
class Peth:
    """Reliability probe request, A.10."""

    _type_nh_res: int = reserved(24)
    vendor_info: int = bits(8)
    probe_id: int = bits(16)
    _r1: int = reserved(16)
    spdcid: int = bits(16)
    dpdcid: int = bits(16)
    tx_timestamp: int = bits(16)
    tsr: int = bits(1)
    _r2: int = reserved(11)
    ftype: int = bits(4, 1)


@dataclass(frozen=True, slots=True)
class Erth:
    """Endpoint request, A.11."""

    _type_nxt_res: int = reserved(14)
    op: int = bits(2)
    _r1: int = reserved(8)
    vendor_info: int = bits(8)
    port_status_mask: int = bits(32)
    _r2: int = reserved(32)
    tx_timestamp: int = bits(16)
    tsr: int = bits(1)
    _r3: int = reserved(11)
    ftype: int = bits(4, 1)


@dataclass(frozen=True, slots=True)
class Eeth:
    """Endpoint response, A.11; op in bits 3:2 (H3)."""

    _type_nxt_res: int = reserved(12)
    op: int = bits(2)
    _r1: int = reserved(2)
    _r2: int = reserved(208)
    tx_timestamp: int = bits(16)
    _r3: int = reserved(48)


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet from BTH to the end of its payload. Headers its opcode lacks are None."""

    bth: Bth
    meth: Meth | None = None
    tseth: Tseth | None = None
    reth: Reth | None = None
    immdt: ImmDt | None = None
    aeth: Aeth | None = None
    seth: Seth | None = None
    cc_state: CcState | None = None
    neth: Neth | None = None
    peth: Peth | None = None
    erth: Erth | None = None
    eeth: Eeth | None = None
    payload: bytes = b""


def headers_of(opcode: int, ts: int) -> dict[str, type[Any]]:
    """Return the headers behind BTH by their name in Packet, in wire order (A.1)."""
    if opcode in WRITES:
        chain: dict[str, type[Any]] = {"meth": Meth}
        if ts:
            chain["tseth"] = Tseth
        chain["reth"] = Reth
        if opcode in WITH_IMM:
            chain["immdt"] = ImmDt
        return chain
    control: dict[Op, dict[str, type[Any]]] = {
        Op.ACK: {"aeth": Aeth},
        Op.SACK: {"seth": Seth, "cc_state": CcState},
        Op.NACK: {"neth": Neth},
        Op.PROBE: {"peth": Peth},
        Op.EP_REQ: {"erth": Erth},
        Op.EP_RSP: {"eeth": Eeth},
    }
    return control[Op(opcode)]


def completed(packet: Packet) -> Packet:
    """Return packet with BTH.pad and BTH.ts set to what payload and TSETH make them (A.4, A.5)."""
    bth = replace(packet.bth, pad=-len(packet.payload) % 4, ts=int(packet.tseth is not None))
    return replace(packet, bth=bth)


def encode(packet: Packet) -> bytes:
    """Return the bytes from BTH to the pad; BTH.pad zero bytes follow the payload."""
    chain = headers_of(packet.bth.opcode, packet.bth.ts)
    parts = [packet.bth, *(getattr(packet, name) for name in chain)]
    return b"".join(map(pack, parts)) + packet.payload + bytes(packet.bth.pad)


def decode(data: bytes, *, trimmed: bool = False) -> Packet:
    """Return the packet in data, which runs from BTH to the end of the iCRC.

    trimmed: a switch cut the packet (A.13.6). There is no iCRC, the payload is what was left, pad
    included, and a Write needs no more than BTH, METH and, with ts=1, TSETH.
    Does not look at the iCRC. Raises RefusedError.
    """
    body = data if trimmed else data[:-ICRC_LEN]
    if len(body) < size(Bth):
        raise RefusedError(Refusal.SHORT)
    bth = unpack(Bth, body)
    if bth.tver != 0:
        raise RefusedError(Refusal.TVER)
    if bth.opcode not in set(Op):
        raise RefusedError(Refusal.OPCODE)
    rest = body[size(Bth) :]
    found: dict[str, Any] = {}
    for name, header in headers_of(bth.opcode, bth.ts).items():
        if len(rest) < size(header):
            if trimmed and name in ("reth", "immdt"):
                return Packet(bth, **found)
            raise RefusedError(Refusal.SHORT)
        found[name], rest = unpack(header, rest), rest[size(header) :]
    if bth.opcode not in WRITES and trimmed:
        rest = b""  # what is left of the iCRC
    pad = 0 if bth.opcode in WRITES and trimmed else bth.pad
    if pad > len(rest) or (rest and bth.opcode not in WRITES):
        raise RefusedError(Refusal.LENGTH)
    return Packet(bth, payload=rest[: len(rest) - pad], **found)
