# SPDX-License-Identifier: BSD-2-Clause
"""Every test here runs on asyncio and on uvloop, over memory or over [::1], in both modes."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
import uvloop

import mrc


def pytest_asyncio_loop_factories(config, item):
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(autouse=True, params=["loop", "thread"])
def pump(request, monkeypatch):
    """Who moves the packets; tests that look at single turns ask for "loop" (LOOP_ONLY)."""
    monkeypatch.setenv("MRC_PUMP", request.param)
    return request.param


LOOP_ONLY = pytest.mark.parametrize("pump", ["loop"], indirect=True)


async def until(condition, seconds=5):
    """Wait for what no event announces."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - polled as a program would
            await asyncio.sleep(0.01)


class Ends:
    """Two connected ends and what is registered at them."""

    def __init__(self, a: mrc.Connection, b: mrc.Connection, wire=None) -> None:
        self.a = a
        self.b = b
        self.wire = wire

    async def regions(self, source, target, name="target"):
        """(local region at a, remote region of b)."""
        local = self.a.register(source)
        self.b.advertise(name, self.b.register(target))
        return local, await self.a.remote_region(name, timeout=5)


@pytest.fixture
async def mem():
    """mem(**options): ends over a wire in memory, closed after the test."""
    async with contextlib.AsyncExitStack() as stack:

        async def make(**options):
            pair = await stack.enter_async_context(await mrc.mem_pair(**options))
            return Ends(pair.a, pair.b, pair.wire)

        yield make


@pytest.fixture
async def udp():
    """udp(server={}, **options): ends over UDP on [::1], closed after the test."""
    async with contextlib.AsyncExitStack() as stack:

        async def make(server=None, **options):
            listening = await mrc.listen("[::1]:0", **(options if server is None else server))
            async with listening:
                port = listening.sockname[1]
                a, b = await asyncio.gather(
                    mrc.connect("::1", port, **options), listening.accept(timeout=5)
                )
            stack.push_async_callback(b.close)
            stack.push_async_callback(a.close)
            return Ends(a, b)

        yield make


@pytest.fixture(params=["mem", "udp"])
def ends(request):
    """The test runs over memory and over UDP."""
    return request.getfixturevalue(request.param)
