# SPDX-License-Identifier: BSD-2-Clause
"""Listening, and everyone who may knock."""

from __future__ import annotations

import asyncio
import json
import os
import socket

import pytest

import mrc
from mrc import server as server_module
from mrc.oob import encode_frame
from mrc.server import _split


async def ask(port: int, data: bytes, *, end: bool = False) -> bytes:
    """Send bytes to the out-of-band port, and read until it is closed."""
    reader, writer = await asyncio.open_connection("::1", port)
    writer.write(data)
    if end:
        writer.write_eof()
    try:
        return await asyncio.wait_for(reader.read(), 5)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def frame(**message) -> bytes:
    return encode_frame(message)


async def works(server) -> None:
    """The server still does its work."""
    port = server.sockname[1]
    a, b = await asyncio.gather(mrc.connect("::1", port), server.accept(timeout=5))
    local = a.register(bytearray(b"ok"))
    target = bytearray(2)
    b.advertise("t", b.register(target))
    await a.write(local, await a.remote_region("t", timeout=5), timeout=5)
    assert target == b"ok"
    await a.close()
    await b.close()


STRANGERS = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "huge length": b"\xff\xff\xff\xff" + b"x" * 100,
    "above the hello limit": (1 << 20).to_bytes(4, "big"),
    "random": bytes(range(256)) * 4,
    "not an object": b"\x00\x00\x00\x02[]",
    "not strict": b"\x00\x00\x00\x0b" + b'{"oob":NaN}',
    "not utf-8": b"\x00\x00\x00\x02\xff\xfe",
    "deep": (60_000).to_bytes(4, "big") + b"[" * 60_000,
    "key twice": b"\x00\x00\x00\x11" + b'{"oob":1,"oob":1}',
    "no hello": frame(type="ready", oob=1),
    "hello without info": frame(type="hello", oob=1),
    "hello with bad info": frame(type="hello", oob=1, info={"qp": {"gid": "::1", "qpn": 1}}),
    "multicast gid": frame(
        type="hello",
        oob=1,
        info={"path_mtu": 4096, "qp": {"gid": "ff02::1", "qpn": 9, "psn": 0, "udp_port": 4791}},
    ),
}


@pytest.mark.parametrize("data", STRANGERS.values(), ids=STRANGERS.keys())
async def test_strangers_are_closed_and_counted(data):
    async with await mrc.listen("[::1]:0") as server:
        assert await ask(server.sockname[1], data) == b""
        assert server.strangers == 1
        assert server.refused == 0
        await works(server)


async def test_half_a_frame_and_nothing_at_all():
    async with await mrc.listen("[::1]:0") as server:
        port = server.sockname[1]
        assert await ask(port, b"\x00\x00", end=True) == b""
        assert await ask(port, b"", end=True) == b""
        assert server.strangers == 2
        await works(server)


async def test_silence_is_closed_after_a_time(monkeypatch):
    monkeypatch.setattr(server_module, "_HELLO_SECONDS", 0.05)
    async with await mrc.listen("[::1]:0") as server:
        assert await ask(server.sockname[1], b"") == b""
        assert server.strangers == 1


async def test_other_version_is_told_so():
    async with await mrc.listen("[::1]:0") as server:
        answer = await ask(server.sockname[1], frame(type="hello", oob=7, info={}))
        told = json.loads(answer[4:])
        assert told["type"] == "refuse"
        assert told["reason"] == "peer speaks mrc oob version 7, we speak 1"
        assert server.refusals == {told["reason"]: 1}
        await works(server)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (frame(type="hello", oob=7, info={}), "peer speaks mrc oob version 7, we speak 1"),
        (frame(type="refuse", oob=1, reason="not today"), "not today"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak mrc oob"),
        (b"", "ended the out-of-band exchange"),
    ],
)
async def test_connect_to_something_else(answer, words):
    async def other(reader, writer):
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(other, "::1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(mrc.MrcHandshakeError, match=words):
            await mrc.connect("::1", port, timeout=5)


async def test_connect_to_silence_times_out(raises_with):
    async def silent(reader, writer):
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "::1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with raises_with(TimeoutError, "no connection to ::1", "0.1 s"):
            await mrc.connect("::1", port, timeout=0.1)


async def test_nobody_there():
    with socket.socket(socket.AF_INET6) as placeholder:
        placeholder.bind(("::1", 0))
        with pytest.raises(ConnectionRefusedError):
            await mrc.connect("::1", placeholder.getsockname()[1], timeout=5)


async def test_unknown_host():
    with pytest.raises(socket.gaierror):
        await mrc.connect("no-such-host.invalid", timeout=10)


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1"])
async def test_ipv4_is_refused_in_words(host, raises_with):
    with raises_with(mrc.MrcUsageError, "IPv6"):
        await mrc.connect(host, timeout=5)
    with raises_with(mrc.MrcUsageError, "IPv6"):
        await mrc.listen(f"{host}:0")


@pytest.mark.parametrize(
    ("host", "error", "words"),
    [
        ("fe80::1", mrc.MrcUsageError, "needs a zone, e.g. fe80::1%eth0"),
        ("fe80::1%", mrc.MrcUsageError, "needs a zone, e.g. fe80::1%eth0"),
        ("::1%lo", mrc.MrcUsageError, "only a link-local address has a zone"),
        ("fe80::1%nodev", OSError, "no interface nodev"),
        ("fe80::1%4294967295", OSError, "no interface 4294967295"),
        ("fe80::1%-1", OSError, "no interface -1"),
    ],
)
async def test_a_zone_that_cannot_be_is_said_in_words(host, error, words, raises_with):
    with raises_with(error, words):
        await mrc.connect(host, timeout=5)
    with raises_with(error, words):
        await mrc.connect("::1", local=host, timeout=5)
    with raises_with(error, words):
        await mrc.listen(f"[{host}]:0")


async def test_port_in_use(raises_with):
    async with await mrc.listen("[::1]:0") as server:
        port = server.sockname[1]
        with raises_with(OSError, "listen on", "in use"):
            await mrc.listen(f"[::1]:{port}")
        await works(server)


async def test_data_port_in_use_takes_the_next():
    async with await mrc.listen("[::1]:0") as one, await mrc.listen("[::1]:0") as two:
        a, b = await asyncio.gather(mrc.connect("::1", two.sockname[1]), two.accept(timeout=5))
        assert len({a.port.udp_port, b.port.udp_port}) == 2
        assert a.peer.qp.udp_port == b.port.udp_port
        await a.close()
        await b.close()
        await works(one)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[::]:18515", ("::", 18515)),
        ("[fe80::1%eth0]:7", ("fe80::1%eth0", 7)),
        ("[::1]", ("::1", 18515)),
        ("::1", ("::1", 18515)),
        (":9", ("::", 9)),
        ("localhost:9", ("localhost", 9)),
        ("", ("::", 18515)),
    ],
)
def test_addresses(text, expected):
    assert _split(text) == expected


@pytest.mark.parametrize("text", ["[::1]:x", "[::1", "[::1]9", "a:70000", "a:", "10.0.0.1:5"])
def test_bad_addresses(text):
    with pytest.raises(mrc.MrcUsageError):
        _split(text)


async def test_async_for_and_close():
    async with await mrc.listen("[::1]:0") as server:
        port = server.sockname[1]
        seen = []

        async def serve():
            async for conn in server:
                seen.append(conn.peer.qp.qpn)
                await conn.close()

        task = asyncio.ensure_future(serve())
        for _ in range(3):
            async with await mrc.connect("::1", port):
                pass
        server.close()
        await asyncio.wait_for(task, 5)
        assert len(seen) == 3
    with pytest.raises(mrc.MrcUsageError):
        await server.accept(timeout=1)


async def test_connection_nobody_accepted_is_closed_with_the_server():
    async with await mrc.listen("[::1]:0") as server:
        conn = await mrc.connect("::1", server.sockname[1])
    await conn.wait_closed(timeout=5)
    await conn.close()


async def test_accept_times_out(raises_with):
    async with await mrc.listen("[::1]:0") as server:
        with raises_with(TimeoutError, "nobody connected"):
            await server.accept(timeout=0.01)


async def test_connections_share_context_port_and_paths():
    with mrc.Context() as context:
        async with await mrc.listen("[::1]:0") as server:
            port = server.sockname[1]
            conns = [await mrc.connect("::1", port, context=context) for _ in range(4)]
            accepted = [await server.accept(timeout=5) for _ in range(4)]
            assert len({c.port.udp_port for c in conns}) == 1
            assert len({id(c.path) for c in conns}) == 1
            assert len({c.qp.qpn for c in conns}) == 4
            targets = [bytearray(100_000) for _ in conns]
            for conn, target in zip(accepted, targets, strict=True):
                conn.advertise("t", conn.register(target))
            sources = [bytearray(os.urandom(100_000)) for _ in conns]
            writes = []
            for conn, source in zip(conns, sources, strict=True):
                remote = await conn.remote_region("t", timeout=5)
                writes.append(conn.write(conn.register(source), remote, timeout=10))
            await asyncio.gather(*writes)
            assert targets == sources
            for conn in conns + accepted:
                await conn.close()
        assert not context.closed


async def test_one_failing_connection_leaves_the_others_alone():
    """Field report 40's sibling: two queue pairs, one with a failing peer."""
    with mrc.Context() as context:
        async with await mrc.listen("[::1]:0") as server:
            port = server.sockname[1]
            bad, good = [await mrc.connect("::1", port, context=context) for _ in range(2)]
            peers = [await server.accept(timeout=5) for _ in range(2)]
            peers[0]._channel.abort()
            assert isinstance(await bad.wait_closed(timeout=5), mrc.MrcPeerLost)
            target = bytearray(10)
            peers[1].advertise("t", peers[1].register(target))
            source = good.register(bytearray(b"0123456789"))
            await good.write(source, await good.remote_region("t", timeout=5), timeout=5)
            assert target == b"0123456789"
            for conn in (bad, good, *peers):
                await conn.close()


async def test_stranger_on_the_data_port_is_counted_and_harmless(udp):
    pair = await udp()
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as stranger:
        for data in (b"", b"x", b"\xca" * 100, os.urandom(1500)):
            stranger.sendto(data, ("::1", pair.b.port.udp_port))
    source, target = bytearray(os.urandom(50_000)), bytearray(50_000)
    local, remote = await pair.regions(source, target)
    await pair.a.write(local, remote, timeout=10)
    assert target == source
    drops = pair.b.drops()
    assert drops["short"] + drops["icrc"] + drops["opcode"] + drops["udp_len"] >= 2


async def test_server_without_room_refuses(raises_with):
    limits = mrc.ContextLimits(qp_max=1)
    with mrc.Context(limits=limits) as context:
        async with await mrc.listen("[::1]:0", context=context) as server:
            port = server.sockname[1]
            first = await mrc.connect("::1", port)
            with raises_with(mrc.MrcHandshakeError, "refused by the peer", "more connections"):
                await mrc.connect("::1", port)
            assert server.refused == 1
            await first.close()


async def test_remote_region_waits_and_times_out(mem, raises_with):
    pair = await mem()
    wait = asyncio.ensure_future(pair.a.remote_region("late", timeout=5))
    with raises_with(TimeoutError, "'never'"):
        await pair.a.remote_region("never", timeout=0.01)
    pair.b.advertise("late", pair.b.register(bytearray(3)))
    assert (await wait).length == 3
    pair.b.advertise("late", pair.b.register(bytearray(4)))


@pytest.mark.parametrize(
    "message",
    [
        {"type": "region", "name": "x", "addr": -1, "length": 1, "rkey": 0},
        {"type": "region", "name": "x", "addr": (1 << 64) - 1, "length": 2, "rkey": 0},
        {"type": "credit", "count": 0},
        {"type": "credit", "count": 1 << 40},
        {"type": "call", "id": 1, "method": 5, "params": {}},
    ],
)
async def test_peer_that_talks_nonsense_is_given_up(mem, message):
    pair = await mem()
    pair.b._channel.send(message)
    lost = await pair.a.wait_closed(timeout=5)
    assert "the TCP connection to" in str(lost)
    assert isinstance(await pair.b.wait_closed(timeout=5), mrc.MrcPeerLost)


async def test_unknown_message_is_ignored(mem):
    pair = await mem()
    pair.b._channel.send({"type": "of a later version"})
    local, remote = await pair.regions(bytearray(3), bytearray(3))
    await pair.a.write(local, remote, timeout=5)
