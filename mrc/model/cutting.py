# SPDX-License-Identifier: BSD-2-Clause
"""A work request cut into packets (MRC A.5, B.2-1)."""

from dataclasses import dataclass, replace

from mrc.model import psn
from mrc.model.ends import Ends
from mrc.model.wire import ImmDt, Meth, Op, Packet, Reth

PLAIN = {  # first, last (A.3)
    (True, False): Op.WRITE_FIRST,
    (False, False): Op.WRITE_MIDDLE,
    (False, True): Op.WRITE_LAST,
    (True, True): Op.WRITE_ONLY,
}
IMMEDIATE = {Op.WRITE_LAST: Op.WRITE_LAST_IMM, Op.WRITE_ONLY: Op.WRITE_ONLY_IMM}


@dataclass(frozen=True, slots=True)
class Work:
    """A posted work request."""

    wr_id: int
    data: bytes
    raddr: int
    rkey: int
    imm: int | None = None
    signaled: bool = True
    solicited: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """A work request whose numbers are given."""

    work: Work
    first: int
    msn: int
    rqmsn: int  # 0 for a plain Write
    mtu: int

    @property
    def last(self) -> int:
        """PSN of the last packet; a message without bytes has one packet, too."""
        return self.first + max(1, -(-len(self.work.data) // self.mtu)) - 1


def packet_of(ends: Ends, m: Message, number: int) -> Packet:
    """Return the packet with this PSN, without A, rtx and timestamp, which change."""
    start, last = (number - m.first) * m.mtu, number == m.last
    op = PLAIN[number == m.first, last]
    imm = m.work.imm if last else None
    payload = m.work.data[start : start + m.mtu]
    solicited = last and m.work.solicited and imm is not None
    bth = ends.bth(IMMEDIATE[op] if imm is not None else op, number, se=int(solicited))
    return Packet(
        bth=replace(bth, pad=-len(payload) % 4),
        meth=Meth(psn.wrap(m.rqmsn, psn.MSN_BITS), psn.wrap(m.msn, psn.MSN_BITS)),
        reth=Reth(m.work.raddr + start, m.work.rkey, len(m.work.data)),
        immdt=None if imm is None else ImmDt(imm),
        payload=payload,
    )
