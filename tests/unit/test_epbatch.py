# SPDX-License-Identifier: BSD-2-Clause
"""The endpoint batch call (C.7): ids, order of arrival, what is missing, what is refused."""

from __future__ import annotations

import asyncio
import errno
import threading
from dataclasses import replace

import pytest

import mrc
from mrc._core import MemWire
from mrc.controller import (
    BatchResult,
    EndpointOp,
    EndpointRequest,
    NodeController,
    NodeLimits,
    OptAttr,
    send_and_wait,
)
from mrc.endpoint import CONTROL_CLASS, ID_MAX, IN_FLIGHT
from mrc.epbatch import Batch

from .sides import Side

SECOND = 1_000_000_000


@pytest.fixture
def answering(sides):
    """The first side, while a thread turns the second."""
    stop = threading.Event()

    def turn():
        while not stop.is_set():
            sides[1].ctx.wait(5)

    thread = threading.Thread(target=turn)
    thread.start()
    yield sides[0]
    stop.set()
    thread.join()


def requests(side, *ids):
    evs = [e.value for e in side.path.profile]
    return [EndpointRequest(number, side.path, evs[i % len(evs)]) for i, number in enumerate(ids)]


def test_every_request_has_its_answer(answering):
    ids = [5, 0xEFFF, 0, 77]
    result = send_and_wait(answering.ctx, requests(answering, *ids), timeout_ns=5 * SECOND)
    assert result.error == 0
    assert result.missing == ()
    assert sorted(r.request_id for r in result.responses) == sorted(ids)
    for response in result.responses:
        assert 0 < response.rtt_ns < 5 * SECOND
        assert (response.port, response.adjusted) == (1, False)


def test_the_port_of_an_answer_is_the_plane_it_came_by():
    """1-based (C.7): the plane of the EV it came on, and 0 where that is one of the peer's own."""
    for theirs, back in ((None, {1, 2}), (mrc.EvProfile.udp(4, sport_base=50000), {0})):
        wire = MemWire(1024, 1)
        a, b = Side(wire, 0), Side(wire, 1)
        a.connect(b, mrc.EvProfile.udp(4, planes=2))
        b.connect(a, theirs or mrc.EvProfile.udp(4, planes=2))
        with a.ctx, b.ctx:
            evs = [e.value for e in a.path.profile]
            ids = a.ctx.endpoint.post(a.path.number, evs, timeout_ns=SECOND)
            found: list[mrc.ProbeResult] = []
            while len(found) < len(ids):
                b.ctx.turn()
                a.ctx.turn()
                found += [result for _, result in a.ctx.endpoint.poll()]
        assert {r.port for r in found} == back
        if theirs is None:
            assert all(r.port == r.plane for r in found)


def test_calls_one_after_the_other_keep_the_pace_together(answering):
    """What a peer answers it counts for all who ask; a call of its own pace would outrun it."""
    pace = answering.ctx.endpoint.pace
    send_and_wait(answering.ctx, requests(answering, *range(100)), timeout_ns=5 * SECOND)
    batch = Batch(
        answering.ctx,
        requests(answering, *range(200, 500)),
        op=EndpointOp.EV_PROBE,
        timeout_ns=5 * SECOND,
        dscp=CONTROL_CLASS,
    )
    now = answering.ctx.now()
    for _ in range(1000 * IN_FLIGHT):  # seconds ahead: no pause of the machine is as long
        pace.sent(now)
    batch.post()
    assert batch.early_ns > 0
    assert not batch.done
    batch.drop()


def test_more_than_fit_at_a_time(answering):
    ids = list(range(1000))
    result = send_and_wait(answering.ctx, requests(answering, *ids), timeout_ns=20 * SECOND)
    assert sorted(r.request_id for r in result.responses) == ids
    assert send_and_wait(answering.ctx, [], timeout_ns=1) == BatchResult((), ())


def test_what_is_missing_is_in_the_result(sides):
    """Nobody turns the other side."""
    result = send_and_wait(sides[0].ctx, requests(sides[0], 1, 2), timeout_ns=20_000_000)
    assert result.responses == ()
    assert sorted(result.missing) == [1, 2]
    assert result.error == errno.ETIMEDOUT


def test_a_path_that_is_dead(answering, sides):
    evs = [e.value for e in answering.path.profile]
    sides[0].wire.faults(loss_ppm=1_000_000, ev=evs[1])
    result = send_and_wait(answering.ctx, requests(answering, 1, 2, 3, 4), timeout_ns=SECOND // 5)
    assert {r.request_id for r in result.responses} == {1, 3, 4}
    assert result.missing == (2,)
    assert result.error == errno.ETIMEDOUT


def test_answers_are_in_order_of_arrival(sides):
    """Not in that of the requests; results handed over as the endpoint gives them."""
    batch = Batch(
        sides[0].ctx,
        requests(sides[0], 1, 2, 3),
        op=EndpointOp.EV_PROBE,
        timeout_ns=SECOND,
        dscp=CONTROL_CLASS,
    )
    batch.post()
    assert not batch.done
    for number, rtt in ((3, 7), (1, None), (2, 9)):
        assert batch.take(number, mrc.ProbeResult(0, 1, rtt, 0, adjusted=number == 3))
    assert not batch.take(3, mrc.ProbeResult(0, 1, 7, 0)), "once"
    assert not batch.take(99, mrc.ProbeResult(0, 1, 7, 0)), "none of ours"
    assert batch.done
    result = batch.result()
    assert [(r.request_id, r.rtt_ns, r.adjusted) for r in result.responses] == [
        (3, 7, True),
        (2, 9, False),
    ]
    assert result.missing == (1,)


def test_what_there_was_no_time_to_send_is_missing(sides):
    ctx = sides[0].ctx
    batch = Batch(ctx, requests(sides[0], 1), op=EndpointOp.EV_PROBE, timeout_ns=1, dscp=46)
    while ctx.now() <= batch.ends_ns:
        pass
    batch.post()
    assert batch.done
    assert batch.result() == BatchResult((), (1,))


def test_port_status_by_hand(answering, sides):
    (request,) = requests(answering, 1)
    request = EndpointRequest(1, request.path, request.ev, port_status_mask=0b10)
    result = send_and_wait(
        answering.ctx, [request], op=EndpointOp.PORT_STATUS, timeout_ns=5 * SECOND
    )
    assert result.error == 0
    other = sides[1]
    assert other.path.planes().remote_up == 0b10


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"request_id": ID_MAX + 1}, "request id 61440 is not in 0..0xefff"),
        ({"request_id": -1}, "request id -1 is not in"),
        ({"request_id": 2}, "request id 2 occurs twice"),
        ({"ev": 1}, "request 1: no EV is 0x1"),
    ],
)
def test_requests_that_cannot_be(sides, refused, change, words):
    first, second = requests(sides[0], 1, 2)
    values = {"request_id": first.request_id, "path": first.path, "ev": first.ev}
    with refused(errno.EINVAL, words):
        send_and_wait(
            sides[0].ctx, [EndpointRequest(**(values | change)), second], timeout_ns=SECOND
        )
    assert sides[0].path.stats()[0].probes_sent == 0


def test_calls_that_cannot_be(sides, refused):
    ctx, some = sides[0].ctx, requests(sides[0], 1)
    for timeout in (0, 60 * SECOND + 1):
        with refused(errno.EINVAL, "timeout"):
            send_and_wait(ctx, some, timeout_ns=timeout)
    with refused(errno.EINVAL, "class 64"):
        send_and_wait(ctx, some, timeout_ns=1, dscp=64)
    with refused(errno.EINVAL, "no path table of this context"):
        send_and_wait(sides[1].ctx, some, timeout_ns=1)
    ctx.endpoint.post_one(
        sides[0].path.number, some[0].ev, 1, timeout_ns=SECOND, dscp=CONTROL_CLASS
    )
    with refused(errno.EAGAIN, "request 1"):
        send_and_wait(ctx, some, timeout_ns=SECOND)


def test_a_failed_port_is_eio(sides, refused, monkeypatch):
    def broken(timeout_ms):
        raise OSError(errno.ENETDOWN, "gone")

    monkeypatch.setattr(sides[0].ctx, "wait", broken)
    with refused(errno.EIO, "a port failed"):
        send_and_wait(sides[0].ctx, requests(sides[0], 1), timeout_ns=SECOND)


def test_a_node_without_ev_probes(sides, refused):
    node = NodeController(sides[0].ctx, limits=NodeLimits(opt_attr=OptAttr(0)))
    with refused(errno.ENOTSUP, "no EV probes"):
        node.send_and_wait(requests(sides[0], 1), timeout_ns=SECOND)
    node.close()


def test_through_the_node(answering):
    node = NodeController(answering.ctx)
    assert node.send_and_wait(requests(answering, 1), timeout_ns=5 * SECOND).error == 0
    node.close()


async def test_in_asyncio():
    """The driver's prober does it, beside probes of its own."""
    pair = await mrc.mem_pair(evs=4)
    async with pair:
        a, b = pair.a, pair.b
        prober = mrc.Prober.of(a.context)
        evs = [s.ev for s in a.path_stats()]
        some = [EndpointRequest(i, a.path, evs[i % 4]) for i in range(200)]
        with pytest.raises(mrc.MrcControlError, match="asyncio drives"):
            send_and_wait(a.context, some, timeout_ns=SECOND)
        first, second, own = await asyncio.gather(
            prober.send_and_wait(some, timeout_ns=5 * SECOND),
            prober.send_and_wait([EndpointRequest(0xE000, a.path, evs[0])], timeout_ns=5 * SECOND),
            b.probe_paths(),
        )
        assert sorted(r.request_id for r in first.responses) == list(range(200))
        assert [r.request_id for r in second.responses] == [0xE000]
        assert all(r.rtt_ns is not None for r in own)


# ---- EVs that were replaced; ids of other calls ------------------------------------------------


def replaced(side):
    """The first EV of the path table became another, which its profile object does not know."""
    old = side.path.stats()[0].ev
    side.path.replace(old, replace(next(iter(side.path.profile)), value=old ^ 0x0800))
    return old, old ^ 0x0800


def test_the_table_says_which_evs_there_are(answering, refused):
    old, new = replaced(answering)
    fine = EndpointRequest(1, answering.path, new)
    assert send_and_wait(answering.ctx, [fine], timeout_ns=5 * SECOND).error == 0
    with refused(errno.EINVAL, "request 3: no EV is"):
        send_and_wait(
            answering.ctx,
            [EndpointRequest(2, answering.path, new), EndpointRequest(3, answering.path, old)],
            timeout_ns=SECOND,
        )
    again = [EndpointRequest(2, answering.path, new)]  # nothing was sent: its id is free
    assert send_and_wait(answering.ctx, again, timeout_ns=5 * SECOND).error == 0


def test_an_id_in_use_is_refused_before_anything_is_sent(sides, refused):
    ctx, some = sides[0].ctx, requests(sides[0], 1, 2, 3)
    first = Batch(ctx, some[2:], op=EndpointOp.EV_PROBE, timeout_ns=SECOND, dscp=CONTROL_CLASS)
    with refused(errno.EAGAIN, "request 3"):
        send_and_wait(ctx, some, timeout_ns=SECOND)
    assert ctx.endpoint.in_use == {3}
    first.drop()
    assert ctx.endpoint.in_use == set()


def test_an_ev_replaced_during_the_call_is_missing(sides):
    ctx, some = sides[0].ctx, requests(sides[0], 1, 2)
    batch = Batch(ctx, some, op=EndpointOp.EV_PROBE, timeout_ns=SECOND, dscp=CONTROL_CLASS)
    replaced(sides[0])
    batch.post()
    assert batch.result().missing == (1, 2)
    assert ctx.endpoint.in_use == {1, 2}
    batch.drop()
    assert ctx.endpoint.in_use == {2}  # on its way


@pytest.mark.parametrize(
    "more", [{"request_id": 1.0}, {"ev": "1"}, {"port_status_mask": 1 << 40}, {"path": None}]
)
def test_requests_of_the_wrong_type(sides, refused, more):
    (one,) = requests(sides[0], 1)
    with refused(errno.EINVAL, ""):
        send_and_wait(sides[0].ctx, [replace(one, **more)], timeout_ns=SECOND)
    with refused(errno.EINVAL, ""):
        send_and_wait(sides[0].ctx, [one], timeout_ns=float("nan"))  # type: ignore[arg-type]
