# SPDX-License-Identifier: BSD-2-Clause
"""Ctrl-C and SIGTERM before a command has loaded what it needs."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from mrc.cli.exits import Exit, from_exception
from mrc.errors import MrcUsageError

from .schema import strict

# The signal comes when the module named is about to be loaded, wherever that happens.
PROGRAM = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)  # whatever the tests were started with
import mrc.cli.{0} as command

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "mrc.cli.{1}":
            os.kill(os.getpid(), {2})

sys.meta_path.insert(0, Interrupt())
sys.exit(command.main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
@pytest.mark.parametrize("module", ["frame", "exits"])
@pytest.mark.parametrize(("command", "args"), [("send", ["::1"]), ("recv", [])])
@pytest.mark.parametrize("form", [None, "-J", "--json", "--json-stream"])
def test_a_signal_while_modules_are_loaded_is_reported(number, module, command, args, form):
    text = PROGRAM.format(command, module, int(number))
    forms = [] if form is None else [form]
    done = subprocess.run(
        [sys.executable, "-c", text, *args, *forms],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    error = f"interrupted by {number.name}"
    assert done.returncode == Exit.INTERRUPTED
    assert done.stderr == f"mrc-{command}: {error}\n"
    if form is None:
        assert done.stdout == ""
    elif form == "--json-stream":
        assert strict(done.stdout) == {"event": "error", "data": error}
    else:
        assert strict(done.stdout) == {"start": {}, "intervals": [], "end": {}, "error": error}


RUN = """
import os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "{1}":
            os.kill(os.getpid(), {2})

sys.meta_path.insert(0, Interrupt())
sys.argv = ["{0}", "--help"]
runpy.run_module("{0}", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
@pytest.mark.parametrize(
    ("module", "loads", "name"),
    [
        ("mrc.cli.lab", "mrc.cli.labverbs", "mrc-lab"),
        ("mrc.cli.lab", "mrc.lab.launch", "mrc-lab"),
        ("mrc.sim", "mrc.sim.command", "mrc.sim"),
        ("mrc.sim", "mrc.fabric.console", "mrc.sim"),
    ],
)
def test_so_it_is_in_the_other_commands(number, module, loads, name):
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(module, loads, int(number))],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == Exit.INTERRUPTED
    assert (done.stdout, done.stderr) == ("", f"{name}: interrupted by {number.name}\n")


IGNORED = """
import os, signal, sys, threading
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.argv = {0!r}
os.environ.pop("MRC_LAB", None)

def stop():
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        os.kill(os.getpid(), number)
{1}
"""

AT_WORK = """
import mrc.cli.frame as frame
from mrc.cli import recv

class Lines(frame.Lines):
    def write(self, text):
        super().write(text)
        if "listening" in text:
            stop()
frame.Lines = Lines
sys.exit(recv.main())
"""

LOADING = """
import runpy
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "{1}":
            stop()
sys.meta_path.insert(0, Interrupt())
runpy.run_module("{0}", run_name="__main__", alter_sys=True)
"""

SAID = "{0}: interrupted by SIGTERM\n"


@pytest.mark.parametrize(
    ("argv", "body", "says"),
    [
        (["mrc-recv", "-B", "::1", "-p", "0"], AT_WORK, ""),  # it serves until it is stopped
        (["mrc-send", "::1"], LOADING.format("mrc.cli.send", "mrc.cli.frame"), SAID),
        (["mrc-recv"], LOADING.format("mrc.cli.recv", "mrc.cli.frame"), SAID),
        (["mrc-lab", "status"], LOADING.format("mrc.cli.lab", "mrc.cli.labverbs"), SAID),
        (["mrc.sim", "--list"], LOADING.format("mrc.sim", "mrc.fabric.console"), SAID),
    ],
)
def test_what_was_ignored_at_the_start_stays_so_but_for_sigterm(argv, body, says):
    """As a script's `&` starts it: the Ctrl-C of a terminal is not for it; SIGTERM always is."""
    done = subprocess.run(
        [sys.executable, "-c", IGNORED.format(argv, body)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == Exit.INTERRUPTED
    assert done.stderr == says.format(argv[0])


def test_localhost_without_ipv6_is_told_the_way_out():
    known = from_exception(MrcUsageError("localhost has no IPv6 address; MRC needs it"), "peer")
    assert known is not None
    assert str(known).endswith("(use ::1)")
