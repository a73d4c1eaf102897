# SPDX-License-Identifier: BSD-2-Clause
"""Fabrics for the tests in this folder; where none can be built, a skip names what is missing."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from mrc.lab import Fabric, FabricSpec, why_unavailable

from .links import Links

REQUIRE = "MRC_REQUIRE_NETNS"


def skip_or_fail(reason: str) -> None:
    """A missing privilege or kernel feature: skip, unless this run must not skip."""
    if os.environ.get(REQUIRE) == "1":
        pytest.fail(f"{REQUIRE}=1, but: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def netns() -> None:
    """This machine can build fabrics."""
    if error := why_unavailable():
        skip_or_fail(f"no fabric here: {error}")


@pytest.fixture(scope="session")
def unshare() -> list[str]:
    """The command before a command that runs it in a network namespace of its own, as its root."""
    command = ["unshare", "--user", "--map-root-user", "--net"]
    try:
        tried = subprocess.run(
            [*command, "true"], capture_output=True, text=True, timeout=10, check=False
        )
    except FileNotFoundError:
        skip_or_fail("no unshare command (Debian and Ubuntu: apt install util-linux)")
    if tried.returncode != 0:
        skip_or_fail(f"no user namespace here: {tried.stderr.strip()}")
    return command


@pytest.fixture(scope="module")
def shared_fabric(netns) -> Iterator[Fabric]:
    with Fabric(FabricSpec()) as built:
        yield built


@pytest.fixture
def fabric(shared_fabric: Fabric) -> Iterator[Fabric]:
    """Two hosts, 4 planes x 4 spines; without faults before and after the test."""
    yield shared_fabric
    shared_fabric.faults.clear()


@pytest.fixture
def links(unshare: list[str]) -> Iterator[Links]:
    built = Links(unshare)
    try:
        yield built
    finally:
        built.close()
