# SPDX-License-Identifier: BSD-2-Clause
"""What our own side gets wrong stays here, and what it leaves half done is undone."""

from __future__ import annotations

import asyncio
import gc
import warnings
from pathlib import Path

import pytest
import uvloop

import mrc

from .conftest import until


async def test_what_the_peer_would_not_take_is_refused_here(mem):
    pair = await mem()
    region = pair.a.register(bytearray(8))
    for name in ("", "x" * 256, 5):
        with pytest.raises(mrc.MrcUsageError):
            pair.a.advertise(name, region)
    with pytest.raises(mrc.MrcUsageError):
        await pair.a.call(5, timeout=5)
    for params in ({1: "a"}, {"a": [{2: 3}]}):
        with pytest.raises(mrc.MrcUsageError):
            await pair.a.call("h", params, timeout=5)
    nested: list[object] = []
    for _ in range(300):
        nested = [nested]
    with pytest.raises(mrc.MrcUsageError):
        await pair.a.call("h", {"a": nested}, timeout=5)
    for number in range(4096):
        pair.a.advertise(str(number), region)
    with pytest.raises(mrc.MrcUsageError):
        pair.a.advertise("one more", region)
    pair.a.advertise("0", region)
    await pair.b.remote_region("4095", timeout=5)
    assert not pair.a.closed.done()


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("steps", range(12))
async def test_a_cancelled_pair_leaves_nothing(steps):
    async with await mrc.mem_pair():
        pass  # the loop has what it makes on first use
    before = _descriptors()
    task = asyncio.create_task(mrc.mem_pair())
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    try:
        pair = await task
    except asyncio.CancelledError:
        pass
    else:
        await pair.close()
    await until(lambda: _descriptors() <= before)


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_context_closes_after_its_loop_has_ended(loop):
    ctx = mrc.Context()

    async def main():
        server = await mrc.listen("[::1]:0", context=ctx)
        ends = await asyncio.gather(
            mrc.connect("::1", server.sockname[1], context=ctx), server.accept(5)
        )
        return server, ends

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with asyncio.Runner(loop_factory=loop) as runner:
            kept = runner.run(main())
        ctx.close()
        assert ctx.closed
        del kept
        gc.collect()
