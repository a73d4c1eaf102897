# SPDX-License-Identifier: BSD-2-Clause
"""Connections over profiles that a controller manages, in a context that asyncio drives (C.5)."""

from __future__ import annotations

import asyncio
import errno

import pytest

import mrc
from mrc.controller import (
    CcAttr,
    EvAttr,
    EvId,
    EvMode,
    EvSetState,
    FmtMode,
    FormatAttr,
    NodeController,
    ProfileState,
    VisibleState,
)
from mrc.ev import EventMask, EvField

OFFLINE, ONLINE = ProfileState.OFFLINE, ProfileState.ONLINE


def managed(node):
    fmt, paths, cc = node.create_format(), node.create_ev_profile(), node.create_cc_profile()
    fmt.modify(FormatAttr(FmtMode.UDP, (16,)), state=OFFLINE)
    fmt.modify(state=ONLINE)
    attr = EvAttr(
        mode=EvMode.GENERATED,
        format=fmt.id,
        count=8,
        fields=(EvField(16, 0xD000, mask=0x0007),),
        min_active=2,
        events=EventMask.GOOD | EventMask.ASSUMED_BAD,
    )
    paths.modify(attr, state=OFFLINE)
    paths.modify(state=ONLINE)
    cc.modify(CcAttr("uet-1.0-nscc", mrc.NsccConfig(max_cwnd=1 << 20)), state=OFFLINE)
    cc.modify(state=ONLINE)
    return paths, cc


def ev(number):
    """EV 0xD000 + number: three bits of EV, ports 1 and 2 in turn."""
    return EvId(bytes([number << 5]), 1 + number % 2)


async def test_a_connection_over_managed_profiles():
    with mrc.Context() as ctx:
        node = NodeController(ctx, ports=2)
        paths, cc = managed(node)
        async with (
            await mrc.listen("[::1]:0") as server,
            await mrc.connect(
                "::1",
                server.sockname[1],
                context=ctx,
                ev_profile=paths.profile,
                cc=cc.profile,
            ) as conn,
        ):
            peer = await server.accept(timeout=5)
            target = peer.register(bytearray(1 << 20))
            peer.advertise("target", target)
            remote = await conn.remote_region("target", timeout=5)
            source = conn.register(bytearray(1 << 20))
            await conn.write(source, remote, timeout=10)
            assert all(s.packets_sent > 0 for s in conn.path_stats())
            for profile in (paths, cc):
                with pytest.raises(mrc.MrcControlError, match="in use") as caught:
                    profile.modify(state=OFFLINE)
                assert caught.value.errno == errno.EBUSY
            await denied_at_run_time(conn, node, paths, source, remote)
            await peer.close()
        paths.modify(state=OFFLINE)
        cc.modify(state=OFFLINE)
        node.close()


async def denied_at_run_time(conn, node, paths, source, remote):
    """Field report 37: an EV, then a port with all of its EVs; nothing is sent there."""
    paths.modify(ops=[EvSetState(ev(3), VisibleState.DENIED)])
    node.set_port(1, enabled=False)
    before = {s.ev: s.packets_sent for s in conn.path_stats()}
    await conn.write(source, remote, timeout=10)
    sent = {s.ev - 0xD000: s.packets_sent - before[s.ev] for s in conn.path_stats()}
    assert {number for number, n in sent.items() if n} == {1, 5, 7}
    assert paths.query_state([ev(3), ev(2)]) == [VisibleState.DENIED, VisibleState.GOOD]
    for _ in range(200):  # the peer acknowledges
        if conn.path.planes().told == conn.path.planes().local_up:
            break
        await asyncio.sleep(0.01)
    assert not conn.path.planes().told >> 1 & 1
    node.set_port(1, enabled=True)
    paths.modify(ops=[EvSetState(ev(3), VisibleState.GOOD)])
    assert node.events() == []
