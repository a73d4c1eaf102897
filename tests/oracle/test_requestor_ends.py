# SPDX-License-Identifier: BSD-2-Clause
"""How long the core's requestor bears silence, and where refused packets go, to the nanosecond."""

from dataclasses import replace
from typing import Any

import pytest

from mrc.model import psn, wire
from mrc.model.ends import Ends
from mrc.model.retry import Schedule
from mrc.model.wire import NackReason, Op, Packet
from tests.oracle.engine_core import DSCP_CONTROL, Options, Wired
from tests.oracle.sending import Judged
from tests.oracle.test_requestor import RequestorMachine

PEER = 0x654321
START, KEY = 1 << 40, 0xABCD
CONTROL = DSCP_CONTROL << 2


def connected(**options: Any) -> Judged:
    """Return a requestor whose peer is whoever answers."""
    me = Judged(replace(Options(0), **options), 1_000_000)
    me.connect(PEER, (START, KEY))
    return me


SCHEDULES = [(8, 3, 5), (8, 0, 0), (10, 7, 2), (14, 3, 5), (6, 1, 12)]


@pytest.mark.parametrize("retry", SCHEDULES)
def test_black_hole(retry: tuple[int, int, int]) -> None:
    """B.9, to the nanosecond: T(0), T(1), ... and the end; (14, 3, 5) is its example of 66 x T0."""
    schedule = Schedule(*retry)
    me = connected(timeout=retry[0], linear_cnt=retry[1], exp_cnt=retry[2], evs=6, planes=3)
    me.post(100, 0, None, signaled=True, solicited=False)
    start, sent = me.core.now, [w for w in me.send() if w.packet.reth]
    assert len(sent) == 1
    times = []
    while not me.core.failed:
        me.wait(me.core.deadline)
        times += [me.core.now - start for w in me.send() if w.packet.reth]
    retries = retry[1] + retry[2]
    assert times == [schedule.span_ns(0, i) for i in range(retries)]
    assert me.core.now - start == schedule.span_ns(0, retries)
    if retry == (14, 3, 5):
        assert me.core.now - start == 66 * (1024 << 14)


@pytest.mark.parametrize("pause", [1, 1_000, 100_000, 300_000])
def test_many_packets_give_up_no_sooner_than_one_and_not_much_later(pause: int) -> None:
    """B.9: a black hole is borne for T(0), T(1), ... one after the other, however many are out."""
    me = connected(timeout=8, linear_cnt=3, exp_cnt=5, evs=6, planes=3)
    start = me.core.now
    for _ in range(5):
        me.post(100, 0, None, signaled=True, solicited=False)
        me.send()
        me.wait(me.core.now + pause)
    while not me.core.failed:
        me.wait(me.core.deadline)
        me.send()
    took, schedule = me.core.now - start, Schedule(8, 3, 5)
    span = schedule.span_ns(0, 8)
    assert span <= took <= 2 * (span + schedule.timer_ns(0)) + 5 * pause


def probed_only(me: Judged) -> int:
    """A peer that gets probes and no data, until the queue pair ends; -> copies of data."""
    ends, copies = Ends(PEER, me.core.qpn, 256), 0
    while not me.core.failed:
        for w in me.send():
            copies += w.packet.reth is not None
            if (probe := w.packet.peth) is None:
                continue
            me.wait(me.core.now + 20_000)
            cack = psn.wrap(me.model.setup.sq_psn - 1)
            seth = wire.Seth(
                pr=1,
                ack_psn_offset=(probe.probe_id ^ 0x8000) - 0x8000,
                entropy=w.ev,
                cack_psn=cack,
                sack_offset=1,
            )
            state = wire.CcState(tx_timestamp=probe.tx_timestamp)
            me.hear(
                Wired(Packet(ends.bth(Op.SACK, cack), seth=seth, cc_state=state), w.ev, CONTROL)
            )
        if not me.core.failed:
            me.wait(me.core.deadline)
    return copies


def test_probes_that_are_answered_do_not_keep_data_alive() -> None:
    """ADR 72: four copies by probes, then the timer; and silence about data has an end."""
    me = connected(timeout=12, linear_cnt=1, exp_cnt=1, evs=4, planes=2)
    me.post(100, 0, None, signaled=True, solicited=False)
    assert probed_only(me) <= 1 + 4 + 2
    assert me.core.now - 1_000_000 <= 4 * Schedule(12, 1, 1).span_ns(0, 2)


def test_an_interval_that_grows_meanwhile_brings_one_question() -> None:
    """B.6: reports that take longer stretch T while the wait for a transport ACK goes on."""
    machine = RequestorMachine()
    machine.start(
        first=0,
        window=0,
        wimm=1,
        retry=(8, 3, 5),
        evs=(1, 1),
        classes=False,
        timestamps=False,
        dynamic=False,
        hostile=False,
    )
    machine.post(kind="write", length=0, offset=0, signaled=False, times=1)
    machine.no_transport_ack_arrives(times=1)
    machine.me.send()  # the first question is lost
    for pause in (174_764, 0):  # two thirds of T0: what is then reported makes T 2 ns longer
        machine.post(kind="write", length=0, offset=0, signaled=False, times=1)
        machine.me.wait(machine.me.core.now)
        machine.me.wait(machine.me.core.now + pause)
    machine.no_transport_ack_arrives(times=2)


def test_a_transport_ack_that_never_comes_ends_the_wait() -> None:
    """B.6, ADR 72: a budget of its own, which news of later requests does not refill."""
    me = connected(timeout=10, linear_cnt=1, exp_cnt=1, evs=4, planes=2)
    ends, start, arrived = Ends(PEER, me.core.qpn, 256), me.core.now, 0
    while not me.core.failed:
        me.post(100, 0, None, signaled=True, solicited=False)
        for w in me.send():
            if w.packet.reth is None or w.packet.bth.rtx:
                continue
            arrived += 1
            cack = w.packet.bth.psn
            seth = wire.Seth(entropy=w.ev, cack_psn=cack, sack_offset=1)
            state = wire.CcState(rcvd_bytes=arrived)
            me.hear(
                Wired(Packet(ends.bth(Op.SACK, cack), seth=seth, cc_state=state), w.ev, CONTROL)
            )
        me.wait(me.core.now + 300_000)
    span = Schedule(10, 1, 1).span_ns(0, 2)
    assert span <= me.core.now - start <= span + 300_000


@pytest.mark.parametrize("evs", [(2, 1), (3, 3), (8, 2)])
def test_refused_packets_leave_on_another_ev(evs: tuple[int, int]) -> None:
    """B.2, B.7: TRIMMED_LASTHOP leaves the EV good, and yet the copy does not take it again."""
    me = connected(evs=evs[0], planes=evs[1], exp_cnt=25)
    me.post(60 * 256, 0, None, signaled=True, solicited=False)
    ends = Ends(PEER, me.core.qpn, 256)
    refused = me.send()
    assert len(refused) == 60
    for w in refused:
        said = {"nack_psn": w.packet.bth.psn, "nack_reason": NackReason.TRIMMED_LASTHOP}
        nack = Packet(ends.bth(Op.NACK, said["nack_psn"]), neth=wire.Neth(entropy=w.ev, **said))
        me.hear(Wired(nack, w.ev, CONTROL))
        (again,) = me.send()
        assert again.packet.bth.psn == w.packet.bth.psn
        assert again.ev != w.ev
