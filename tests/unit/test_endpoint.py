# SPDX-License-Identifier: BSD-2-Clause
"""Endpoint operations without asyncio: against the model on a real socket, and their arguments."""

from __future__ import annotations

import socket
from ipaddress import IPv6Address

import pytest

import mrc
from mrc.model import ip, wire

LOOPBACK = int(IPv6Address("::1"))
ALL = 0xFFFFFFFE
PLANE_2 = 1 << 2


def transport(packet, sport, dport):
    """BTH to iCRC of a packet from ::1 to ::1, as the model says."""
    frame = ip.Frame(ip.Ipv6(src=LOOPBACK, dst=LOOPBACK), ip.Udp(dport=dport), packet)
    return ip.encode(ip.completed(ip.with_entropy(frame, sport)))[48:]


def request(op, number, **fields):
    """An endpoint request."""
    bth = wire.Bth(opcode=wire.Op.EP_REQ, dqp=2, psn=number)
    return wire.completed(wire.Packet(bth, erth=wire.Erth(op=op, **fields)))


@pytest.fixture
def stranger():
    """A UDP socket on ::1 that is no MRC program."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        sock.bind(("::1", 0))
        yield sock


def turn_until(ctx, condition):
    for _ in range(1000):
        if condition():
            return
        ctx.wait(10)
    raise AssertionError("not within ten seconds")


def nothing_comes(ctx, sock):
    for _ in range(3):
        ctx.turn()
    sock.setblocking(False)
    with pytest.raises(BlockingIOError):
        sock.recv(2000)
    sock.settimeout(5)


def test_a_stranger_gets_nothing_and_a_known_node_its_answer(context, stranger):
    port = mrc.Port(context, addr="::1", udp_port=14791, udp_port_tries=500)
    here = stranger.getsockname()[1]
    probe = transport(request(1, 0xFEDC, tx_timestamp=0xBEEF), here, port.udp_port)
    stranger.sendto(probe, ("::1", port.udp_port))
    turn_until(context, lambda: context.drops()["ep_unknown"] == 1)
    nothing_comes(context, stranger)

    profile = mrc.EvProfile.udp(4, sport_base=50100, planes=2)
    table = mrc.PathTable(port, profile, IPv6Address("::1"), here, src=IPv6Address("::1"))
    stranger.sendto(probe, ("::1", port.udp_port))
    stranger.settimeout(0)

    answers = []

    def answered():
        try:
            answers.append(stranger.recvfrom(2000))
        except BlockingIOError:
            return False
        return True

    turn_until(context, answered)
    data, (_, sport, *_) = answers[0]
    packet = wire.decode(data)
    assert (packet.bth.opcode, packet.bth.dqp, packet.bth.psn) == (wire.Op.EP_RSP, 2, 0xFEDC)
    assert packet.eeth is not None
    assert (packet.eeth.op, packet.eeth.tx_timestamp) == (1, 0xBEEF)
    assert data == transport(packet, sport, here)
    assert sport in {e.source_port for e in profile}  # none has the EV it came on

    status = request(0, 7, port_status_mask=ALL & ~PLANE_2)
    stranger.sendto(transport(status, here, port.udp_port), ("::1", port.udp_port))
    turn_until(context, lambda: not table.planes().remote_up & PLANE_2)
    turn_until(context, answered)
    table.close()


def test_a_port_status_from_a_stranger_changes_nothing(context, stranger):
    port = mrc.Port(context, addr="::1", udp_port=14791, udp_port_tries=500)
    profile = mrc.EvProfile.udp(2, sport_base=50200)
    table = mrc.PathTable(port, profile, IPv6Address("fd00::9"), 4791, src=IPv6Address("::1"))
    packet = transport(request(0, 7, port_status_mask=0), stranger.getsockname()[1], port.udp_port)
    stranger.sendto(packet, ("::1", port.udp_port))
    turn_until(context, lambda: context.drops()["ep_unknown"] == 1)
    assert table.planes().remote_up == ALL
    nothing_comes(context, stranger)


def test_probes_and_planes_without_asyncio(sides):
    a, b = sides
    evs = [s.ev for s in a.path.stats()]
    ids = a.ctx.endpoint.post(a.path.number, evs, timeout_ns=5_000_000_000)
    results = {}

    def over():
        b.ctx.turn()
        results.update(a.ctx.endpoint.poll())
        return len(results) == len(ids)

    turn_until(a.ctx, over)
    assert [results[i].ev for i in ids] == evs
    assert all(r.rtt_ns is not None for r in results.values())

    a.ctx.disable_plane(2)

    def told():
        b.ctx.turn()
        return not a.path.planes().pending

    turn_until(a.ctx, told)
    assert b.path.planes() == mrc.PathPlanes(ALL, ALL & ~PLANE_2, ALL, pending=False)
    assert a.path.planes() == mrc.PathPlanes(ALL & ~PLANE_2, ALL, ALL & ~PLANE_2, pending=False)


def test_a_turn_says_that_results_wait(sides):
    a, _ = sides
    a.ctx.endpoint.post(a.path.number, [a.path.stats()[0].ev], timeout_ns=1)
    flags = mrc.TurnFlags.NONE
    for _ in range(1000):
        flags = a.ctx.wait(10)
        if flags & mrc.TurnFlags.EP:
            break
    assert flags & mrc.TurnFlags.EP
    assert [r.rtt_ns for _, r in a.ctx.endpoint.poll()] == [None]


def test_arguments(sides, raises_with):
    endpoint, number = sides[0].ctx.endpoint, sides[0].path.number
    ev = sides[0].path.stats()[0].ev
    for timeout_ns in (0, -1, 60_000_000_001):
        with raises_with(mrc.MrcUsageError, "timeout"):
            endpoint.post(number, [ev], timeout_ns=timeout_ns)
    for dscp in (-1, 64, 256):
        with raises_with(mrc.MrcUsageError, "DSCP"):
            endpoint.post(number, [ev], timeout_ns=1, dscp=dscp)
    with raises_with(mrc.MrcUsageError, "EV probe"):
        endpoint.post(number, [ev ^ 0x8000], timeout_ns=1)
    with raises_with(mrc.MrcUsageError, "EV probe"):
        endpoint.post(99, [ev], timeout_ns=1)
    for plane in (0, 32, -1):
        with raises_with(mrc.MrcUsageError, "plane"):
            endpoint.set_plane(plane, up=False)
    assert endpoint.post(number, [], timeout_ns=1) == []


def test_probes_are_bounded(sides):
    """The pool takes as many as it has room for and says so; ids of a batch are not used twice."""
    endpoint, number = sides[0].ctx.endpoint, sides[0].path.number
    ev = sides[0].path.stats()[0].ev
    first = endpoint.post(number, [ev] * 1000, timeout_ns=60_000_000_000)
    assert 0 < len(first) < 1000
    assert endpoint.post(number, [ev], timeout_ns=1) == []


def test_ids_rest_before_they_are_used_again(sides, raises_with):
    endpoint, number = sides[0].ctx.endpoint, sides[0].path.number
    ev = sides[0].path.stats()[0].ev
    endpoint._next_id = 0xEFFF
    assert endpoint.post(number, [ev] * 2, timeout_ns=1_000_000) == [0xEFFF, 0]
    endpoint._next_id = 0xEFFF
    with raises_with(mrc.MrcResourceError, "ids"):
        endpoint.post(number, [ev] * 2, timeout_ns=1)
