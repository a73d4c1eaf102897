# SPDX-License-Identifier: BSD-2-Clause
"""A context is used by one thread at a time; a second one is refused, never harmed."""

from __future__ import annotations

import threading

import pytest

import mrc


def test_closing_a_context_in_which_a_thread_waits_is_refused():
    context = mrc.Context()
    queue = mrc.CompletionQueue(context, 4)
    told: list[str] = []

    class Driver:
        """Who drives it lets go of its descriptor only when it really closes."""

        def before_close(self):
            told.append("close")

        def before_close_of(self, fd):
            raise AssertionError(fd)

    context.attached = Driver()
    thread = threading.Thread(target=context.wait, args=(1000,))
    thread.start()
    refused = None
    while refused is None and thread.is_alive():  # until it is inside
        try:
            context.pump.require_idle()
        except mrc.MrcUsageError as exc:
            refused = exc
    assert "another thread" in str(refused)
    with pytest.raises(mrc.MrcUsageError, match="close: another thread"):
        context.close()
    assert told == []
    assert not context.closed
    assert not queue.closed
    assert len(queue.poll()) == 0  # all of it is as it was
    thread.join(10)
    assert not thread.is_alive()
    context.close()
    assert told == ["close"]
    assert queue.closed


def test_a_context_closed_under_a_thread_that_turns_tells_it():
    """A close is refused, or the other thread's next call is: never a crash."""
    for _ in range(50):
        context = mrc.Context()
        errors: list[str] = []

        def turn(context=context, errors=errors):
            while not errors:
                try:
                    context.turn()
                except mrc.MrcUsageError as exc:
                    if "another thread" not in str(exc):
                        errors.append(str(exc))

        thread = threading.Thread(target=turn)
        thread.start()
        while not context.closed:
            try:
                context.close()
            except mrc.MrcUsageError as exc:
                assert "another thread" in str(exc)  # noqa: PT017 - refused; try again
        thread.join(10)
        assert not thread.is_alive()
        assert "closed" in errors[0]
