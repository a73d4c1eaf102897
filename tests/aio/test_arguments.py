# SPDX-License-Identifier: BSD-2-Clause
"""Times and contexts that are none are refused before anything is begun."""

from __future__ import annotations

import math

import pytest

import mrc


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
