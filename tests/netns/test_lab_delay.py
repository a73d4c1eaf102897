# SPDX-License-Identifier: BSD-2-Clause
"""Delay without netem: how long packets take, that each comes once, that checksums survive."""

import socket
import statistics
import time

import pytest

from mrc.fabric import link_states, parse_script
from mrc.lab import Fabric, FabricSpec, why_unavailable
from mrc.lab.check import check_paths
from tests.needs import skip_or_fail

from .packets import udp_in_ipv6
from .world import inbox, lane, received

pytestmark = pytest.mark.netns

SPEC = FabricSpec(planes=2, spines=2)


@pytest.fixture(scope="module", params=[None, True], ids=["as started", "user namespace"])
def delayed(netns, request):
    if request.param and (error := why_unavailable(userns=True)):
        skip_or_fail(str(error))
    with Fabric(SPEC, userns=request.param) as built:
        yield built


def play(fabric: Fabric, script: str) -> None:
    fabric.faults.apply(link_states(parse_script(script), SPEC.shape))


def took_ms(fabric: Fabric, path: int, count: int = 15) -> float:
    """The median: the machine is never faster than the delay, sometimes slower."""
    times = []
    with inbox(fabric) as box, lane(fabric, path) as out:
        for number in range(count):
            begin = time.monotonic()
            out.send(number.to_bytes(4, "big") * 500)
            assert box.recv(65536) == number.to_bytes(4, "big") * 500
            times.append((time.monotonic() - begin) * 1e3)
        assert received(box) == []  # nothing came twice
    return statistics.median(times)


def test_a_path_takes_longer_and_no_other(delayed: Fabric):
    play(delayed, "delay ev0=5ms")
    assert took_ms(delayed, 0) >= 5.0
    assert took_ms(delayed, 1) < 5.0
    play(delayed, "delay ev0=20ms; delay ev0=5ms")
    assert took_ms(delayed, 0) >= 25.0
    play(delayed, "")
    assert took_ms(delayed, 0) < 5.0


def test_what_is_lost_on_a_slow_link_is_lost_once(delayed: Fabric):
    play(delayed, "delay ev0=1ms; loss ev0=50%")
    with inbox(delayed) as box, lane(delayed, 0) as out:
        for _ in range(200):
            out.send(b"x" * 100)
        assert 60 < len(received(box)) < 140
    play(delayed, "delay ev0=1ms; fail ev0")
    with inbox(delayed) as box, lane(delayed, 0) as out:
        out.send(b"x")
        assert received(box) == []
    play(delayed, "")


def test_trains_are_cut_up_and_arrive_whole(delayed: Fabric):
    play(delayed, "delay ev0=1ms")
    with inbox(delayed) as box, lane(delayed, 0) as out:
        out.setsockopt(socket.IPPROTO_UDP, 103, 1000)  # UDP_SEGMENT
        data = b"".join(bytes([n]) * 1000 for n in range(20))
        out.send(data)
        assert received(box, 20) == [bytes([n]) * 1000 for n in range(20)]
    play(delayed, "")


def test_raw_packets_are_kept_too(delayed: Fabric):
    play(delayed, "delay ev0=1ms")
    path = delayed.hosts[0].paths()[0]
    packet = udp_in_ipv6(path, b"hello")
    with (
        inbox(delayed, socket.SOCK_RAW, socket.IPPROTO_IPV6) as box,
        delayed.hosts[0].socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_IPV6) as out,
    ):
        out.sendto(packet, (str(path.raw_carrier), 0))
        assert received(box, 1) == [packet]
    play(delayed, "")


def test_a_fabric_may_be_slow_from_the_beginning(netns):
    with Fabric(FabricSpec(planes=1, spines=2, delay_ns=2_000_000)) as slow:
        assert took_ms(slow, 1) >= 4.0  # up to the spine and down again
        slow.faults.cut((1, 1))
        assert [r.path.index for r in check_paths(slow, timeout_s=0.2) if r.arrived] == [1]
        slow.faults.clear()
        assert took_ms(slow, 0) >= 4.0
