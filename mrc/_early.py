# SPDX-License-Identifier: BSD-2-Clause
"""Before a command has loaded its modules: signals, descriptors. Loads next to nothing itself."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def occupy() -> None:
    """A program started with 0, 1 or 2 closed must not get a socket or a lock of that number."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one
    if sys.stderr is None:  # what is said to nobody is no error
        sys.stderr = os.fdopen(2, "w", closefd=False)


def install(program: str, report: Callable[[str], str] = lambda _: "") -> None:
    """From now on either signal is told on stderr and ends the process with 130.

    ``report`` makes of the sentence what goes to stdout.
    """
    occupy()

    def on_signal(number: int, _: FrameType | None) -> None:
        # No exception: an import half done, or C that calls Python, might swallow it.
        error = f"interrupted by {signal.Signals(number).name}"
        for descriptor, text in ((2, f"{program}: {error}\n"), (1, report(error))):
            with contextlib.suppress(OSError):
                os.write(descriptor, text.encode())
        os._exit(INTERRUPTED)

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as a shell does for what runs behind
            signal.signal(number, on_signal)


def hand_over() -> None:
    """All is loaded: from now on either signal raises KeyboardInterrupt where the program is."""

    def on_signal(number: int, _: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt(f"interrupted by {signal.Signals(number).name}")

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, on_signal)
