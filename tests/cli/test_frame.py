# SPDX-License-Identifier: BSD-2-Clause
"""What surrounds the work of a command: signals, faults of ours, an stdout that fails."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from mrc.cli import frame
from mrc.cli.exits import CliError, Exit
from mrc.cli.options import parse_recv

from .schema import strict


def run(work, args=("--json",)):
    return frame.run("mrc-recv", parse_recv([*args]).common, "peer", work)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "auto"])
def test_a_fault_of_ours_is_still_a_report(capsys, loop):
    async def work(stop, output):
        output.start({"test_start": {}})
        raise KeyError("x")

    assert run(work, ["--json", "--loop", loop]) == Exit.ENVIRONMENT
    out, err = capsys.readouterr()
    assert "internal error: KeyError" in strict(out)["error"]
    assert "Traceback" in err


def test_what_the_user_can_mend_has_no_traceback(capsys):
    async def work(stop, output):
        raise CliError(Exit.FAILED, "lost")

    assert run(work) == Exit.FAILED
    out, err = capsys.readouterr()
    assert err == "mrc-recv: lost\n"
    assert strict(out)["error"] == "lost"


def test_the_first_signal_asks_and_the_second_insists(capsys):
    async def work(stop, output):
        os.kill(os.getpid(), signal.SIGTERM)
        await stop.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    assert run(work) == Exit.INTERRUPTED
    assert strict(capsys.readouterr().out)["error"] == "interrupted by SIGTERM"


def test_without_uvloop_asking_for_it_is_an_error(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvloop", None)

    async def work(stop, output):
        return Exit.OK

    assert run(work, ["--json", "--loop", "uvloop"]) == Exit.ENVIRONMENT
    assert "uvloop" in strict(capsys.readouterr().out)["error"]
    assert run(work, ["--json"]) == Exit.OK


COMMANDS = {
    "mrc-send": ("mrc.cli.send", "::1 -p 1 --json"),
    "mrc-recv": ("mrc.cli.recv", "-B ::1 -p 0 -1 --idle-timeout 0.3 --json"),
    "mrc-lab": ("mrc.cli.lab", "status"),
    "mrc.sim": ("mrc.sim", "--list"),
}
NOBODY = "| { exec <&-; :; }"


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """bash: the exit code of the first command of a pipe."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("args", ["--help", "--version", "::1 -n 0 --json"])
@pytest.mark.parametrize("redirect", [">/dev/full", ">&-"])
def test_no_output_of_a_parser_crashes(args, redirect):
    done = shell(f'exec "{sys.executable}" -m mrc.cli.send {args} {redirect}')
    assert "Traceback" not in done.stderr
    told = "stdout: " in done.stderr
    assert told is ("json" not in args)
    assert done.returncode == (Exit.ENVIRONMENT if told else Exit.USAGE)


@pytest.mark.parametrize("program", COMMANDS)
@pytest.mark.parametrize(
    ("redirect", "code", "says"),
    [
        (">/dev/full", 4, "No space left on device"),
        (">&-", 4, "it is closed"),
        (">&1 " + NOBODY, 130, "nobody reads it any more"),
    ],
)
def test_what_stdout_does_not_take_is_an_error_of_every_command(program, redirect, code, says):
    module, args = COMMANDS[program]
    waits = "sleep 0.3; " if "|" in redirect else ""  # until nobody reads
    done = shell(f'{{ {waits}exec "{sys.executable}" -m {module} {args}; }} {redirect}')
    assert done.returncode == code
    assert done.stderr.splitlines()[-1] == f"{program}: stdout: {says}"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("module", ["mrc.cli.lab", "mrc.sim"])
def test_so_is_a_help_that_nobody_can_read(module):
    done = shell(f'exec "{sys.executable}" -m {module} --help >/dev/full')
    assert done.returncode == Exit.ENVIRONMENT
    assert "stdout: No space left on device" in done.stderr


def test_nothing_is_sent_whose_report_nobody_would_see():
    done = shell(f'exec "{sys.executable}" -m mrc.cli.send ::1 -p 1 --json >&-')
    assert done.stderr == "mrc-send: stdout: it is closed\n"
