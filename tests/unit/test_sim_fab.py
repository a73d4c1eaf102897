# SPDX-License-Identifier: BSD-2-Clause
"""The wrapper of the emulated fabric: tables in, columns out, refusals."""

import subprocess
import sys

import pytest

from mrc.errors import MrcUsageError
from mrc.sim._fab import Emulation
from mrc.sim._tables import (
    Bulk,
    Cc,
    Config,
    Drop,
    Ev,
    EventKind,
    FlowCol,
    Knob,
    LinkCol,
    Messages,
    MsgCol,
    PathCol,
    Qp,
    SwitchKnob,
    Tier,
)
from mrc.types import EvState, WcStatus

MSEC = 1_000_000
EVS = [Ev.of(i % 2, i // 2, 49152 + i) for i in range(4)]
CC = Cc(mtu_bytes=4096, link_bps=20 * 10**9, base_rtt_ns=25_000)


def config(**change):
    values = {
        "planes": 2,
        "t0": 2,
        "t1": 2,
        "hosts": 2,
        "rate_bps": 10**10,
        "delay_ns": 2000,
        "queue_bytes": 200_000,
        "verify": True,
    }
    return Config(**(values | change))


def make(messages=None, bulks=(), qp=None, **change):
    return Emulation(
        config(**change),
        ev_sets=[EVS],
        ccs=[CC],
        qps=[qp or Qp(a=0, b=1, timeout=9)],
        messages=messages,
        bulks=bulks,
    )


def test_messages_run_in_the_order_of_their_table():
    table = Messages()
    first = table.add(0, 100_000)
    second = table.add(1, 50_000, after=first, delay_ns=7_000)
    table.add(0, 0, after=first, after2=second)
    with make(table) as emu:
        emu.run_until(100 * MSEC, stop_when_done=True)
        assert emu.messages_left == 0
        emu.run_until(emu.now_ns + MSEC)
        rows = emu.messages()
        started, arrived = (rows.column(c) for c in (MsgCol.STARTED_NS, MsgCol.ARRIVED_NS))
        assert started[0] == 0
        assert started[1] == arrived[0] + 7_000
        assert started[2] == max(arrived[0], arrived[1])
        done = rows.column(MsgCol.DONE_NS)
        assert all(a < d < emu.NEVER for a, d in zip(arrived, done, strict=True))
        assert set(rows.column(MsgCol.STATUS)) == {WcStatus.SUCCESS}
        assert emu.flows().column(FlowCol.DELIVERED) == [100_000, 50_000]
        assert emu.flows().as_dict(0)[FlowCol.MESSAGES] == 2


def test_what_has_not_happened_is_never():
    table = Messages()
    table.add(0, 1000, delay_ns=MSEC)
    with make(table) as emu:
        emu.run_until(MSEC - 1)
        assert emu.now_ns == MSEC - 1
        assert set(emu.messages()[0][:3]) == {emu.NEVER}
        assert emu.messages_left == 1


def test_bulk_fills_the_fabric_and_stops():
    with make(bulks=[Bulk(flow=0, bytes=1 << 18, stop_ns=5 * MSEC)]) as emu:
        emu.run_until(5 * MSEC)
        seconds, payload = 5e-3, emu.flows(0, 1)[0][FlowCol.DELIVERED]
        framing = 4096 / (4096 + 124)  # MRC A.1: 84 bytes and the outer header
        assert 0.9 * framing < payload * 8 / seconds / 20e9 <= framing
        emu.run_until(10 * MSEC)
        done = emu.flows(0, 1)[0][FlowCol.DELIVERED]
        emu.run_until(20 * MSEC)
        assert emu.flows(0, 1)[0][FlowCol.DELIVERED] == done
        assert emu.flows(0, 1)[0][FlowCol.OUTSTANDING] == 0


def run_with_a_cut(seed):
    """Both T1 cables of one path cut at 1 ms, healed at 3 ms."""
    with make(bulks=[Bulk(flow=0, bytes=1 << 16, stop_ns=8 * MSEC)], seed=seed) as emu:
        cut = emu.link(Tier.T0_T1, 0, 0, 1)
        emu.run_until(MSEC)
        emu.set_link(cut, Knob.CUT, 1)
        emu.run_until(3 * MSEC)
        emu.set_link(cut, Knob.CUT, 0)
        emu.run_until(20 * MSEC)
        return emu.trace_hash, emu.take_events(), emu.totals(), emu.paths(0), emu.flows()


def test_a_silent_cut_is_an_event_of_its_ev_alone():
    _, events, totals, paths, flows = run_with_a_cut(1)
    told = [e for e in events if e.kind is EventKind.EV]
    assert {(e.host, e.peer, e.ev) for e in told} == {(0, 1, EVS[2].ev)}
    assert [e.to_state for e in told] == [EvState.ASSUMED_BAD, EvState.GOOD]
    assert MSEC < told[0].time_ns < 3 * MSEC < told[1].time_ns < 20 * MSEC
    assert totals.dropped[Drop.CUT] > 0
    assert totals.dropped[Drop.CUT] == sum(totals.dropped.values())
    assert totals.sent == totals.delivered + totals.dropped[Drop.CUT]
    row = paths.as_dict(2)
    assert row[PathCol.EV] == EVS[2].ev
    assert row[PathCol.PLANE] == 1
    assert row[PathCol.BAD_SINCE_NS] == told[0].time_ns
    assert sum(paths.column(PathCol.SENT)) == flows[0][FlowCol.SENT]


def test_one_seed_is_one_run():
    first, again, other = (run_with_a_cut(seed) for seed in (1, 1, 2))
    assert first[0] == again[0]
    assert first[1] == again[1]
    assert first[2] == again[2]
    assert first[0] != other[0]


def test_links_and_switches_are_found_and_set():
    with make(bulks=[Bulk(flow=0, bytes=1 << 16)]) as emu:
        links = {emu.link(t, p, a) for t in list(Tier)[:2] for p in range(2) for a in range(2)}
        links |= {
            emu.link(t, p, a, b)
            for t in list(Tier)[2:]
            for p in range(2)
            for a in range(2)
            for b in range(2)
        }
        assert links == set(range(emu.sizes().links))
        emu.run_until(MSEC)
        table = emu.links(reset_peaks=True)
        assert table[emu.link(Tier.HOST_UP, 0, 0)][LinkCol.PEAK] > 0
        assert table[emu.link(Tier.HOST_UP, 0, 0)][LinkCol.BYTES] > 10 * table[1][LinkCol.BYTES]
        emu.set_switch(emu.switch(0, 1, t1=True), SwitchKnob.STOPPED, on=True)
        emu.run_until(2 * MSEC)
        assert emu.totals().dropped[Drop.STOPPED] > 0
        assert emu.drops(1)  # a dict of reasons
        assert sum(emu.drops(1).values()) == 0


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda e: e.link(Tier.T0_T1, 0, 0, 2), "no link T0_T1 0, 2 in plane 0"),
        (lambda e: e.link(Tier.HOST_UP, 2, 0), "plane 2"),
        (lambda e: e.link(Tier.HOST_UP, -1, 0), "plane -1"),
        (lambda e: e.switch(0, 2, t1=False), "no T0 2"),
        (lambda e: e.set_link(10_000, Knob.CUT, 1), "link 10000"),
        (lambda e: e.set_link(0, Knob.LOSS_PPM, 1_000_001), "LOSS_PPM cannot be 1000001"),
        (lambda e: e.set_link(0, Knob.TRIM_PPM, 5), "TRIM_PPM"),  # this fabric does not trim
        (lambda e: e.set_switch(99, SwitchKnob.OFF, on=True), "no switch 99"),
        (lambda e: e.run_until(-1), "no time"),
        (lambda e: e.paths(2), "no flow 2"),
        (lambda e: e.drops(2), "no host 2"),
    ],
)
def test_what_is_not_there_is_refused(call, says):
    with make() as emu, pytest.raises(MrcUsageError, match=says):
        call(emu)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"planes": 16}, "planes are 1 to 15"),
        ({"planes": 9, "number_bits": 9}, "to 8 with wide numbers"),
        ({"hosts": 1}, "2 hosts"),
        ({"t1": 256}, "more switches"),
        ({"hosts": 9, "hosts_per_t0": 4}, "more hosts"),
        ({"rate_bps": 0}, "1 kbit/s"),
        ({"trim_bytes": 100}, "trim_bytes"),
        ({"mark_lo_bytes": 2, "mark_hi_bytes": 1}, "above the upper"),
        ({"planes": 1}, "EV 1"),
        ({"qp": Qp(a=0, b=0)}, "queue pair 0"),
        ({"qp": Qp(a=0, b=2)}, "queue pair 0"),
        ({"qp": Qp(a=0, b=1, cc=1)}, "queue pair 0"),
        ({"qp": Qp(a=0, b=1, mtu=1000)}, "queue pair 0"),
        ({"qp": Qp(a=0, b=1, evs=1)}, "no EV profile 1"),
        ({"bulks": [Bulk(flow=2, bytes=1)]}, "bulk flow 0"),
        ({"bulks": [Bulk(flow=0, bytes=1)] * 2}, "bulk flow 1"),
    ],
)
def test_tables_that_make_no_sense_are_refused(change, says):
    with pytest.raises(MrcUsageError, match=says):
        make(**change)


@pytest.mark.parametrize("after", [1, 7])
def test_a_message_cannot_wait_for_itself_or_for_nothing(after):
    table = Messages()
    table.add(0, 1)
    table.add(0, 1, after=after)
    with pytest.raises(MrcUsageError, match="message 1"):
        make(table)


def test_a_closed_emulation_says_so():
    emu = make()
    emu.close()
    emu.close()
    with pytest.raises(MrcUsageError, match="closed"):
        emu.run_until(1)


def test_the_transport_does_not_load_it():
    code = "import sys, mrc, mrc.aio; sys.exit('mrc._sim' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
