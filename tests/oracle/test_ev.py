# SPDX-License-Identifier: BSD-2-Clause
"""EV expansion and row templates of the package beside the model (D.4, D.9, H24, H25)."""

import json
from ipaddress import IPv6Address, IPv6Network
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc import EvFormat
from mrc.controller.evarray import collect
from mrc.ev import VALUE_BITS, EvField, expand, split_value
from mrc.evgen import generate
from mrc.evrows import Row, RowTable
from mrc.model import ev as model
from tests.oracle import ev_cases

KEPT = json.loads(ev_cases.FILE.read_text(encoding="ascii"))


def test_the_file_is_what_the_model_says() -> None:
    assert ev_cases.cases() == KEPT
    assert len(KEPT) == 80
    assert {c["format"] for c in KEPT} == {f.value for f in EvFormat}


@pytest.mark.parametrize("case", KEPT, ids=range(len(KEPT)))
def test_expansion(case: dict[str, Any]) -> None:
    fields = [EvField(width, init, mask=mask) for width, init, mask in case["fields"]]
    bits = VALUE_BITS[EvFormat(case["format"])]
    ev = bytes.fromhex(case["ev"])
    path = expand(fields, case["widths"], split_value(fields, ev), bits)
    assert f"{path:0{bits // 4}x}" == case["path"]
    assert collect(fields, case["widths"], path, bits) == ev.ljust(32, b"\0")


FIELD = st.builds(
    lambda width, mask, span: EvField(
        width, 1 << width - 1, mask=mask & (1 << width) - 1, max=min(span, _top(mask, width))
    ),
    width=st.sampled_from([4, 8]),
    mask=st.integers(0, 255),
    span=st.integers(0, 5),
)


def _top(mask: int, width: int) -> int:
    return (1 << (mask & (1 << width) - 1).bit_count()) - 1


@given(fields=st.lists(FIELD, min_size=1, max_size=3), planes=st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_generated_values_and_ports_as_enumerated(fields: list[EvField], planes: int) -> None:
    """H25: last field fastest, ports round robin, then shuffled."""
    widths = [10, 11, 11][: len(fields)]
    total = 1
    for f in fields:
        total *= f.top - f.min + 1 if f.mask else 1
    made = generate(EvFormat.STEV, fields, widths, total, ports=range(1, planes + 1))
    twin = [model.EvField(f.width, f.init, f.mask, f.min, f.max) for f in fields]
    wanted = [int.from_bytes(model.expand(twin, widths, ev), "big") for ev in model.generate(twin)]
    assert {e.value: e.plane for e in made} == {
        value: 1 + number % planes for number, value in enumerate(wanted)
    }
    if total >= 8:
        assert [e.value for e in made] != wanted
    again = generate(EvFormat.STEV, fields, widths, total, ports=range(1, planes + 1))
    assert made == again


ROWS = RowTable(
    (
        Row(IPv6Network("fd00:15::/64"), IPv6Address("fcbb:bbbb:1007:2000:1015:3000::")),
        Row(IPv6Network("fd00:7::/64"), IPv6Address("fcbb:bbbb:1007:3000::"), uplink=None),
    )
)


def test_d9_worked_example_byte_for_byte() -> None:
    row = ROWS.row(IPv6Address("fd00:15::2c"))
    assert row.towards(IPv6Address("fd00:15::2c"), ROWS.usids).to_bytes(16, "big") == (
        IPv6Address("fcbb:bbbb:1007:2000:1015:302c::").packed
    )
    address = ROWS.address(IPv6Address("fd00:15::2c"), 0x05A3C41F)
    assert address.packed.hex() == "fcbbbbbb150725a31515352c00000000"
    hops = [int(address)]
    while len(hops) < 4:
        hops.append(model.after_node(hops[-1]))
    assert [str(IPv6Address(hop)) for hop in hops[1:]] == [
        "fcbb:bbbb:25a3:1515:352c::",
        "fcbb:bbbb:1515:352c::",
        "fcbb:bbbb:352c::",
    ]


def test_d9_within_a_t0_group() -> None:
    assert ROWS.address(IPv6Address("fd00:7::2c"), 0x05A3C41F) == (
        IPv6Address("fcbb:bbbb:1507:352c::")
    )


@given(plane=st.integers(1, 15), uplink=st.integers(0, 255), host=st.integers(0, 255))
def test_d9_against_the_model(plane: int, uplink: int, host: int) -> None:
    template = [model.Usid(1, 0, 7), model.Usid(2, 0, 0), model.Usid(1, 0, 0x15)]
    ev = plane << 24 | uplink << 16 | 0xC41F
    chain = model.steer([*template, model.Usid(3, 0, host)], ev)
    wanted = model.carrier(0xFCBBBBBB, chain)
    assert int(ROWS.address(IPv6Address(int(IPv6Address("fd00:15::")) + host), ev)) == wanted


def test_every_combination_is_generated_once() -> None:
    fields = [EvField(8, 0x40, 1, 2, 0x03), EvField(8, 0xAA), EvField(16, 0xC000, mask=0x81)]
    made = generate(EvFormat.STEV, fields, [8, 8, 16], 8, ports=[1, 2])
    wanted = {
        (0x40 | a) << 24 | 0xAA << 16 | 0xC000 | b
        for a, b in product((1, 2), (0x00, 0x01, 0x80, 0x81))
    }
    assert {e.value for e in made} == wanted
