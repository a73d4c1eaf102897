# SPDX-License-Identifier: BSD-2-Clause
"""What a broken fabric can still carry."""

from __future__ import annotations

import pytest

from mrc.fabric import FabricShape, link_states, parse_fault
from mrc.fabric.capacity import capacity_bps, framing

SHAPE = FabricShape(planes=4, t0=2, t1=4, hosts=4, rate_bps=10**9, t1_rate_bps=5 * 10**8)


@pytest.mark.parametrize(
    ("faults", "bps"),
    [
        ([], 4e9),
        (["down h1.port1"], 3e9),
        (["down ->h1.port1"], 4e9),
        (["fail p1.t1.1"], 4e9),
        (["fail p1.t1.1", "fail p1.t1.2", "fail p1.t1.3"], 3.5e9),
        (["fail plane2"], 3e9),
        (["fail all"], 0),
        (["rate h3.port1=100mbit"], 3.1e9),
        (["loss plane1=10%"], 3.9e9),
        (["fail p1.t0.b"], 3e9),
    ],
)
def test_capacity_across_the_fabric(faults, bps):
    states = link_states(map(parse_fault, faults), SHAPE)
    assert capacity_bps(SHAPE, 0, 2, states) == pytest.approx(bps)


def test_capacity_under_one_t0_needs_no_spine():
    assert capacity_bps(SHAPE, 0, 1, link_states([parse_fault("fail p1.t1.1")], SHAPE)) == 4e9
    assert capacity_bps(SHAPE, 0, 1, link_states([parse_fault("fail p1.t0.a")], SHAPE)) == 3e9


def test_framing_is_that_of_the_packet_formats():
    # A.1: a full Write packet has 84 bytes besides its data over IPv6, 128 with TSETH and SRv6.
    assert framing(4096, srv6=False) == 4096 / (4096 + 84)
    assert framing(4096, timestamps=True) == 4096 / 4224
