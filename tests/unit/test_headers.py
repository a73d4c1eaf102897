# SPDX-License-Identifier: BSD-2-Clause
"""Outer headers, byte for byte (A.13.1, A.13.2), against bytes typed from the RFCs."""

from __future__ import annotations

import json
from ipaddress import IPv6Address
from pathlib import Path

import pytest

import mrc
from mrc.ev import EvEntry, EvProfile
from mrc.headers import OUTER_BYTES, outer_template, outer_templates

SRC = IPv6Address("fd00::1")
CARRIER = IPv6Address("fcbb:bbbb:1507:25a3:1515:352c::")
VECTORS = Path(__file__).parents[1] / "wire" / "vectors" / "wire-vectors.json"
SEGMENT = IPv6Address("deca:fbad:70f:ec3::")


def test_srv6_is_ipv6_in_ipv6():
    profile = EvProfile(mrc.EvFormat.SRV6, (EvEntry(0xC001, dst=CARRIER),))
    (header,) = outer_templates(profile, SRC)
    assert header.hex() == "60000000" + "0000" + "29" + "40" + SRC.packed.hex() + (
        CARRIER.packed.hex()
    )


def test_srh_has_one_entry_and_one_segment_left():
    """Field report 67: last_entry and every other byte."""
    profile = EvProfile(mrc.EvFormat.SRV6_SRH, (EvEntry(0xC001, dst=CARRIER, srh=SEGMENT),))
    (header,) = outer_templates(profile, SRC)
    assert len(header) == 64
    assert header[:24].hex() == "60000000" + header[4:6].hex() + "2b" + "40" + SRC.packed.hex()
    assert header[24:40] == CARRIER.packed
    next_header, length, routing_type, segments_left, last_entry, flags = header[40:46]
    assert (next_header, length, routing_type) == (41, 2, 4)
    assert (segments_left, last_entry, flags) == (1, 0, 0)
    assert header[46:48] == b"\0\0"
    assert header[48:] == SEGMENT.packed


def test_a_segment_that_repeats_the_destination_is_a_copy():
    """No segments left: nobody is to go there a second time."""
    entries = (
        EvEntry(0xC001, dst=CARRIER, srh=CARRIER),
        EvEntry(0xC002, dst=CARRIER, srh=SEGMENT),
        EvEntry(0xC003, dst=SEGMENT, srh=SEGMENT),
    )
    headers = outer_templates(EvProfile(mrc.EvFormat.SRV6_SRH, entries), SRC)
    assert [tuple(h[40:46]) for h in headers] == [(41, 2, 4, left, 0, 0) for left in (0, 1, 0)]
    assert [h[24:40] for h in headers] == [e.dst.packed for e in entries if e.dst]
    assert [h[48:] for h in headers] == [e.srh.packed for e in entries if e.srh]


@pytest.mark.parametrize("name", ["srv6-srh-extended", "srv6-srh-debug-copy"])
def test_the_wire_vectors_begin_with_them(name: str):
    """But for payload length, traffic class and flow label, which C fills in."""
    vector = next(v for v in json.loads(VECTORS.read_text()) if v["name"] == name)
    outer = vector["fields"]["outer"]
    dst, srh = IPv6Address(outer["dst"]), IPv6Address(outer["srh"]["segments"][0])
    profile = EvProfile(mrc.EvFormat.SRV6_SRH, (EvEntry(0xC001, dst=dst, srh=srh),))
    (header,) = outer_templates(profile, IPv6Address(outer["src"]))
    assert header[6:] == bytes.fromhex(vector["hex"])[6 : len(header)]


def test_each_ev_has_its_own():
    entries = tuple(
        EvEntry(0xC000 + i, dst=IPv6Address(int(CARRIER) + (i << 64))) for i in range(1, 9)
    )
    headers = outer_templates(EvProfile(mrc.EvFormat.SRV6, entries), SRC)
    assert [IPv6Address(h[24:40]) for h in headers] == [e.dst for e in entries]
    assert len({h[:24] for h in headers}) == 1


@pytest.mark.parametrize("fmt", [mrc.EvFormat.UDP, mrc.EvFormat.STEV])
def test_plain_formats_have_none(fmt):
    profile = EvProfile(fmt, (EvEntry(1), EvEntry(2)))
    assert outer_templates(profile, SRC) == [b"", b""]
    with pytest.raises(mrc.MrcUsageError):
        outer_template(fmt, SRC)


def test_scapy_reads_them_back():
    inet6 = pytest.importorskip("scapy.layers.inet6")
    profile = EvProfile(mrc.EvFormat.SRV6_SRH, (EvEntry(0xC001, dst=CARRIER, srh=SEGMENT),))
    header = bytearray(outer_templates(profile, SRC)[0])
    header[4:6] = (24).to_bytes(2, "big")  # the payload length, which C fills in
    packet = inet6.IPv6(bytes(header))
    assert packet.dst == str(CARRIER)
    assert packet[inet6.IPv6ExtHdrSegmentRouting].addresses == [str(SEGMENT)]


@pytest.mark.parametrize(("fmt", "size"), [(mrc.EvFormat.SRV6, 40), (mrc.EvFormat.SRV6_SRH, 64)])
def test_what_outer_headers_take_of_the_mtu(fmt, size):
    """Also where the segment is a copy of the destination, for whoever looks at packets."""
    assert OUTER_BYTES[fmt] == len(outer_template(fmt, SRC)) == size
    if fmt is mrc.EvFormat.SRV6_SRH:
        copy = EvProfile(fmt, (EvEntry(0xC001, dst=CARRIER, srh=CARRIER),))
        assert [len(header) for header in outer_templates(copy, SRC)] == [size]
    assert OUTER_BYTES[mrc.EvFormat.UDP] == OUTER_BYTES[mrc.EvFormat.STEV] == 0
