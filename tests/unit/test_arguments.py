# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of a wrong type or size are MrcUsageError, never an error of Python's or of cffi's."""

from __future__ import annotations

import pytest

import mrc
from mrc._core import MemWire
from mrc.options import ConnectionOptions
from tests.unit.sides import Side

NAN, INF = float("nan"), float("inf")


@pytest.fixture(scope="module")
def side():
    wire = MemWire(64, 1)
    found, peer = Side(wire, 0), Side(wire, 1)
    found.connect(peer)
    yield found
    found.ctx.close()
    peer.ctx.close()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("state", 7),
        ("state", "RTS"),
        ("timeout", 1.5),
        ("timeout", "x"),
        ("mpr", NAN),
        ("path", -1),
        ("path", 1.5),
        ("cc", "a"),
        ("hint", -1),
        ("version", -1),
        ("cap", 1 << 40),
        ("access", -1),
        ("sack_threshold", 1 << 40),
        ("recovery", "a"),
        ("rx_paused", "y"),
        ("src", "::1"),
        ("vendor", "x" * 128),
        ("vendor", [999] * 128),
        ("vendor", 5),
    ],
)
def test_queue_pair_attributes(side, name, value):
    with pytest.raises(mrc.MrcUsageError, match=name):
        side.qp.modify(mrc.QpAttr(**{name: value}))


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.qp.post_recv([-1]),
        lambda s: s.qp.post_recv("ab"),
        lambda s: s.qp.post_recv([1 << 70]),
        lambda s: s.cq.poll("x"),
        lambda s: s.cq.poll(-1),
        lambda s: s.cq.poll(1.5),
        lambda s: s.cq.ack_events(-1),
        lambda s: s.cq.ack_events("1"),
        lambda s: mrc.CompletionQueue(s.ctx, -1),
        lambda s: mrc.CompletionQueue(s.ctx, 1 << 40),
        lambda s: mrc.CompletionQueue(s.ctx, 1.5),  # type: ignore[arg-type]
        lambda s: s.ctx.async_events.ack(-1),
        lambda s: s.ctx.async_events.ack("x"),
        lambda s: s.ctx.async_events.ack(1 << 40),
        lambda s: s.ctx.async_events.wait(NAN),
        lambda s: s.ctx.async_events.wait("1"),
        lambda s: s.ctx.turn(-1),
        lambda s: s.ctx.turn("x"),
        lambda s: s.ctx.wait(1 << 40),
        lambda s: s.ctx.wait(0.5),
        lambda s: s.ctx.disable_plane("a"),
        lambda s: s.ctx.disable_plane(1.5),
        lambda s: s.path.deny("x"),
        lambda s: s.path.deny(-1),
        lambda s: s.path.set_planes(-1, 0),
        lambda s: mrc.QpHint(s.ctx, vendor="x" * 128),  # type: ignore[arg-type]
        lambda s: mrc.QpHint(s.ctx, vendor=5),  # type: ignore[arg-type]
        lambda s: mrc.QpHint(s.ctx, incast=1.5),  # type: ignore[arg-type]
    ],
)
def test_calls(side, call):
    with pytest.raises(mrc.MrcUsageError):
        call(side)


@pytest.mark.parametrize(
    "options",
    [
        {"evs": NAN},
        {"evs": 1.5},
        {"sport_base": "x"},
        {"depth": 1.5},
        {"mpr": NAN},
        {"mtu": 4096.0},
        {"mtu": "x"},
        {"window": NAN},
        {"window": INF},
        {"train": "x"},
        {"train": 1.5},
        {"ack_timeout": 1.5},
        {"udp_port": "x"},
        {"also_udp_port": "x"},
        {"start_psn": 0.5},
        {"seed": "x"},
        {"cc": 5},
        {"cc": None},
        {"dscp": 5},
        {"dscp": "x"},
        {"ev_profile": 5},
        {"backend": 5},
        {"recovery": [1]},
        {"dynamic_mpr": "x"},
        {"timestamps": 5},
        {"service_time": "yes"},
    ],
)
def test_connection_options(options):
    with pytest.raises(mrc.MrcUsageError, match=next(iter(options))):
        ConnectionOptions(**options)
