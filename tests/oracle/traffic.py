# SPDX-License-Identifier: BSD-2-Clause
"""A stream of messages as a requestor would cut it: the same packet for the same number, always."""

from dataclasses import dataclass, replace

from mrc.model import wire
from mrc.model.ends import Region
from mrc.model.wire import Bth, ImmDt, Meth, Op, Packet, Reth, Tseth

OPCODES = {  # first, last, immediate (A.3)
    (True, False): Op.WRITE_FIRST,
    (False, False): Op.WRITE_MIDDLE,
    (False, True): Op.WRITE_LAST,
    (True, True): Op.WRITE_ONLY,
}
IMMEDIATE = {Op.WRITE_LAST: Op.WRITE_LAST_IMM, Op.WRITE_ONLY: Op.WRITE_ONLY_IMM}


@dataclass(frozen=True, slots=True)
class Shape:
    """A message: bytes, whether with immediate, solicited, and asking for an ACK at its end."""

    length: int
    imm: bool
    solicited: bool
    asks: bool


class Stream:
    """Messages of the given shapes, again and again."""

    def __init__(self, first: int, dqp: int, mtu: int, region: Region, shapes: list[Shape]) -> None:
        self.first, self.dqp, self.mtu, self.region, self.shapes = first, dqp, mtu, region, shapes
        self.packets: list[Packet] = []
        self.messages = self.immediates = 0

    def packet(self, number: int) -> Packet:
        """Return packet number 0, 1, ...; BTH.A as the shape says, no timestamp."""
        while len(self.packets) <= number:
            self._message(self.shapes[self.messages % len(self.shapes)])
        return self.packets[number]

    def _message(self, shape: Shape) -> None:
        self.messages += 1
        self.immediates += shape.imm
        count = max(1, -(-shape.length // self.mtu))
        room = len(self.region.data) - shape.length
        start = self.region.start + self.messages * 1237 % (room + 1)
        for i in range(count):
            at, last = i * self.mtu, i == count - 1
            op = OPCODES[i == 0, last]
            number = len(self.packets)
            size = min(self.mtu, shape.length - at)
            payload = bytes((number * 7 + k) % 251 for k in range(size))
            imm = last and shape.imm
            bth = Bth(
                opcode=IMMEDIATE[op] if imm else op,
                se=int(last and shape.solicited),
                pad=-size % 4,
                dqp=self.dqp,
                a=int(last and shape.asks),
                psn=(self.first + number) % (1 << 24),
            )
            rqmsn = self.immediates % (1 << 16) if shape.imm else 0
            self.packets.append(
                Packet(
                    bth,
                    meth=Meth(rqmsn, self.messages % (1 << 16)),
                    reth=Reth(start + at, self.region.key, shape.length),
                    immdt=ImmDt(0xBEEF0000 + self.immediates) if imm else None,
                    payload=payload,
                )
            )


def dressed(p: Packet, *, timestamp: int | None = None, **bth: int) -> Packet:
    """Return p with other bits in BTH, and with a TSETH."""
    tseth = None if timestamp is None else Tseth(timestamp)
    return wire.completed(replace(p, bth=replace(p.bth, **bth), tseth=tseth))
