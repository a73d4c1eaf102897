# SPDX-License-Identifier: BSD-2-Clause
"""Verbs-shaped objects: arguments, states, life. Packets only over memory, without asyncio."""

from __future__ import annotations

import gc
import itertools
import mmap
import warnings
from dataclasses import replace
from ipaddress import IPv6Address

import numpy as np
import pytest

import mrc
from mrc._core import MemWire

ADDR = [IPv6Address("fd00::a"), IPv6Address("fd00::b")]


@pytest.fixture
def context():
    with mrc.Context(seed=1) as ctx:
        yield ctx


@pytest.fixture
def pd(context):
    return mrc.ProtectionDomain(context)


@pytest.fixture
def cq(context):
    return mrc.CompletionQueue(context, 64)


@pytest.fixture
def qp(pd, cq):
    return mrc.QueuePair(pd, cq, cq)


class Side:
    """One context at an end of a memory wire, with a queue pair up to RTS on demand."""

    def __init__(self, wire, end):
        self.end = end
        self.ctx = mrc.Context(seed=end + 1)
        self.port = mrc.Port(self.ctx, mrc.Backend.MEM, wire=wire, mem_end=end)
        self.pd = mrc.ProtectionDomain(self.ctx)
        self.cq = mrc.CompletionQueue(self.ctx, 256)
        self.qp = mrc.QueuePair(self.pd, self.cq, self.cq)

    def connect(self, peer):
        src, dst = ADDR[self.end], ADDR[1 - self.end]
        profile = mrc.EvProfile.udp(4)
        self.path = mrc.PathTable(self.port, profile, dst, peer.port.udp_port, src=src)
        fixed = mrc.CcProfile(mrc.CcKind.FIXED, window=1 << 20)
        self.cc = mrc.Controller(self.ctx, fixed, 1024)
        both = mrc.Access.LOCAL_WRITE | mrc.Access.REMOTE_WRITE
        self.qp.modify(mrc.QpAttr(state=mrc.QpState.INIT, access=both))
        self.qp.modify(
            mrc.QpAttr(
                state=mrc.QpState.RTR,
                src=src,
                dst=dst,
                dport=peer.port.udp_port,
                dest_qpn=peer.qp.qpn,
                path_mtu=1024,
                rq_psn=100 + peer.end,
                path=self.path.number,
                mpr_dest=8,
                max_wimm_dest=16,
            )
        )
        self.qp.modify(
            mrc.QpAttr(
                state=mrc.QpState.RTS,
                sq_psn=100 + self.end,
                cc=self.cc.number,
                mpr=8,
                max_wimm=16,
                timeout=12,
                linear_cnt=3,
                exp_cnt=3,
            )
        )


@pytest.fixture
def sides():
    wire = MemWire(1024, 1)
    a, b = Side(wire, 0), Side(wire, 1)
    a.connect(b)
    b.connect(a)
    with a.ctx, b.ctx:
        yield a, b


def completions(sides, cq, count, turns=10_000):
    """Turn both sides until that many completions came; with a limit."""
    found: list[mrc.WorkCompletion] = []
    for _ in range(turns):
        for side in sides:
            side.ctx.wait(1)
        found.extend(cq.poll(100))
        if len(found) >= count:
            return found
    raise AssertionError(f"{len(found)} of {count} completions came")


# ---- memory regions ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: bytearray(100),
        lambda: np.zeros(25, dtype=np.float32),
        lambda: mmap.mmap(-1, 100),
        lambda: memoryview(bytearray(200))[50:150],
    ],
    ids=["bytearray", "numpy", "mmap", "memoryview"],
)
def test_any_writable_buffer(pd, make):
    with mrc.MemoryRegion(pd, make()) as mr:
        assert len(mr) == mr.length == 100
        assert mr.lkey == mr.rkey
        mr.view[7] = 9
        assert mr.view[7] == 9


@pytest.mark.parametrize(
    ("buffer", "words"),
    [
        (b"read only", "register bytes"),
        (bytearray(), "empty"),
        (memoryview(bytearray(100))[::2], "register memoryview"),
        ("text", "register str"),
        (5, "register int"),
    ],
)
def test_what_is_no_buffer(pd, buffer, words):
    with pytest.raises(mrc.MrcUsageError, match=words):
        mrc.MemoryRegion(pd, buffer)


def test_pinned_until_closed(pd):
    data = bytearray(10)
    mr = mrc.MemoryRegion(pd, data)
    with pytest.raises(BufferError):
        data.append(1)
    mr.close()
    mr.close()
    data.append(1)
    with pytest.raises(mrc.MrcUsageError):
        mr.range(0, 1)


def test_memory_of_a_lost_region_stays_pinned(context, pd):
    """C still knows the address, so losing the Python object must not free it."""
    data = bytearray(10)
    mrc.MemoryRegion(pd, data)
    with pytest.warns(ResourceWarning, match="unclosed <MemoryRegion"):
        mrc.MemoryRegion(pd, data)  # collected at once
    gc.collect()
    with pytest.raises(BufferError):
        data.append(1)
    pd.close()
    data.append(1)
    assert context.pins == {}


def test_alloc(pd):
    mr = mrc.MemoryRegion.alloc(pd, 10_000)
    assert mr.addr % mmap.PAGESIZE == 0
    assert bytes(mr.view) == bytes(10_000)
    with pytest.raises(mrc.MrcUsageError):
        mrc.MemoryRegion.alloc(pd, 0)


def test_read_only_memory_without_access(pd):
    mr = mrc.MemoryRegion(pd, b"constant", mrc.Access.NONE)
    assert mr.length == 8
    with pytest.raises(mrc.MrcUsageError):
        mrc.MemoryRegion(pd, bytearray(1), mrc.Access.REMOTE_WRITE)


@pytest.mark.parametrize(
    ("offset", "length", "ok"),
    [
        *((0, None, True), (10, 0, True), (3, 7, True)),
        *((3, 8, False), (-1, 1, False), (11, None, False)),
    ],
)
def test_range(pd, offset, length, ok):
    mr = mrc.MemoryRegion(pd, bytearray(10))
    if ok:
        addr, size = mr.range(offset, length)
        assert addr == mr.addr + offset
        assert size == (10 - offset if length is None else length)
    else:
        with pytest.raises(mrc.MrcUsageError):
            mr.range(offset, length)


def test_keys_differ_and_are_not_in_order(pd):
    regions = [mrc.MemoryRegion(pd, bytearray(1)) for _ in range(50)]
    keys = [mr.rkey for mr in regions]
    assert len(set(keys)) == 50
    steps = {b - a for a, b in itertools.pairwise(keys)}
    assert len(steps) > 40
    for mr in regions:
        mr.close()


def test_regions_are_limited():
    with mrc.Context(limits=mrc.ContextLimits(mr_max=4)) as ctx:
        pd = mrc.ProtectionDomain(ctx)
        kept = [mrc.MemoryRegion(pd, bytearray(1)) for _ in range(4)]
        with pytest.raises(mrc.MrcResourceError):
            mrc.MemoryRegion(pd, bytearray(1))
        kept.pop().close()
        kept.append(mrc.MemoryRegion(pd, bytearray(1)))


# ---- life ----------------------------------------------------------------------------------


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


# ---- queue pairs ---------------------------------------------------------------------------


def test_states_go_one_way(qp):
    assert qp.state is mrc.QpState.RESET
    for target in (mrc.QpState.RTR, mrc.QpState.RTS):
        with pytest.raises(mrc.MrcUsageError, match="cannot go from RESET"):
            qp.modify(mrc.QpAttr(state=target))
    with pytest.raises(mrc.MrcUsageError, match="needs access"):
        qp.modify(mrc.QpAttr(state=mrc.QpState.INIT))
    qp.modify(mrc.QpAttr(state=mrc.QpState.INIT, access=mrc.Access.LOCAL_WRITE))
    assert qp.query().state is mrc.QpState.INIT
    with pytest.raises(mrc.MrcUsageError, match="needs src, dst"):
        qp.modify(mrc.QpAttr(state=mrc.QpState.RTR))
    qp.modify(mrc.QpAttr(state=mrc.QpState.ERR))
    qp.modify(mrc.QpAttr(state=mrc.QpState.RESET))
    assert qp.state is mrc.QpState.RESET


@pytest.mark.parametrize(
    ("attr", "words"),
    [
        ({"mpr": 0}, "mpr 0"),
        ({"mpr": 65}, "mpr 65"),
        ({"sq_psn": 1 << 24}, "sq_psn"),
        ({"rq_psn": -1}, "rq_psn"),
        ({"timeout": 25}, "timeout"),
        ({"linear_cnt": 8, "exp_cnt": 1}, "linear_cnt"),
        ({"linear_cnt": 1}, "set together"),
        ({"exp_cnt": 26, "linear_cnt": 1}, "exp_cnt"),
        ({"train_max": 17}, "train_max"),
        ({"dport": 4791}, "set together"),
        ({"max_wimm": 0}, "max_wimm"),
    ],
)
def test_attribute_ranges(qp, attr, words):
    before = qp.query()
    with pytest.raises(mrc.MrcUsageError, match=words):
        qp.modify(mrc.QpAttr(**attr))
    assert qp.query() == before


@pytest.mark.parametrize("field", [{"dest_qpn": 2}, {"path_mtu": 1500}, {"dport": 0}])
def test_address_vector_ranges(qp, field):
    vector = mrc.QpAttr(src=ADDR[0], dst=ADDR[1], dport=1, dest_qpn=9, path_mtu=1024)
    with pytest.raises(mrc.MrcUsageError):
        qp.modify(replace(vector, **field))
    qp.modify(vector)
    assert qp.query().dst == ADDR[1]
    assert "path_mtu        : 1024" in str(qp.query())


def test_posting_needs_rts_and_receiving_needs_init(sides, pd, cq, qp):
    with pytest.raises(mrc.MrcUsageError):
        qp.post_send(mrc.SendWr(1, 0, 0, 0, 0, 0))
    a, _ = sides
    with pytest.raises(mrc.MrcUsageError, match="out of range"):
        a.qp.post_send(mrc.SendWr(1, 0, 0, -1, 0, 0))


def test_qpns_zero_to_two_are_never_handed_out(pd, cq):
    """Field report 6, A.4."""
    for _ in range(300):
        with mrc.QueuePair(pd, cq, cq) as qp:
            assert 2 < qp.qpn <= 0xFFFFFF


def test_write_between_two_contexts(sides):
    a, b = sides
    source, target = bytearray(range(256)) * 40, bytearray(10_240)
    src, dst = mrc.MemoryRegion(a.pd, source), mrc.MemoryRegion(b.pd, target)
    assert b.qp.post_recv([77]) == 1
    wr = mrc.SendWr(
        5, src.addr, dst.addr, 10_240, src.lkey, dst.rkey, 42, mrc.WrOpcode.RDMA_WRITE_WITH_IMM
    )
    assert a.qp.post_send(wr) == 1
    with pytest.raises(mrc.MrcUsageError, match="in use"):
        src.close()
    done = completions(sides, a.cq, 1)
    assert target == source
    assert done == [
        mrc.WorkCompletion(
            5, a.qp.qpn, 10_240, 0, mrc.WcStatus.SUCCESS, mrc.WcOpcode.RDMA_WRITE, mrc.WcFlags.NONE
        )
    ]
    (received,) = b.cq.poll()
    assert (received.wr_id, received.imm, received.byte_len) == (77, 42, 10_240)
    assert received.flags & mrc.WcFlags.WITH_IMM
    assert a.qp.stats().bytes_acked == 10_240
    assert b.qp.stats().bytes_received == 10_240
    assert sum(p.bytes_sent for p in a.path.stats()) >= 10_240
    src.close()


def test_send_queue_takes_what_fits(sides):
    a, b = sides
    src = mrc.MemoryRegion(a.pd, bytearray(10))
    dst = mrc.MemoryRegion(b.pd, bytearray(10))
    wrs = [mrc.SendWr(i, src.addr, dst.addr, 10, src.lkey, dst.rkey) for i in range(100)]
    taken = a.qp.post_send(wrs)
    assert taken == 64
    with pytest.raises(mrc.MrcResourceError, match="full"):
        a.qp.post_send(wrs[taken:])
    assert [wc.wr_id for wc in completions(sides, a.cq, taken)] == list(range(64))
    assert a.qp.post_send(wrs[taken:]) == 36
    assert [wc.wr_id for wc in completions(sides, a.cq, 36)] == list(range(64, 100))


def test_bad_local_memory_is_refused_at_posting(sides):
    a, b = sides
    src = mrc.MemoryRegion(a.pd, bytearray(10))
    dst = mrc.MemoryRegion(b.pd, bytearray(10))
    for wr in (
        mrc.SendWr(1, src.addr + 1, dst.addr, 10, src.lkey, dst.rkey),
        mrc.SendWr(1, src.addr, dst.addr, 10, src.lkey ^ 0x10000, dst.rkey),
    ):
        with pytest.raises(mrc.MrcUsageError):
            a.qp.post_send(wr)
    assert a.qp.stats().sq_used == 0


def test_destroy_flushes_every_request_once(sides):
    """Field report 47: completions of a destroyed queue pair can still be polled."""
    a, b = sides
    src = mrc.MemoryRegion(a.pd, bytearray(10))
    dst = mrc.MemoryRegion(b.pd, bytearray(10))
    wrs = [mrc.SendWr(i, src.addr, dst.addr, 10, src.lkey, dst.rkey) for i in range(50)]
    a.qp.post_send(wrs)
    a.qp.post_recv([1000, 1001])
    a.qp.close()
    flushed = list(a.cq.poll(256))
    assert [wc.wr_id for wc in flushed] == [*range(50), 1000, 1001]
    assert {wc.status for wc in flushed} == {mrc.WcStatus.WR_FLUSH_ERR}
    assert len(a.cq.poll(256)) == 0
    src.close()


def test_completion_queue_overrun_is_never_silent():
    wire = MemWire(1024, 1)
    a, b = Side(wire, 0), Side(wire, 1)
    with a.ctx, b.ctx:
        small = mrc.CompletionQueue(a.ctx, 4)
        a.qp.close()
        a.qp = mrc.QueuePair(a.pd, small, small)
        a.connect(b)
        a.qp.post_recv(range(50))
        a.qp.close()
        assert small.overrun


def test_batches(sides):
    a, _ = sides
    batch = mrc.WcBatch(8)
    assert a.cq.poll(batch) is batch
    assert len(batch) == 0
    assert list(batch) == []
    with pytest.raises(mrc.MrcUsageError):
        mrc.WcBatch(0)


# ---- ports, paths, controllers -------------------------------------------------------------


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
    "bad", [{"kind": mrc.CcKind.FIXED}, {"link_bps": 0}, {"base_rtt_ns": 0}, {"window": -1}]
)
def test_controller_profiles(bad):
    with pytest.raises(mrc.MrcUsageError):
        mrc.CcProfile(**bad)


def test_controller_mtu(context):
    with pytest.raises(mrc.MrcUsageError, match="1500"):
        mrc.Controller(context, mrc.CcProfile(), 1500)
