# SPDX-License-Identifier: BSD-2-Clause
"""Marks that a switch makes in the outer header reach the sender's count (A.13.1, RFC 6040)."""

import shutil
import subprocess
from pathlib import Path

import pytest

from mrc.lab import Capture, Fabric, Mode, spine_of
from mrc.lab.config import t1_ns
from mrc.model import ip
from tests.needs import skip_or_fail

from .packets import captured_packets
from .programs import Pair

pytestmark = pytest.mark.netns

MARKED = 5
"""Index of the path whose spine marks."""
ECT0, CE = 2, 3
RULE = """
add table netdev congestion
add chain netdev congestion enter { type filter hook ingress device "t0-1" priority 0; }
add rule netdev congestion enter ip6 nexthdr { 41, 43 } ip6 ecn ect0 ip6 ecn set ce
"""


@pytest.fixture
def congested(fabric: Fabric):
    """One spine marks every packet from host 1, in the only header a switch looks at."""
    if shutil.which("nft") is None:
        skip_or_fail("nft is not installed")
    ns = t1_ns(*spine_of(fabric.hosts[0].paths()[MARKED]))
    nft = fabric.command(ns, ["nft", "-f", "-"])
    done = subprocess.run(nft, input=RULE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        skip_or_fail(f"no marks in packets by nft here: {done.stderr}")
    yield
    subprocess.run(nft, input="delete table netdev congestion", text=True, check=True)


@pytest.mark.usefixtures("congested")
@pytest.mark.parametrize(
    "mode",
    [Mode.SRV6, Mode.SRV6_SRH, Mode.SRV6_SRH_COPY],
    ids=["raw-usid", "raw-srh", "raw-srh-copy"],
)
def test_a_mark_in_the_outer_header_counts(fabric: Fabric, tmp_path: Path, mode: Mode):
    """Field report 68. The inner header arrives as it was sent; all the same the sender hears."""
    path = fabric.hosts[0].paths()[MARKED]
    file = tmp_path / "plane.pcap"
    with (
        Pair(fabric, tmp_path, mode, "raw") as pair,
        Capture(fabric.hosts[1], f"plane{path.plane}", file),
    ):
        transfer = pair.send("-n", "200", "-s", "128K", "--depth", "4")
    assert transfer.code == 0, (transfer.errors, transfer.stderr)
    assert transfer.end["verified"] is True
    frames = [ip.decode(data) for data in captured_packets(file)]
    seen = {(f.outer.ecn, f.ip.ecn) for f in frames if f.outer and f.entropy == path.ev}
    assert (CE, ECT0) in seen
    assert (CE, CE) not in seen
    for p in transfer.end["paths"]:
        if p["ev"] == path.ev:
            assert p["ecn_marks"] >= 0.9 * p["packets_sent"] > 0
        else:
            assert p["ecn_marks"] == 0
