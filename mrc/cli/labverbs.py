# SPDX-License-Identifier: BSD-2-Clause
"""The verbs of mrc-lab: what each does with its arguments."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mrc import _stdout
from mrc.cli import labshow
from mrc.cli.exits import CliError, Exit
from mrc.cli.labfault import given_faults, given_pair, given_targets
from mrc.cli.labparser import FAULTS, lab_parser
from mrc.cli.output import say
from mrc.errors import MrcUsageError
from mrc.lab.errors import FabricError, FabricUnavailableError
from mrc.lab.launch import launch, take_down
from mrc.lab.plan import FabricSpec
from mrc.lab.remote import (
    GoneError,
    NoLabError,
    Remote,
    asked_for,
    choose,
    entering,
    host_number,
    standing_in,
)
from mrc.lab.state import (
    DEFAULT_NAME,
    ENV_FOLDER,
    ENV_HOST,
    ENV_LAB,
    Place,
    place,
    places,
    surroundings,
    sweep,
)

PROGRAM = "mrc-lab"


def main(argv: Sequence[str]) -> int:
    """Run mrc-lab; the exit code."""
    return _stdout.printing(PROGRAM, lambda: _main(argv))


def _main(argv: Sequence[str]) -> int:
    verb = next((word for word in argv[:1] if word in _VERBS), "")
    try:
        args = lab_parser().parse_args(argv)
        return _VERBS[args.verb](args) or Exit.OK
    except (MrcUsageError, NoLabError, ValueError) as error:
        return _failed(Exit.USAGE, str(error))
    except FabricUnavailableError as error:
        return _failed(Exit.ENVIRONMENT, f"this machine lacks something: {error}")
    except FabricError as error:
        return _failed(Exit.FAILED, str(error))
    except CliError as error:
        say(PROGRAM, str(error), hint=error.code == Exit.USAGE, verb=verb)
        return error.code
    except OSError as error:
        if _stdout.is_of_stdout(error):
            return Exit.ENVIRONMENT
        name = f"{error.filename}: " if error.filename else ""
        return _failed(Exit.ENVIRONMENT, f"{name}{error.strerror or error}")
    except KeyboardInterrupt as error:
        return _failed(Exit.INTERRUPTED, str(error) or "interrupted")


def _failed(code: Exit, text: str) -> int:
    say(PROGRAM, text)
    return code


def _up(args: argparse.Namespace) -> None:
    swept = sweep()
    for name in swept:
        say(PROGRAM, f"removed what a crash had left of the lab {name}")
    spec = _spec(args)
    asked = asked_for(args.name)
    where = place(DEFAULT_NAME if asked is None else asked)
    if where.alive():
        hint = f"mrc-lab down --name {where.name}, or another --name"
        raise ValueError(f"a lab named {where.name} is up: {hint}")
    if not args.json:
        labshow.progress(f"building {labshow.size(spec)} ..")
    launch(where, spec, userns=True if args.userns else None)
    with Remote(where) as remote:
        said = remote.ask("status")
    if args.json:
        print(json.dumps(said))
    else:
        labshow.welcome(said)


def _spec(args: argparse.Namespace) -> FabricSpec:
    queue, hosts = args.queue, args.hosts
    if args.rate is None and (queue or args.ecn or args.trim or args.t1_rate):
        raise ValueError("--queue, --ecn, --trim and --t1-rate need a --rate")
    if queue is not None and queue < args.mtu:
        raise ValueError(f"--queue {queue}: less than a packet of --mtu {args.mtu}")
    if args.t0 > hosts or (args.t0 and (args.t0 - 1) * -(-hosts // args.t0) >= hosts):
        raise ValueError(f"--t0 {args.t0}: some would have none of the {hosts} --hosts under them")
    marks = args.ecn
    if marks is True:
        room = queue or max(args.mtu, args.rate // 800)
        marks = (room // 5, room * 4 // 5)
    return FabricSpec(
        planes=args.planes,
        spines=args.t1,
        hosts=hosts,
        mtu=args.mtu,
        rate_mbit=None if args.rate is None else args.rate / 1e6,
        t0=args.t0,
        t1_rate_mbit=None if args.t1_rate is None else args.t1_rate / 1e6,
        queue_bytes=queue,
        ecn_bytes=marks or None,
        trim=args.trim,
        delay_ns=args.delay,
    )


def _statuses(
    args: argparse.Namespace, alive: Sequence[Place], *, chosen: bool
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for where in alive:
        try:
            with Remote(where) as remote:
                found.append(remote.ask("status"))
                if args.links:
                    found[-1]["links"] = remote.ask("links")["links"]
        except FabricError as error:
            if chosen:
                raise
            # One lab that comes up or goes down just now does not hide the others.
            if not args.json:
                print(f"mrc-lab: {error}", file=sys.stderr)
    return found


def _status(args: argparse.Namespace) -> None:
    swept = sweep()
    inside = surroundings()
    named = asked_for(args.name) is not None and not (args.all and args.name is None)
    chosen = named or (inside is not None and not args.all)
    alive = [choose(args.name)] if chosen else [p for p in places() if p.alive()]
    found = _statuses(args, alive, chosen=chosen)
    if args.json:
        print(json.dumps({"labs": found, "swept": swept}))
        return
    for name in swept:
        print(f"removed what a crash had left of the lab {name}")
    if not found:
        print("no lab is up")
    for said in found:
        labshow.status(said)


def _exec(args: argparse.Namespace) -> None:
    argv = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
    if not argv:
        raise CliError(Exit.USAGE, "exec: no command; mrc-lab exec h1 -- CMD ...")
    if argv is args.argv and argv[0].startswith("-"):
        text = f"exec: options such as {argv[0]} stand before the host, a command behind --"
        raise CliError(Exit.USAGE, text)
    where = choose(args.name)
    with Remote(where) as remote:
        said = remote.ask("status")
    try:
        host_number(args.host, len(said["hosts"]))
    except FabricError as error:
        raise CliError(Exit.USAGE, str(error)) from None
    os.environ.update(
        {
            ENV_LAB: where.name,
            ENV_FOLDER: str(where.folder),
            ENV_HOST: args.host,
            "MRC_NETLAB": str(said["holder"]),
        }
    )
    # mrc-send of this installation, whatever PATH says of others
    beside = str(Path(sys.argv[0]).resolve().parent)
    os.environ["PATH"] = f"{beside}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    command = entering(said, args.host, argv)
    sys.stdout.flush()
    os.execvp(command[0], command)  # noqa: S606 - no shell is wanted


def _fault(args: argparse.Namespace) -> None:
    script = [str(f) for f in given_faults(args)]
    pair = given_pair(args.pair)
    with Remote(choose(args.name)) as remote:
        labshow.happened(remote.ask("faults", script=script, pair=pair), script)


def _heal(args: argparse.Namespace) -> None:
    targets, pair = given_targets(args), given_pair(args.pair)
    with Remote(choose(args.name)) as remote:
        for target in targets:
            labshow.healed(remote.ask("heal", target=target, pair=pair), target)


def _down(args: argparse.Namespace) -> None:
    if args.all and args.name is not None:
        raise ValueError("--all and --name exclude each other")
    swept = sweep()
    for name in swept:
        say(PROGRAM, f"removed what a crash had left of the lab {name}")
    try:
        meant = places() if args.all else [choose(args.name)]
    except GoneError as error:  # what shall not be there is not there
        asked = asked_for(args.name)
        if asked not in swept:
            say(PROGRAM, "no lab is up" if asked is None else str(error))
        return
    alive = [where for where in meant if where.alive()]
    for where in alive:
        _check_outside(where)
    for where in alive:
        take_down(where)
        print(f"{where.name} is down")


def _check_outside(where: Place) -> None:
    """ValueError: this very command would end with the hosts of that lab."""
    try:
        with Remote(where) as remote:
            host = standing_in(remote.ask("status"))
    except FabricError:
        return  # it goes down just now, or take_down says what is wrong
    if host is not None:
        raise ValueError(
            f"this is {host} of the lab {where.name}, and all that runs in its hosts ends with"
            " it: type that outside (exit)"
        )


def _run(args: argparse.Namespace) -> Exit:
    from mrc.cli.labrun import run

    return run(args)


_VERBS: dict[str, Callable[[argparse.Namespace], Exit | None]] = {
    "up": _up,
    "status": _status,
    "exec": _exec,
    "run": _run,
    "heal": _heal,
    "down": _down,
    **dict.fromkeys((str(kind) for kind in FAULTS), _fault),
}
