# SPDX-License-Identifier: BSD-2-Clause
"""Every name of the API that a page of docs/reference mentions is there, and can be imported."""

from __future__ import annotations

import builtins
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import mrc
from mrc import controller
from mrc.endpoint import Endpoint

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
# The others name options, keys of JSON and of TOML, fields of traces.
PAGES = ["controller", "python", "queue-pair", "receiver", "ev-profile"]
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`(?:await )?([A-Za-z_][\w.]*)")
OF_VERBS = {"CompChannel", "QPAttr", "QPInitAttr", "SendWR"}  # what ours are called there
# What pages call an object, and what it is.
OBJECTS = {
    "channel": mrc.CompletionChannel,
    "conn": mrc.Connection,
    "connection": mrc.Connection,
    "context": mrc.Context,
    "cq": mrc.CompletionQueue,
    "ctx": mrc.Context,
    "endpoint": Endpoint,
    "node": controller.NodeController,
    "path": mrc.PathTable,
    "paths": controller.ManagedEvProfile,
    "profile": controller.ManagedEvProfile,
    "server": mrc.Server,
}
MODULES = [mrc, controller, importlib.import_module("mrc.ev"), builtins]


def names(page):
    text = FENCED.sub("", (REFERENCE / f"{page}.md").read_text())
    for name in sorted(set(CODE.findall(text))):
        first = name.partition(".")[0]
        if first == "mrc" or first in OBJECTS or re.match(r"[A-Z]\w*[a-z]", first):
            yield name.rstrip(".")


def has(owner, name):
    """An attribute, one that instances have included."""
    return hasattr(owner, name) or (
        inspect.isclass(owner)
        and any(f"self.{name}" in inspect.getsource(c) for c in owner.__mro__[:-1])
    )


def resolve(name):
    """What is missing of a dotted name, or None."""
    first, *rest = name.split(".")
    owner: Any
    if first in OBJECTS:
        owner = OBJECTS[first]
    elif first == "mrc":
        owner = mrc
    else:
        owner = next((getattr(m, first) for m in MODULES if hasattr(m, first)), None)
        if owner is None:
            return first
    for part in rest:
        if inspect.ismodule(owner) and not hasattr(owner, part):
            try:
                owner = importlib.import_module(f"{owner.__name__}.{part}")
            except ImportError:
                return part
            continue
        if not has(owner, part):
            return part
        owner = OBJECTS.get(part) or getattr(owner, part, None)
    return None


@pytest.mark.parametrize("page", PAGES)
def test_names_are_there(page):
    found = {n: resolve(n) for n in names(page) if n not in OF_VERBS and n not in OBJECTS}
    assert found
    assert {n: missing for n, missing in found.items() if missing} == {}


def test_public_names_are_there():
    for module in (mrc, controller):
        assert [n for n in module.__all__ if not hasattr(module, n)] == []
