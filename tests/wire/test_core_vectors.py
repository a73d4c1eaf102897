# SPDX-License-Identifier: BSD-2-Clause
"""The C core against the test packets, both directions."""

from typing import Any

import pytest

from mrc.model import ip, wire
from tests.wire import core_packets, model_frames
from tests.wire.vectors import CORRUPT, TRIMMED, VECTORS, WHOLE, Vector


def by_name(vector: Vector) -> str:
    return vector.name


@pytest.mark.parametrize("vector", WHOLE, ids=by_name)
def test_fields_to_bytes(unit: Any, vector: Vector) -> None:
    packet = model_frames.packet(vector.fields)
    assert core_packets.encode(unit, packet).hex() == vector.transport[:-4].hex()


@pytest.mark.parametrize("vector", WHOLE, ids=by_name)
def test_bytes_to_fields(unit: Any, vector: Vector) -> None:
    packet = model_frames.packet(vector.fields)
    verdict, pkt, payload = core_packets.decode(unit, vector.transport)
    assert verdict == unit.lib.MRC_WIRE_OK
    assert payload == packet.payload
    assert core_packets.struct_values(unit, pkt) == core_packets.nonzero(
        core_packets.received(packet)
    )


@pytest.mark.parametrize("vector", WHOLE, ids=by_name)
def test_icrc(unit: Any, crc: Any, vector: Vector) -> None:
    frame = model_frames.frame(vector.fields)
    assert core_packets.icrc(unit, crc, frame, vector.transport[:-4]) == vector.icrc


@pytest.mark.parametrize("vector", WHOLE, ids=by_name)
def test_entropy(unit: Any, vector: Vector) -> None:
    frame = ip.decode(vector.data)
    label = frame.ip.flow_label if isinstance(frame.ip, ip.Ipv6) else 0
    assert unit.lib.mrc_wire_ev(label, frame.udp.sport) == frame.entropy


@pytest.mark.parametrize("vector", TRIMMED, ids=by_name)
def test_trimmed_bytes_to_fields(unit: Any, vector: Vector) -> None:
    packet = ip.decode(vector.data).packet
    verdict, pkt, payload = core_packets.decode(unit, vector.transport, trimmed=True)
    assert verdict == unit.lib.MRC_WIRE_OK
    assert payload == packet.payload
    assert core_packets.struct_values(unit, pkt) == core_packets.nonzero(
        core_packets.received(packet, trimmed=True)
    )


@pytest.mark.parametrize("vector", CORRUPT, ids=by_name)
def test_corruption_is_refused(unit: Any, crc: Any, vector: Vector) -> None:
    frame = model_frames.frame(VECTORS[vector.fields["derived_from"]].fields)
    computed = core_packets.icrc(unit, crc, frame, vector.transport[:-4])
    assert computed != vector.transport[-4:]


def test_the_core_knows_the_opcodes_of_the_model(unit: Any) -> None:
    known = {op for op in range(256) if unit.lib.mrc_opcode_flags(op)}
    assert known == {int(op) for op in wire.Op}
