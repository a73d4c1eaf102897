# SPDX-License-Identifier: BSD-2-Clause
"""mrc-lab as people use it: labs live on between commands, side by side, and go when told."""

import subprocess

import pytest

from .users import RUN_S, SMALL, User
from .world import running, wait_for

pytestmark = pytest.mark.netns


def test_a_lab_lives_on_and_goes_when_told(user, tmp_path):
    said = user.run("up", *SMALL, "--rate", "500mbit", "--queue", "200KB")
    assert "2 planes x 2 spines" in said
    lab = user.lab()
    assert running(lab["keeper"])
    assert running(lab["holder"])
    assert lab["hosts"] == {"h1": "fd00::1", "h2": "fd00::2"}
    assert lab["faults"] == []
    text = user.run("status")
    assert "500 Mbits/sec" in text
    assert "nothing is wrong" in text
    assert "is up: mrc-lab down" in user.run("up", *SMALL, code=1)
    user.run("down")
    assert not running(lab["holder"])
    wait_for(lambda: not running(lab["keeper"]), "the keeper ends")
    assert user.names() == []


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_lab_is_kept_whatever_descriptors_its_command_had(user, closed):
    up = ["sh", "-c", f'"$@" {closed}', "sh", *user.command, "up", *SMALL]
    code = 4 if ">&-" in closed.split() else 0  # what it had to say was not said
    assert subprocess.run(up, env=user.env, check=False, timeout=RUN_S).returncode == code
    holder = user.lab()["holder"]
    assert "lab is down" in user.run("down")
    assert not running(holder)


def test_tc_is_found_where_ordinary_users_do_not_look(user):
    user.env["PATH"] = "/usr/local/bin:/usr/bin:/bin"
    user.run("up", *SMALL, "--rate", "100mbit")
    user.run("down")


def test_a_command_in_a_host_is_like_any_other(lab):
    assert "fd00::1" in lab.run("exec", "h1", "--", "ip", "-6", "addr", "show", "lo")
    lab.run("exec", "h2", "--", "sh", "-c", "exit 7", code=7)
    assert lab.run("exec", "h2", "sh", "-c", "echo $MRC_LAB_HOST") == "h2\n"
    assert "no host h3 in this lab, which has h1 to h2" in lab.run(
        "exec", "h3", "--", "true", code=1
    )


def test_a_transfer_crosses_the_lab_by_all_its_paths(served):
    assert "verified" in served.run("exec", "h1", "--", "mrc-send", "h2", "-n", "16")
    links = served.links()
    carried = {n: c["bytes"] for n, c in links.items() if n.startswith("p") and "t0.a->" in n}
    assert len(carried) == 4
    assert min(carried.values()) > 1 << 20


def test_two_labs_side_by_side(user):
    for name in ("one", "two"):
        user.run("up", *SMALL, "--name", name)
    assert "several labs are up" in user.run("fail", "plane1", code=1)
    user.run("fail", "plane1", "--name", "one")
    assert [f["what"] for f in user.lab("one")["faults"]] == ["fail plane1"]
    assert user.lab("two")["faults"] == []
    assert user.run("down", "--name", "one") == "one is down\n"
    assert user.names() == ["two"]


def test_in_a_host_status_is_of_its_lab(user: User):
    for name in ("one", "two"):
        user.run("up", *SMALL, "--name", name)
    inside = ("exec", "--name", "one", "h1", "--", *user.command, "status", "--json")
    assert '"name": "one"' in user.run(*inside)
    assert '"name": "two"' not in user.run(*inside)
    assert '"name": "two"' in user.run(*inside, "--all")


@pytest.mark.parametrize("argv", [(), ("--all",), ("--name", "one")])
def test_from_inside_of_its_hosts_a_lab_is_not_taken_down(user: User, argv):
    """Which would end the command that asks, and the shell it was typed in."""
    for name in ("one", "two"):
        user.run("up", *SMALL, "--name", name)
    inside = ("exec", "--name", "one", "h2", "--")
    said = user.run(*inside, *user.command, "down", *argv, code=1)
    assert said.startswith("mrc-lab: this is h2 of the lab one, and all that runs in its hosts")
    bare = ("env", "-u", "MRC_LAB_FOLDER", "-u", "MRC_LAB_HOST", *user.command)
    assert "h2 of the lab one" in user.run(*inside, *bare, "down", "--name", "one", code=1)
    assert user.names() == ["one", "two"]
    assert user.run(*inside, *user.command, "down", "--name", "two") == "two is down\n"
    assert user.names() == ["one"]


def test_what_is_not_there_is_down_already(user: User):
    assert user.run("down") == "mrc-lab: no lab is up\n"
    user.run("up", *SMALL)
    assert user.run("down", "--name", "x") == "mrc-lab: there is no lab named x (up: lab)\n"
    user.env["MRC_LAB"] = "y"
    assert user.run("down") == "mrc-lab: there is no lab named y (up: lab)\n"
    del user.env["MRC_LAB"]
    assert user.run("down") == "lab is down\n"
