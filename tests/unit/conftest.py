# SPDX-License-Identifier: BSD-2-Clause
"""Objects of one context, and two contexts that are connected."""

from __future__ import annotations

import pytest

import mrc
from mrc._core import MemWire

from .sides import Side


@pytest.fixture
def context():
    with mrc.Context(seed=1) as ctx:
        yield ctx


@pytest.fixture
def pd(context):
    return mrc.ProtectionDomain(context)


@pytest.fixture
def cq(context):
    return mrc.CompletionQueue(context, 64)


@pytest.fixture
def qp(pd, cq):
    return mrc.QueuePair(pd, cq, cq)


@pytest.fixture
def sides():
    wire = MemWire(1024, 1)
    a, b = Side(wire, 0), Side(wire, 1)
    a.connect(b)
    b.connect(a)
    with a.ctx, b.ctx:
        yield a, b
