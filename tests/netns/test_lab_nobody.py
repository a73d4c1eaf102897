# SPDX-License-Identifier: BSD-2-Clause
"""mrc-lab for an ordinary user, in a user namespace."""

import os
import signal
import subprocess

import pytest

from tests.needs import skip_or_fail

from .users import SMALL, User, nobody

pytestmark = pytest.mark.netns


def test_an_ordinary_user_has_labs_too_beside_those_of_root(user: User, tmp_path):
    with nobody(tmp_path, "mrc.cli.lab") as other:
        user.run("up", *SMALL)
        argv = [*other.command, "up", *SMALL]
        tried = subprocess.run(
            argv, cwd="/", env=other.env, capture_output=True, text=True, check=False
        )
        if tried.returncode == 4:
            skip_or_fail(tried.stderr)
        assert tried.returncode == 0, tried.stderr
        assert other.lab()["userns"]
        other.run("loss", "p1.t1.1", "100%")
        other.run("fail", "--visible", "h1.port2")
        assert other.pings(49152) == 0
        assert other.pings(49153) == 0
        assert user.pings(49152) == 50
        other.run("heal")
        assert other.pings(49152) + other.pings(49153) == 100
        os.kill(other.lab()["keeper"], signal.SIGKILL)
        assert "crash" in other.run("status")
        other.run("down")
        assert user.names() == ["lab"]
