# SPDX-License-Identifier: BSD-2-Clause
"""Queue pairs and completion queues: states, attributes, posting, flushing."""

from __future__ import annotations

from dataclasses import replace

import pytest

import mrc
from mrc._core import MemWire

from .sides import ADDR, Side, completions


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


@pytest.mark.parametrize(
    ("attr", "words"),
    [
        ({"rx_penalty": 200}, "rx_penalty: out of range"),
        ({"access": 8}, "access: out of range"),
        ({"mpr_dest": 4}, "mpr_dest: fixed from RTR on, without dynamic MPR"),
    ],
)
def test_what_c_refuses_is_named(sides, attr, words):
    a, _ = sides
    with pytest.raises(mrc.MrcUsageError, match=words):
        a.qp.modify(mrc.QpAttr(**attr))


@pytest.mark.parametrize(
    ("attr", "words"),
    [
        ({"cap": 8}, "cap: out of range"),
        ({"version": 2}, "version: out of range"),
        ({"path": 77}, "path: no such object"),
        ({"hint": 77}, "hint: no such object"),
        ({"cc": 77}, "cc: out of range"),
    ],
)
def test_what_c_refuses_before_data_is_named(qp, attr, words):
    qp.modify(mrc.QpAttr(state=mrc.QpState.INIT, access=mrc.Access.LOCAL_WRITE))
    with pytest.raises(mrc.MrcUsageError, match=words):
        qp.modify(mrc.QpAttr(**attr))


@pytest.mark.parametrize("field", [{"dest_qpn": 2}, {"path_mtu": 1500}, {"dport": 0}])
def test_address_vector_ranges(qp, field):
    vector = mrc.QpAttr(src=ADDR[0], dst=ADDR[1], dport=1, dest_qpn=9, path_mtu=1024)
    with pytest.raises(mrc.MrcUsageError):
        qp.modify(replace(vector, **field))


def test_attributes_as_text(sides):
    found = sides[0].qp.query()
    assert found.dst == ADDR[1]
    assert "path_mtu        : 1024" in str(found)


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


def test_a_batch_is_posted_as_it_is_packed(sides):
    a, b = sides
    src = mrc.MemoryRegion(a.pd, bytearray(b"0123456789"))
    dst = mrc.MemoryRegion(b.pd, bytearray(100))
    batch = mrc.SendBatch(70)
    for i in range(70):
        to = dst.addr + 10 * (i % 10)
        batch.put(i, mrc.SendWr(i, src.addr, to, 10, src.lkey, dst.rkey))
    taken = a.qp.post_send(batch)
    assert 64 <= taken <= 70  # as many as the queue has room for; a thread makes room meanwhile
    found = completions(sides, a.cq, taken)
    while taken < 70:
        more = a.qp.post_send(batch, first=taken)
        found += completions(sides, a.cq, more)
        taken += more
    assert [wc.wr_id for wc in found] == list(range(70))
    assert dst.buffer == src.buffer * 10


def test_a_batch_has_the_places_it_has(sides):
    qp = sides[0].qp
    batch = mrc.SendBatch(2)
    wr = mrc.SendWr(1, 0, 0, 0, 0, 0)
    for call in (
        lambda: mrc.SendBatch(0),
        lambda: batch.put(2, wr),
        lambda: batch.put(-1, wr),
        lambda: qp.post_send(batch, first=3),
        lambda: qp.post_send(batch, first=-1),
        lambda: qp.post_send(wr, first=1),
    ):
        with pytest.raises(mrc.MrcUsageError):
            call()


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
        with pytest.raises(mrc.MrcUsageError, match="completion queue has overrun"):
            mrc.QueuePair(a.pd, small, a.cq)


def test_batches(sides):
    a, _ = sides
    batch = mrc.WcBatch(8)
    assert a.cq.poll(batch) is batch
    assert len(batch) == 0
    assert list(batch) == []
    with pytest.raises(mrc.MrcUsageError):
        mrc.WcBatch(0)
