# SPDX-License-Identifier: BSD-2-Clause
"""What is on the wire between two programs, read by tshark and by the model of the wire format.

tshark knows nothing of us: it says whether outer header, SRH, inner header, UDP and BTH are where a
dissector expects them. The model checks the iCRC and decodes what MRC adds.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from mrc.lab import Capture, Fabric, Mode, Role, carrier, usid
from mrc.lab import Path as NetPath
from mrc.model import ip
from mrc.model.wire import Op
from tests.needs import skip_or_fail

from .packets import captured_packets
from .programs import Pair

pytestmark = pytest.mark.netns

PLANE = 2
MESSAGES = 40
SIZE = 1 << 17
WRITES = (Op.WRITE_FIRST, Op.WRITE_MIDDLE, Op.WRITE_LAST, Op.WRITE_LAST_IMM)
FIELDS = (
    "ipv6.nxt",
    "ipv6.dst",
    "ipv6.flow",
    "ipv6.routing.segleft",
    "ipv6.routing.srh.addr",
    "udp.srcport",
    "udp.dstport",
    "udp.length",
    "ipv6.plen",
    "infiniband.bth.opcode",
    "infiniband.bth.psn",
)
MODES = [
    (Mode.UDP, "udp"),
    (Mode.SRV6, "raw"),
    (Mode.SRV6_SRH, "raw"),
    (Mode.SRV6_SRH_COPY, "raw"),
]
SRH_MODES = (Mode.SRV6_SRH, Mode.SRV6_SRH_COPY)


@pytest.fixture(scope="module", params=MODES, ids=["udp", "raw-usid", "raw-srh", "raw-srh-copy"])
def captured(request, shared_fabric: Fabric, tmp_path_factory) -> tuple[Mode, Path]:
    """Every packet on the receiver's port of one plane during a short transfer."""
    mode, backend = request.param
    fabric, folder = shared_fabric, tmp_path_factory.mktemp(mode.value)
    file = folder / "plane.pcap"
    fabric.faults.single_packets()
    with (
        Pair(fabric, folder, mode, backend) as pair,
        Capture(fabric.hosts[1], f"plane{PLANE}", file) as capture,
    ):
        sent = pair.send("-n", str(MESSAGES), "-s", str(SIZE), "--depth", "4")
    assert sent.code == 0, (sent.errors, sent.stderr)
    assert capture.packets > MESSAGES
    return mode, file


def tshark(file: Path) -> list[dict[str, list[str]]]:
    """The fields of each packet, outermost occurrence first."""
    if shutil.which("tshark") is None:
        skip_or_fail("tshark is not installed")
    argv = ["tshark", "-n", "-r", str(file), "-T", "fields", "-E", "separator=|"]
    for name in (*FIELDS, "_ws.malformed"):
        argv += ["-e", name]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    names = (*FIELDS, "malformed")
    return [
        {n: v.split(",") if v else [] for n, v in zip(names, line.split("|"), strict=True)}
        for line in done.stdout.splitlines()
    ]


def paths(fabric: Fabric) -> list[NetPath]:
    """Those of the plane that is looked at."""
    return [p for p in fabric.hosts[0].paths() if p.plane == PLANE]


def test_tshark_sees_the_layers_where_they_belong(fabric: Fabric, captured: tuple[Mode, Path]):
    mode, file = captured
    inside = [str(host.address) for host in fabric.hosts]
    end = carrier(usid(Role.HOST_KERNEL if mode is Mode.UDP else Role.HOST_RAW, PLANE, 2))
    wanted = {(p.sport, 0 if mode is Mode.UDP else p.ev >> 16) for p in paths(fabric)}
    entries = {
        p.sport: p.raw_carrier if mode is Mode.SRV6_SRH_COPY else p.srh_raw_entry
        for p in paths(fabric)
    }
    seen = set()
    arrivals = [p for p in tshark(file) if p["ipv6.dst"][-1] == inside[1]]
    assert arrivals
    for packet in arrivals:
        assert packet["malformed"] == []
        assert packet["ipv6.dst"] == [str(end), inside[1]]
        assert packet["udp.dstport"] == ["4791"]
        assert int(packet["udp.length"][0]) == int(packet["ipv6.plen"][1])
        assert packet["ipv6.nxt"] == ["43" if mode in SRH_MODES else "41", "17"]
        if mode in SRH_MODES:
            assert packet["ipv6.routing.segleft"] == ["0"]
            entry = entries[int(packet["udp.srcport"][0])]
            assert packet["ipv6.routing.srh.addr"] == [str(entry)]
        assert len(packet["infiniband.bth.opcode"]) == 1
        seen.add((int(packet["udp.srcport"][0]), int(packet["ipv6.flow"][1], 0)))
    assert seen == wanted


def test_the_model_reads_every_packet(fabric: Fabric, captured: tuple[Mode, Path]):
    """iCRC, opcodes, addresses within a message; answers on the way back."""
    mode, file = captured
    frames = [ip.decode(data) for data in captured_packets(file)]
    writes = [f for f in frames if f.packet.bth.opcode in WRITES]
    answers = [f for f in frames if f.packet.bth.opcode == Op.SACK]
    assert writes
    assert answers
    for frame in writes:
        assert frame.outer is not None
        assert (frame.srh is not None) == (mode in SRH_MODES)
        assert frame.packet.reth is not None
        assert frame.packet.reth.dmalen == SIZE
    sent = {f.entropy for f in writes}
    back = {f.packet.seth.entropy for f in answers if f.packet.seth is not None}
    known = {p.sport if mode is Mode.UDP else p.ev for p in fabric.hosts[0].paths()}
    assert sent <= known
    assert back <= known
