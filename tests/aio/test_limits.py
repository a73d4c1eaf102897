# SPDX-License-Identifier: BSD-2-Clause
"""What a server bounds, keeps apart and checks before anybody comes."""

from __future__ import annotations

import asyncio
from ipaddress import IPv6Address
from types import SimpleNamespace
from typing import cast

import pytest

import mrc
from mrc.admission import Admission
from mrc.channel import Channel
from mrc.exchange import require_theirs
from mrc.oob import ConnectionInfo, QpInfo


async def test_connections_that_are_ready_have_a_bounded_number_of_paths():
    """A path is a descriptor: who finds no room is refused with words, until others have gone."""
    async with await mrc.listen("[::1]:0", lanes_max=64) as server:
        port = server.sockname[1]
        ready = []
        for _ in range(3):  # three quarters, which is all that one host may have
            a, b = await asyncio.gather(mrc.connect("::1", port), server.accept(timeout=5))
            ready.append((a, b))
        with pytest.raises(mrc.MrcHandshakeError, match="no room for more paths"):
            await mrc.connect("::1", port)
        for end in ready.pop():
            await end.close()
        a, b = await asyncio.gather(mrc.connect("::1", port), server.accept(timeout=5))
        for end in (a, b, *(end for pair in ready for end in pair)):
            await end.close()
    for wrong in (0, "x", -1):
        with pytest.raises(mrc.MrcUsageError, match="lanes_max"):
            await mrc.listen("[::1]:0", lanes_max=wrong)  # type: ignore[arg-type]


async def test_profiles_that_differ_are_controllers_that_differ():
    """The remedy of security.md where programs on one node do not trust each other."""
    async with await mrc.listen("[::1]:0", evs=4) as server:
        port = server.sockname[1]
        same = mrc.CcProfile(), mrc.CcProfile(), mrc.CcProfile(origin="another tenant")
        ends: list[mrc.Connection] = []
        with mrc.Context() as ctx:
            for profile in same:
                ends += await asyncio.gather(
                    mrc.connect("::1", port, context=ctx, cc=profile), server.accept(timeout=5)
                )
            used = [end.qp.query("cc").cc for end in ends[::2]]
            assert used[0] == used[1]
            assert used[0] != used[2]
            for end in ends:
                await end.close()


async def test_an_address_of_a_plane_that_is_not_ours_is_named():
    """At once, at either end: not when the first peer comes."""
    wrong = {2: "2001:db8::9"}
    words = "address 2001:db8::9 of plane 2: Cannot assign"
    with pytest.raises(OSError, match=words):
        await mrc.listen("[::1]:0", plane_addresses=wrong)
    with pytest.raises(OSError, match=words):
        await mrc.connect("::1", 9, plane_addresses=wrong)


async def test_one_host_leaves_connections_to_others():
    """Each holds a descriptor and a queue pair, over however few paths."""
    limits = mrc.ContextLimits(qp_max=8)
    with mrc.Context(limits=limits) as ctx, mrc.Context() as far:
        async with await mrc.listen("[::1]:0", context=ctx, evs=1) as server:
            port = server.sockname[1]
            ends: list[mrc.Connection] = []
            for _ in range(6):  # three quarters
                ends += await asyncio.gather(
                    mrc.connect("::1", port, context=far, evs=1), server.accept(timeout=5)
                )
            with pytest.raises(mrc.MrcHandshakeError, match="no room for more connections"):
                await mrc.connect("::1", port, context=far, evs=1)
            for end in ends[:2]:
                await end.close()
            ends += await asyncio.gather(
                mrc.connect("::1", port, context=far, evs=1), server.accept(timeout=5)
            )
            for end in ends:
                await end.close()


class Taken:
    """What is asked of a table of twenty lanes."""

    profile = range(20)
    port = SimpleNamespace(backend=mrc.Backend.UDP)


async def test_what_is_being_set_up_counts_for_its_host():
    """Or a host that sets up many connections at a time gets more than its share, and keeps it."""
    admission = Admission(lanes_max=100)
    tables = [cast(mrc.PathTable, Taken())]
    async with admission.lanes("a", 40), admission.lanes("a", 35):
        assert admission.lacks("a", 35, tables) is None
        async with admission.lanes("a", 1), admission.lanes("b", 75):
            assert admission.lacks("a", 1, tables) == "paths"
            assert admission.lacks("b", 75, tables) is None


def came_from(address: str, zone: int = 0) -> Channel:
    return cast(Channel, SimpleNamespace(peername=(address, 1, 0, zone)))


@pytest.mark.parametrize("plane", [False, True])
def test_a_peer_elsewhere_is_not_at_an_address_of_ours(plane: bool):
    """What is sent to it would reach whoever listens here, past what keeps other hosts out."""
    ours, theirs = IPv6Address("::1"), IPv6Address("2001:db8::9")
    qp = QpInfo(theirs if plane else ours, 100, 5, 53)
    said = ConnectionInfo(qp, plane_addresses=((2, ours),) if plane else ())
    with pytest.raises(mrc.MrcHandshakeError, match="::1 cannot be on another host"):
        require_theirs(said, came_from("2001:db8::9"))
    require_theirs(said, came_from("::1"))
    away = ConnectionInfo(
        QpInfo(theirs, 100, 5), plane_addresses=((2, IPv6Address("2001:db8::8")),)
    )
    require_theirs(away, came_from("2001:db8::9"))
