# SPDX-License-Identifier: BSD-2-Clause
"""Objects of one context, and two contexts that are connected."""

from __future__ import annotations

import pytest

import mrc
from mrc._core import MemWire
from mrc.controller import NodeController

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


@pytest.fixture
def control(context):
    made = NodeController(context, ports=4)
    yield made
    made.close()


@pytest.fixture
def refused():
    """The call is refused with this errno, and says these words."""

    class Refused:
        def __init__(self, number, *words):
            self.raises = pytest.raises(mrc.MrcControlError)
            self.number, self.words = number, words

        def __enter__(self):
            self.caught = self.raises.__enter__()
            return self.caught

        def __exit__(self, *args):
            done = self.raises.__exit__(*args)
            assert self.caught.value.errno == self.number, str(self.caught.value)
            for word in self.words:
                assert word in str(self.caught.value)
            return done

    return Refused
