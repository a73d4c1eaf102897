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


def heeded() -> tuple[signal.Signals, ...]:
    """The signals that stop a command.

    SIGTERM always does. SIGINT and SIGHUP not where they were ignored at the start: so a shell
    starts what runs behind it, which the Ctrl-C of its terminal is not meant for, and nohup what
    outlives the terminal.
    """
    maybe = (signal.SIGINT, signal.SIGHUP)
    kept = (number for number in maybe if signal.getsignal(number) is not signal.SIG_IGN)
    return (*kept, signal.SIGTERM)


def occupy() -> None:
    """A program started with 0, 1 or 2 closed must not get a socket or a lock of that number.

    A program that it starts has them closed again. A closed stdout takes nothing: what is written
    there is an error, as everywhere.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # takes the lowest free number: this one
            os.open(os.devnull, os.O_RDONLY if descriptor == 1 else os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
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

    for number in heeded():
        signal.signal(number, on_signal)


def hand_over() -> None:
    """All is loaded: from now on either signal raises KeyboardInterrupt where the program is."""

    def on_signal(number: int, _: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt(f"interrupted by {signal.Signals(number).name}")

    for number in heeded():
        signal.signal(number, on_signal)
