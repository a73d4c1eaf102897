# SPDX-License-Identifier: BSD-2-Clause
"""What is left of a lab after a kill, a Ctrl-C or a down: nothing."""

import contextlib
import os
import signal
import subprocess
import tempfile
from pathlib import Path as FilePath

import pytest

from mrc.lab.errors import FabricError
from mrc.lab.keeper import OWNERS_MAX
from tests.needs import skip_or_fail

from .programs import installed
from .users import RUN_S, SMALL, User, make_user
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


@pytest.fixture
def tiny(netns):
    """A file system of a few pages as the runtime directory."""
    if os.geteuid() != 0:
        skip_or_fail("only root can mount")
    with tempfile.TemporaryDirectory() as name:
        folder = FilePath(name)
        mount = ["mount", "-t", "tmpfs", "-o", "size=40k", "none", name]
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        if done.returncode:
            skip_or_fail(done.stderr)
        try:
            yield folder
        finally:
            subprocess.run(["umount", name], check=True)


def fill(folder: FilePath) -> None:
    fd = os.open(folder / "full", os.O_WRONLY | os.O_CREAT)
    try:
        with pytest.raises(OSError, match="No space left"):
            os.posix_fallocate(fd, 0, 1 << 20)
        size = 1 << 16
        while size := size // 2:
            with contextlib.suppress(OSError):
                os.write(fd, bytes(size))
    finally:
        os.close(fd)


def test_a_full_disk_is_named_and_what_was_built_goes(tiny: FilePath):
    user = make_user(tiny, installed("mrc-lab"))
    fill(tiny)
    assert "No space left on device" in user.run("up", *SMALL, code=2)
    assert user.names() == []
    (tiny / "full").unlink()
    user.run("up", *SMALL)
    fill(tiny)
    user.run("fail", "p1.t1.1")
    said = user.run("exec", "h1", "--", "mrc-send", "h2", code=4)
    assert "h1-h2.udp.new: No space left on device" in said
    user.run("down")
    assert list((tiny / "mrc-lab").iterdir()) == []


@pytest.mark.parametrize("after_s", [0.2, 0.5, 0.8, 1.2])
def test_an_up_that_is_killed_leaves_nothing(user: User, after_s):
    """At several moments of it, whichever they are on this machine."""
    argv = [*user.command, "up", "--planes", "4", "--t1", "4"]
    with subprocess.Popen(argv, env=user.env, stdout=subprocess.DEVNULL) as process:
        try:
            process.wait(after_s)
        except subprocess.TimeoutExpired:
            process.kill()
    if process.returncode:  # else it was done
        wait_for(lambda: user.names() == [] or whole(user), "nothing is up, or all of it")
        if user.names():
            user.run("down")


def whole(user: User) -> bool:
    """Whether the lab is up and answers: the command died after that, and before it was told."""
    with contextlib.suppress(OSError, ValueError, FabricError):
        return bool(user.lab())
    return False


def test_of_two_ups_of_one_name_one_wins(user: User):
    argv = [*user.command, "up", "--planes", "1", "--t1", "1"]
    both = [
        subprocess.Popen(argv, env=user.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=RUN_S)[1].decode() for process in both]
    codes = [process.returncode for process in both]
    assert codes.count(0) == 1
    assert "a lab named lab is up" in "".join(said)
    assert user.names() == ["lab"]


def test_what_no_command_would_say_leaves_it_up(kept):
    with kept.remote("lab") as remote:
        for nonsense in (b"[" * 200_000, b'{"op":' * 50_000, b"[]", b"5", b"\xff", b'{"op": 1}'):
            remote._sock.send(nonsense)
            assert {"usage", "error"} & set(remote._receive()["answer"])
        assert remote.ask("status")["name"] == "lab"
    keeper = kept.lab()["keeper"]
    with contextlib.ExitStack() as crowd:
        refused = 0
        for _ in range(OWNERS_MAX + 20):
            one = crowd.enter_context(kept.remote("lab"))
            try:
                one.ask("status")
            except FabricError:
                refused += 1
        assert 0 < refused <= 21
    assert kept.lab()["keeper"] == keeper
