# SPDX-License-Identifier: BSD-2-Clause
"""Ctrl-C and SIGTERM while a command still loads its modules; it must load next to nothing itself.

Later frame.py takes both signals over, and ends with a report.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

INTERRUPTED = 130


def wants_json(argv: Sequence[str]) -> str:
    """The output form asked for, read without a parser: usage errors must keep to it as well."""
    if "--json-stream" in argv:
        return "json-stream"
    return "json" if "--json" in argv or "-J" in argv else "human"


def bare_report(form: str, error: str) -> str:
    """The line for stdout of a command that ends before anything began; "" for people."""
    import json

    if form == "json":
        return json.dumps({"start": {}, "intervals": [], "end": {}, "error": error}) + "\n"
    if form == "json-stream":
        return json.dumps({"event": "error", "data": error}) + "\n"
    return ""


def _say(program: str, form: str, error: str) -> None:
    for descriptor, text in ((2, f"{program}: {error}\n"), (1, bare_report(form, error))):
        with contextlib.suppress(OSError):
            os.write(descriptor, text.encode())


def install(program: str) -> None:
    """From now on either signal is reported in the form asked for and ends the process with 130."""
    form = wants_json(sys.argv[1:])

    def on_signal(number: int, _: FrameType | None) -> None:
        # No exception: an import half done, or C that calls Python, might swallow it.
        _say(program, form, f"interrupted by {signal.Signals(number).name}")
        os._exit(INTERRUPTED)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
