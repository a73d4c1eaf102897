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


def command(redirect: str) -> subprocess.CompletedProcess[str]:
    line = f'exec "{sys.executable}" -m mrc.cli.send ::1 -p 1 --json {redirect}'
    return subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("args", ["--help", "--version", "::1 -n 0 --json"])
@pytest.mark.parametrize("redirect", [">/dev/full", ">&-"])
def test_no_output_of_a_parser_crashes(args, redirect):
    line = f'exec "{sys.executable}" -m mrc.cli.send {args} {redirect}'
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in done.stderr
    told = "stdout: No space left on device" in done.stderr
    assert told is (redirect == ">/dev/full" and "json" not in args)
    assert done.returncode == (Exit.ENVIRONMENT if told else Exit.USAGE if "-n 0" in args else 0)


def test_a_full_disk_is_told(capsys):
    done = command(">/dev/full")
    assert done.returncode == Exit.ENVIRONMENT
    assert "stdout: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_closed_stdout_is_no_crash():
    done = command(">&-")
    assert done.returncode == Exit.PEER
    assert done.stderr == "mrc-send: ::1 port 1: Connection refused\n"
