# SPDX-License-Identifier: BSD-2-Clause
"""What a server bounds, keeps apart and checks before anybody comes."""

from __future__ import annotations

import asyncio

import pytest

import mrc


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
