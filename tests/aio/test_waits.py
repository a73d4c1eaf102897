# SPDX-License-Identifier: BSD-2-Clause
"""Waiting: order, permits and items that are never lost, whenever a waiter is cancelled."""

from __future__ import annotations

import asyncio
import random

import pytest

from mrc._waits import Gate, Mailbox, limit


async def test_limit_says_what_did_not_happen(raises_with):
    with raises_with(TimeoutError, "the thing did not happen within 0.01 s"):
        async with limit(0.01, "the thing did not happen"):
            await asyncio.Event().wait()
    async with limit(None, "never"):
        await asyncio.sleep(0)


async def test_limit_leaves_other_timeouts_alone():
    with pytest.raises(TimeoutError, match="inner"):
        async with limit(5, "outer"):
            raise TimeoutError("inner")


async def test_gate_serves_in_order():
    gate, order = Gate(1), []

    async def enter(i):
        await gate.acquire()
        order.append(i)
        await asyncio.sleep(0)
        gate.release()

    await asyncio.gather(*(enter(i) for i in range(20)))
    assert order == list(range(20))


async def test_gate_does_not_let_newcomers_pass_those_who_wait():
    gate = Gate(0)
    waiter = asyncio.ensure_future(gate.acquire())
    await asyncio.sleep(0)
    gate.release()
    assert not gate.try_acquire()
    await waiter


async def test_gate_keeps_order_when_one_comes_between_a_permit_and_its_waiter():
    gate, order = Gate(0), []

    async def enter(i):
        await gate.acquire()
        order.append(i)

    first = asyncio.create_task(enter(0))
    await asyncio.sleep(0)
    rest = [asyncio.create_task(enter(i)) for i in (1, 2, 3)]  # run before the first is woken
    gate.release(3)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert order[:1] == [0]
    gate.release()
    await asyncio.gather(first, *rest)
    assert order == [0, 1, 2, 3]


async def test_gate_hands_on_what_came_with_a_cancellation_in_order():
    gate, order = Gate(0), []

    async def enter(i):
        await gate.acquire()
        order.append(i)

    tasks = [asyncio.create_task(enter(i)) for i in range(2)]
    await asyncio.sleep(0)
    tasks += [asyncio.create_task(enter(i)) for i in (2, 3)]
    gate.release(3)
    tasks[0].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [1, 2, 3]
    assert not gate.try_acquire()


async def test_gate_fails_all():
    gate = Gate(0)
    waiters = [asyncio.ensure_future(gate.acquire()) for _ in range(3)]
    await asyncio.sleep(0)
    gate.fail(ValueError("over"))
    results = await asyncio.gather(*waiters, return_exceptions=True)
    assert [str(r) for r in results] == ["over"] * 3
    with pytest.raises(ValueError, match="over"):
        gate.try_acquire()
    gate.release()  # what still comes back is harmless


@pytest.mark.parametrize("seed", range(20))
async def test_gate_loses_no_permit_to_cancellation(seed):
    rng = random.Random(seed)
    gate = Gate(3)

    async def worker():
        await gate.acquire()
        try:
            for _ in range(rng.randrange(3)):
                await asyncio.sleep(0)
        finally:
            gate.release()

    tasks = []
    for _ in range(200):
        tasks.append(asyncio.ensure_future(worker()))
        if rng.random() < 0.6:
            rng.choice(tasks).cancel()
        if rng.random() < 0.5:
            await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert [gate.try_acquire() for _ in range(4)] == [True, True, True, False]


@pytest.mark.parametrize("seed", range(20))
async def test_mailbox_loses_no_item_to_cancellation(seed):
    rng = random.Random(seed)
    box: Mailbox[int] = Mailbox()
    readers, sent = [], 0
    for _ in range(300):
        readers.append(asyncio.ensure_future(box.get()))
        if rng.random() < 0.5:
            box.put(sent)
            sent += 1
        if rng.random() < 0.5:
            rng.choice(readers).cancel()
        if rng.random() < 0.4:
            await asyncio.sleep(0)
    await asyncio.sleep(0)
    for reader in readers:
        reader.cancel()
    results = await asyncio.gather(*readers, return_exceptions=True)
    got = [r for r in results if isinstance(r, int)]
    while (item := box.get_nowait()) is not None:
        got.append(item)
    assert sorted(got) == list(range(sent))


async def test_mailbox_gives_what_is_there_before_the_error():
    box: Mailbox[str] = Mailbox()
    box.put("last")
    box.fail(ValueError("over"))
    assert await box.get() == "last"
    with pytest.raises(ValueError, match="over"):
        await box.get()
