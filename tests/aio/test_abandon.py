# SPDX-License-Identifier: BSD-2-Clause
"""Exchanges given up half-way, and peers killed: what was taken is given back."""

from __future__ import annotations

import asyncio
import signal
import sys
import textwrap
from ipaddress import IPv6Address

import pytest

import mrc
from mrc.oob import ConnectionInfo, QpInfo, encode_frame, hello

ONE = mrc.ContextLimits(qp_max=1)


async def connects(server):
    """A whole connection can be made, so the one queue pair there is was free."""
    a, b = await asyncio.gather(
        mrc.connect("::1", server.sockname[1], timeout=5), server.accept(timeout=5)
    )
    await a.close()
    await b.close()


async def settled(condition):
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - nothing to wait on; it is inside
            await asyncio.sleep(0.001)


async def test_client_that_is_gone_after_its_hello():
    with mrc.Context(limits=ONE) as context:
        async with await mrc.listen("[::1]:0", context=context) as server:
            info = ConnectionInfo(QpInfo(IPv6Address("::1"), 77, 0, 4791))
            _, writer = await asyncio.open_connection("::1", server.sockname[1])
            writer.write(encode_frame(hello(info)))
            writer.write_eof()
            await settled(lambda: server.refused == 1)
            writer.close()
            await connects(server)


@pytest.mark.parametrize("moment", range(0, 24, 3))
async def test_connect_cancelled_at_any_moment(moment):
    with mrc.Context(limits=ONE) as context, mrc.Context(limits=ONE) as here:
        async with await mrc.listen("[::1]:0", context=context) as server:
            port = server.sockname[1]
            task = asyncio.ensure_future(mrc.connect("::1", port, context=here))
            for _ in range(moment):
                await asyncio.sleep(0.0002)
            task.cancel()
            try:
                conn = await task
            except asyncio.CancelledError:
                conn = None
            if conn is not None:
                await conn.close()
            await settled(lambda: not server._greetings)
            while len(server._accepted):
                await (await server.accept(timeout=1)).close()
            again, other = await asyncio.gather(
                mrc.connect("::1", port, context=here, timeout=5), server.accept(timeout=5)
            )
            await again.close()
            await other.close()


async def test_server_closed_during_a_greeting():
    with mrc.Context(limits=ONE) as context:
        server = await mrc.listen("[::1]:0", context=context)
        reader, writer = await asyncio.open_connection("::1", server.sockname[1])
        await settled(lambda: server._greetings)
        server.close()
        await server.wait_closed(timeout=5)
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()
        assert not context.closed


PEER = textwrap.dedent(
    """
    import asyncio, sys, mrc

    async def main():
        conn = await mrc.connect("::1", int(sys.argv[1]))
        mr = conn.register(bytearray(1 << 20))
        remote = await conn.remote_region("t", timeout=5)
        while True:
            await conn.write(mr, remote, imm=1)

    asyncio.run(main())
    """
)


async def receive_all(conn):
    while True:
        await conn.receive_imm(timeout=5)


async def test_killed_sender_is_noticed_and_the_next_one_served():
    """Field report 74."""
    async with await mrc.listen("[::1]:0") as server:
        port = server.sockname[1]
        for _ in range(2):
            peer = await asyncio.create_subprocess_exec(sys.executable, "-c", PEER, str(port))
            conn = await server.accept(timeout=20)
            conn.advertise("t", conn.register(bytearray(1 << 20)))
            await conn.receive_imm(timeout=10)
            peer.send_signal(signal.SIGKILL)
            await peer.wait()
            assert isinstance(await conn.wait_closed(timeout=5), mrc.MrcPeerLost)
            with pytest.raises(mrc.MrcPeerLost):  # after what came before
                await receive_all(conn)
            await conn.close()
