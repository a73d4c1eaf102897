# SPDX-License-Identifier: BSD-2-Clause
"""The exchange of C.4 in both directions: every item reaches the queue pair, or is an error."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from ipaddress import IPv6Address

import pytest

import mrc
from mrc import exchange, server
from mrc.oob import ConnectionInfo, FrameError, QpInfo, encode_frame, hello, parse_hello
from mrc.options import OptionArgs

from .conftest import LOOP_ONLY


@pytest.fixture
def lie(monkeypatch):
    """lie(**fields): our hello says something else than what is true, at one side or at both."""

    def tell(side=None, **fields):
        def changed(info):
            wanted = side is None or (side == "active") == (info.max_wimm_dest != 77)
            return hello(replace(info, **fields) if wanted else info)

        monkeypatch.setattr(exchange, "hello", changed)

    return tell


PASSIVE: OptionArgs = {"max_wimm": 77}  # how the lie knows the listening side


# ---- what was agreed is what the queue pair has --------------------------------------------


async def test_limits_cross_over(mem):
    other: OptionArgs = {"mpr": 4, "max_wimm": 40, "mtu": 512}
    pair = await mem(dynamic_mpr=False, mpr=8, max_wimm=50, b_options=other)
    a, b = pair.a.qp.query(), pair.b.qp.query()
    assert (a.path_mtu, b.path_mtu) == (512, 512)
    assert (a.mpr, a.mpr_dest) == (4, 8)
    assert (b.mpr, b.mpr_dest) == (4, 4)
    assert (a.max_wimm, a.max_wimm_dest) == (40, 50)
    assert (b.max_wimm, b.max_wimm_dest) == (40, 40)


async def test_numbers_and_keys_cross_over(ends):
    pair = await ends()
    a, b = pair.a.qp.query(), pair.b.qp.query()
    assert (a.dest_qpn, b.dest_qpn) == (pair.b.qp.qpn, pair.a.qp.qpn)
    assert (a.sq_psn, b.sq_psn) == (b.rq_psn, a.rq_psn)
    assert (a.dst, b.dst) == (b.src, a.src)
    assert a.version == b.version == 1
    target = bytearray(8)
    local, remote = await pair.regions(bytearray(b"rkey, va"), target)
    await pair.a.write(local, remote, timeout=5)
    assert target == b"rkey, va"


@pytest.mark.parametrize("theirs", [(1, 2), (1,), (2, 5), ()])
async def test_addresses_of_planes_cross_over(mem, theirs):
    """Who has one in a plane only uses it there, and is known by it; the other way as well."""
    here = {n: f"fd00:{n}::1" for n in (1, 2)}
    there = {n: f"fd00:{n}::2" for n in theirs}
    pair = await mem(
        plane_addresses=here, b_options={"plane_addresses": there}, cc="fixed", window=1 << 20
    )
    for told, given in ((pair.b.peer, here), (pair.a.peer, there)):
        assert {n: str(a) for n, a in told.plane_addresses} == given
    for end, other in ((pair.a, pair.b), (pair.b, pair.a)):
        source, target = bytearray(range(256)) * 256, bytearray(65536)
        other.advertise("t", other.register(target))
        remote = await end.remote_region("t", timeout=5)
        await end.write(end.register(source), remote, timeout=10)
        assert target == source
        assert all(end.drops()[name] == 0 for name in ("peer", "icrc", "ep_unknown"))
        results = await end.probe_paths(timeout=2.0)
        assert all(r.rtt_ns is not None for r in results)
        assert end.stats().timeouts == 0


async def test_start_psns_are_random(mem):
    seen = set()
    for _ in range(4):
        pair = await mem()
        seen |= {pair.a.qp.query("sq_psn").sq_psn, pair.b.qp.query("sq_psn").sq_psn}
    assert len(seen) == 8


@pytest.mark.parametrize("here", [False, True])
@pytest.mark.parametrize("there", [False, True])
async def test_dynamic_mpr_needs_both(mem, here, there):
    pair = await mem(dynamic_mpr=here, b_options={"dynamic_mpr": there})
    for end in (pair.a, pair.b):
        on = mrc.QpCap.DYNAMIC_MPR in end.qp.query("cap").cap
        assert on is (here and there)
        if not on:
            with pytest.raises(mrc.MrcUsageError):
                end.qp.modify(mrc.QpAttr(mpr_dest=8))


@LOOP_ONLY  # looks between turns, and must see the window full
async def test_dynamic_mpr_changes_what_the_peer_may_send(mem):
    """B.12: the window shrinks and grows beyond where it began, and the peer keeps to it."""
    pair = await mem(dynamic_mpr=True, mpr=2, mpr_max=32, depth=12, cc="fixed", window=1 << 30)
    local, remote = await pair.regions(bytearray(1 << 20), bytearray(1 << 20))
    for units in (2, 32, 1):
        pair.b.qp.modify(mrc.QpAttr(mpr_dest=units))
        await pair.a.write(local, remote, length=10, timeout=10)  # its answer carries the news
        futures = [pair.a.write_nowait(local, remote) for _ in range(12)]  # more than a turn
        most = 0
        while not all(f.done() for f in futures):
            await asyncio.sleep(0)
            most = max(most, pair.a.stats().outstanding)
        assert most <= units * 128
        assert most > 128 or units == 1
        await asyncio.gather(*futures)


@pytest.mark.parametrize("on", [False, True])
async def test_service_time_is_said_to_the_peer(mem, on):
    pair = await mem(b_options={"service_time": on}, timestamps=True)
    assert pair.b.context.receive.service_time is on
    lacks = mrc.QpCap.NO_SERVICE_TIME in pair.a.qp.query("cap").cap
    assert lacks is not on
    assert mrc.QpCap.NO_SERVICE_TIME in pair.b.qp.query("cap").cap
    assert pair.a.qp.query("timestamps").timestamps
    local, remote = await pair.regions(bytearray(10_000), bytearray(10_000))
    await pair.a.write(local, remote, timeout=5)


async def test_a_peer_that_answers_no_trims(mem, udp):
    """Each says it of itself; the other notes it for its data (B.7)."""
    pair = await mem(b_options={"dscp": mrc.DscpClasses(trimmed=0)})
    assert (pair.a.local.trim_nack, pair.b.local.trim_nack) == (True, False)
    assert mrc.QpCap.NO_TRIM_NACK in pair.a.qp.query("cap").cap
    both = await mem()
    assert mrc.QpCap.NO_TRIM_NACK not in both.a.qp.query("cap").cap
    sockets = await udp()  # see no trimmed packets
    assert mrc.QpCap.NO_TRIM_NACK in sockets.a.qp.query("cap").cap


async def test_planes_that_are_down_are_known_before_the_first_packet(mem, lie):
    lie(ports_up=0b10)
    pair = await mem()
    assert pair.a.path.planes().remote_up == 0b10
    local, remote = await pair.regions(bytearray(10), bytearray(10))
    await pair.a.write(local, remote, timeout=5)


async def test_our_planes_are_said(mem):
    wire_pair = await mem()
    assert wire_pair.a.local.ports_up == wire_pair.a.context.planes_up
    wire_pair.a.context.disable_plane(5)
    assert not wire_pair.a.context.planes_up >> 5 & 1


# ---- what cannot be agreed -----------------------------------------------------------------


async def _refused(listening, raises_with, *words):
    with raises_with(mrc.MrcHandshakeError, *words):
        await mrc.connect("::1", listening.sockname[1], timeout=5)
    for _ in range(1000):
        if listening.refused:
            return
        await asyncio.sleep(0.001)
    raise AssertionError("the server did not count it")


@pytest.mark.parametrize("side", ["active", "passive"])
async def test_no_common_version_is_an_error_on_both_sides(lie, raises_with, side):
    lie(side, versions=0b110)
    async with await mrc.listen("[::1]:0", **PASSIVE) as listening:
        await _refused(listening, raises_with, "no MRC wire version in common", "2, 3", "1")


@pytest.mark.parametrize("name", ["mpr", "mpr_dest", "max_wimm", "max_wimm_dest"])
async def test_incompatible_attributes_are_named(lie, raises_with, name):
    """B.14, last row."""
    lie("active", **{name: 0})
    async with await mrc.listen("[::1]:0", **PASSIVE) as listening:
        await _refused(listening, raises_with, "incompatible attributes", f"{name} is 0")
        assert any("incompatible attributes" in reason for reason in listening.refusals)


async def test_setup_timeout_is_named(monkeypatch):
    """B.14: a peer that says hello and nothing more is told why, and counted."""
    monkeypatch.setattr(server, "_HELLO_SECONDS", 0.2)
    async with await mrc.listen("[::1]:0") as listening:
        reader, writer = await asyncio.open_connection("::1", listening.sockname[1])
        info = ConnectionInfo.from_dict(
            {**_info(), "qp": {"gid": "::1", "qpn": 5, "psn": 6, "udp_port": 7}}
        )
        writer.write(encode_frame(hello(info)))
        said = await asyncio.wait_for(reader.read(), 5)
        writer.close()
    assert b"setup timeout" in said
    assert listening.refusals == {"setup timeout: the peer did not become ready": 1}
    assert listening.strangers == 0


def _info():
    return ConnectionInfo(QpInfo(IPv6Address("::1"), 5, 6)).to_dict()


async def test_a_refused_setup_leaves_nothing_behind(lie, raises_with):
    """Two queue pairs fit; many refusals later two still do."""
    limits = mrc.ContextLimits(qp_max=2, cq_max=2, path_max=2)
    with mrc.Context(limits=limits) as context:
        async with await mrc.listen("[::1]:0", context=context, **PASSIVE) as listening:
            port = listening.sockname[1]
            lie("active", mpr_dest=0)
            for _ in range(5):
                with raises_with(mrc.MrcHandshakeError):
                    await mrc.connect("::1", port, timeout=5)
            lie("passive", versions=2)
            for _ in range(5):
                with raises_with(mrc.MrcHandshakeError):
                    await mrc.connect("::1", port, timeout=5, context=context)
            lie("active")
            one, two = await asyncio.gather(
                mrc.connect("::1", port, timeout=5, context=context), listening.accept(timeout=5)
            )
            await asyncio.gather(one.close(), two.close())


@pytest.mark.parametrize(
    "change",
    [
        *({"mpr": 256}, {"mpr_dest": -1}, {"max_wimm": 1 << 16}, {"path_mtu": 1500}),
        *({"versions": -1}, {"versions": 1 << 32}, {"ports_up": 1 << 32}, {"trim_nack": 1}),
        *({"dynamic_mpr": None}, {"service_time": "yes"}, {"evs": 0}, {"sport_base": 0}),
        *({"imm_queue": -1}, {"backend": ""}, {"qp": []}, {"qp": {"gid": "ff02::1"}}),
    ],
)
async def test_every_field_of_a_hostile_hello_is_checked(change):
    """Nothing of it reaches the engine; the next client is served."""
    async with await mrc.listen("[::1]:0") as listening:
        port = listening.sockname[1]
        reader, writer = await asyncio.open_connection("::1", port)
        message = {"type": "hello", "oob": 1, "info": {**_info(), **change}}
        with pytest.raises(FrameError):
            parse_hello(message)
        writer.write(encode_frame(message))
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
        assert listening.strangers == 1
        assert len(listening.context.pds) == 0
        conn, accepted = await asyncio.gather(
            mrc.connect("::1", port, timeout=5), listening.accept(timeout=5)
        )
        await asyncio.gather(conn.close(), accepted.close())


# ---- life after set-up ---------------------------------------------------------------------


async def test_a_write_after_an_idle_gap(ends):
    """Field report 51. With hours of virtual time: qp__write_after_an_idle_gap in C."""
    pair = await ends(ack_timeout=10)
    local, remote = await pair.regions(bytearray(b"x" * 5000), bytearray(5000))
    await pair.a.write(local, remote, timeout=5)
    await asyncio.sleep(0.3)  # nearly 300 times the interval of the local ACK timer
    await pair.a.write(local, remote, timeout=5)
