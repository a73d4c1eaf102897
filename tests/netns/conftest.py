# SPDX-License-Identifier: BSD-2-Clause
"""Fabrics for the tests in this folder; where none can be built, a skip names what is missing."""

import subprocess
from collections.abc import Iterator

import pytest

from mrc.lab import Fabric, FabricSpec, why_unavailable
from tests.needs import skip_or_fail

from .links import Links
from .programs import installed
from .users import SMALL, User, make_user
from .world import WAIT_S


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


# ---- labs of mrc-lab ----------------------------------------------------------------------------


@pytest.fixture
def user(netns, tmp_path) -> Iterator[User]:
    """Somebody without labs, before and after the test."""
    made = make_user(tmp_path, installed("mrc-lab"))
    yield made
    made.run("down", "--all")
    assert list((tmp_path / "mrc-lab").iterdir()) == []


@pytest.fixture
def lab(user: User) -> User:
    """Somebody with a lab, 2 planes x 2 spines."""
    user.run("up", *SMALL)
    return user


@pytest.fixture(scope="module")
def kept(netns, tmp_path_factory) -> Iterator[User]:
    made = make_user(tmp_path_factory.mktemp("run"), installed("mrc-lab"))
    made.run("up", *SMALL)
    yield made
    made.run("down")


@pytest.fixture
def faulty(kept: User) -> Iterator[User]:
    """A lab in which nothing is wrong before and after the test."""
    yield kept
    kept.run("heal")


@pytest.fixture
def served(lab: User, request) -> Iterator[User]:
    """mrc-recv runs in h2 as long as the test."""
    argv = [*lab.command, "exec", "h2", "--", "mrc-recv", *getattr(request, "param", ())]
    receiver = subprocess.Popen(argv, env=lab.env, stdout=subprocess.DEVNULL)
    wait = "until ss -Hltn 'sport = :18515' | grep -q .; do sleep 0.05; done"
    lab.run("exec", "h2", "--", "timeout", "10", "sh", "-c", wait)
    yield lab
    receiver.terminate()
    receiver.wait(WAIT_S)
