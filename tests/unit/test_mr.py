# SPDX-License-Identifier: BSD-2-Clause
"""Memory regions: what can be registered, how long it stays pinned, bounds, keys."""

from __future__ import annotations

import gc
import itertools
import mmap

import numpy as np
import pytest

import mrc


@pytest.mark.parametrize(
    "make",
    [
        lambda: bytearray(100),
        lambda: np.zeros(25, dtype=np.float32),
        lambda: mmap.mmap(-1, 100),
        lambda: memoryview(bytearray(200))[50:150],
    ],
    ids=["bytearray", "numpy", "mmap", "memoryview"],
)
def test_any_writable_buffer(pd, make):
    with mrc.MemoryRegion(pd, make()) as mr:
        assert len(mr) == mr.length == 100
        assert mr.lkey == mr.rkey
        mr.view[7] = 9
        assert mr.view[7] == 9


@pytest.mark.parametrize(
    ("buffer", "words"),
    [
        (b"read only", "register bytes"),
        (bytearray(), "empty"),
        (memoryview(bytearray(100))[::2], "register memoryview"),
        ("text", "register str"),
        (5, "register int"),
    ],
)
def test_what_is_no_buffer(pd, buffer, words):
    with pytest.raises(mrc.MrcUsageError, match=words):
        mrc.MemoryRegion(pd, buffer)


def test_pinned_until_closed(pd):
    data = bytearray(10)
    mr = mrc.MemoryRegion(pd, data)
    with pytest.raises(BufferError):
        data.append(1)
    mr.close()
    mr.close()
    data.append(1)
    with pytest.raises(mrc.MrcUsageError):
        mr.range(0, 1)


def test_memory_of_a_lost_region_stays_pinned(context, pd):
    """C still knows the address, so losing the Python object must not free it."""
    data = bytearray(10)
    mrc.MemoryRegion(pd, data)
    with pytest.warns(ResourceWarning, match="unclosed <MemoryRegion"):
        mrc.MemoryRegion(pd, data)  # collected at once
    gc.collect()
    with pytest.raises(BufferError):
        data.append(1)
    pd.close()
    data.append(1)
    assert context.pins == {}


def test_alloc(pd):
    mr = mrc.MemoryRegion.alloc(pd, 10_000)
    assert mr.addr % mmap.PAGESIZE == 0
    assert bytes(mr.view) == bytes(10_000)
    with pytest.raises(mrc.MrcUsageError):
        mrc.MemoryRegion.alloc(pd, 0)


def test_read_only_memory_without_access(pd):
    mr = mrc.MemoryRegion(pd, b"constant", mrc.Access.NONE)
    assert mr.length == 8
    with pytest.raises(mrc.MrcUsageError):
        mrc.MemoryRegion(pd, bytearray(1), mrc.Access.REMOTE_WRITE)


@pytest.mark.parametrize(
    ("offset", "length", "ok"),
    [
        *((0, None, True), (10, 0, True), (3, 7, True)),
        *((3, 8, False), (-1, 1, False), (11, None, False)),
    ],
)
def test_range(pd, offset, length, ok):
    mr = mrc.MemoryRegion(pd, bytearray(10))
    if ok:
        addr, size = mr.range(offset, length)
        assert addr == mr.addr + offset
        assert size == (10 - offset if length is None else length)
    else:
        with pytest.raises(mrc.MrcUsageError):
            mr.range(offset, length)


def test_keys_differ_and_are_not_in_order(pd):
    regions = [mrc.MemoryRegion(pd, bytearray(1)) for _ in range(50)]
    keys = [mr.rkey for mr in regions]
    assert len(set(keys)) == 50
    steps = {b - a for a, b in itertools.pairwise(keys)}
    assert len(steps) > 40
    for mr in regions:
        mr.close()


def test_regions_are_limited():
    with mrc.Context(limits=mrc.ContextLimits(mr_max=4)) as ctx:
        pd = mrc.ProtectionDomain(ctx)
        kept = [mrc.MemoryRegion(pd, bytearray(1)) for _ in range(4)]
        with pytest.raises(mrc.MrcResourceError):
            mrc.MemoryRegion(pd, bytearray(1))
        kept.pop().close()
        kept.append(mrc.MemoryRegion(pd, bytearray(1)))
