# SPDX-License-Identifier: BSD-2-Clause
"""What is left of a lab after a kill, a Ctrl-C or a down: nothing."""

import os
import signal
import subprocess
from pathlib import Path as FilePath

import pytest

from .users import RUN_S, SMALL, User
from .world import WAIT_S, running, wait_for

pytestmark = pytest.mark.netns


def inhabitant(user: User) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([*user.command, "exec", "h1", "--", "sleep", "1000"], env=user.env)
    name = FilePath(f"/proc/{process.pid}/comm")
    wait_for(lambda: name.read_text().strip() == "sleep", "sleep runs in the host")
    return process


@pytest.mark.parametrize("victims", [("keeper",), ("holder",), ("keeper", "holder")])
@pytest.mark.parametrize("verb", ["status", "down", "up"])
def test_after_a_kill_the_next_command_finds_and_removes_what_is_left(lab, victims, verb):
    found = lab.lab()
    sleeper = inhabitant(lab)
    for victim in victims:
        os.kill(found[victim], signal.SIGKILL)
    said = lab.run(verb, *(SMALL if verb == "up" else ()))
    assert "crash" in said or victims == ("holder",)  # then the keeper may have cleaned up itself
    assert sleeper.wait(WAIT_S) in (-signal.SIGTERM, -signal.SIGKILL)
    wait_for(lambda: not running(found["holder"]), "the holder is gone")
    wait_for(lambda: not running(found["keeper"]), "the keeper is gone")


def test_down_stops_what_runs_in_the_hosts(lab):
    sleeper = inhabitant(lab)
    lab.run("down")
    assert sleeper.wait(WAIT_S) == -signal.SIGTERM


def test_an_interrupted_up_leaves_nothing(user, tmp_path):
    process = subprocess.Popen(
        [*user.command, "up", "--planes", "8", "--t1", "8"], env=user.env, start_new_session=True
    )
    folder = tmp_path / "mrc-lab" / "lab"
    wait_for((folder / "log").exists, "it has begun")
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(RUN_S) in (130, 0)  # 0: it was done in that moment
    if process.returncode == 130:
        assert user.names() == []
        assert "crash" not in user.run("status")
