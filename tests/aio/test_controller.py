# SPDX-License-Identifier: BSD-2-Clause
"""Connections share one congestion controller for each (destination, profile) (E.5, H42)."""

from __future__ import annotations

import mrc


async def test_one_controller_for_a_destination_and_profile():
    slow = mrc.CcProfile(link_bps=10**9)
    with mrc.Context() as context:
        async with await mrc.listen("[::1]:0") as server:
            port = server.sockname[1]

            async def connect(**options):
                return await mrc.connect("::1", port, context=context, **options)

            conns = [await connect(), await connect(mtu=1024), await connect()]
            (shared,) = context.controllers
            assert shared.query().qps == 3
            conns.append(await connect(cc=slow))
            assert {c.query().qps for c in context.controllers} == {1, 3}
            conns.append(await connect(cc=mrc.CcProfile(link_bps=10**9)))  # equal, not the same
            assert sorted(c.query().qps for c in context.controllers) == [2, 3]
            for conn in conns:
                await conn.close()
        assert len(context.controllers) == 0
