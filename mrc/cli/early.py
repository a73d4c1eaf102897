# SPDX-License-Identifier: BSD-2-Clause
"""Ctrl-C and SIGTERM while mrc-send or mrc-recv still loads its modules.

Later frame.py takes both signals over, and ends with a report.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mrc import _early


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


def install(program: str) -> None:
    """From now on either signal is reported in the form asked for and ends the process with 130."""
    form = wants_json(sys.argv[1:])
    _early.install(program, lambda error: bare_report(form, error))
