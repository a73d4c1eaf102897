# SPDX-License-Identifier: BSD-2-Clause
"""Mode rc, the baseline of comparisons (ADR 95), as connections have it."""

from __future__ import annotations

import asyncio

import pytest

import mrc
from mrc.options import ConnectionOptions


async def _moved(pair, count, size):
    source, target = bytearray(range(256)) * (size // 256), bytearray(size)
    local = pair.a.register(source)
    pair.b.advertise("t", pair.b.register(target))
    remote = await pair.a.remote_region("t", timeout=5)
    for number in range(count):
        await pair.a.write(local, remote, imm=number, timeout=20)
        assert (await pair.b.receive_imm(timeout=5)).imm == number
        assert target == source
        target[:] = bytes(size)
    return pair.a.qp.stats()


async def test_loss_costs_all_that_was_behind_it(no_leaks):
    again = {}
    for mode in ("rc", "mrc"):
        pair = await mrc.mem_pair(mode=mode, evs=4, seed=3, mtu=1024, ack_timeout=12)
        pair.wire.faults(loss_ppm=10_000)
        stats = await _moved(pair, 20, 64 * 1024)
        again[mode] = stats.packets_retransmitted
        if mode == "rc":
            assert stats.probes_sent <= 1  # for the round trip without queues (E.7), of no tail
        assert pair.a.qp.query("mode").mode is mrc.QpMode[mode.upper()]
        assert len(pair.a.path_stats()) == (1 if mode == "rc" else 4)
        await pair.close(2)
    assert again["rc"] > 4 * again["mrc"] > 0


async def test_both_sides_say_the_same(no_leaks):
    async with await mrc.listen("[::1]:0") as server:
        host, port, *_ = server.sockname
        with pytest.raises(
            mrc.MrcHandshakeError, match="incompatible attributes: modes mrc and rc; both sides"
        ):
            await mrc.connect(host, port, mode="rc", timeout=5)
        async with await mrc.connect(host, port, timeout=5) as conn:
            assert conn.qp.query("mode").mode is mrc.QpMode.MRC


async def test_over_real_sockets(no_leaks):
    async with await mrc.listen("[::1]:0", mode="rc") as server:
        host, port, *_ = server.sockname
        conn = await mrc.connect(host, port, mode="rc", timeout=5)
        peer = await asyncio.wait_for(anext(aiter(server)), 5)
        source, target = bytearray(b"x" * 100_000), bytearray(100_000)
        peer.advertise("t", peer.register(target))
        remote = await conn.remote_region("t", timeout=5)
        await conn.write(conn.register(source), remote, timeout=10)
        assert target == source
        assert len(conn.path_stats()) == len(peer.path_stats()) == 1
        await conn.close(2)
        await peer.close(2)


def test_one_path_only():
    four = mrc.EvProfile.udp(4)
    with pytest.raises(mrc.MrcUsageError, match="mode rc has one path, the EV profile 4 EVs"):
        ConnectionOptions(mode="rc", ev_profile=four)
    assert len(ConnectionOptions(mode="rc").profile(16, 49152)) == 1
    with pytest.raises(mrc.MrcUsageError, match="mode 'roce' is not mrc or rc"):
        ConnectionOptions(mode="roce")  # type: ignore[arg-type]
