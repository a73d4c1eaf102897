# SPDX-License-Identifier: BSD-2-Clause
"""What is said while one waits, and of what a run did not come to: nothing ends in silence."""

from __future__ import annotations

import asyncio
import io
import re
from typing import Any

import pytest

from mrc.cli import tables
from mrc.cli.exits import Exit
from mrc.cli.human import HumanOutput
from mrc.cli.output import Lines


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr("mrc.cli.waiting.SAY_AFTER_S", 0.02)
    monkeypatch.setattr("mrc.cli.waiting.SAY_AGAIN_S", 0.02)


@pytest.fixture
def notes(pair, monkeypatch):
    """What the sender says in between."""
    heard: list[str] = []
    monkeypatch.setattr(pair.send.output, "note", heard.append)
    return heard


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("-s 1000", r"1[456] messages \(1[345]\.\d KBytes\) still out"),
        ("-s 1000 --no-verify", r"16 messages \(15\.6 KBytes\) still out"),
        ("-s 1000 -P 2", r"\d+ messages \(\d+\.\d KBytes\) still out"),
        ("--latency", "the answer to the last message is still out"),
    ],
)
async def test_after_its_time_a_run_says_what_it_waits_for(pair, wait_for, notes, args, says):
    pair.net.stall_at = 1

    async def during():
        await wait_for(lambda: sum("time is over" in note for note in notes) >= 2)
        pair.net.release()

    await pair.run(f"-t 0.05 -i 0 {args}", during=during)
    assert pair.send.code == Exit.OK
    assert re.fullmatch(f"the time is over: {says}", notes[-1])


async def test_what_is_not_checked_yet_is_waited_for_by_that_name(pair, wait_for, notes):
    """All messages are complete; the receiver's credit is what does not come."""

    async def during():
        await wait_for(lambda: bool(pair.net.clients))
        client = pair.net.clients[0]
        await wait_for(lambda: client.writes > 20)
        client.other.write_nowait = lambda *_, **__: asyncio.get_running_loop().create_future()
        await wait_for(lambda: any("time is over" in note for note in notes))
        client.lose()
        client.other.lose()

    await pair.run("-t 0.1 -i 0 -s 1000", during=during)
    assert "the receiver has yet to look at" in notes[-1]


async def test_whom_it_waits_for_at_the_start_and_how_long(pair, wait_for, notes, monkeypatch):
    connect = pair.net.connect
    held = asyncio.Event()

    async def slow(*args: Any, **options: Any) -> Any:
        await held.wait()
        return await connect(*args, **options)

    monkeypatch.setattr(pair.net, "connect", slow)

    async def during():
        await wait_for(lambda: len(notes) >= 2)
        held.set()

    await pair.run("-n 1 -i 0 -p 4711 --connect-timeout 7", during=during)
    assert pair.send.code == Exit.OK
    assert set(notes) == {"waiting for h port 4711, 7 seconds at most"}


async def test_nothing_is_said_by_a_run_that_need_not_wait(pair, monkeypatch, notes):
    monkeypatch.setattr("mrc.cli.waiting.SAY_AFTER_S", 10.0)
    await pair.run("-t 0.1 -i 0")
    assert notes == []


async def test_the_last_interval_is_what_remained(pair):
    await pair.run("-t 0.25 -s 1000 -i 0.1", "-1 -i 0.1")
    for side, key in ((pair.send, "sum_sent"), (pair.recv, "sum_received")):
        intervals = side.json["intervals"]
        ends = [one["sum"]["end"] for one in intervals]
        assert [one["sum"]["start"] for one in intervals] == [0, *ends[:-1]] or intervals[0]["sum"][
            "start"
        ] == pytest.approx(0, abs=0.05)
        assert len(intervals) >= 3
        assert sum(one["sum"]["bytes"] for one in intervals) == side.end[key]["bytes"]


async def test_a_run_shorter_than_an_interval_has_one(pair, wait_for):
    pair.net.stall_at = 5

    async def during():
        await wait_for(lambda: bool(pair.net.stalled))
        await asyncio.sleep(0.02)  # the shortest that is shown is 10 ms
        pair.net.release()

    await pair.run("-n 10 -s 1000 -i 60", "-1 -i 60", during=during)
    for side in (pair.send, pair.recv):
        (only,) = side.json["intervals"]
        assert only["sum"]["bytes"] == 10_000


async def test_what_the_client_got_twice_of_ours_is_told(pair, wait_for):
    pair.net.stall_at = 5

    async def during():
        await wait_for(lambda: bool(pair.net.stalled))
        pair.net.clients[0].other.counters["packets_retransmitted"] = 4
        pair.net.clients[0].counters["duplicates_received"] = 3
        pair.net.release()

    await pair.run("-n 10 -i 0", during=during)
    mrc = pair.recv.end["mrc"]
    assert (mrc["spurious_retransmits"], mrc["spurious_source"]) == (3, "receiver")


@pytest.mark.parametrize("ends", ["-n 4 -i 0", "--sweep 64:256 -n 4 -i 0"])
async def test_round_trips_of_a_report_are_those_of_its_test(pair, monkeypatch, ends):
    """Anew for each test of the receiver; at the sender a sweep is one report."""
    calls = {True: 0, False: 0}

    def anew(link: Any) -> None:
        calls[link.conn.passive] += 1

    monkeypatch.setattr("mrc.cli.link.Link.rtt_anew", anew)
    await pair.run(ends)
    assert calls == {False: 1, True: 3 if "sweep" in ends else 1}


def fault(t: float, what: str, *, on: bool = True) -> dict[str, Any]:
    return {"t": t, "what": what, "on": on, "late_ms": 0.1}


def event(t: float) -> dict[str, Any]:
    return {"t": t, "ev": 7, "plane": 1, "from": "GOOD", "to": "ASSUMED_BAD", "reason": "loss"}


def test_faults_and_changes_of_paths_stand_in_order_of_time():
    stream = io.StringIO()
    output = HumanOutput("mrc-send", Lines(stream))
    output._happened(
        [fault(0.2, "fail x"), fault(0.9, "fail x", on=False), fault(0.4, "loss y")],
        [event(0.5), event(0.3)],
    )
    times = [float(line.split()[0]) for line in stream.getvalue().splitlines()]
    assert times == [0.2, 0.3, 0.4, 0.5, 0.9]


@pytest.mark.parametrize(
    ("why", "says"),
    [("run_over", "the run was over before"), ("nothing_to_heal", "this run had nothing to heal")],
)
def test_what_came_to_nothing_is_named(why, says):
    line = tables.idle_fault_line({"what": "fail p1.t1.2@3s", "why": why})
    assert "fail p1.t1.2@3s: " in line
    assert says in line
