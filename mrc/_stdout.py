# SPDX-License-Identifier: BSD-2-Clause
"""Stdout that is closed, full, or read by nobody: an error of every command, and said to be."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
from collections.abc import Callable
from typing import Any, TextIO, cast

INTERRUPTED = 130
ENVIRONMENT = 4


def problem() -> OSError | None:
    """Why nothing can be written to stdout: it is closed, or whoever read it has gone."""
    try:
        descriptor = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):  # a test's stand-in
        return None
    try:
        os.write(descriptor, b"")
    except OSError as error:
        return error
    state = select.poll()
    state.register(descriptor, select.POLLERR)
    if any(event & select.POLLERR for _, event in state.poll(0)):
        return BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
    return None


def why_not(error: OSError) -> str:
    """In words, why stdout did not take what was written."""
    words = {errno.EBADF: "it is closed", errno.EPIPE: "nobody reads it any more"}
    return f"stdout: {words.get(error.errno or 0) or error.strerror or error}"


def code_of(error: OSError) -> int:
    """The exit code of a command whose stdout did not take what was written."""
    return INTERRUPTED if isinstance(error, BrokenPipeError) else ENVIRONMENT


class Stdout:
    """Stdout that remembers why it did not take what was printed, whoever looked away."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        """As a stream does."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self.error = error
            raise

    def flush(self) -> None:
        """As a stream does."""
        try:
            self._stream.flush()
        except OSError as error:
            self.error = error
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def printing(program: str, work: Callable[[], int]) -> int:
    """The exit code of a command that prints, or that of an stdout which did not take all of it."""
    before = sys.stdout
    if before is None:
        return work()
    watched = Stdout(before)
    sys.stdout = cast("TextIO", watched)
    try:
        code = work()
        with contextlib.suppress(OSError):
            watched.flush()
    finally:
        sys.stdout = before
    if watched.error is None:
        return code
    with contextlib.suppress(OSError, ValueError):  # the interpreter flushes once more at its exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), before.fileno())
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{program}: {why_not(watched.error)}\n")
        sys.stderr.flush()
    return code_of(watched.error)


def is_of_stdout(error: OSError) -> bool:
    """Whether this is what `printing` will tell."""
    return error is getattr(sys.stdout, "error", None)
