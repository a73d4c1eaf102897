# SPDX-License-Identifier: BSD-2-Clause
"""Times and contexts that are none are refused before anything is begun."""

from __future__ import annotations

import inspect
import math

import pytest

import mrc
from mrc.aio import MemPair


@pytest.mark.parametrize("timeout", [math.nan, "1", [1]])
async def test_a_limit_is_a_number(mem, timeout):
    """NaN must not be no limit."""
    ends = await mem()
    with pytest.raises(mrc.MrcUsageError, match="timeout"):
        await ends.a.receive_imm(timeout=timeout)
    with pytest.raises(mrc.MrcUsageError, match="timeout"):
        await mrc.connect("::1", 9, timeout=timeout)


async def test_infinity_is_no_limit(mem):
    ends = await mem()
    local, remote = await ends.regions(bytearray(64), bytearray(64))
    assert (await ends.a.write(local, remote, timeout=math.inf)).status is mrc.WcStatus.SUCCESS


@pytest.mark.parametrize("timeout", [math.nan, math.inf, "x", None, 0, -1])
async def test_a_probe_has_an_end(mem, timeout):
    ends = await mem()
    with pytest.raises(mrc.MrcUsageError, match="timeout"):
        await ends.a.probe_paths(timeout=timeout)


async def test_a_context_is_a_context():
    with pytest.raises(mrc.MrcUsageError, match="context"):
        await mrc.connect("::1", 9, context=5)  # type: ignore[arg-type]
    with pytest.raises(mrc.MrcUsageError, match="context"):
        await mrc.listen("[::1]:0", context="x")  # type: ignore[arg-type]


WRONG = [None, True, -1, 1 << 70, 1.5, "x", "\0", b"x", object(), [], ["x"], {}, (1,), int]
CALLS = {
    "buffer": lambda c, mr, far, v: c.register(v),
    "name of a region": lambda c, mr, far, v: c.advertise(v, mr),
    "mr": lambda c, mr, far, v: c.advertise("x", v),
    "name": lambda c, mr, far, v: c.remote_region(v, timeout=0.001),
    "what is written": lambda c, mr, far, v: c.write(v, far, timeout=1),
    "remote": lambda c, mr, far, v: c.write(mr, v, timeout=1),
    "imm": lambda c, mr, far, v: c.write(mr, far, imm=v, timeout=1),
    "length": lambda c, mr, far, v: c.write(mr, far, length=v, timeout=1),
    "local_offset": lambda c, mr, far, v: c.write(mr, far, local_offset=v, timeout=1),
    "remote_offset": lambda c, mr, far, v: c.write(mr, far, remote_offset=v, timeout=1),
    "method": lambda c, mr, far, v: c.call(v, timeout=0.001),
    "params": lambda c, mr, far, v: c.call("x", v, timeout=0.001),
    "what is served": lambda c, mr, far, v: c.serve(v, print),
    "handler": lambda c, mr, far, v: c.serve("m", v),
    "evs": lambda c, mr, far, v: c.probe_paths(v, timeout=0.001),
    "ev": lambda c, mr, far, v: c.deny(v),
    "allowed": lambda c, mr, far, v: c.allow(v),
    "drain": lambda c, mr, far, v: c.drain(v),
    "address": lambda c, mr, far, v: mrc.listen(v),
    "host": lambda c, mr, far, v: mrc.connect(v, 1, timeout=0.01),
    "port": lambda c, mr, far, v: mrc.connect("::1", v, timeout=0.01),
    "local": lambda c, mr, far, v: mrc.connect("::1", 9, local=v, timeout=0.01),
    "loss_ppm": lambda c, mr, far, v: mrc.mem_pair(loss_ppm=v),
    "ring": lambda c, mr, far, v: mrc.mem_pair(ring=v),
    "b_options": lambda c, mr, far, v: mrc.mem_pair(b_options=v),
    "context": lambda c, mr, far, v: mrc.Prober.of(v),
}


@pytest.mark.parametrize("argument", CALLS)
async def test_wrong_types(mem, argument):
    """What comes is taken, or refused by an error of ours or the system's, never by what broke."""
    ends = await mem(evs=2)
    local, remote = await ends.regions(bytearray(64), bytearray(64))
    for value in WRONG:
        try:
            made = CALLS[argument](ends.a, local, remote, value)
            made = await made if inspect.isawaitable(made) else made
        except (mrc.MrcError, OSError) as exc:
            assert str(exc), f"{argument}={value!r}: no words"  # noqa: PT017 - taken is right, too
            continue
        if isinstance(made, mrc.Server | mrc.Connection | MemPair):
            over = made.close()
            if over is not None:
                await over
