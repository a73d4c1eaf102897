# SPDX-License-Identifier: BSD-2-Clause
"""Whole runs of both commands over the stand-in: verdicts, exit codes, documents."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mrc.cli.exits import Exit

from .conftest import Side


async def test_every_message_is_compared(pair):
    await pair.run("-s 10000 -n 50 -i 0")
    assert pair.send.code == Exit.OK
    end = pair.send.end
    assert (end["verified"], end["interrupted"]) == (True, False)
    assert end["sum_sent"]["bytes"] == end["sum_received"]["bytes"] == 500_000
    assert end["streams"][0]["receiver"]["checked"] == 50
    assert pair.recv.code == Exit.OK
    assert pair.recv.end["verified"] is True


async def test_without_verify_nothing_is_called_verified(pair):
    await pair.run("-s 10000 -n 50 -i 0 --no-verify")
    assert (pair.send.code, pair.recv.code) == (Exit.OK, Exit.OK)
    assert pair.send.end["verified"] is False
    assert pair.send.end["sum_received"]["bytes"] == 500_000
    assert pair.net.clients[0].other.imms.empty()


async def test_imm_without_verify_counts_messages(pair):
    await pair.run("-s 100 -n 30 -i 0 --no-verify --imm")
    assert (
        pair.send.end["streams"][0]["receiver"] | {"messages": 30, "checked": 0}
        == (pair.send.end["streams"][0]["receiver"])
    )


@pytest.mark.parametrize(
    "load",
    [
        "",
        "-P 3",
        "--bidir",
        "--bidir -P 2",
        "--latency",
        "--latency -P 2",
        "--sweep 1:300",
        "--depth 1",
        "-s 1",
    ],
)
async def test_each_kind_of_load_is_verified(pair, load):
    await pair.run(f"-n 40 -i 0.05 --seed 7 {load}")
    assert pair.send.code == Exit.OK, pair.send.json
    assert pair.recv.code == Exit.OK, pair.recv.json
    assert pair.send.end["verified"] is True
    assert pair.send.end["errors"] == []


async def test_timed_run_stops_by_itself(pair):
    await pair.run("-t 0.2 -s 1000 -i 0.05")
    assert pair.send.code == Exit.OK
    assert 0.2 <= pair.send.end["sum_sent"]["seconds"] < 5
    assert len(pair.send.json["intervals"]) >= 2


async def test_sweep_reports_each_size_and_the_sum(pair):
    await pair.run("--sweep 64:1k -n 10 -i 0", "-1 -i 0")
    rows = pair.send.end["sweep"]
    assert [row["bytes"] for row in rows] == [64, 128, 256, 512, 1024]
    assert pair.send.end["sum_sent"]["bytes"] == 10 * sum(row["bytes"] for row in rows)
    assert len(pair.recv.json["previous"]) == 4


async def test_latency_percentiles_are_ordered(pair):
    await pair.run("--latency -n 100 -i 0")
    us = pair.send.end["latency_us"]
    assert us["samples"] == 100
    assert 0 < us["min"] <= us["p50"] <= us["p99"] <= us["p999"] <= us["max"]


async def test_parallel_connections_report_their_fairness(pair):
    await pair.run("-P 4 -n 10 -i 0")
    end = pair.send.end
    assert len(end["streams"]) == 4
    assert 0 < end["fairness"]["jain_index"] <= 1
    assert end["sum_received"]["bytes"] == 40 << 20


async def test_a_changed_byte_is_found_and_located(pair):
    pair.net.corrupt_write = 17
    await pair.run("-s 10000 -n 50 -i 0")
    assert (pair.send.code, pair.recv.code) == (Exit.FAILED, Exit.FAILED)
    assert pair.send.end["verified"] is False
    assert "message 17 differs from byte 5000 on" in pair.send.json["error"]
    assert pair.recv.end["verified"] is False


async def test_a_message_that_was_not_placed_is_found(pair):
    pair.net.skip_write = 20
    await pair.run("-s 10000 -n 50 -i 0")
    assert pair.send.code == Exit.FAILED
    assert "message 20 differs" in pair.send.json["error"]


async def test_long_messages_are_checked_in_pieces(pair, monkeypatch):
    monkeypatch.setattr("mrc.cli.bulk.BulkReceiver.CHECK_AT_ONCE", 1000)
    pair.net.corrupt_write = 3
    await pair.run("-s 9999 -n 20 -i 0")
    assert pair.send.code == Exit.FAILED
    assert "message 3 differs from byte 4999 on" in pair.send.json["error"]
    assert pair.send.json["error"].count("differs") == 1
    assert pair.send.end["streams"][0]["receiver"]["checked"] == 20


async def test_lost_bytes_are_found_without_verify(pair):
    pair.net.skip_write = 3
    await pair.run("-s 10000 -n 50 -i 0 --no-verify")
    assert pair.send.code == Exit.FAILED
    assert "500000 bytes sent, the receiver has 490000" in pair.send.json["error"]


async def test_a_changed_byte_on_the_way_back_is_found(pair):
    pair.net.corrupt_reverse = 0
    await pair.run("-s 1000 -n 20 -i 0 --bidir")
    assert pair.send.code == Exit.FAILED
    assert "message 0 differs from byte 500" in pair.send.json["error"]


async def test_with_a_count_both_directions_send_all(pair):
    await pair.run("-s 1000 -n 20 -i 0 --bidir")
    for key in ("sum_received", "sum_received_bidir_reverse", "sum_sent_bidir_reverse"):
        assert pair.send.end[key]["bytes"] == 20_000


async def test_nobody_listens(pair):
    side = Side("mrc-send")
    pair.net.listening.set()
    await pair.sender("-n 1", side)
    assert side.code == Exit.PEER
    assert side.json == {
        "start": {},
        "intervals": [],
        "end": {},
        "error": "peer: Connection refused",
    }


@pytest.mark.parametrize(("limit", "words"), [("1", "within 1 second"), ("0.2", "0.2 seconds")])
async def test_one_second_is_not_plural(pair, limit, words):
    await pair.receive(f"-1 --idle-timeout {limit}")
    assert pair.recv.json["error"].endswith(words)


async def test_one_off_with_idle_timeout_does_not_wait_for_ever(pair):
    async with asyncio.timeout(5):
        await pair.receive("-1 --idle-timeout 0.1")
    assert pair.recv.code == Exit.PEER
    assert "no client came" in pair.recv.json["error"]


async def test_a_second_client_is_told_that_the_receiver_is_busy(pair, wait_for):
    pair.net.stall_at = 5
    receiving = pair.receive("-1 -i 0")
    async with asyncio.timeout(20):
        first = asyncio.create_task(pair.sender("-n 50 -i 0"))
        await wait_for(lambda: bool(pair.net.stalled))
        second = await pair.sender("-n 1", Side("mrc-send"))
        assert second.code == Exit.PEER
        assert "busy with another client" in second.json["error"]
        pair.net.release()
        await asyncio.gather(first, receiving)
    assert (pair.send.code, pair.recv.code) == (Exit.OK, Exit.OK)


_REFUSALS: list[Any] = [[], None, {"refused": "no", "code": "x"}, {"refused": None, "code": 99}]
_RESULTS: list[Any] = [{}, {"stream": 3}, {"stream": {}}, {"stream": {"bytes": -1}, "cpu": []}]


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        *((method, answer) for method in ("hello", "start", "finish") for answer in _REFUSALS),
        *(("finish", answer) for answer in _RESULTS),
    ],
)
async def test_nonsense_from_the_receiver_is_no_crash(pair, method, answer):
    pair.net.answers[method] = answer
    await pair.run("-n 3 -i 0", "-i 0 --idle-timeout 1")
    assert pair.send.code == Exit.PEER
    assert pair.send.json["error"]


async def test_another_test_protocol_is_refused_in_words(pair, monkeypatch):
    monkeypatch.setattr("mrc.cli.client.PROTOCOL", 99)
    await pair.run("-n 1", "-1 --idle-timeout 1")
    assert pair.send.code == Exit.PEER
    assert "has test protocol 1" in pair.send.json["error"]


@pytest.mark.parametrize(("sent_again", "spurious"), [(5, 3), (2, 2)])
async def test_what_the_receiver_got_twice_was_sent_in_vain(pair, wait_for, sent_again, spurious):
    """A copy made by the network is not ours: never more than were sent again."""
    pair.net.stall_at = 5

    async def during():
        await wait_for(lambda: bool(pair.net.stalled))
        pair.net.clients[0].counters["packets_retransmitted"] = sent_again
        pair.net.clients[0].counters["spurious_retransmits"] = 1
        pair.net.clients[0].other.counters["duplicates_received"] = 3
        pair.net.release()

    await pair.run("-n 10 -i 0", during=during)
    mrc = pair.send.end["mrc"]
    assert (mrc["spurious_retransmits"], mrc["spurious_source"]) == (spurious, "receiver")


async def test_options_reach_the_library(pair):
    await pair.run(
        "-n 1 -P 2 -e 4 --sport-base 50000 --mtu 1024 --cc fixed --window 64k "
        "--train 3 --start-psn 0xfffff0 --seed 5 --depth 8 --udp-port 5000 "
        "--no-dynamic-mpr --timestamps --pump loop"
    )
    first, second = pair.net.dialled
    expected = {
        "evs": 4,
        "sport_base": 50000,
        "mtu": 1024,
        "cc": "fixed",
        "window": 65536,
        "train": 3,
        "start_psn": 0xFFFFF0,
        "seed": 5,
        "udp_port": 5000,
        "dynamic_mpr": False,
        "timestamps": True,
        "mode": "mrc",
        "pump": "loop",
    }
    assert first | expected == first
    assert "context" not in first
    assert second["context"] is pair.net.clients[0].context


async def test_clients_one_right_after_the_other(pair):
    """The next one is at the door while the receiver still puts away what the last one used."""
    pair.net.farewell_s = 0.05
    receiving = pair.receive("-i 0")
    async with asyncio.timeout(20):
        for _ in range(5):
            side = await pair.sender("-n 3 -i 0", Side("mrc-send"))
            assert side.code == Exit.OK, side.json
        pair.recv.stop.request("enough")
        await receiving
