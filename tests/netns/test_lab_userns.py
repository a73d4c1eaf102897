# SPDX-License-Identifier: BSD-2-Clause
"""mrc-lab where one is root of a user namespace only (unshare -Ur): labs all the same."""

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import skip_or_fail

from .users import RUN_S, SMALL, User, nobody

pytestmark = pytest.mark.netns

UNSHARE = ("unshare", "--user", "--map-root-user")


@pytest.fixture
def other(netns, tmp_path) -> Iterator[User]:
    """The user nobody without a runtime directory: his folder is found by his number."""
    with nobody(tmp_path, "mrc.cli.lab") as made:
        del made.env["XDG_RUNTIME_DIR"]
        yield made
        made.run("down", "--all")
        Path("/tmp/mrc-lab-65534").rmdir()


def as_root_below(user: User, script: str, code: int = 0) -> str:
    """What a script says whose `lab` is mrc-lab, in a user namespace of that user."""
    own, lab = user.command[: user.prefix], shlex.join(user.command[user.prefix :])
    argv = [*own, *UNSHARE, "sh", "-ec", f'lab() {{ {lab} "$@"; }}\n{script}']
    done = subprocess.run(
        argv, cwd="/", env=user.env, capture_output=True, text=True, timeout=RUN_S, check=False
    )
    if "unshare failed" in done.stderr or (done.returncode == 4 and code == 0):
        skip_or_fail(done.stderr)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def test_all_verbs_work_without_being_the_machines_root(other):
    said = as_root_below(
        other,
        f"""\
lab up {shlex.join(SMALL)} --rate 500mbit
lab status
lab exec h2 -- ip -6 -o addr show lo
lab fail p1.t1.1
lab fail --visible h1.port2@10s
lab loss ev3 5%
lab status --json
lab heal p2.t1.1
lab heal
lab trim ev1 5% || echo "trim: $?"
lab down
lab down
""",
    )
    assert "2 planes x 2 spines, up" in said
    assert "in a user namespace" in said
    assert "fd00::2" in said
    assert "fail p1.t1.1: in force after" in said
    (line,) = [line for line in said.splitlines() if line.startswith("{")]
    faults = {f["what"]: f["on"] for f in json.loads(line)["labs"][0]["faults"]}
    assert faults == {"fail p1.t1.1": True, "down h1.port2": False, "loss ev3=5%": True}
    assert "dropped before it began: down h1.port2 in" in said
    assert "eBPF may not be loaded here" in said
    assert "trim: 4" in said
    assert "lab is down\n" in said
    assert "mrc-lab: no lab is up" in said


def test_its_owner_sees_the_lab_from_outside_and_only_a_third_place_cannot_enter(other):
    as_root_below(other, f"lab up {shlex.join(SMALL)} --name below")
    assert other.names() == ["below"]
    assert "fd00::1" in other.run("exec", "h1", "--", "ip", "-6", "addr", "show", "lo")
    assert "below: 2 hosts" in as_root_below(other, "lab status")
    said = as_root_below(other, "lab exec h1 -- true", code=4)
    assert "the lab below is in a user namespace that cannot be entered from here" in said
    inside = as_root_below(other, "lab down --name below")
    assert inside == "below is down\n"
    assert other.names() == []
