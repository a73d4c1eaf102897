# SPDX-License-Identifier: BSD-2-Clause
"""Runs that end early: interrupted, vanished, silent. What both ends then say."""

from __future__ import annotations

import asyncio
import io

from mrc.cli import tables
from mrc.cli.exits import Exit
from mrc.cli.human import HumanOutput
from mrc.cli.output import Lines

from .conftest import Side


async def test_a_vanished_sender_is_reported_and_the_next_one_served(pair, wait_for):
    pair.net.stall_at = 5
    receiving = pair.receive("-i 0")
    async with asyncio.timeout(20):
        first = asyncio.create_task(pair.sender("-n 50"))
        await wait_for(lambda: bool(pair.net.stalled))
        pair.net.clients[0].other.lose()  # as a killed process looks from the receiver
        await wait_for(
            lambda: "lost during the test: the peer vanished" in str(pair.recv.output.document)
        )
        pair.net.clients[0].lose()
        await first
        pair.net.stall_at = None
        second = await pair.sender("-n 50 -i 0", Side("mrc-send"))
        pair.recv.stop.request("enough")
        await receiving
    assert second.code == Exit.OK
    report = pair.recv.json
    assert report["end"]["verified"] is True
    assert "vanished" in report["previous"][0]["error"]
    assert report["previous"][0]["end"]["verified"] is False
    assert pair.recv.code == Exit.INTERRUPTED


async def test_drops_of_one_test_are_not_those_of_the_next(pair, wait_for):
    receiving = pair.receive("-i 0")
    async with asyncio.timeout(20):
        for lost in (5, 0):
            side = Side("mrc-send")
            pair.net.stall_at = 5
            sending = asyncio.create_task(pair.sender("-n 50 -i 0", side))
            await wait_for(lambda: bool(pair.net.stalled))
            pair.net.drops += lost
            pair.net.release()
            await sending
            assert side.code == Exit.OK
            assert side.end["ports"][0]["rx_socket_drops"] == lost
        pair.recv.stop.request("enough")
        await receiving
    first, second = pair.recv.json["previous"][0]["end"], pair.recv.end
    assert (first["ports"][0]["rx_socket_drops"], first["drops"]) == (5, {"icrc": 5})
    assert (second["ports"][0]["rx_socket_drops"], second["drops"]) == (0, {})
    assert list(tables.port_lines(second["ports"], second["drops"])) == []


async def test_a_client_that_says_goodbye_did_not_vanish(pair, wait_for):
    pair.net.stall_at = 5

    async def during():
        await wait_for(lambda: bool(pair.net.stalled))
        await pair.net.clients[0].close(timeout=1)

    await pair.run("-n 50 -i 0", during=during)
    assert pair.recv.json["error"] == "the client left during the test"


async def test_a_vanished_receiver_ends_the_sender_with_what_it_knows(pair, wait_for):
    pair.net.stall_at = 20

    async def during():
        await wait_for(lambda: bool(pair.net.stalled))
        await wait_for(lambda: pair.net.clients[0].counters["bytes_acked"] == 20_000)
        pair.net.clients[0].lose("the peer vanished")
        pair.net.clients[0].other.lose()

    await pair.run("-s 1000 -n 50 -i 0", during=during)
    assert pair.send.code == Exit.PEER
    assert "vanished" in pair.send.json["error"]
    assert pair.send.end["verified"] is False
    assert (
        pair.send.end["sum_received"] | {"bytes": 20_000, "source": "acknowledged"}
        == (pair.send.end["sum_received"])
    )


async def test_a_silent_client_is_given_up_within_the_idle_timeout(pair):
    pair.net.stall_at = 5
    await pair.run("-n 50 -i 0", "-1 -i 0 --idle-timeout 0.3")
    assert pair.recv.code == Exit.PEER
    assert "silent for 0.3 seconds" in pair.recv.json["error"]
    assert pair.send.code == Exit.PEER
    assert "silent" in pair.send.json["error"]


async def test_interrupted_sender_still_knows_what_arrived(pair, wait_for):
    """Field reports 72, 73: cut short, the report is strict JSON with every field."""

    async def during():
        await wait_for(lambda: pair.net.clients and pair.net.clients[0].counters["bytes_acked"] > 0)
        pair.send.stop.request("interrupted by SIGINT")

    await pair.run("-t 60 -s 1000 -i 0", during=during)
    assert pair.send.code == Exit.INTERRUPTED
    assert pair.send.json["error"] == "interrupted by SIGINT"
    end = pair.send.end
    assert end["sum_sent"]["bytes"] == end["sum_received"]["bytes"] > 0
    for report in (end, pair.recv.end):
        assert (report["verified"], report["interrupted"]) == (True, True)
        assert tables.verified_line(report).startswith("interrupted; every byte")
    assert pair.recv.code == Exit.OK


async def test_what_a_lost_receiver_could_not_tell_is_not_called_received(pair, wait_for):
    pair.net.stall_at = 4

    async def during():
        await wait_for(lambda: bool(pair.net.stalled))
        pair.net.clients[0].lose()
        pair.net.clients[0].other.lose()

    await pair.run("-s 1000 -n 50 -i 0 --bidir", during=during)
    end = pair.send.end
    assert end["mrc"]["spurious_source"] == "sender"
    text = io.StringIO()
    HumanOutput("mrc-send", Lines(text)).end(end)
    labels = [line.split("  ")[0] for line in text.getvalue().splitlines()]
    assert "acknowledged" in labels
    assert not {"received", "sent back"} & set(labels)


async def test_an_interrupted_sweep_says_so(pair, wait_for):
    async def during():
        await wait_for(lambda: pair.net.clients and pair.net.clients[0].counters["bytes_acked"] > 0)
        pair.send.stop.request("interrupted by SIGINT")

    await pair.run("--sweep 1k:4k -t 60 -i 0", during=during)
    assert pair.send.end["interrupted"] is True
    assert len(pair.send.end["sweep"]) == 1


async def test_interrupted_while_nothing_moves(pair, wait_for, monkeypatch):
    monkeypatch.setattr("mrc.cli.client.STOP_GRACE_S", 0.05)
    pair.net.stall_at = 10

    async def during():
        await wait_for(lambda: bool(pair.net.stalled))
        await wait_for(lambda: pair.net.clients[0].counters["bytes_acked"] == 10_000)
        pair.send.stop.request("interrupted by SIGTERM")

    await pair.run("-t 60 -s 1000 -i 0", during=during)
    assert pair.send.code == Exit.INTERRUPTED
    assert pair.send.end["sum_sent"]["bytes"] == 10_000
    assert pair.send.end["verified"] is False
    assert pair.recv.code == Exit.PEER


async def test_interrupted_receiver_tells_the_sender(pair, wait_for):
    async def during():
        await wait_for(lambda: pair.net.clients and pair.net.clients[0].counters["bytes_acked"] > 0)
        pair.recv.stop.request("interrupted by SIGINT")

    await pair.run("-t 60 -s 1000 -i 0", during=during)
    assert pair.recv.code == Exit.INTERRUPTED
    assert pair.recv.end["sum_received"]["bytes"] > 0
    assert pair.send.code == Exit.PEER
    assert "the receiver was stopped" in pair.send.json["error"]


async def test_no_progress_at_all_is_noticed(pair, monkeypatch):
    monkeypatch.setattr("mrc.cli.client.SILENCE_S", 0.2)
    pair.net.stall_at = 5
    await pair.run("-n 50 -i 0")
    assert pair.send.code == Exit.PEER
    assert "no progress" in pair.send.json["error"]


def test_nothing_a_peer_says_moves_the_cursor(capsys):
    """Field of every sentence: escapes and line ends of the other side are shown, not obeyed."""
    words = "\x1b]0;x\x07\r\nmrc-recv: all is well \u202e"
    shown = r"\x1b]0;x\x07\r\nmrc-recv: all is well \u202e"
    text = io.StringIO()
    output = HumanOutput("mrc-recv", Lines(text))
    output.error(words)
    output.note(words)
    output._line(words)
    out = capsys.readouterr().err + text.getvalue()
    assert out.count(shown) == 3
    assert not set(out) & {"\x1b", "\x07", "\r", "\u202e"}
