# SPDX-License-Identifier: BSD-2-Clause
"""The scapy layers against the test packets, both directions, and beside scapy's RoCE layers."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrSegmentRouting
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw, split_layers

from mrc.dscp import DscpClasses
from mrc.model import ip as model_ip
from mrc.scapy_layers import METH, RETH, SETH, TSETH, CCState, MrcBTH, bind_port, entropy
from tests.wire import scapy_frames, strategies
from tests.wire.vectors import CORRUPT, TRIMMED, VECTORS, WHOLE, Vector


@pytest.fixture(autouse=True)
def _second_port() -> Iterator[None]:
    """One vector uses the port the specification prints (H1)."""
    bind_port(4971)
    yield
    split_layers(UDP, MrcBTH, dport=4971)


ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")  # given: nothing is resolved


def by_name(vector: Vector) -> str:
    return vector.name


def dissect(data: bytes) -> Packet:
    pkt: Packet = IP(data) if data[0] >> 4 == 4 else IPv6(data)
    return pkt


def innermost(pkt: Packet) -> Packet:
    """Return the IP header directly above UDP."""
    ip: Packet | None = pkt[UDP].underlayer
    assert ip is not None
    return ip


def header(pkt: Packet, name: str) -> Packet:
    found: Packet = pkt[MrcBTH] if name == "bth" else pkt[scapy_frames.HEADERS[name]]
    return found


@pytest.mark.parametrize("vector", WHOLE, ids=by_name)
def test_fields_to_bytes(vector: Vector) -> None:
    assert bytes(scapy_frames.build(vector.fields)).hex() == vector.data.hex()


@pytest.mark.parametrize("vector", WHOLE, ids=by_name)
def test_bytes_to_fields(vector: Vector) -> None:
    pkt = dissect(vector.data)
    assert Raw not in pkt or pkt[Raw].load.hex() == vector.fields["payload_hex"]
    assert (Raw in pkt) == bool(vector.fields.get("payload_hex"))
    expected_layers = {cls for name, cls in scapy_frames.HEADERS.items() if name in vector.fields}
    assert expected_layers == {cls for cls in scapy_frames.HEADERS.values() if cls in pkt}
    assert vector.icrc is not None
    assert pkt[MrcBTH].icrc == int.from_bytes(vector.icrc, "big")
    assert pkt[MrcBTH].icrc_ok() is True
    for name in ("bth", *scapy_frames.HEADERS):
        if name not in vector.fields:
            continue
        for key, value in scapy_frames.values_of(vector.fields, name).items():
            layer = header(pkt, name)
            found = layer.sprintf("%opcode%") if key == "opcode" else layer.getfieldval(key)
            assert found == value, f"{name}.{key}"


@pytest.mark.parametrize("vector", WHOLE, ids=by_name)
def test_ip_headers(vector: Vector) -> None:
    pkt, fields = dissect(vector.data), vector.fields
    carried = 0xFFFF if "ip4" in fields else 0xFFFFFFFF
    assert entropy(pkt) == fields["ev"] & carried  # A.12
    for ip, said in ((innermost(pkt), fields.get("ip6")), (pkt, fields.get("outer"))):
        if said is not None:
            assert (ip.src, ip.dst, ip.hlim) == (said["src"], said["dst"], said["hlim"])
            assert ip.tc == said["dscp"] << 2 | said["ecn"]
    if "srh" in fields.get("outer", {}):
        srh = pkt[IPv6ExtHdrSegmentRouting]
        assert srh.addresses == fields["outer"]["srh"]["segments"]
        assert srh.segleft == fields["outer"]["srh"]["segments_left"]


@pytest.mark.parametrize("vector", VECTORS.values(), ids=by_name)
def test_dissect_then_build_changes_nothing(vector: Vector) -> None:
    """Rebuilt from fields, not from scapy's cache of the bytes; damage is kept too."""
    pkt = dissect(vector.data)
    layer: Packet | None = pkt
    while layer:
        layer.raw_packet_cache = None
        layer = layer.payload
    assert bytes(pkt).hex() == vector.data.hex()


@pytest.mark.parametrize("vector", WHOLE, ids=by_name)
def test_below_ethernet_with_padding(vector: Vector) -> None:
    """Frames shorter than 60 bytes reach us with bytes that belong to nobody."""
    frame = Ether(bytes(ETHER / dissect(vector.data)) + b"\xaa" * 10)
    assert frame[MrcBTH].icrc_ok() is True


@pytest.mark.parametrize("vector", TRIMMED, ids=by_name)
def test_trimmed(vector: Vector) -> None:
    pkt = dissect(vector.data)
    origin = VECTORS[vector.fields["derived_from"]].fields
    assert pkt[MrcBTH].trimmed()
    assert pkt[MrcBTH].icrc is None
    assert pkt[MrcBTH].icrc_ok() is None
    assert (pkt[MrcBTH].dqp, pkt[MrcBTH].psn) == (origin["bth"]["dqp"], origin["bth"]["psn"])
    assert pkt[METH].msn == origin["meth"]["msn"]
    assert pkt[TSETH].tx_timestamp == origin["tseth"]["tx_timestamp"]
    assert pkt[RETH].va == origin["reth"]["va"]
    assert entropy(pkt) == origin["ev"]


def test_trimmed_follows_the_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    vector = TRIMMED[0]
    monkeypatch.setattr(MrcBTH, "trimmed_dscp", DscpClasses(trimmed=20, trimmed_lasthop=21).cut)
    pkt = dissect(vector.data)
    assert not pkt[MrcBTH].trimmed()
    pkt[MrcBTH].underlayer.underlayer.tc = 21 << 2
    assert pkt[MrcBTH].trimmed()


@pytest.mark.parametrize("vector", CORRUPT, ids=by_name)
def test_corruption_is_seen(vector: Vector) -> None:
    assert dissect(vector.data)[MrcBTH].icrc_ok() is False


def test_control_headers_set_the_opcode() -> None:
    pkt = IPv6(dst="::1") / UDP() / MrcBTH(dqp=5) / SETH() / CCState()
    assert IPv6(bytes(pkt))[MrcBTH].sprintf("%opcode%") == "SACK"


def test_changing_a_masked_field_keeps_the_icrc() -> None:
    pkt = dissect(VECTORS["write-only-no-tseth"].data)
    before = pkt[MrcBTH].icrc
    pkt.hlim, pkt.tc, pkt.fl, pkt[MrcBTH].var_res, pkt[MrcBTH].icrc = 3, 3, 77, 255, None
    assert IPv6(bytes(pkt))[MrcBTH].icrc == before
    pkt[UDP].sport += 1
    assert IPv6(bytes(pkt))[MrcBTH].icrc != before


ROCE = """
from {first} import *
from {second} import *
from scapy.contrib.roce import BTH, AETH, CNPPadding, cnp, opcode
from scapy.layers.inet import IP, UDP
from mrc.scapy_layers import MrcBTH, MrcAETH

ours = IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=7) / MrcBTH(dqp=9) / MrcAETH(msn=3)
theirs = IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=7)
ack = theirs / BTH(opcode=opcode("RC", "ACKNOWLEDGE")[0], dqpn=4) / AETH(msn=8)
assert IP(bytes(ours))[MrcAETH].msn == 3 and BTH not in IP(bytes(ours))
assert IP(bytes(ack))[AETH].msn == 8 and MrcBTH not in IP(bytes(ack))
assert CNPPadding in IP(bytes(theirs / cnp(4)))
assert ack[UDP].dport == 4791 and bytes(IP(bytes(ack))) == bytes(ack)
"""


@pytest.mark.parametrize("ours_first", [True, False])
def test_lives_beside_scapys_roce(ours_first: bool) -> None:
    """In a process of its own: what is imported first must not matter."""
    names = ["mrc.scapy_layers", "scapy.contrib.roce"]
    first, second = names if ours_first else names[::-1]
    script = ROCE.format(first=first, second=second)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_without_roce_other_opcodes_are_raw() -> None:
    pkt = IPv6(dst="::1") / UDP(dport=4791) / b"\x04hello"
    assert MrcBTH not in IPv6(bytes(pkt))


def test_unknown_opcode_of_our_range_is_kept() -> None:
    pkt = IPv6(bytes(IPv6(dst="::1") / UDP() / MrcBTH(opcode=0xC0) / b"1234"))
    assert pkt[MrcBTH].icrc_ok() is True
    assert pkt[Raw].load == b"1234"


def test_reserved_wire_bits_can_be_set_and_seen() -> None:
    pkt = IPv6(dst="::1") / UDP() / MrcBTH(inv_res=5, r=1) / METH() / RETH()
    assert IPv6(bytes(pkt))[MrcBTH].inv_res == 5


@settings(max_examples=60, deadline=None)
@given(frame=strategies.frames())
def test_random_packets_as_in_the_model(frame: model_ip.Frame) -> None:
    """Same headers, same iCRC, and scapy builds the bytes it has dissected."""
    frame = replace(frame, ip=replace(frame.ip, dscp=0), udp=replace(frame.udp, dport=4791))
    pkt = dissect(model_ip.encode(model_ip.completed(frame)))
    assert pkt[MrcBTH].icrc_ok() is True
    assert pkt[MrcBTH].psn == frame.packet.bth.psn
    assert (pkt[Raw].load if Raw in pkt else b"") == frame.packet.payload
    assert bytes(pkt) == model_ip.encode(model_ip.completed(frame))
    pkt[MrcBTH].icrc = None
    assert bytes(pkt) == model_ip.encode(model_ip.completed(frame))
