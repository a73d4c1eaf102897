# SPDX-License-Identifier: BSD-2-Clause
"""How a fabric ends, and how an ordinary user gets one: nothing is left, refusals are named."""

import os
import signal
import subprocess
import sys
from pathlib import Path as FilePath

import pytest

from mrc.lab import Fabric, FabricSpec, cleanup_stale, why_unavailable
from mrc.lab.check import check_paths
from tests.needs import skip_or_fail

from .users import nobody
from .world import WAIT_S, comm, running, wait_for

pytestmark = pytest.mark.netns

ROOT = FilePath(__file__).resolve().parents[2]


def test_two_fabrics_side_by_side(fabric: Fabric):
    with Fabric() as other:
        assert fabric.client.pid != other.client.pid
        other.faults.cut((1, 1))
        assert [r for r in check_paths(fabric) if not r.ok] == []


def interfaces() -> set[str]:
    return {entry.name for entry in FilePath("/sys/class/net").iterdir()}


def test_down_leaves_nothing_behind(netns):
    before = interfaces()
    fabric = Fabric(FabricSpec(planes=1, spines=1)).up()
    holder = fabric.client.pid
    sleeper = fabric.hosts[0].exec(["sleep", "1000"])
    wait_for(lambda: comm(sleeper.pid) == "sleep", "sleep runs in the host")
    fabric.down()
    assert not running(holder)
    assert sleeper.wait(WAIT_S) == -signal.SIGTERM
    assert interfaces() == before
    fabric.down()


PROGRAM = """
import sys, time
from mrc.lab import Fabric, FabricSpec
fabric = Fabric(FabricSpec(planes=1, spines=1)).up()
sleeper = fabric.hosts[0].exec(["sleep", "1000"])
while open(f"/proc/{sleeper.pid}/comm").read().strip() != "sleep":
    time.sleep(0.01)
print(fabric.client.pid, sleeper.pid, flush=True)
if sys.argv[1] == "raise":
    raise SystemError
time.sleep(1000)
"""


@pytest.mark.parametrize("way", ["raise", "INT", "TERM", "KILL"])
def test_however_the_program_ends_nothing_is_left(netns, way: str):
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, way],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as program:
        assert program.stdout is not None
        holder, sleeper = (int(word) for word in program.stdout.readline().split())
        if way != "raise":
            program.send_signal(signal.Signals[f"SIG{way}"])
        assert program.wait(WAIT_S) != 0
    wait_for(lambda: not running(holder), "the holder ends")
    wait_for(lambda: not running(sleeper), "what ran in the host ends")


def test_stale_processes_are_found_when_even_the_holder_was_killed(netns):
    fabric = Fabric(FabricSpec(planes=1, spines=1)).up()
    sleeper = fabric.hosts[0].exec(["sleep", "1000"])
    wait_for(lambda: comm(sleeper.pid) == "sleep", "sleep runs in the host")
    assert sleeper.pid not in cleanup_stale()
    os.kill(fabric.client.pid, signal.SIGKILL)
    wait_for(lambda: not running(fabric.client.pid), "the holder is dead")
    assert sleeper.pid in cleanup_stale()
    assert sleeper.wait(WAIT_S) == -signal.SIGKILL
    fabric.down()


# ---- without root --------------------------------------------------------------------------------


def test_an_ordinary_user_gets_a_fabric_too(netns, tmp_path):
    """In a user namespace; when the tests run as root, as the user nobody."""
    if os.geteuid() != 0:
        argv, env = [sys.executable, "-m", "mrc.lab"], dict(os.environ)
        done = check_planes(argv, env)
    else:
        with nobody(tmp_path, "mrc.lab") as other:
            done = check_planes([*other.command], other.env)
    if done.returncode == 4:
        skip_or_fail(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": ok") == 8


def check_planes(argv: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*argv, "check", "--planes", "2"],
        cwd=ROOT if os.geteuid() else "/",
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("setting", ["max_user_namespaces", "max_net_namespaces"])
def test_where_namespaces_are_off_the_setting_is_named(netns, setting: str):
    if error := why_unavailable(userns=True):
        skip_or_fail(str(error))
    inner = f"echo 0 >/proc/sys/user/{setting} && exec $PYTHON -m mrc.lab check --userns"
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", inner],
        cwd=ROOT,
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4, done.stdout + done.stderr
    assert f"user.{setting} is 0 here" in done.stderr
    assert f"as root: sysctl -w user.{setting}=10000" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_user_namespace_works_as_root_too(netns):
    if error := why_unavailable(userns=True):
        skip_or_fail(str(error))
    with Fabric(userns=True) as own:
        assert own.userns
        own.faults.cut((1, 1))
        own.faults.loss(0.5, [(2, 1)])
        own.faults.clear()
        assert [r for r in check_paths(own) if not r.ok] == []
        done = own.hosts[0].run(["id", "-u"], capture_output=True, text=True)
        assert done.stdout.strip() == "0"
