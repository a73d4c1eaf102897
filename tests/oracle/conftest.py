# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures of the oracle tests."""

from typing import Any

import pytest

from tests.oracle import unit as unit_module


@pytest.fixture(scope="session")
def unit() -> Any:
    """The C core's internals: `unit.ffi`, `unit.lib`."""
    return unit_module.module()
