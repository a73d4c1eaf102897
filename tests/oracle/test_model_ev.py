# SPDX-License-Identifier: BSD-2-Clause
"""The model's EV expansion against the worked examples of MRC D.4 and D.9."""

from ipaddress import IPv6Address

import pytest

from mrc.model.ev import EvField, Usid, after_node, carrier, check, expand, generate, steer


def ev_bytes(bits: str) -> bytes:
    bits = bits.replace(" ", "")
    bits = bits.ljust(-(-len(bits) // 8) * 8, "0")
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def address(text: str) -> bytes:
    return IPv6Address(text).packed


def test_example_1_stev() -> None:
    fields = [EvField(16, 0x4000, 0x00F3), EvField(16, 0x8001, 0x0FF0)]
    ev = ev_bytes("101101 11001010")
    assert ev.hex() == "b728"
    assert expand(fields, [16, 16], ev).hex() == "40b18ca1"


def test_example_2_srv6() -> None:
    fields = [
        EvField(32, 0xFCBBBBBB),
        EvField(16, 0x1007, 0x0700),
        EvField(16, 0x2000, 0x07FF),
        EvField(16, 0x1015, 0x0700),
        EvField(16, 0x302C, 0x0700),
    ]
    value = expand(fields, [32, 16, 16, 16, 16], ev_bytes("101 101 10100011 101 101"))
    assert value == address("fcbb:bbbb:1507:25a3:1515:352c::")


def test_example_3_srv6_with_srh() -> None:
    fields = [
        EvField(32, 0xCAFECAFE),
        EvField(4, 0x0, 0xF),
        EvField(8, 0x10, 0x0F),
        EvField(16, 0x0300, 0x003F),
        EvField(16, 0x0400),
        EvField(16, 0x0500),
        EvField(16, 0x0600),
        EvField(32, 0xDECAFBAD),
        EvField(12, 0x700, 0x0FF),
        EvField(16, 0x0E00, 0x00FF),
    ]
    ev = ev_bytes("1001 0110 101011 00001111 11000011")
    value = expand(fields, [32, *[16] * 6, 32, 16, 16], ev)
    assert value[:16] == address("cafe:cafe:9:16:32b:400:500:600")
    assert value[16:] == address("deca:fbad:70f:ec3::")


def test_d9_template() -> None:
    template = [Usid(1, 0, 0x07), Usid(2, 0, 0), Usid(1, 0, 0x15), Usid(3, 0, 0x2C)]
    assert carrier(0xFCBBBBBB, template) == int(IPv6Address("fcbb:bbbb:1007:2000:1015:302c::"))
    chain = steer(template, 0x05A3C41F)
    steps = [carrier(0xFCBBBBBB, chain)]
    while len(steps) < 4:
        steps.append(after_node(steps[-1]))
    assert [str(IPv6Address(step)) for step in steps] == [
        "fcbb:bbbb:1507:25a3:1515:352c::",
        "fcbb:bbbb:25a3:1515:352c::",
        "fcbb:bbbb:1515:352c::",
        "fcbb:bbbb:352c::",
    ]


def test_generated_values_in_order_last_field_fastest() -> None:
    fields = [EvField(8, 0, 0x03, 1, 2), EvField(8, 0xAA), EvField(8, 0, 0x81)]
    values = [expand(fields, [8, 8, 8], ev).hex() for ev in generate(fields)]
    low = ["00", "01", "80", "81"]
    assert values == [f"{first}aa{last}00" for first in ("01", "02") for last in low]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ([EvField(16, 0)] * 3, "more fields"),
        ([EvField(16, 0), EvField(20, 0)], "wider than the format"),
        ([EvField(16, 0x10000)], "init"),
        ([EvField(8, 0, 0x100)], "mask"),
        ([EvField(8, 0, 0x03, 0, 4)], "max"),
        ([EvField(8, 0, 0x03, 3, 2)], "min"),
        ([EvField(0, 0)], "width"),
    ],
)
def test_bad_profiles(fields: list[EvField], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check(fields, [16, 16])


def test_surplus_ev_bits_are_refused() -> None:
    with pytest.raises(ValueError, match="beyond"):
        expand([EvField(16, 0, 0x0F)], [16], b"\xf1")
