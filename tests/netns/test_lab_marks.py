# SPDX-License-Identifier: BSD-2-Clause
"""Marks, trims and damage by the tc program: seen on the wire and by sockets, not asked of it."""

import json
import socket
import struct

import pytest

from mrc.fabric import link_states, parse_script
from mrc.lab import Fabric, FabricSpec, FabricUnavailableError
from mrc.lab.bpf import OBJECT, Bpf, PortConfig, read_object
from tests.needs import skip_or_fail

from .packets import UDP_PORT, udp_in_ipv6
from .world import lane, received

pytestmark = pytest.mark.netns

SMALL = FabricSpec(planes=1, spines=2)
TRIMMABLE = 4 << 2
ECT0 = 2


@pytest.fixture(scope="module")
def bpf(netns):
    try:
        Bpf().close()
    except FabricUnavailableError as error:
        skip_or_fail(str(error))


@pytest.fixture(scope="module")
def plain(bpf):
    with Fabric(SMALL) as fabric:
        yield fabric


def play(fabric: Fabric, script: str) -> None:
    fabric.faults.apply(link_states(parse_script(script), fabric.spec.shape))


def tell_class(sock: socket.socket) -> None:
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)


def sender(fabric: Fabric, path: int, tclass: int) -> socket.socket:
    sock = lane(fabric, path)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, tclass)
    return sock


def receiver(fabric: Fabric) -> socket.socket:
    sock = fabric.hosts[1].socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sock.bind((str(fabric.hosts[1].address), UDP_PORT))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    sock.settimeout(0.3)
    tell_class(sock)
    return sock


def arrived(sock: socket.socket) -> list[tuple[int, bytes]]:
    """(traffic class, payload) of all that came."""
    found: list[tuple[int, bytes]] = []
    while True:
        try:
            data, control, _, _ = sock.recvmsg(65536, 64)
        except TimeoutError:
            return found
        (tclass,) = (struct.unpack("=i", c[2])[0] for c in control if c[1] == socket.IPV6_TCLASS)
        found.append((tclass, data))


def test_a_cut_packet_reaches_a_udp_socket_with_its_class_and_its_headers(plain: Fabric):
    play(plain, "trim ev0=100%")
    data = bytes(range(256)) * 8
    with receiver(plain) as box, sender(plain, 0, TRIMMABLE | ECT0) as out:
        out.send(data)
        assert arrived(box) == [(12 << 2 | ECT0, data[:64])]
    play(plain, "trim ->h2.port1=100%")
    with receiver(plain) as box, sender(plain, 0, TRIMMABLE) as out:
        out.send(data)
        assert arrived(box) == [(16 << 2, data[:64])]
    play(plain, "")


def test_what_may_not_be_cut_is_not(plain: Fabric):
    play(plain, "trim all=100%")
    with receiver(plain) as box:
        for tclass, size in ((0, 2000), (46 << 2, 2000), (TRIMMABLE, 64)):
            with sender(plain, 0, tclass) as out:
                out.send(b"x" * size)
            assert arrived(box) == [(tclass, b"x" * size)]
    play(plain, "")


def test_the_checksum_of_a_cut_packet_is_right(plain: Fabric):
    """Seen by a raw receiver: outer header, inner header, UDP, 64 bytes; all lengths agree."""
    play(plain, "trim ev0=100%")
    path = plain.hosts[0].paths()[0]
    packet = udp_in_ipv6(path, bytes(range(200)))
    packet = bytes([0x60 | TRIMMABLE >> 4, (TRIMMABLE & 15) << 4]) + packet[2:]
    with (
        plain.hosts[1].socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_IPV6) as box,
        plain.hosts[0].socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_IPV6) as out,
    ):
        out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, TRIMMABLE)
        out.sendto(packet, (str(path.raw_carrier), 0))
        (inner,) = received(box, 1)
    assert len(inner) == 40 + 8 + 64
    assert struct.unpack_from("!H", inner, 4) == (8 + 64,)
    assert struct.unpack_from("!H", inner, 44) == (8 + 64,)
    assert inner[48:] == bytes(range(64))
    pseudo = inner[8:40] + struct.pack("!II", 72, 17)
    total = sum(struct.unpack(f"!{(len(pseudo) + 72) // 2}H", pseudo + inner[40:]))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    assert total == 0xFFFF
    play(plain, "")


def test_one_bit_is_flipped_behind_the_udp_header(plain: Fabric):
    play(plain, "corrupt ev1=100%")
    data = bytes(1000)
    with receiver(plain) as box, sender(plain, 1, 0) as out:
        for _ in range(50):
            out.send(data)
        found = arrived(box)
    assert len(found) == 50
    flips = [int.from_bytes(payload, "big") for _, payload in found]
    assert all(flip.bit_count() == 1 for flip in flips)
    assert len(set(flips)) > 25
    play(plain, "")
    with receiver(plain) as box, sender(plain, 1, 0) as out:
        out.send(data)
        assert arrived(box) == [(0, data)]


def test_a_share_is_a_share(plain: Fabric):
    play(plain, "corrupt ev0=50%")
    with receiver(plain) as box, sender(plain, 0, 0) as out:
        for _ in range(400):
            out.send(bytes(100))
        damaged = sum(any(payload) for _, payload in arrived(box))
    assert 130 < damaged < 270
    play(plain, "")


def burst(fabric: Fabric, tclass: int, count: int, size: int) -> list[tuple[int, bytes]]:
    """Packets at once from h1 and h2 to h3 over one spine: they meet at its port."""
    with fabric.hosts[2].socket(socket.AF_INET6, socket.SOCK_DGRAM) as box:
        box.bind((str(fabric.hosts[2].address), UDP_PORT))
        box.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        box.settimeout(0.5)
        tell_class(box)
        outs = []
        for host in fabric.hosts[:2]:
            sock = host.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, tclass)
            sock.bind((str(host.address), 49152))
            sock.connect((str(fabric.hosts[2].address), UDP_PORT))
            outs.append(sock)
        for _ in range(count):
            for sock in outs:
                sock.send(bytes(size))
        found = arrived(box)
        for sock in outs:
            sock.close()
    return found


def test_a_queue_marks_in_both_headers_but_not_towards_a_host(bpf):
    spec = FabricSpec(
        planes=1,
        spines=1,
        hosts=3,
        rate_mbit=1000,
        t1_rate_mbit=50,
        queue_bytes=300_000,
        ecn_bytes=(20_000, 60_000),
    )
    with Fabric(spec) as fabric:
        found = burst(fabric, ECT0, 60, 2000)
        marked = [tclass & 3 == 3 for tclass, _ in found]
        assert sum(marked) > 10
        assert not any(marked[:5])  # the queue was empty
        assert {tclass for tclass, _ in burst(fabric, 0, 60, 2000)} == {0}  # not ECN-capable
        counts = {way.name: c["marked"] for way, c in fabric.faults.marks().items()}
        assert counts["->h3.port1"] == 0
        assert sum(counts.values()) >= sum(marked)


def test_a_full_queue_cuts_what_it_would_have_dropped(bpf):
    spec = FabricSpec(
        planes=1, spines=1, hosts=3, rate_mbit=1000, t1_rate_mbit=50, queue_bytes=60_000, trim=True
    )
    with Fabric(spec) as fabric:
        found = burst(fabric, TRIMMABLE, 50, 4000)
        cut = [payload for tclass, payload in found if tclass >> 2 in (12, 16)]
        whole = [payload for tclass, payload in found if tclass >> 2 == 4]
        assert len(cut) + len(whole) == 100  # nothing was lost
        assert len(cut) > 20
        assert len(whole) > 10
        assert {len(payload) for payload in cut} == {64}


def test_a_cut_packet_overtakes_data(bpf):
    """It is cut when the queue is full, and would else wait as long as it takes to empty that."""
    spec = FabricSpec(
        planes=1, spines=1, hosts=3, rate_mbit=1000, t1_rate_mbit=20, queue_bytes=60_000, trim=True
    )
    with Fabric(spec) as fabric:
        found = burst(fabric, TRIMMABLE, 40, 4000)
        show = fabric.client.ask("run", ns="p1t0-1", argv=["tc", "-s", "-j", "qdisc"], text="")
    (port,) = (q for q in json.loads(show["out"]) if q["kind"] == "tbf" and q["dev"] == "spine1")
    assert port["packets"] >= 40
    assert port["bytes"] < 4200 * 40  # a cut packet takes the time of what is left of it
    order = ["cut" if tclass >> 2 in (12, 16) else "whole" for tclass, _ in found]
    behind = len(order) - order.index("cut") - order[order.index("cut") :].count("cut")
    assert behind > 10  # whole packets that were there before the first was cut
    assert order[-1] == "whole"


def test_the_object_file_has_both_programs_with_their_maps(bpf):
    programs = read_object(OBJECT.read_bytes())
    assert set(programs) == {"queue", "wire"}
    assert set(programs["queue"].maps.values()) == {"configs", "states", "counters"}
    assert len(PortConfig().packed()) == 32
    with pytest.raises(ValueError, match="ELF"):
        read_object(b"nothing")
