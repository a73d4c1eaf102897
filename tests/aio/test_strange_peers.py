# SPDX-License-Identifier: BSD-2-Clause
"""Peers made by hand on the TCP channel: what they say costs them their connection, no one else."""

from __future__ import annotations

import asyncio
import json
from ipaddress import IPv6Address
from typing import Any, NamedTuple

import pytest

import mrc
from mrc import exchange
from mrc import server as server_module
from mrc.admission import Admission
from mrc.channel import Channel
from mrc.oob import ConnectionInfo, FrameError, QpInfo, decode_body, encode_frame, hello

from .conftest import until


class Rogue(NamedTuple):
    """One TCP stream to a server, and what has been said on it so far is up to the test."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def say(self, **message: Any) -> None:
        self.writer.write(encode_frame(message))

    def raw(self, body: bytes) -> None:
        self.writer.write(len(body).to_bytes(4, "big") + body)

    async def hear(self) -> dict[str, Any]:
        async with asyncio.timeout(5):
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            heard = json.loads(await self.reader.readexactly(size))
        assert isinstance(heard, dict)
        return heard


async def knock(server: mrc.Server) -> Rogue:
    return Rogue(*await asyncio.open_connection("::1", server.sockname[1]))


def greeting(udp_port: int = 4791, **fields: Any) -> dict[str, Any]:
    return hello(ConnectionInfo(QpInfo(IPv6Address("::1"), 100, 5, udp_port), **fields))


async def join(server: mrc.Server, **fields: Any) -> tuple[Rogue, mrc.Connection]:
    """A rogue that has kept to the rules up to here, and our end of it."""
    rogue = await knock(server)
    rogue.say(**greeting(**fields))
    assert (await rogue.hear())["type"] == "hello"
    rogue.say(type="ready")
    return rogue, await server.accept(5)


BIG = b"1" * 5000  # more digits than Python makes an integer of

FIRST = {
    "big integer": b'{"oob":' + BIG + b"}",
    "negative": b'{"oob":-' + BIG + b"}",
    **{
        f"zone {zone!r}": json.dumps(
            {
                **greeting(),
                "info": {
                    **greeting()["info"],
                    "qp": {"gid": f"fe80::1%{zone}", "qpn": 100, "psn": 5, "udp_port": 4791},
                },
            }
        ).encode()
        for zone in ("a\0b", "\ud800", "lo", "1")
    },
}


@pytest.mark.parametrize("body", FIRST.values(), ids=FIRST.keys())
async def test_no_first_message_leaves_a_stream_open(body):
    async with await mrc.listen("[::1]:0") as server:
        rogue = await knock(server)
        rogue.raw(body)
        assert await asyncio.wait_for(rogue.reader.read(), 5) == b""
        assert (server.strangers, server.refused) == (1, 0)
        rogue.writer.close()


async def test_what_nobody_foresaw_is_closed_counted_and_reported(monkeypatch):
    def broken(*_args):
        raise ZeroDivisionError

    reports = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report))
    monkeypatch.setattr(server_module, "parse_hello", broken)
    async with await mrc.listen("[::1]:0") as server:
        rogue = await knock(server)
        rogue.say(**greeting())
        assert await asyncio.wait_for(rogue.reader.read(), 5) == b""
        assert server.refusals == {"internal error: ZeroDivisionError": 1}
        rogue.writer.close()
    assert [type(report["exception"]) for report in reports] == [ZeroDivisionError]


LATER = {
    "big integer": b'{"type":' + BIG + b"}",
    "a list as id": b'{"type":"answer","id":[1]}',
    "an object as id": b'{"type":"answer","id":{},"result":{}}',
}


@pytest.mark.parametrize("body", LATER.values(), ids=LATER.keys())
async def test_a_message_that_makes_no_sense_loses_the_connection(body):
    async with await mrc.listen("[::1]:0") as server:
        rogue, conn = await join(server)
        rogue.raw(body)
        assert isinstance(await conn.wait_closed(5), mrc.MrcPeerLost)
        with pytest.raises(mrc.MrcPeerLost):
            await conn.call("anything", timeout=5)
        await conn.close(0)
        rogue.writer.close()


async def test_a_fault_of_ours_in_reading_loses_the_connection(monkeypatch):
    async with await mrc.listen("[::1]:0") as server:
        rogue, conn = await join(server)
        monkeypatch.setattr(conn._calls, "on_answer", lambda _: 1 // 0)
        rogue.say(type="answer", id=1)
        assert isinstance(await conn.wait_closed(5), mrc.MrcPeerLost)
        await conn.close(0)
        rogue.writer.close()


async def test_tables_are_shared_with_whom_they_came_from(monkeypatch):
    """A host that speaks for another's address: nothing of what it says holds for that one."""
    async with await mrc.listen("[::1]:0") as server:
        monkeypatch.setattr(exchange, "host_of", lambda _: "elsewhere")
        liar, theirs = await join(server, ports_up=0)
        monkeypatch.undo()
        victim, honest = await join(server)
        assert honest.path is not theirs.path
        assert honest.qp.query("cc").cc != theirs.qp.query("cc").cc
        assert honest.path.planes().remote_up == 0xFFFFFFFE
        again, second = await join(server)
        assert second.path is honest.path
        assert honest.qp.query("cc").cc == second.qp.query("cc").cc
        for end in (theirs, honest, second):
            await end.close(0)
        for rogue in (liar, victim, again):
            rogue.writer.close()


async def test_a_new_hello_says_anew_which_planes_are_up():
    async with await mrc.listen("[::1]:0") as server:
        first, one = await join(server, ports_up=0)
        assert one.path.planes().remote_up == 0
        second, two = await join(server)
        assert two.path is one.path
        assert two.path.planes().remote_up == 0xFFFFFFFE
        for end in (one, two):
            await end.close(0)
        for rogue in (first, second):
            rogue.writer.close()


async def test_no_peer_chooses_a_privileged_port_of_ours():
    async with await mrc.listen("[::1]:0") as server:
        rogue, conn = await join(server, evs=4, sport_base=53)
        assert min(entry.source_port for entry in conn.path.profile) == 1024
        await conn.close(0)
        rogue.writer.close()


async def test_reasons_that_peers_choose_do_not_pile_up():
    async with await mrc.listen("[::1]:0") as server:
        for number in range(3):
            rogue = await knock(server)
            rogue.say(type="refuse", oob=1, reason=f"reason {number}")
            await rogue.hear()
            rogue.writer.close()
        assert server.refusals == {"refused by the peer": 3}
        for number in range(server_module._REASONS_MAX + 10):
            rogue = await knock(server)
            rogue.say(type="hello", oob=100 + number)
            await rogue.hear()
            rogue.writer.close()
        assert len(server.refusals) == server_module._REASONS_MAX + 1
        assert server.refusals["other reasons"] == 11


async def test_words_of_a_peer_are_one_printable_line(raises_with):
    async def refuse(reader, writer):
        words = "\x1b]0;x\x07\r\nmrc-send: all is well \u202e\ud800"
        writer.write(encode_frame({"type": "refuse", "oob": 1, "reason": words}))
        await reader.read()
        writer.close()

    server = await asyncio.start_server(refuse, "::1", 0)
    async with server:
        told = r"\x1b]0;x\x07\r\nmrc-send: all is well \u202e\ud800"
        with raises_with(mrc.MrcHandshakeError, "refused by the peer: " + told):
            await mrc.connect("::1", server.sockets[0].getsockname()[1], timeout=5)


async def test_a_channel_that_ends_at_ready_leaves_nothing(monkeypatch):
    send = Channel.send

    def fail_at_ready(self, message):
        if message["type"] == "ready":
            raise mrc.MrcPeerLost("gone")
        send(self, message)

    monkeypatch.setattr(Channel, "send", fail_at_ready)
    with mrc.Context() as ctx:
        async with await mrc.listen("[::1]:0") as server:
            with pytest.raises(mrc.MrcPeerLost, match="gone"):
                await mrc.connect("::1", server.sockname[1], context=ctx, timeout=5)
            assert (len(ctx.pds), len(ctx.cqs), len(ctx.paths)) == (0, 0, 0)


# ---- memory, descriptors, time -------------------------------------------------------------


async def served(rogue: Rogue, conn: mrc.Connection) -> None:
    """The connection still works: what was asked before it has been dealt with."""

    async def echo(params):
        return params

    conn.serve("echo", echo)
    rogue.say(type="call", id=99, method="echo", params={})
    assert (await rogue.hear())["id"] == 99


async def test_calls_that_nobody_serves_hold_little_memory():
    """Few bytes of JSON are many of memory: the values count, not the messages."""
    async with await mrc.listen("[::1]:0") as server:
        rogue, conn = await join(server)
        params: dict[str, Any] = {"a": [[]] * 25_000}
        for number in range(5):
            rogue.say(type="call", id=number, method="nobody", params=params)
        told = [await rogue.hear() for _ in range(3)]  # two fit
        assert [each["id"] for each in told] == [2, 3, 4]
        assert all("nobody serves" in each["error"] for each in told)
        await served(rogue, conn)
        await conn.close(0)
        rogue.writer.close()


async def test_calls_that_run_hold_bounded_memory():
    async with await mrc.listen("[::1]:0") as server:
        rogue, conn = await join(server)
        go = asyncio.Event()

        async def wait(_params):
            await go.wait()

        conn.serve("wait", wait)
        for number in range(6):
            rogue.say(type="call", id=number, method="wait", params={"a": [[]] * 120_000})
        refused = [await rogue.hear() for _ in range(2)]
        assert [each["id"] for each in refused] == [4, 5]
        assert all("memory" in each["error"] for each in refused)
        go.set()
        assert sorted([(await rogue.hear())["id"] for _ in range(4)]) == [0, 1, 2, 3]
        await conn.close(0)
        rogue.writer.close()


def test_a_message_has_bounded_values():
    body = b'{"a":[' + b"[]," * 300_000 + b"[]]}"
    with pytest.raises(FrameError, match="values"):
        decode_body(body)
    with pytest.raises(FrameError, match="values"):
        encode_frame({"a": [[]] * 300_000})


async def test_the_silent_make_room_for_the_honest():
    """All from one address, as the busiest one pays first."""
    async with await mrc.listen("[::1]:0") as server:
        silent = [await knock(server) for _ in range(300)]
        conn, accepted = await asyncio.gather(
            mrc.connect("::1", server.sockname[1], timeout=5), server.accept(5)
        )
        assert server.refusals == {"too many connections are being set up": 45}
        await asyncio.gather(conn.close(), accepted.close())
        for rogue in silent:
            rogue.writer.close()


async def test_lanes_of_one_host_leave_room_for_others():
    """What does not fit waits; something smaller, and another host, go first."""
    admission = Admission()
    admission._lanes_max = 512
    inside: list[str] = []
    leave = asyncio.Event()

    async def enter(name: str, host: str, count: int) -> None:
        async with admission.lanes(host, count):
            inside.append(name)
            await leave.wait()

    asked = (("a1", "a", 256), ("a2", "a", 256), ("a3", "a", 16), ("b1", "b", 128))
    async with asyncio.TaskGroup() as group:
        for each in asked:
            group.create_task(enter(*each))
        for _ in range(5):
            await asyncio.sleep(0)
        assert inside == ["a1", "a3", "b1"]
        leave.set()
    assert inside == ["a1", "a3", "b1", "a2"]
    assert not admission._lanes


async def test_lanes_are_held_until_ready(monkeypatch):
    async with await mrc.listen("[::1]:0") as server:
        server._admission._lanes_max = 512
        greedy = [await knock(server) for _ in range(3)]
        for number, rogue in enumerate(greedy):
            rogue.say(**greeting(5000 + number, evs=4096))
            if number == 0:
                assert (await rogue.hear())["type"] == "hello"
        conn, accepted = await asyncio.gather(
            mrc.connect("::1", server.sockname[1], timeout=5), server.accept(5)
        )
        assert len(server.context.paths) == 2
        await asyncio.gather(conn.close(), accepted.close())
        for rogue in greedy:
            rogue.writer.close()


async def test_close_ends_in_time_when_the_peer_does_not_read():
    async with await mrc.listen("[::1]:0") as server:
        rogue, conn = await join(server)
        rogue.reader._transport.pause_reading()  # type: ignore[attr-defined]

        async def much(_params):
            return {"x": "y" * 1_000_000}

        conn.serve("much", much)
        for number in range(14):
            rogue.say(type="call", id=number, method="much", params={})
        queued = conn._channel._writer.transport.get_write_buffer_size
        await until(lambda: queued() > 5 << 20)
        await asyncio.wait_for(conn.close(0.2), 5)
        rogue.writer.transport.abort()


async def test_the_unaccepted_are_closed_together():
    server = await mrc.listen("[::1]:0")
    rogues = []
    for _ in range(8):
        rogue = await knock(server)
        rogue.say(**greeting())
        assert (await rogue.hear())["type"] == "hello"
        rogue.say(type="ready")
        rogues.append(rogue)
    await until(lambda: len(server._accepted) == 8)
    server.close()
    await server.wait_closed(5)  # each has a second for its goodbye
    for rogue in rogues:
        rogue.writer.close()
