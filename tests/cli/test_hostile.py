# SPDX-License-Identifier: BSD-2-Clause
"""A client that does not keep to the rules: refused in words, and the receiver goes on."""

from __future__ import annotations

import asyncio

import pytest

from mrc.cli.exits import Exit
from mrc.cli.protocol import PROTOCOL, TestParams

from .conftest import Side

HELLO = {"protocol": PROTOCOL, "version": "0", "session": "s", "stream": 1, "streams": 1}
START = TestParams(
    test=0, kind="bulk", size=64, depth=2, verify=True, imm=False, bidir=False, seed=1, messages=0
).as_json()


class Rogue:
    """Connections made by hand to a receiver."""

    def __init__(self, pair) -> None:
        self.pair = pair
        self.receiving = pair.receive("-i 0 --idle-timeout 5")

    async def dial(self, hello=HELLO):
        await self.pair.net.listening.wait()
        conn = await self.pair.net.connect("h", 1)
        conn.advertise("mrc-test-0", conn.register(bytearray(4096)))
        if hello is not None:
            assert "refused" not in await self.ask(conn, "hello", hello)
        return conn

    async def ask(self, conn, method, params):
        return await conn.call(method, params, timeout=5)

    async def still_serving(self) -> None:
        """An honest client is served once the rogue has gone."""
        for conn in self.pair.net.clients:
            await conn.close(timeout=1)
        async with asyncio.timeout(10):
            while True:
                side = await self.pair.sender("-n 5 -i 0", Side("mrc-send"))
                if side.code == Exit.OK:
                    break
                assert "busy" in side.json["error"]  # a test of the rogue is not given up yet
        self.pair.recv.stop.request("done")
        await self.receiving
        assert self.pair.recv.code == Exit.INTERRUPTED


@pytest.fixture
async def rogue(pair) -> Rogue:
    return Rogue(pair)


@pytest.mark.parametrize(
    "change",
    [
        {"protocol": 2},
        {"protocol": None},
        {"session": 5},
        {"stream": 0},
        {"stream": 2},
        {"stream": "1"},
        {"streams": 10**9},
        {"streams": None},
    ],
)
async def test_bad_hello(rogue, change):
    conn = await rogue.dial(hello=None)
    assert "refused" in await rogue.ask(conn, "hello", {**HELLO, **change})
    await rogue.still_serving()


async def test_hello_twice(rogue):
    conn = await rogue.dial()
    assert "refused" in await rogue.ask(conn, "hello", HELLO)
    await rogue.still_serving()


@pytest.mark.parametrize(
    "change", [{"size": 1 << 31, "depth": 1024}, {"kind": "x"}, {"size": 0}, {"depth": None}]
)
async def test_bad_start(rogue, change):
    conn = await rogue.dial()
    assert "refused" in await rogue.ask(conn, "start", {**START, **change})
    await rogue.still_serving()


async def test_start_twice_and_connections_that_differ(rogue):
    hello = {**HELLO, "streams": 2}
    first, second = await rogue.dial(hello), await rogue.dial({**hello, "stream": 2})
    assert await rogue.ask(first, "start", START) == {}
    assert "refused" in await rogue.ask(first, "start", START)
    assert "refused" in await rogue.ask(second, "start", {**START, "size": 65})
    assert "refused" in await rogue.ask(first, "finish", {"messages": 0, "bytes": 0})
    await rogue.still_serving()


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("finish", {}),
        ("finish", {"messages": "1", "bytes": 0}),
        ("go", {}),
        ("file", {}),
        ("file-end", {"sha256": 5}),
    ],
)
async def test_calls_that_do_not_fit_the_test(rogue, method, params):
    conn = await rogue.dial()
    assert "refused" in await rogue.ask(conn, method, params)
    assert await rogue.ask(conn, "start", START) == {}
    assert "refused" in await rogue.ask(conn, method, params)
    await rogue.still_serving()


@pytest.mark.parametrize(
    "file",
    [
        {"name": 5, "size": 1},
        {"name": "x", "size": -1},
        {"size": 1},
        {"name": "x", "size": 1 << 70},
        {"name": "x", "size": True},
    ],
)
async def test_bad_files(rogue, file):
    conn = await rogue.dial()
    assert await rogue.ask(conn, "start", {**START, "kind": "file"}) == {}
    assert "refused" in await rogue.ask(conn, "file", file)
    assert "refused" in await rogue.ask(conn, "file-end", {"sha256": "0" * 64})
    assert await rogue.ask(conn, "file", {"name": "x", "size": 0}) == {"name": "x"}
    assert "refused" in await rogue.ask(conn, "file", {"name": "y", "size": 0})
    await rogue.still_serving()


async def test_messages_nobody_asked_for(rogue, wait_for):
    conn = await rogue.dial()
    mr = conn.register(bytearray(64))
    await conn.write_nowait(mr, mr, length=1, imm=0)
    await wait_for(lambda: conn.lost is not None)
    await rogue.still_serving()


async def test_a_wrong_message_number_is_an_error_of_the_data(rogue):
    conn = await rogue.dial()
    await rogue.ask(conn, "start", START)
    ring = await conn.remote_region("mrc-test-0", timeout=5)
    await conn.write_nowait(conn.register(bytearray(64)), ring, length=64, imm=77)
    reply = await rogue.ask(conn, "finish", {"messages": 1, "bytes": 64})
    assert "immediate 77 came where 0 was due" in reply["stream"]["errors"][0]
    assert reply["stream"]["error_count"] == 2  # the data, too, is none of ours
    await rogue.still_serving()
