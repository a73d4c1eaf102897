# SPDX-License-Identifier: BSD-2-Clause
"""Contexts and what hangs off them: life, limits, ports, paths, controllers."""

from __future__ import annotations

import gc
import warnings

import pytest

import mrc


def test_children_close_before_parents(context):
    pd = mrc.ProtectionDomain(context)
    cq = mrc.CompletionQueue(context)
    qp = mrc.QueuePair(pd, cq, cq)
    mr = mrc.MemoryRegion(pd, bytearray(1))
    cq.close()
    assert qp.closed
    assert not mr.closed
    pd.close()
    assert mr.closed


def test_context_closes_everything():
    with mrc.Context() as ctx:
        pd = mrc.ProtectionDomain(ctx)
        cq = mrc.CompletionQueue(ctx)
        qp = mrc.QueuePair(pd, cq, cq)
        data = bytearray(5)
        mr = mrc.MemoryRegion(pd, data)
    assert pd.closed
    assert cq.closed
    assert qp.closed
    assert mr.closed
    data.append(0)
    ctx.close()
    for use in (
        ctx.turn,
        lambda: mrc.ProtectionDomain(ctx) and mrc.CompletionQueue(ctx),
        cq.poll,
        lambda: qp.post_recv([1]),
        lambda: mrc.MemoryRegion(pd, bytearray(1)),
    ):
        with pytest.raises(mrc.MrcUsageError, match="closed"):
            use()


def test_with_closes_in_reverse_order():
    with (
        mrc.Context() as ctx,
        mrc.ProtectionDomain(ctx) as pd,
        mrc.CompletionQueue(ctx) as cq,
        mrc.MemoryRegion.alloc(pd, 10) as mr,
        mrc.QueuePair(pd, cq, cq) as qp,
    ):
        assert not qp.closed
    assert mr.closed
    assert qp.closed


def test_finalisers_only_warn():
    ctx = mrc.Context()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mrc.CompletionQueue(ctx)
        gc.collect()
    assert "unclosed <CompletionQueue" in str(caught[0].message)
    ctx.turn()
    ctx.close()


def test_objects_of_two_contexts_do_not_mix(pd):
    with mrc.Context() as other:
        cq = mrc.CompletionQueue(other)
        with pytest.raises(mrc.MrcUsageError, match="different contexts"):
            mrc.QueuePair(pd, cq, cq)


@pytest.mark.parametrize("limits", [{"qp_max": 0}, {"qp_max": 1 << 20}, {"cq_max": 0}])
def test_context_limits(limits):
    with pytest.raises(mrc.MrcUsageError):
        mrc.Context(limits=mrc.ContextLimits(**limits))


def test_seed_from_the_environment(monkeypatch):
    monkeypatch.setenv("MRC_SEED", "0x1234")
    with mrc.Context() as ctx:
        assert ctx.seed == 0x1234
    with mrc.Context(seed=7) as ctx:
        assert ctx.seed == 7
    monkeypatch.setenv("MRC_SEED", "soon")
    with pytest.raises(mrc.MrcUsageError, match="MRC_SEED='soon'"):
        mrc.Context()


def test_port_arguments(context):
    with pytest.raises(mrc.MrcUsageError):
        mrc.Port(context, mrc.Backend.MEM)
    with pytest.raises(mrc.MrcUsageError):
        mrc.Port(context, udp_port=0)
    port = mrc.Port(context, addr="::1", udp_port_tries=100)
    assert port.stats().kind is mrc.Backend.UDP


def test_port_on_a_foreign_address(context):
    with pytest.raises(OSError, match="udp port"):
        mrc.Port(context, addr="2001:db8::dead", udp_port_tries=3)


def test_path_and_controller_are_held_by_their_queue_pair(sides):
    a, _ = sides
    for held in (a.path, a.cc):
        with pytest.raises(mrc.MrcUsageError, match="in use"):
            held.close()
    a.qp.close()
    a.path.close()
    a.cc.close()


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"kind": mrc.CcKind.FIXED}, "a fixed window needs its size"),
        ({"kind": "nscc"}, "kind 'nscc' is not"),
        ({"link_bps": -1}, "link_bps -1 is not in 0"),
        ({"link_bps": 10**14}, "link_bps"),
        ({"base_rtt_ns": -1}, "base_rtt_ns -1"),
        ({"base_rtt_ns": 1.5}, "base_rtt_ns 1.5 is not int"),
        ({"window": -1}, "window -1"),
        ({"nscc": mrc.NsccConfig(gamma=5.0)}, "gamma 5.0 is not in 0..1"),
    ],
)
def test_controller_profiles(bad, says):
    with pytest.raises(mrc.MrcUsageError, match=says):
        mrc.CcProfile(**bad)


def test_a_window_holds_a_packet(context):
    with pytest.raises(mrc.MrcUsageError, match="512 bytes is less than the path MTU 1024"):
        mrc.Controller(context, mrc.CcProfile(window=512), 1024)


def test_controller_mtu(context):
    with pytest.raises(mrc.MrcUsageError, match="1500"):
        mrc.Controller(context, mrc.CcProfile(), 1500)
