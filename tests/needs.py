# SPDX-License-Identifier: BSD-2-Clause
"""What a test needs of the machine: without it the test is skipped by name, or fails."""

import os

import pytest

REQUIRE = "MRC_REQUIRE_NETNS"
"""1 where nothing may be missing, as in CI."""


def skip_or_fail(reason: str) -> None:
    """Something is missing: skip, unless this run must not skip."""
    if os.environ.get(REQUIRE) == "1":
        pytest.fail(f"{REQUIRE}=1, but: {reason}", pytrace=False)
    pytest.skip(reason)
