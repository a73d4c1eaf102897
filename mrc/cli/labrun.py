# SPDX-License-Identifier: BSD-2-Clause
"""mrc-lab run: scenarios in a lab that is made for them."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import mrc
from mrc.cli.exits import CliError, Exit
from mrc.cli.output import say
from mrc.cli.parser import version
from mrc.fabric.console import Tell, load, run_one
from mrc.fabric.record import Record
from mrc.fabric.scenario import Scenario
from mrc.lab.crew import Programs
from mrc.lab.jobs import check_scenario
from mrc.lab.played import describe
from mrc.lab.run import Lab, run_scenario
from mrc.lab.state import place, sweep

__all__ = ["run"]

_HERE = f"import sys; sys.path.insert(0, {str(Path(mrc.__file__).resolve().parents[1])!r})\n"
"""This package, whatever lies where a run was started."""

SEND = f"""\
{_HERE}
import mrc
import mrc.cli.client
import mrc.netif
from mrc.cli import frame, inlab, options, send
mrc.connect
print('{{"event": "ready", "data": {{}}}}', flush=True)
sys.stdin.readline()
sys.exit(send.main())
"""
"""mrc-send that waits, read in and ready, for a line: starts come when they are due."""

RECV = f"{_HERE}\nfrom mrc.cli import recv\nsys.exit(recv.main())\n"

PROGRAMS = Programs(
    send=(sys.executable, "-P", "-c", SEND), recv=(sys.executable, "-P", "-c", RECV)
)


def run(args: argparse.Namespace) -> Exit:
    """Run what was asked for; FAILED: an expectation is not met."""
    try:
        scenarios = load(args, "lab")
    except ImportError as error:
        raise CliError(Exit.ENVIRONMENT, f"--figure: {error} (pip install matplotlib)") from None
    for name in sweep():
        say("mrc-lab", f"removed what a crash had left of the lab {name}")
    where = place(args.name or f"run-{os.getpid()}")
    if where.alive():
        raise ValueError(f"a lab named {where.name} is up: choose another --name")
    for scenario in scenarios:
        check_scenario(scenario)
    lab = Lab(where, PROGRAMS, userns=args.userns, version=version())

    def one(scenario: Scenario, tell: Tell) -> Record:
        return run_scenario(scenario, lab, tell)

    met = [run_one(scenario, args, one, describe) for scenario in scenarios]
    return Exit.OK if all(met) else Exit.FAILED
