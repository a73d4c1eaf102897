# SPDX-License-Identifier: BSD-2-Clause
"""Where reports go: one JSON object, a stream of them, or text (human.py)."""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import sys
from collections.abc import Callable
from typing import Any, Protocol, TextIO

from mrc.peertext import printable
from mrc.units import format_bytes, format_rate

_PREVIOUS_KEPT = 100


class Output(Protocol):
    """What a command says, in order: start, interval ..., end or error; finish() once, last."""

    def start(self, data: dict[str, Any]) -> None:
        """A test begins."""

    def interval(self, data: dict[str, Any]) -> None:
        """A part of it is over."""

    def step(self, data: dict[str, Any]) -> None:
        """One size of a sweep is done; `end` holds all of them again."""

    def end(self, data: dict[str, Any]) -> None:
        """It is over, completely or as far as it came."""

    def error(self, text: str) -> None:
        """It failed, or nothing could begin."""

    def note(self, text: str) -> None:
        """For people only."""

    def finish(self) -> None:
        """Nothing more will come."""


def dumps(value: Any) -> str:
    """Strict JSON on one line.

    A NaN or infinity would be a fault of ours: it becomes null rather than invalid JSON (field
    report 72).
    """
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=True)
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False, ensure_ascii=True)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def say(program: str, text: str, *, hint: bool = False, verb: str = "") -> None:
    """A line on stderr, and where help is found; nobody listening there is no reason to fail."""
    asked = f"{program} {verb}".rstrip()
    more = f"\nTry '{asked} --help'." if hint else ""
    with contextlib.suppress(OSError):
        print(f"{program}: {printable(text, 4000)}{more}", file=sys.stderr, flush=True)


def show_progress(program: str, flow: dict[str, Any]) -> None:
    """While stdout is silent, a person at the terminal sees that something goes on."""
    if sys.stderr.isatty():
        text = (
            f"{program}: {flow['end']:.1f} s, {format_bytes(flow['bytes'])}, "
            f"{format_rate(flow['bits_per_second'])}"
        )
        with contextlib.suppress(OSError):
            print(f"\r{text:70}\r", end="", file=sys.stderr, flush=True)


def _write_all(stream: TextIO, text: str) -> None:
    """Every byte, however long the reader takes.

    Python's own layers lose what does not fit at once when stdout is unbuffered or was made
    non-blocking by whoever shares it.
    """
    try:
        fd = stream.fileno()
    except (OSError, ValueError):  # not a file: a test's stand-in
        stream.write(text)
        stream.flush()
        return
    left = memoryview(text.encode(stream.encoding or "utf-8", stream.errors or "strict"))
    while left:
        try:
            left = left[os.write(fd, left) :]
        except BlockingIOError:
            select.select([], [fd], [])


class Lines:
    """Lines on stdout, each at once.

    When whoever read them has gone (SIGPIPE) or the disk is full, `on_closed` is called once, the
    rest is dropped, and `error` says why.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None
        self.on_closed: Callable[[], None] | None = None

    @property
    def is_terminal(self) -> bool:
        """Somebody watches."""
        return self._stream.isatty()

    def write(self, text: str) -> None:
        """One line."""
        if self.error is not None:
            return
        try:
            self._stream.flush()
            _write_all(self._stream, text + "\n")
        except OSError as error:
            self.error = error
            # the interpreter flushes stdout once more at exit: give it somewhere to
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            if self.on_closed is not None:
                self.on_closed()


class JsonOutput:
    """One object: the last test, and those before it under `previous`."""

    def __init__(self, program: str, lines: Lines) -> None:
        self._program = program
        self._lines = lines
        self.document = self._empty()
        self._previous: list[dict[str, Any]] = []

    @staticmethod
    def _empty() -> dict[str, Any]:
        return {"start": {}, "intervals": [], "end": {}}

    def start(self, data: dict[str, Any]) -> None:
        """A test begins."""
        if self.document != self._empty():
            self._previous = [*self._previous, self.document][-_PREVIOUS_KEPT:]
        self.document = {**self._empty(), "start": data}

    def interval(self, data: dict[str, Any]) -> None:
        """A part of it is over."""
        self.document["intervals"].append(data)
        show_progress(self._program, data["sum"])

    def step(self, data: dict[str, Any]) -> None:
        """Nothing: `end` holds the sweep."""

    def end(self, data: dict[str, Any]) -> None:
        """The test is over."""
        self.document["end"] = data

    def error(self, text: str) -> None:
        """Reported on stderr as well."""
        say(self._program, text)
        self.document.setdefault("error", text)

    def note(self, text: str) -> None:
        """On stderr, so that stdout stays JSON."""
        say(self._program, text)

    def finish(self) -> None:
        """Print the object."""
        if self._previous:
            self.document["previous"] = self._previous
        self._lines.write(dumps(self.document))


class StreamOutput:
    """One object a line: {"event": start | interval | end | error, "data": ...}."""

    def __init__(self, program: str, lines: Lines) -> None:
        self._program = program
        self._lines = lines

    def _emit(self, event: str, data: Any) -> None:
        self._lines.write(dumps({"event": event, "data": data}))

    def start(self, data: dict[str, Any]) -> None:
        """A test begins."""
        self._emit("start", data)

    def interval(self, data: dict[str, Any]) -> None:
        """A part of it is over."""
        self._emit("interval", data)

    def step(self, data: dict[str, Any]) -> None:
        """Nothing: `end` holds the sweep."""

    def end(self, data: dict[str, Any]) -> None:
        """The test is over."""
        self._emit("end", data)

    def error(self, text: str) -> None:
        """Reported on stderr as well."""
        say(self._program, text)
        self._emit("error", text)

    def note(self, text: str) -> None:
        """On stderr, so that stdout stays JSON."""
        say(self._program, text)

    def finish(self) -> None:
        """Nothing is held back."""
