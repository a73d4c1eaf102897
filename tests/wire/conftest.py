# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures of the wire tests."""

from typing import Any

import pytest

from tests.oracle import unit as unit_module


@pytest.fixture(scope="session")
def unit() -> Any:
    """The C core's internals: `unit.ffi`, `unit.lib`."""
    return unit_module.module()


@pytest.fixture(params=["portable", "fast"])
def crc(request: pytest.FixtureRequest, unit: Any) -> Any:
    """Both implementations of the CRC register."""
    lib = unit.lib
    return lib.mrc_crc32_portable if request.param == "portable" else lib.mrc_crc32_select()
