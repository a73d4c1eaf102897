# SPDX-License-Identifier: BSD-2-Clause
"""Every kind of packet on the wire between real sockets, read by tshark and by the scapy layers.

The test makes its captures itself: two programs (talk.py) in two hosts, loss on the way so that
there are retransmissions and probes, every traffic class with a number of its own (A.13.5).
"""

import contextlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mrc import scapy_layers as layers
from mrc.lab import Capture, Fabric, Mode
from tests.needs import skip_or_fail

from .packets import captured_packets
from .talk import PORT
from .world import wait_for

inet6 = pytest.importorskip("scapy.layers.inet6")
pytestmark = pytest.mark.netns

CLASSES = "no-trim=1,trimmable=10,trimmable-retx=11,trimmed=13,trimmed-lasthop=14,control=48"
NO_TRIM, DATA, RETX, CONTROL = 1, 10, 11, 48
ECT0, NOT_ECT = 2, 0
WRITES = {
    "WRITE_FIRST",
    "WRITE_MIDDLE",
    "WRITE_LAST",
    "WRITE_LAST_IMM",
    "WRITE_ONLY",
    "WRITE_ONLY_IMM",
}
KINDS = WRITES | {"ACK", "SACK", "NACK", "PROBE", "EP_REQ", "EP_RSP"}
CASES = [
    (Mode.UDP, "udp", False),
    (Mode.SRV6, "raw", False),
    (Mode.SRV6, "raw", True),
    (Mode.SRV6_SRH, "raw", True),
]
FIELDS = ("opcode", "padcnt", "tver", "p_key", "destqp", "a", "psn")  # of tshark's infiniband.bth


class Captured:
    """What a run of both programs left: the captured packets that are MRC, for each file."""

    def __init__(self, mode: Mode, backend: str, files: list[Path], *, stamped: bool) -> None:
        self.mode, self.backend, self.stamped = mode, backend, stamped
        self.by_file = {f: [inet6.IPv6(data) for data in captured_packets(f)] for f in files}
        for file, found in self.by_file.items():
            self.by_file[file] = [p for p in found if layers.MrcBTH in p]

    def packets(self):
        return [p for found in self.by_file.values() for p in found]

    def named(self, name: str):
        return [p for p in self.packets() if kind(p) == name]


def kind(packet) -> str:
    return str(packet.sprintf("%MrcBTH.opcode%"))


def inner(packet):
    return packet[layers.MrcBTH].underlayer.underlayer


def talk(fabric: Fabric, host: int, role: str, options: dict[str, object]):
    argv = [sys.executable, "-m", "tests.netns.talk", role, str(fabric.hosts[1].address)]
    pipe = subprocess.PIPE
    return fabric.hosts[host].exec(
        [*argv, json.dumps(options)], stdout=pipe, stderr=subprocess.STDOUT, text=True
    )


@pytest.fixture(
    scope="module", params=CASES, ids=["udp", "raw-usid", "raw-usid-stamped", "raw-srh-stamped"]
)
def captured(request, shared_fabric: Fabric, tmp_path_factory) -> Captured:
    mode, backend, stamped = request.param
    fabric, folder = shared_fabric, tmp_path_factory.mktemp(mode.value)
    options = [
        {
            "backend": backend,
            "ev_profile": str(host.write_profile(folder / f"{host.index}.toml", mode)),
            "dscp": CLASSES,
            "timestamps": stamped,
        }
        for host in fabric.hosts
    ]
    fabric.faults.single_packets()
    fabric.faults.loss(0.03)
    files = [folder / f"plane{p}.pcap" for p in range(1, fabric.spec.planes + 1)]
    server = talk(fabric, 1, "listen", options[1])
    try:
        wait_for(lambda: fabric.hosts[1].listens(PORT) or server.poll() is not None, "talk listens")
        with contextlib.ExitStack() as stack:
            for file in files:
                stack.enter_context(Capture(fabric.hosts[1], file.stem, file))
            client = talk(fabric, 0, "dial", options[0])
            said, _ = client.communicate(timeout=90)
    finally:
        server.kill()
        heard, _ = server.communicate()
        fabric.faults.clear()
    assert client.returncode == 0, f"{said}\n{heard}"
    return Captured(mode, backend, files, stamped=stamped)


def test_every_kind_is_there_and_whole(captured: Captured):
    seen: dict[str, int] = {}
    for packet in captured.packets():
        bth = packet[layers.MrcBTH]
        assert bth.icrc_ok()
        assert (bth.p_key, bth.m, bth.tver, bth.r, bth.inv_res) == (0xFFFF, 0, 0, 0, 0)
        seen[kind(packet)] = seen.get(kind(packet), 0) + 1
    assert set(seen) == KINDS


def test_writes_have_a_timestamp_when_asked_for(captured: Captured):
    for packet in captured.packets():
        if kind(packet) in WRITES:
            assert packet[layers.MrcBTH].ts == captured.stamped
            assert (layers.TSETH in packet) == captured.stamped


def test_outer_headers(captured: Captured):
    """In front of them: nothing of ours, a uSID carrier, or a carrier and an SRH (A.1)."""
    for packet in captured.packets():
        headers = [layer for layer in packet.layers() if layer is inet6.IPv6]
        assert len(headers) == 2  # the kernel encapsulates what we do not
        srh = captured.mode is Mode.SRV6_SRH
        assert packet.haslayer(inet6.IPv6ExtHdrSegmentRouting) == srh
        if captured.backend == "raw":
            assert (packet.tc & 0xFC, packet.fl) == (inner(packet).tc & 0xFC, inner(packet).fl)
            assert packet[inet6.UDP].chksum == 0  # H37
        else:
            assert packet[inet6.UDP].chksum != 0


def test_classes_and_ecn(captured: Captured):
    """A.13.5: each class under its number. A udp port sees no trimmed packets, so NO_TRIM."""
    trims = captured.backend == "raw"
    first, again = (DATA, RETX) if trims else (NO_TRIM, NO_TRIM)
    classes: dict[str, set[tuple[int, int]]] = {}
    for packet in captured.packets():
        name = kind(packet)
        retransmission = name in WRITES and packet[layers.MrcBTH].rtx
        key = "again" if retransmission else "write" if name in WRITES else name
        tclass = inner(packet).tc
        classes.setdefault(key, set()).add((tclass >> 2, tclass & 3))
    assert classes.pop("write") == {(first, ECT0)}
    assert classes.pop("again") == {(again, ECT0)}
    assert classes.pop("PROBE") <= {(first, ECT0), (CONTROL, ECT0), (CONTROL, NOT_ECT)}
    for name, found in classes.items():
        assert found == {(CONTROL, NOT_ECT)}, name


def test_answers_say_what_they_should(captured: Captured):
    assert {p[layers.MrcAETH].syndrome for p in captured.named("ACK")} == {0x1F, 0x62}
    assert 0x0A in {p[layers.NETH].nack_reason for p in captured.named("NACK")}
    assert {p[layers.NETH].cc_type for p in captured.named("NACK")} == {2}
    asked = {p[layers.PETH].probe_id for p in captured.named("PROBE")}
    answered = {p[layers.SETH].probe_id for p in captured.named("SACK") if p[layers.SETH].pr}
    assert answered
    assert answered <= asked
    ids = {p[layers.MrcBTH].psn for p in captured.named("EP_REQ")}
    assert {p[layers.MrcBTH].psn for p in captured.named("EP_RSP")} <= ids
    assert {p[layers.MrcBTH].dqp for p in captured.named("EP_REQ")} == {2}
    evs = {layers.entropy(p) for p in captured.packets() if kind(p) in WRITES}
    assert {p[layers.NETH].entropy for p in captured.named("NACK")} <= evs


def tshark_bth(file: Path) -> list[tuple[int, ...]]:
    """BTH as tshark has it, which knows nothing of us."""
    if shutil.which("tshark") is None:
        skip_or_fail("tshark is not installed")
    argv = ["tshark", "-n", "-r", str(file), "-T", "fields", "-E", "separator=|"]
    for name in FIELDS:
        argv += ["-e", f"infiniband.bth.{name}"]
    done = subprocess.run(
        [*argv, "-e", "_ws.malformed"], capture_output=True, text=True, check=True
    )
    found = []
    for line in done.stdout.splitlines():
        *values, malformed = line.split("|")
        if values[0]:
            assert not malformed
            found.append(tuple(int(v in {"1", "True"}) if v in {"True", "False"} else int(v, 0)
                               for v in values))  # fmt: skip
    return found


def test_tshark_and_scapy_read_the_same_bth(captured: Captured):
    for file, packets in captured.by_file.items():
        bths = [p[layers.MrcBTH] for p in packets]
        ours = [(b.opcode, b.pad, b.tver, b.p_key, b.dqp, b.a, b.psn) for b in bths]
        assert tshark_bth(file) == ours
