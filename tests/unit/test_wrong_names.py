# SPDX-License-Identifier: BSD-2-Clause
"""An argument that a call does not have: the error names the call, and the nearest argument."""

from __future__ import annotations

import enum
import inspect
from typing import Any

import pytest

import mrc

API: Any = mrc
"""As a script has it that no type checker sees."""
MADE_BY_US = {
    *("AsyncEvent", "AsyncEvents", "CcInfo", "Connection", "DeviceAttr", "EvEvent", "Immediate"),
    *("Notifications", "PathPlanes", "PathStats", "PortStats", "ProbeResult", "Prober", "QpStats"),
    *("RemoteRegion", "SendBatch", "Server", "WcBatch", "WorkCompletion"),
}
"""What a program is given; it makes none itself."""
PLAIN = {"SendWr", "query_device"}
"""One is made for every write, and has no room for more; one has no argument at all."""


def public() -> list[str]:
    things = ((name, getattr(mrc, name)) for name in mrc.__all__)
    return [
        name
        for name, thing in things
        if callable(thing)
        and not (inspect.isclass(thing) and issubclass(thing, enum.Enum | Exception))
        and name not in MADE_BY_US | PLAIN
    ]


def arguments(thing: Any) -> list[str]:
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in inspect.signature(thing).parameters.values() if p.kind in named]


@pytest.mark.parametrize("name", public())
def test_a_word_that_nobody_knows(name):
    with pytest.raises(TypeError) as caught:
        getattr(mrc, name)(zzzzzz=1)
    assert str(caught.value).startswith(f"mrc.{name}() has no argument 'zzzzzz': it has ")


@pytest.mark.parametrize("name", public())
def test_a_slip_of_the_pen(name):
    thing = getattr(mrc, name)
    right = max(arguments(thing), key=len)
    wrong = right[:-1] + right[-1] * 2
    with pytest.raises(TypeError) as caught:
        thing(**{wrong: 1})
    assert str(caught.value) == f"mrc.{name}() has no argument '{wrong}': did you mean '{right}'?"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: API.connect("::1", evss=1), "mrc.connect() has no argument 'evss': did you mean"),
        (lambda: API.listen(pmup="loop"), "did you mean 'pump'?"),
        (lambda: API.mem_pair(b_options={"dept": 1}), "mrc.mem_pair() has no argument 'dept'"),
        (lambda: API.EvProfile.udp(4, sport=1), "mrc.EvProfile.udp() has no argument 'sport'"),
        (API.EvProfile, "mrc.EvProfile() needs format and entries"),
        (lambda: API.EvProfile.udp(1, 2, 3, 4), "udp() takes 3 arguments by position, not 4"),
        (lambda: API.Context(1), "mrc.Context() takes 0 arguments by position, not 1"),
        (lambda: API.EvEntry(1, value=2), "mrc.EvEntry() is given value twice"),
        (API.connect, "mrc.connect() needs host"),
        (
            lambda: API.QpHint(incat=1),
            "mrc.QpHint() has no argument 'incat': did you mean 'incast'",
        ),
    ],
)
def test_it_is_said_when_the_call_is_made(call, says):
    with pytest.raises(TypeError) as caught:
        call()
    assert says in str(caught.value)
    assert "__init__" not in str(caught.value)
    assert "ConnectionOptions" not in str(caught.value)


def test_an_error_from_within_is_not_taken_for_one_of_the_call():
    with pytest.raises(mrc.MrcUsageError):
        API.EvEntry(value="x")
