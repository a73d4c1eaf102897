# SPDX-License-Identifier: BSD-2-Clause
"""What verbs users have beside queues: attributes, hints, channels, events (C.1, C.2, C.3, C.8)."""

from __future__ import annotations

import os
import re
import select
from pathlib import Path

import pytest

import mrc
from mrc import qpattr
from mrc._core import MemWire

from .sides import Side, completions

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "queue-pair.md"


# ---- device ------------------------------------------------------------------------------------


def test_device_attributes():
    most = mrc.query_device()
    assert most.mrc_protocol_version == 1
    assert most.api_version == mrc.API_VERSION == 0x01000001
    assert most.max_mpr >= 8
    assert most.max_wimm_dest >= 32
    assert mrc.DeviceCap.DYNAMIC_MPR in most.cap
    with mrc.Context(limits=mrc.ContextLimits(qp_max=9, hint_max=3)) as ctx:
        here = ctx.query_device()
    assert (here.max_qp, here.max_qp_hint) == (9, 3)
    assert here.max_mpr == most.max_mpr


def test_cap_follows_the_configuration():
    with mrc.Context(dscp=mrc.DscpClasses(trimmed=0)) as ctx:
        assert mrc.DeviceCap.TRIM_NACK not in ctx.query_device().cap
    with mrc.Context() as ctx:
        assert mrc.DeviceCap.TRIM_NACK in ctx.query_device().cap


def test_api_versions():
    for version in (0, 1 << 24, mrc.API_VERSION):
        mrc.Context(api_version=version).close()
    for version in (mrc.API_VERSION + 1, 2 << 24, -1):
        with pytest.raises(mrc.MrcUsageError, match=r"API version .*1\.0\.1"):
            mrc.Context(api_version=version)


# ---- state table -------------------------------------------------------------------------------

_REFUSED = [
    ("port_num", "path"),
    ("retry_cnt", "linear_cnt and exp_cnt"),
    ("rnr_retry", "max_wimm_dest"),
    ("min_rnr_timer", "max_wimm_dest"),
    ("max_rd_atomic", "mpr"),
    ("max_dest_rd_atomic", "mpr"),
    ("alt_ah_attr", "path"),
    ("alt_timeout", "path"),
    ("path_mig_state", "migration"),
    ("en_sqd_async_notify", "SQD"),
]


@pytest.mark.parametrize(("name", "instead"), _REFUSED)
def test_attributes_of_verbs_are_refused_by_name(qp, name, instead):
    with pytest.raises(mrc.MrcUsageError, match=f"{name}: .*{instead}"):
        qp.modify(mrc.QpAttr(state=mrc.QpState.INIT, access=mrc.Access.NONE), **{name: 1})
    assert qp.state is mrc.QpState.RESET


def test_other_names_are_refused_too(qp):
    with pytest.raises(mrc.MrcUsageError, match="nonsense: is no attribute"):
        qp.modify(nonsense=1)
    with pytest.raises(mrc.MrcUsageError, match="timeout: goes into QpAttr"):
        qp.modify(timeout=1)


def test_attributes_out_of_place_are_named(sides, qp):
    running = sides[0].qp
    with pytest.raises(mrc.MrcUsageError, match="RTS does not take sq_psn"):
        running.modify(mrc.QpAttr(sq_psn=1))
    with pytest.raises(mrc.MrcUsageError, match="ERR takes no attributes, got timeout"):
        running.modify(mrc.QpAttr(state=mrc.QpState.ERR, timeout=3))
    with pytest.raises(mrc.MrcUsageError, match="in RESET nothing can be set, got timeout"):
        qp.modify(mrc.QpAttr(timeout=3))
    with pytest.raises(mrc.MrcUsageError, match="cannot go from RTS to RTS"):
        running.modify(mrc.QpAttr(state=mrc.QpState.RTS))
    assert running.state is mrc.QpState.RTS


def test_running_attributes(sides):
    qp = sides[0].qp
    wish = mrc.QpAttr(timeout=20, linear_cnt=1, exp_cnt=2, train_max=3, sack_threshold=9000)
    qp.modify(wish)
    names = ("timeout", "linear_cnt", "exp_cnt", "train_max", "sack_threshold")
    assert qp.query(*names) == wish


def test_query_gives_what_was_asked(sides):
    qp = sides[0].qp
    assert qp.query("mpr", "state") == mrc.QpAttr(mpr=8, state=mrc.QpState.RTS)
    assert qp.query().hint == mrc.HINT_NONE
    with pytest.raises(mrc.MrcUsageError, match="port_num"):
        qp.query("port_num")


def test_vendor_bytes(sides):
    qp = sides[0].qp
    blob = bytes(range(128))
    qp.modify(mrc.QpAttr(vendor=blob))
    assert qp.query("vendor").vendor == blob
    with pytest.raises(mrc.MrcUsageError, match="127 bytes, not 128"):
        qp.modify(mrc.QpAttr(vendor=blob[1:]))


def test_the_page_shows_the_table():
    """docs/reference/queue-pair.md against the state table of the core."""
    page = PAGE.read_text()
    rows = re.findall(r"^\| (\w+) to (\w+) \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    shown = {
        (mrc.QpState[a], mrc.QpState[b]): (_cell(required), _cell(optional))
        for a, b, required, optional in rows
    }
    assert shown == {
        key: (set(required), set(optional)) for key, (required, optional) in qpattr.rules().items()
    }
    for name, _ in _REFUSED:
        assert f"`{name}`" in page


def _cell(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", text))


def test_a_queue_pair_gets_a_new_number_at_reset(sides):
    a, b = sides
    old = a.qp.qpn
    a.qp.modify(mrc.QpAttr(state=mrc.QpState.RESET))
    assert a.qp.qpn != old
    b.qp.modify(mrc.QpAttr(state=mrc.QpState.RESET))
    for side, peer in ((a, b), (b, a)):
        side.path.close()
        side.cc.close()
        side.connect(peer)
    src = mrc.MemoryRegion(a.pd, bytearray(b"second life"))
    dst = mrc.MemoryRegion(b.pd, bytearray(11))
    a.qp.post_send(mrc.SendWr(1, src.addr, dst.addr, 11, src.lkey, dst.rkey))
    (wc,) = completions(sides, a.cq, 1)
    assert (wc.status, wc.qpn) == (mrc.WcStatus.SUCCESS, a.qp.qpn)


# ---- hints -------------------------------------------------------------------------------------


def test_hint_life(context, qp):
    hint = mrc.QpHint(context, incast=16, vendor=bytes(128))
    assert hint.query() == {"incast": 16, "vendor": bytes(128)}
    hint.modify(peers=4)
    assert hint.query("peers", "qps_per_peer") == {"peers": 4}
    qp.modify(mrc.QpAttr(state=mrc.QpState.INIT, access=mrc.Access.NONE, hint=hint.number))
    with pytest.raises(mrc.MrcUsageError, match="in use"):
        hint.close()
    qp.close()
    hint.close()
    with pytest.raises(mrc.MrcUsageError, match="closed"):
        hint.query()


def test_hint_arguments(context):
    with pytest.raises(TypeError, match="did you mean 'incast'"):
        mrc.QpHint(context, outcast=1)  # type: ignore[call-arg]
    with pytest.raises(mrc.MrcUsageError, match="128"):
        mrc.QpHint(context, vendor=b"x")
    with pytest.raises(mrc.MrcUsageError, match="out of range"):
        mrc.QpHint(context, incast=1 << 32)
    many = [mrc.QpHint(context) for _ in range(context.limits.hint_max)]
    with pytest.raises(mrc.MrcResourceError):
        mrc.QpHint(context)
    for hint in many:
        hint.close()


# ---- channels ----------------------------------------------------------------------------------


def _readable(fd):
    return bool(select.select([fd], [], [], 0)[0])


def test_channel_without_an_event_loop():
    wire = MemWire(1024, 1)
    a, b = Side(wire, 0), Side(wire, 1)
    with a.ctx, b.ctx:
        channel = mrc.CompletionChannel(b.ctx)
        cq = mrc.CompletionQueue(b.ctx, 16, channel)
        b.qp.close()
        b.qp = mrc.QueuePair(b.pd, cq, cq)
        a.connect(b)
        b.connect(a)
        b.qp.post_recv([1])
        cq.arm()
        assert channel.get_nowait() is None
        assert not _readable(channel.fd)
        src, dst = mrc.MemoryRegion(a.pd, bytearray(8)), mrc.MemoryRegion(b.pd, bytearray(8))
        op = mrc.WrOpcode.RDMA_WRITE_WITH_IMM
        a.qp.post_send(mrc.SendWr(1, src.addr, dst.addr, 8, src.lkey, dst.rkey, 7, op))
        a.ctx.turn()
        assert channel.wait(timeout=5) is cq
        assert not _readable(channel.fd)
        assert [wc.imm for wc in cq.poll()] == [7]
        b.qp.close()
        with pytest.raises(mrc.MrcUsageError, match=r"1 events of .* are not acknowledged"):
            cq.close()
        with pytest.raises(mrc.MrcUsageError, match="2 of 1"):
            cq.ack_events(2)
        cq.ack_events()
        with pytest.raises(mrc.MrcUsageError, match="in use"):
            channel.close()
        cq.close()
        channel.close()
        assert channel.closed


def test_descriptor_says_when(sides):
    a, _ = sides
    channel = mrc.CompletionChannel(a.ctx)
    cq = mrc.CompletionQueue(a.ctx, 16, channel)
    qp = mrc.QueuePair(a.pd, cq, cq)
    qp.modify(mrc.QpAttr(state=mrc.QpState.INIT, access=mrc.Access.NONE))
    qp.post_recv([1, 2])
    cq.arm()
    qp.close()  # no turn: the flush itself
    assert _readable(channel.fd)
    assert channel.get_nowait() is cq
    assert not _readable(channel.fd)


def test_channel_arguments(context, sides):
    channel = mrc.CompletionChannel(context)
    with pytest.raises(mrc.MrcUsageError, match="different contexts"):
        mrc.CompletionQueue(sides[0].ctx, 16, channel)
    with pytest.raises(mrc.MrcUsageError, match="no channel"):
        mrc.CompletionQueue(context, 16).arm()
    channel.close()
    with pytest.raises(mrc.MrcUsageError, match="closed"):
        mrc.CompletionQueue(context, 16, channel)
    many = [mrc.CompletionChannel(context) for _ in range(127)]
    with pytest.raises(mrc.MrcResourceError):
        mrc.CompletionChannel(context)
    many[5].close()
    mrc.CompletionChannel(context).close()


def test_closing_the_context_closes_channels_first_or_last():
    ctx = mrc.Context()
    channel = mrc.CompletionChannel(ctx)
    cq = mrc.CompletionQueue(ctx, 16, channel)
    fd = channel.fd
    ctx.close()
    assert channel.closed
    assert cq.closed
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(fd)


def test_events_without_an_event_loop(context, pd):
    events = context.async_events
    assert events.get_nowait() is None
    small = mrc.CompletionQueue(context, 1)
    qp = mrc.QueuePair(pd, small, small)
    qp.modify(mrc.QpAttr(state=mrc.QpState.INIT, access=mrc.Access.NONE))
    qp.post_recv([1, 2, 3])
    qp.modify(mrc.QpAttr(state=mrc.QpState.ERR))
    assert _readable(events.fd)
    first = events.wait(timeout=5)
    assert (first.type, first.id) == (mrc.AsyncType.QP_LAST_WQE, qp.qpn)
    second = events.wait(timeout=5)
    assert (second.type, second.id) == (mrc.AsyncType.CQ_ERR, small.number)
    events.ack(2)
    with pytest.raises(mrc.MrcUsageError):
        events.ack()
    assert events.wait(timeout=0.01) is None


def test_events_are_not_a_childs(context):
    """Field report 77."""
    channel = mrc.CompletionChannel(context)
    pid = os.fork()
    if pid == 0:
        status = 0
        for use in (channel.get_nowait, context.async_events.get_nowait, lambda: channel.fd):
            try:
                use()
            except mrc.MrcForkError:
                continue
            status = 1
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert channel.get_nowait() is None
