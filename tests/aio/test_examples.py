# SPDX-License-Identifier: BSD-2-Clause
"""The programs of docs/reference/python.md run (field report 52)."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from mrc import errors
from mrc.options import ConnectionOptions

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "python.md").read_text()
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_program_runs_and_leaves_nothing_open(program):
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", program]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_option_is_listed_with_its_default():
    table = PAGE[PAGE.index("## Options") : PAGE.index("## Verbs")]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    listed: dict[str, str] = {}
    for names, defaults in rows:
        keys = re.findall(r"`(\w+)`", names)
        values = [v.strip().strip('`"') for v in defaults.split(",")]
        listed |= dict(zip(keys, values * len(keys) if len(values) == 1 else values, strict=False))
    for field in fields(ConnectionOptions):
        words = ["none", "random", "derived"] if field.default is None else [str(field.default)]
        assert listed[field.name] in words, field.name


def test_every_error_is_listed():
    table = PAGE[PAGE.index("## Errors") :]
    assert set(errors.__all__) - {"MrcError"} == set(re.findall(r"`(Mrc\w+)`", table))
