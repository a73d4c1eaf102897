# SPDX-License-Identifier: BSD-2-Clause
"""What mrc-send says while a person would wonder what it waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Self

from mrc.units import format_bytes

SAY_AFTER_S = 1.0
SAY_AGAIN_S = 10.0


class Waiting:
    """Says `text()` when it lasts longer than SAY_AFTER_S, and again now and then."""

    def __init__(self, note: Callable[[str], None], text: Callable[[], str]) -> None:
        self._note = note
        self._text = text
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """From now on somebody waits."""
        self.end()
        self._again(SAY_AFTER_S)

    def end(self) -> None:
        """Nobody does any more; harmless when nobody did."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _again(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._say)

    def _say(self) -> None:
        self._note(self._text())
        self._again(SAY_AGAIN_S)

    def __enter__(self) -> Self:
        """All of a block is waiting."""
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        """It is over, however it went."""
        self.end()


def outstanding(engines: list[Any]) -> str:
    """What has yet to come of messages that were sent, in words."""
    windows = [engine.window for engine in engines if hasattr(engine, "window")]
    if not windows:
        return "the answer to the last message is still out"
    messages = sum(window.posted - window.completed for window in windows)
    if messages:
        size = format_bytes(sum(window.open_bytes for window in windows))
        return f"{_count(messages, 'message')} ({size}) still out"
    unchecked = sum(window.uncredited for window in windows)
    return f"{_count(unchecked, 'message')} the receiver has yet to look at"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
