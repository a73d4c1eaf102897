# SPDX-License-Identifier: BSD-2-Clause
"""The model against the test packets, both directions (MRC A.14)."""

from dataclasses import replace

import pytest

from mrc.model import ip, wire
from tests.wire import model_frames
from tests.wire.vectors import CORRUPT, TRIMMED, VECTORS, WHOLE, Vector, damaged


def by_name(vector: Vector) -> str:
    return vector.name


def test_all_vectors_are_here() -> None:
    assert (len(WHOLE), len(TRIMMED), len(CORRUPT)) == (47, 3, 1)


@pytest.mark.parametrize("vector", WHOLE, ids=by_name)
def test_fields_to_bytes(vector: Vector) -> None:
    frame = model_frames.frame(vector.fields)
    data = ip.encode(frame)
    assert data.hex() == vector.data.hex()
    assert data[-4:] == vector.icrc
    assert wire.encode(frame.packet) + data[-4:] == vector.transport


@pytest.mark.parametrize("vector", WHOLE, ids=by_name)
def test_bytes_to_fields(vector: Vector) -> None:
    assert ip.decode(vector.data) == model_frames.frame(vector.fields)


@pytest.mark.parametrize("vector", WHOLE, ids=by_name)
def test_entropy_is_read_back(vector: Vector) -> None:
    carried = 0xFFFF if "ip4" in vector.fields else 0xFFFFFFFF  # A.12
    assert ip.decode(vector.data).entropy == vector.fields["ev"] & carried


@pytest.mark.parametrize("vector", WHOLE, ids=by_name)
def test_congestion_mark_and_nominal_size(vector: Vector) -> None:
    """E.1: UDP length + 40, whatever is around; A.13.1: CE in either header."""
    frame = ip.decode(vector.data)
    assert frame.ce == (vector.name == "write-only-ce-marked")
    assert frame.nominal_bytes == len(vector.transport) + 8 + 40
    if frame.outer is not None:
        assert replace(frame, outer=replace(frame.outer, ecn=3)).ce


@pytest.mark.parametrize("vector", TRIMMED + CORRUPT, ids=by_name)
def test_damage_to_bytes(vector: Vector) -> None:
    assert damaged(vector).hex() == vector.data.hex()


@pytest.mark.parametrize("vector", TRIMMED, ids=by_name)
def test_trimmed_bytes_to_fields(vector: Vector) -> None:
    """What survives the cut is what the sender wrote (A.13.6)."""
    whole = model_frames.frame(VECTORS[vector.fields["derived_from"]].fields)
    frame = ip.decode(vector.data)
    kept = whole.packet.payload[: vector.fields["cut_to"] - 84]
    assert frame.trimmed
    assert frame.packet == replace(whole.packet, payload=kept)
    assert frame.entropy == whole.entropy
    assert frame.ip.dscp == vector.fields["dscp"]
    corrected = vector.fields["lengths"] == "corrected"
    assert frame.udp.length == (len(vector.data) - 40 if corrected else whole.udp.length)


@pytest.mark.parametrize("vector", CORRUPT, ids=by_name)
def test_corruption_is_refused(vector: Vector) -> None:
    with pytest.raises(ip.BadIcrcError):
        ip.decode(vector.data)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("opcode", wire.Refusal.OPCODE), ("tver", wire.Refusal.TVER), ("pad", wire.Refusal.LENGTH)],
)
def test_refusals_name_their_reason(name: str, reason: wire.Refusal) -> None:
    data = bytearray(VECTORS["transport-ack"].transport)
    match name:
        case "opcode":
            data[0] = 0xC0
        case "tver":
            data[1] |= 1
        case "pad":
            data[1] |= 0x30
    with pytest.raises(wire.RefusedError) as refused:
        wire.decode(bytes(data))
    assert refused.value.reason is reason
