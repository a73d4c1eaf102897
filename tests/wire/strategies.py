# SPDX-License-Identifier: BSD-2-Clause
"""Random packets and random bytes that are nearly packets."""

from dataclasses import fields
from typing import Any

from hypothesis import strategies as st

from mrc.model import ip, wire
from mrc.model.wire import headers_of


def header(cls: type[Any], **fixed: Any) -> st.SearchStrategy[Any]:
    """Return headers of this class with every field anywhere in its range, save the fixed ones."""
    drawn: dict[str, Any] = {}
    for f in fields(cls):
        if f.init:
            width = f.metadata["width"]
            low = -(1 << width - 1) if f.metadata["signed"] else 0
            drawn[f.name] = st.integers(low, low + (1 << width) - 1)
    return st.builds(cls, **(drawn | {name: st.just(v) for name, v in fixed.items()}))


@st.composite
def packets(draw: st.DrawFn, ops: list[wire.Op] = list(wire.Op)) -> wire.Packet:  # noqa: B006
    """Return packets of any opcode; a Write has up to 64 bytes of payload."""
    op = draw(st.sampled_from(ops))
    stamped = draw(st.booleans()) if op in wire.WRITES else False
    chain = headers_of(op, stamped)
    found = {name: draw(header(cls)) for name, cls in chain.items()}
    payload = draw(st.binary(max_size=64)) if op in wire.WRITES else b""
    bth = draw(header(wire.Bth, opcode=op, tver=0, m=0))
    return wire.completed(wire.Packet(bth, payload=payload, **found))


def frames() -> st.SearchStrategy[ip.Frame]:
    """Return IP packets, either version, all fields random, lengths right."""
    six = header(ip.Ipv6, version=6, next_header=ip.NEXT_UDP)
    four = header(ip.Ipv4, version=4, ihl=5, protocol=ip.NEXT_UDP, mf=0, offset=0)
    built = st.builds(ip.Frame, ip=st.one_of(six, four), udp=header(ip.Udp), packet=packets())
    return built.map(ip.completed)


@st.composite
def almost_packets(draw: st.DrawFn) -> bytes:
    """Return bytes of a packet with its iCRC, then flip, cut or lengthen them."""
    data = bytearray(wire.encode(draw(packets())) + draw(st.binary(min_size=4, max_size=4)))
    # Most flips in the first bytes: there stand version, pad, opcode and ts.
    for bit in draw(st.lists(st.integers(0, 96), max_size=3)):
        data[bit // 8 % len(data)] ^= 1 << bit % 8
    del data[draw(st.integers(0, 2 * len(data))) :]
    return bytes(data + draw(st.sampled_from([b"", b"\0", bytes(3), bytes(4), bytes(40)])))
