# SPDX-License-Identifier: BSD-2-Clause
"""The fabric itself: paths lead where they should, faults are what they say, nothing is left."""

import socket
import time

import pytest

from mrc.lab import Fabric, FabricSpec, Mode, spine_of
from mrc.lab.check import check_paths

from .packets import ipv6, outer_source, srh, udp_in_ipv6
from .world import WAIT_S, inbox, lane, received

pytestmark = pytest.mark.netns


# ---- paths ---------------------------------------------------------------------------------------


def test_every_path_crosses_its_own_spine_and_no_other(fabric: Fabric):
    for src, dst in ((0, 1), (1, 0)):
        results = check_paths(fabric, src, dst)
        assert len(results) == 16
        assert len({spine_of(r.path) for r in results}) == 16
        assert [r for r in results if not r.ok] == []


def test_a_full_size_datagram_fits_the_path(fabric: Fabric):
    mtu = fabric.spec.mtu - 40 - 40 - 8  # outer header, inner header, UDP
    assert [r for r in check_paths(fabric, size=mtu) if not r.ok] == []


def test_three_hosts_reach_each_other(netns):
    with Fabric(FabricSpec(planes=2, spines=1, hosts=3)) as three:
        for src, dst in ((0, 2), (2, 1), (1, 0)):
            assert [r for r in check_paths(three, src, dst) if not r.ok] == []


def test_tcp_takes_the_management_network_and_survives_any_cut(fabric: Fabric):
    spines = list(fabric.spine_counters())
    fabric.faults.cut(*spines)
    before = fabric.spine_counters()
    sender, receiver = fabric.hosts
    with receiver.socket(socket.AF_INET6, socket.SOCK_STREAM) as server:
        server.bind((str(receiver.address), 0))
        server.listen()
        with sender.socket(socket.AF_INET6, socket.SOCK_STREAM) as client:
            client.settimeout(WAIT_S)
            client.connect(server.getsockname())
    assert fabric.spine_counters() == before


def test_udp_from_any_other_port_crosses_the_fabric_too(fabric: Fabric):
    before = fabric.spine_counters()
    with inbox(fabric) as box, fabric.hosts[0].socket(socket.AF_INET6, socket.SOCK_DGRAM) as out:
        out.sendto(b"x", box.getsockname())
        assert received(box, 1) == [b"x"]
    after = fabric.spine_counters()
    assert [k for k in after if (after[k] - before[k]).rx[0].packets] == [(1, 1)]


@pytest.mark.parametrize(
    ("name", "proto"), [("usid", 41), ("extend", 43), ("copy", 43)], ids=["usid", "srh", "srh-copy"]
)
def test_raw_packets_arrive_as_sent_by_every_path(fabric: Fabric, name: str, proto: int):
    """MRC A.13.1 and A.13.2, forwarded by the kernel's uN; what a raw receiver then sees."""
    sender = fabric.hosts[0]
    with (
        inbox(fabric, socket.SOCK_RAW, proto) as box,
        inbox(fabric) as udp,
        sender.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW) as out,
    ):
        for path in sender.paths():
            inner = udp_in_ipv6(path, b"hello")
            destination = path.srh_carrier if name == "extend" else path.raw_carrier
            head = {
                "usid": b"",
                "extend": srh(path.srh_raw_entry.packed, 1),
                "copy": srh(path.raw_carrier.packed, 0),
            }[name]
            before = fabric.spine_counters()
            packet = ipv6(proto, outer_source(path), destination.packed, head + inner)
            out.sendto(packet, (str(destination), 0))
            arrived = srh(path.srh_raw_entry.packed, 0) if name == "extend" else head
            box.settimeout(WAIT_S)
            # the hop limit of the inner header is the sender's: no switch touched it
            assert box.recv(4096) == arrived + inner
            after = fabric.spine_counters()
            crossed = [k for k in after if (after[k] - before[k]).rx[0].packets]
            assert crossed == [spine_of(path)]
        assert received(udp) == []


@pytest.mark.parametrize("name", ["usid", "extend", "copy"])
def test_the_kernel_carrier_is_unpacked_for_udp_sockets(fabric: Fabric, name: str):
    sender = fabric.hosts[0]
    path = sender.paths()[5]
    destination = path.srh_carrier if name == "extend" else path.kernel_carrier
    head = {
        "usid": b"",
        "extend": srh(path.srh_kernel_entry.packed, 1),
        "copy": srh(path.kernel_carrier.packed, 0),
    }[name]
    packet = ipv6(
        43 if head else 41,
        outer_source(path),
        destination.packed,
        head + udp_in_ipv6(path, b"hello"),
    )
    with (
        inbox(fabric) as box,
        sender.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW) as out,
    ):
        out.sendto(packet, (str(destination), 0))
        assert received(box, 1) == [b"hello"]


# ---- faults --------------------------------------------------------------------------------------


def test_a_cut_is_silent_and_heals(fabric: Fabric):
    path = fabric.hosts[0].paths()[6]
    with inbox(fabric) as box, lane(fabric, 6) as out, lane(fabric, 7) as other:
        out.send(b"before")
        assert received(box, 1) == [b"before"]
        fabric.faults.cut(spine_of(path))
        for _ in range(20):
            out.send(b"lost")  # an ICMP error would make a later send fail
        other.send(b"elsewhere")
        assert received(box, 1) == [b"elsewhere"]
        assert out.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        before = fabric.spine_counters()[spine_of(path)]
        out.send(b"lost")
        moved = fabric.spine_counters()[spine_of(path)] - before
        assert moved.rx[0].packets == 1
        assert moved.tx[1].packets == 0
        fabric.faults.heal(spine_of(path))
        out.send(b"after")
        assert received(box, 1) == [b"after"]


def test_loss_has_the_rate_asked_for(fabric: Fabric):
    """2000 packets at 20 %: 400 lost, standard deviation 18; the bounds are eight of those."""
    count, probability, bound = 2000, 0.2, 8
    fabric.faults.loss(probability)
    got = 0
    with inbox(fabric) as box:
        lanes = [lane(fabric, i) for i in range(16)]
        for i in range(count):
            lanes[i % 16].send(b"x")
            if i % 100 == 99:
                got += len(received(box, quiet_s=0.3 if i == count - 1 else 0.01))
        for sock in lanes:
            sock.close()
        fabric.faults.loss(0.0)
        sigma = (count * probability * (1 - probability)) ** 0.5
        assert abs(count - got - count * probability) < bound * sigma
        assert [r for r in check_paths_without_inbox(fabric, box) if not r] == []


def check_paths_without_inbox(fabric: Fabric, box: socket.socket) -> list[bool]:
    """After the loss has ended each path delivers again."""
    found = []
    for i in range(16):
        with lane(fabric, i) as out:
            out.send(b"x")
        found.append(received(box, 1) == [b"x"])
    return found


def test_loss_on_one_path_leaves_the_others_alone(fabric: Fabric):
    path = fabric.hosts[0].paths()[3]
    fabric.faults.loss(1.0, [spine_of(path)])
    assert [r.path.index for r in check_paths(fabric, timeout_s=0.2) if not r.arrived] == [3]


def test_loss_hits_packets_not_trains(fabric: Fabric):
    """A GSO train of 40 packets loses some of them; as one unit it would lose all or none."""
    udp_segment = 103
    fabric.faults.loss(0.5, [(1, 1)])
    with inbox(fabric) as box, lane(fabric, 0) as out:
        out.setsockopt(socket.IPPROTO_UDP, udp_segment, 1000)
        out.send(b"x" * 40000)
        got = received(box, quiet_s=0.3)
    assert {len(p) for p in got} == {1000}
    assert 0 < len(got) < 40


def test_a_rate_is_kept(netns):
    """3 MB over one 100 Mbit/s path need 240 ms; the bucket and the queue hide a little of that."""
    slow = Fabric(FabricSpec(planes=1, spines=1, rate_mbit=100))
    with slow, inbox(slow) as box, lane(slow, 0) as out:
        box.settimeout(WAIT_S)
        start = time.monotonic()
        sent = 0
        while sent < 3_000_000:
            sent += out.send(b"x" * 8000)
            box.recv(65536)  # one at a time, so that no queue overflows
        assert time.monotonic() - start > 0.2


def test_a_link_that_goes_down_is_reported_and_comes_back(fabric: Fabric):
    """The opposite of a cut: the switch before the link says so, in an ICMPv6 error."""
    path = fabric.hosts[0].paths()[0]
    unreachable = 1
    with fabric.hosts[0].socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as icmp:
        fabric.faults.link_down(path.plane, host=0, spine=path.spine)
        with lane(fabric, 0) as out:
            out.send(b"x")
        icmp.settimeout(WAIT_S)
        assert icmp.recv(2048)[0] == unreachable
        fabric.faults.link_up(path.plane, host=0, spine=path.spine)
    assert [r for r in check_paths(fabric) if not r.ok] == []


def test_a_port_without_carrier_takes_its_plane_away(fabric: Fabric):
    fabric.faults.link_down(2, host=1)
    lost = [r.path.plane for r in check_paths(fabric, timeout_s=0.2) if not r.arrived]
    assert lost == [2] * 4
    shown = ["ip", "-br", "link", "show", "plane2"]
    done = fabric.hosts[1].run(shown, capture_output=True, text=True)
    assert "NO-CARRIER" in done.stdout
    fabric.faults.link_up(2, host=1)
    assert [r for r in check_paths(fabric) if not r.ok] == []


def test_profiles_are_written(fabric: Fabric, tmp_path):
    file = fabric.hosts[0].write_profile(tmp_path / "udp.toml", Mode.UDP)
    assert file.read_text().count("[[ev]]") == 16


def test_hosts_that_share_a_t0_reach_each_other_through_it_alone(netns):
    with Fabric(FabricSpec(planes=2, spines=2, hosts=4, t0=2)) as four:
        for src, dst in ((0, 1), (3, 2)):
            results = check_paths(four, src, dst)
            assert [r.path.spine for r in results] == [0, 0]
            assert [r for r in results if not r.ok] == []
        for src, dst in ((0, 2), (3, 0)):
            results = check_paths(four, src, dst)
            assert len({spine_of(r.path) for r in results}) == 4
            assert [r for r in results if not r.ok] == []


def test_a_t0_forwards_whichever_of_its_ports_is_down(netns):
    with Fabric(FabricSpec(planes=1, spines=2, hosts=3, t0=2)) as three:
        for host, spine in ((0, None), (0, 1)):  # the first port to a host, the first to a spine
            three.faults.link_down(1, host, spine)
            wanted = [r for r in check_paths(three, 1, 2) if r.path.spine != spine]
            assert wanted
            assert [r for r in wanted if not r.ok] == []
            three.faults.link_up(1, host, spine)
        assert [r for r in check_paths(three, 0, 2) if not r.ok] == []
