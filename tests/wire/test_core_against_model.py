# SPDX-License-Identifier: BSD-2-Clause
"""The C codec and iCRC beside the model, on random packets and on random bytes."""

from typing import Any
from zlib import crc32

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mrc.model import ip, wire
from tests.wire import core_packets, strategies
from tests.wire.vectors import VECTORS

# Fixtures hold the compiled module and one function of it: nothing to reset between examples.
many = settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def agree(unit: Any, data: bytes, *, trimmed: bool = False) -> None:
    """Both take the bytes for the same packet, or refuse them for the same reason."""
    verdict, pkt, payload = core_packets.decode(unit, data, trimmed=trimmed)
    try:
        packet = wire.decode(data, trimmed=trimmed)
    except wire.RefusedError as refused:
        expected = int(refused.reason)
    else:
        expected = 0
    assert verdict == expected
    if expected:
        return
    assert payload == packet.payload
    assert core_packets.struct_values(unit, pkt) == core_packets.nonzero(
        core_packets.received(packet, trimmed=trimmed)
    )


def test_reasons_have_the_same_numbers(unit: Any) -> None:
    assert {r.name: int(r) for r in wire.Refusal} == {
        r.name: getattr(unit.lib, f"MRC_WIRE_{r.name}") for r in wire.Refusal
    }


@many
@given(packet=strategies.packets())
def test_encode(unit: Any, packet: wire.Packet) -> None:
    assert core_packets.encode(unit, packet) == wire.encode(packet)


@many
@given(packet=strategies.packets())
def test_decode(unit: Any, packet: wire.Packet) -> None:
    agree(unit, wire.encode(packet) + b"icrc")


@many
@given(data=strategies.almost_packets(), trimmed=st.booleans())
@example(data=b"", trimmed=False)
def test_decode_damaged(unit: Any, data: bytes, trimmed: bool) -> None:
    agree(unit, data, trimmed=trimmed)


@many
@given(data=st.binary(max_size=80), trimmed=st.booleans())
def test_decode_anything(unit: Any, data: bytes, trimmed: bool) -> None:
    agree(unit, data, trimmed=trimmed)


def test_decode_every_truncation(unit: Any) -> None:
    for vector in VECTORS.values():
        for length in range(len(vector.transport) + 1):
            for trimmed in (False, True):
                agree(unit, vector.transport[:length], trimmed=trimmed)


@many
@given(packet=strategies.packets(), ts=st.booleans())
def test_ts_means_something_in_writes_only(unit: Any, packet: wire.Packet, ts: bool) -> None:
    data = bytearray(wire.encode(packet) + b"icrc")
    data[8] = data[8] & ~0x10 | ts << 4
    agree(unit, bytes(data))


@many
@given(frame=strategies.frames())
def test_icrc(unit: Any, crc: Any, frame: ip.Frame) -> None:
    transport = wire.encode(frame.packet)
    expected = ip.icrc(frame.ip, frame.udp, transport)
    assert core_packets.icrc(unit, crc, frame, transport) == expected


@many
@given(
    seed=st.binary(min_size=1, max_size=16),
    length=st.integers(0, 700) | st.integers(4090, 4200),
    register=st.integers(0, 0xFFFFFFFF),
)
def test_crc_is_zlibs(unit: Any, crc: Any, seed: bytes, length: int, register: int) -> None:
    """Any length, alignment and state: zlib's value is the complement of the register.

    The bytes end with a page, so that alignment follows from length, and none is read beyond.
    """
    data = (seed * (length // len(seed) + 1))[:length]
    found = crc(register, core_packets.guarded(unit, data), length)
    assert found == crc32(data, register ^ 0xFFFFFFFF) ^ 0xFFFFFFFF


@many
@given(data=st.binary(max_size=600), cuts=st.lists(st.integers(0, 600), max_size=5))
def test_crc_in_pieces(unit: Any, crc: Any, data: bytes, cuts: list[int]) -> None:
    register, start = 0xFFFFFFFF, 0
    for end in [*sorted(cuts), len(data)]:
        piece = data[start:end]
        register, start = crc(register, piece, len(piece)), max(start, min(end, len(data)))
    assert register ^ 0xFFFFFFFF == crc32(data)


def test_the_register_after_eight_ones(unit: Any, crc: Any) -> None:
    assert crc(0xFFFFFFFF, b"\xff" * 8, 8) == 0xDEBB20E3  # A.13.3
