# SPDX-License-Identifier: BSD-2-Clause
"""Hosts with a NIC and an address for each plane: no SRv6, one subnet a plane (C.4)."""

import time
from pathlib import Path

import pytest

from .links import PLANES, Links, finish, sent, start

pytestmark = pytest.mark.netns

CUT = 3
SPREAD = (0.9, 1.1)


@pytest.mark.parametrize("backend", ["udp", "raw"])
def test_planes_share_and_a_dead_link_costs_its_plane_alone(
    links: Links, tmp_path: Path, backend: str
):
    receiver, running = start(links, tmp_path / "first", backend, "-t", "1")
    by_plane = sent(finish(receiver, running).end["paths"])
    mean = sum(by_plane.values()) / len(by_plane)
    assert all(SPREAD[0] <= n / mean <= SPREAD[1] for n in by_plane.values()), by_plane

    receiver, running = start(links, tmp_path / "second", backend, "-t", "4")
    running.wait_flowing()
    time.sleep(0.5)
    links.ip(1, "link", "set", f"p{CUT}", "down")
    time.sleep(1.0)
    during = running.transfer.intervals[-1]
    links.ip(1, "link", "set", f"p{CUT}", "up")
    transfer = finish(receiver, running)
    assert during["sum"]["bytes"] > 0
    assert sent(during["paths"])[CUT] == 0
    last = sent(transfer.intervals[-1]["paths"])
    assert all(last[plane] > 0 for plane in PLANES), last
    events = transfer.end["mrc"]["ev_events"]
    assert CUT in {e["plane"] for e in events if e["to"] == "ASSUMED_BAD"}, events
