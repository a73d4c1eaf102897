# SPDX-License-Identifier: BSD-2-Clause
"""The receive side's settings from Python: limits, policy, pause."""

from __future__ import annotations

import pytest

import mrc
from tests.unit.sides import completions


def write(side, peer, nbytes=4096):
    """One write from a side to its peer; what was sent and where it goes."""
    source, target = bytearray(range(256)) * (nbytes // 256), bytearray(nbytes)
    local = mrc.MemoryRegion(side.pd, source, mrc.Access.LOCAL_WRITE)
    remote = mrc.MemoryRegion(peer.pd, target, mrc.Access.LOCAL_WRITE | mrc.Access.REMOTE_WRITE)
    side.qp.post_send(mrc.SendWr(1, local.addr, remote.addr, nbytes, local.lkey, remote.rkey))
    return source, target


@pytest.mark.parametrize(
    "policy",
    [
        {"penalty_percent": 100},
        {"icrc_skip_percent": 100},
        {"penalty_percent": -1},
        {"icrc_skip_percent": 256},
    ],
)
def test_policy_out_of_range(policy):
    with pytest.raises(mrc.MrcUsageError):
        mrc.Context(receive=mrc.ReceivePolicy(**policy))


def test_everything_is_off_by_default():
    assert mrc.ReceivePolicy() == mrc.ReceivePolicy(0, 0, service_time=False)
    assert (mrc.ContextLimits().ooo_max, mrc.ContextLimits().imm_max) == (0, 0)


def test_service_time_is_a_capability_where_it_is_on():
    with mrc.Context() as off, mrc.Context(receive=mrc.ReceivePolicy(service_time=True)) as on:
        assert not off.query_device().cap & mrc.DeviceCap.SERVICE_TIME
        assert on.query_device().cap & mrc.DeviceCap.SERVICE_TIME


def test_a_paused_context_takes_nothing_and_goes_on_afterwards(sides):
    here, there = sides
    there.ctx.pause_receiving()
    source, target = write(here, there)
    for _ in range(1000):
        for side in sides:
            side.ctx.turn()
        if there.ctx.drops()["paused"] > 0:
            break
    assert there.ctx.drops()["paused"] > 0
    assert target == bytes(len(target))
    there.ctx.resume_receiving()
    (wc,) = completions(sides, here.cq, 1)
    assert wc.status is mrc.WcStatus.SUCCESS
    assert target == source


def test_a_paused_queue_pair(sides):
    here, there = sides
    there.qp.modify(mrc.QpAttr(rx_paused=True))
    source, target = write(here, there)
    for _ in range(1000):
        for side in sides:
            side.ctx.turn()
        if there.ctx.drops()["paused"] > 0:
            break
    assert there.ctx.drops()["paused"] > 0
    there.qp.modify(mrc.QpAttr(rx_paused=False))
    (wc,) = completions(sides, here.cq, 1)
    assert wc.status is mrc.WcStatus.SUCCESS
    assert target == source
