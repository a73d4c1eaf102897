# SPDX-License-Identifier: BSD-2-Clause
"""Calls over the out-of-band channel: each is answered, by whoever can."""

from __future__ import annotations

import asyncio

import pytest

import mrc
from mrc import channel


async def test_calls(mem, raises_with):
    pair = await mem()

    async def double(params):
        return {"twice": params["n"] * 2}

    async def broken(params):
        raise ValueError("bad n")

    early = asyncio.ensure_future(pair.a.call("double", {"n": 4}, timeout=5))
    await asyncio.sleep(0.01)
    pair.b.serve("double", double)  # a call that came before its handler is kept
    pair.b.serve("broken", broken)
    assert await early == {"twice": 8}
    long = "x" * (1 << 20)
    assert await pair.a.call("double", {"n": long}, timeout=5) == {"twice": long * 2}
    results = await asyncio.gather(*(pair.a.call("double", {"n": i}) for i in range(100)))
    assert [r["twice"] for r in results] == list(range(0, 200, 2))
    with raises_with(mrc.MrcRemoteError, "ValueError", "bad n"):
        await pair.a.call("broken", {})
    with raises_with(TimeoutError, "no answer to the call 'nobody'"):  # it may come yet
        await pair.a.call("nobody", {}, timeout=0.01)
    with raises_with(mrc.MrcUsageError, "JSON"):
        await pair.a.call("double", {"n": float("nan")})
    with raises_with(mrc.MrcUsageError, "JSON"):
        await pair.a.call("double", {"n": object()})
    assert await pair.a.call("double", {"n": 1}) == {"twice": 2}


async def test_a_call_that_nobody_serves_is_answered_in_the_end(mem, raises_with, monkeypatch):
    pair = await mem()

    async def served(params):
        return {}

    monkeypatch.setattr(channel, "_PARKED_SECONDS", 0.02)
    pair.b.serve("one", served)
    with raises_with(mrc.MrcRemoteError, "nobody serves 'other' here (served: one)"):
        await pair.a.call("other", {}, timeout=5)
    assert await pair.a.call("one", timeout=5) == {}
    monkeypatch.setattr(channel, "_PARKED_SECONDS", 60)
    late = asyncio.ensure_future(pair.a.call("late", timeout=5))
    other = asyncio.ensure_future(pair.a.call("another", timeout=60))
    await asyncio.sleep(0.01)
    pair.b.serve("late", served)  # the other one goes on waiting
    assert await late == {}
    assert not other.done()
    await pair.b.close()
    with raises_with(mrc.MrcPeerLost):
        await other


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (5, "TypeError"),
        ({1: "a", "1": "b"}, "a key is no text"),
        ({"x": {1}}, "not JSON serializable"),
        (asyncio.CancelledError(), "cancelled"),
    ],
    ids=str,
)
async def test_every_call_is_answered(mem, result, words):
    pair = await mem()

    async def handler(_params):
        if isinstance(result, BaseException):
            raise result
        return result

    pair.b.serve("h", handler)
    with pytest.raises(mrc.MrcRemoteError, match=words):
        await pair.a.call("h", timeout=5)
    assert not pair.a.closed.done()
