# SPDX-License-Identifier: BSD-2-Clause
"""Choice H1: a second UDP port may be configured; what comes to it is taken like the rest."""

import asyncio
import socket
from typing import Any

import pytest

import mrc
from mrc import scapy_layers as layers

inet6 = pytest.importorskip("scapy.layers.inet6")


def free_port() -> int:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        sock.bind(("::1", 0))
        return int(sock.getsockname()[1])


def ev_probe(sport: int, dport: int) -> bytes:
    """From BTH on, with the iCRC of a packet to this port, which covers it (A.13.3)."""
    packet = inet6.IPv6(src="::1", dst="::1") / inet6.UDP(sport=sport, dport=dport)
    packet /= layers.MrcBTH(opcode="EP_REQ", dqp=2, psn=77) / layers.ERTH(op=1)
    return bytes(inet6.IPv6(bytes(packet))[inet6.UDP].payload)


async def test_a_second_port_is_listened_on():
    second = free_port()
    async with await mrc.listen("[::1]:0", also_udp_port=second) as server:
        conn, peer = await asyncio.gather(
            mrc.connect("::1", server.sockname[1]), server.accept(timeout=5)
        )
        async with conn, peer:
            with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
                sock.bind(("::1", 0))
                bare = ev_probe(sock.getsockname()[1], second)
                sock.sendto(bare[:-1] + bytes([bare[-1] ^ 1]), ("::1", second))
                sock.sendto(bare, ("::1", second))
            async with asyncio.timeout(5):
                while not conn.drops()["ep_stale"]:  # the answer, to the node that never asked
                    await conn.probe_paths(timeout=0.1)
            assert peer.drops()["icrc"] == 1  # the damaged one


async def test_a_second_port_that_is_taken_is_an_error():
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        sock.bind(("::1", 0))
        taken = sock.getsockname()[1]
        with pytest.raises(OSError, match=f"second UDP port {taken}"):
            await mrc.listen("[::1]:0", also_udp_port=taken)


async def test_a_port_that_is_named_is_that_one_or_an_error():
    """So that a firewall's rule can name it."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        sock.bind(("::1", 0))
        taken = sock.getsockname()[1]
        async with await mrc.listen("[::1]:0", backend="udp") as server:
            with pytest.raises(OSError, match=str(taken)):
                await mrc.connect("::1", server.sockname[1], udp_port=taken, timeout=5)
    async with (
        await mrc.listen("[::1]:0") as server,
        await mrc.connect("::1", server.sockname[1], udp_port=taken, timeout=5) as conn,
    ):
        assert conn.local.qp.udp_port == taken
        other: dict[str, Any] = {"context": conn.context, "udp_port": 4791, "timeout": 5}
        with pytest.raises(mrc.MrcUsageError, match=f"receives on {taken} already"):
            await mrc.connect("::1", server.sockname[1], **other)


def test_range():
    with pytest.raises(mrc.MrcUsageError, match="also_udp_port 0"):
        mrc.options.ConnectionOptions(also_udp_port=0)
