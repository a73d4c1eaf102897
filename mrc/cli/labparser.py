# SPDX-License-Identifier: BSD-2-Clause
"""The parser of mrc-lab."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from mrc.cli import labtext
from mrc.cli.argtypes import checked, whole
from mrc.cli.parser import Parser, version
from mrc.fabric import FaultKind
from mrc.fabric.console import add_options
from mrc.lab.plan import (
    DELAY_NS,
    HOSTS_MAX,
    MTU_BYTES,
    PLANES_MAX,
    QUEUE_BYTES_MAX,
    RATE_BPS,
    SPINES_MAX,
)
from mrc.lab.state import DEFAULT_NAME
from mrc.units import SECOND, parse_bps, parse_ns, parse_size, rate_text, time_text

FAULTS = tuple(k for k in FaultKind if k not in (FaultKind.DOWN, FaultKind.HEAL))


def _of(
    parse: Callable[[str], int],
    bounds: tuple[int, int],
    shown: Callable[[int], str],
) -> Callable[[str], int]:
    """A parser of one argument whose complaint is its own sentence."""

    def convert(text: str) -> int:
        try:
            value = parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        if not bounds[0] <= value <= bounds[1]:
            low, high = map(shown, bounds)
            raise argparse.ArgumentTypeError(f"{text} is outside {low}..{high}")
        return value

    return convert


_SIZE = checked(parse_size, 1, QUEUE_BYTES_MAX)
_RATE = _of(parse_bps, RATE_BPS, rate_text)
_TIME = _of(parse_ns, (1, 365 * 24 * 3600 * SECOND), time_text)


def _marks(text: str) -> tuple[int, int]:
    lo, dots, hi = text.partition("..")
    if not dots:
        raise argparse.ArgumentTypeError(f"{text!r} is no range such as 40KB..160KB")
    found = _SIZE(lo) if lo != "0" else 0, _SIZE(hi)
    if found[0] >= found[1]:
        raise argparse.ArgumentTypeError(f"{text}: no room between the two")
    return found


def lab_parser() -> argparse.ArgumentParser:
    """The parser of mrc-lab; the reference page is made from it, too."""
    parser = _new(Parser, "mrc-lab", labtext.ABOUT, labtext.EPILOG)
    parser.add_argument("--version", action="version", version=f"mrc-lab {version()}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)

    def verb(
        name: str, line: str, about: str, epilog: str = "", meant: str = "the one that is up"
    ) -> argparse.ArgumentParser:
        made = _new(verbs.add_parser, name, about, epilog, help=line)
        made.add_argument("--name", metavar="NAME", help=f"of the lab (default: {meant})")
        return made

    _up(verb("up", "build a fabric", labtext.UP, labtext.UP_EPILOG, DEFAULT_NAME))
    status = verb("status", "what is up, what is wrong in it", labtext.STATUS)
    status.add_argument("--all", action="store_true", help="in a host: of other labs, too")
    status.add_argument("--links", action="store_true", help="every cable that carried something")
    _json(status)
    run = verb("exec", "run a command in a host", labtext.EXEC, labtext.EXEC_EPILOG)
    run.add_argument("host", metavar="HOST", help="h1, h2, ..")
    run.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- CMD ...", help="the command")
    play = verb(
        "run", "run a scenario in a lab made for it", labtext.RUN, labtext.RUN_EPILOG, "run-PID"
    )
    add_options(play)
    play.add_argument("--userns", action="store_true", help="in a user namespace even as root")
    for kind in FAULTS:
        line, about = labtext.fault(kind)
        _fault(verb(str(kind), line, about, labtext.FAULT_EPILOG), kind)
    heal = verb("heal", "end faults", labtext.HEAL, labtext.HEAL_EPILOG)
    heal.add_argument("targets", nargs="*", metavar="TARGET", help="default: all")
    _pair(heal)
    down = verb("down", "remove the fabric", labtext.DOWN)
    down.add_argument("--all", action="store_true", help="every lab of this user")
    return parser


def _new(
    make: Callable[..., argparse.ArgumentParser], name: str, about: str, epilog: str, **more: Any
) -> argparse.ArgumentParser:
    prog = {"prog": name} if make is Parser else {}
    args = () if make is Parser else (name,)
    return make(
        *args,
        **prog,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=about,
        epilog=epilog,
        **more,
    )


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _pair(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pair",
        metavar="hA-hB",
        default="h1-h2",
        help="the hosts whose paths an evN counts (default h1-h2)",
    )


def _up(parser: argparse.ArgumentParser) -> None:
    shape = parser.add_argument_group("shape")
    for flag, low, high, default, words in (
        ("--planes", 1, PLANES_MAX, 4, "planes, each a port of every host"),
        ("--t1", 1, SPINES_MAX, 4, "T1 switches (spines) in each plane"),
        ("--hosts", 2, HOSTS_MAX, 2, "hosts"),
        ("--t0", 0, HOSTS_MAX, 0, "T0 switches in each plane (default: one for each host)"),
    ):
        text = words if not default else f"{words} (default {default})"
        number = checked(whole, low, high)
        shape.add_argument(flag, type=number, default=default, metavar="N", help=text)
    links = parser.add_argument_group("links")
    links.add_argument("--rate", type=_RATE, metavar="RATE", help="such as 500mbit, 1gbit")
    links.add_argument("--t1-rate", type=_RATE, metavar="RATE", help="of cables between T0 and T1")
    links.add_argument(
        "--queue",
        type=_SIZE,
        metavar="BYTES",
        help="what may wait at a port (default 10 ms of its rate)",
    )
    links.add_argument(
        "--mtu",
        type=checked(whole, *MTU_BYTES),
        default=9500,
        metavar="BYTES",
        help="largest packet, outer header included (default 9500)",
    )
    links.add_argument(
        "--delay",
        type=_of(parse_ns, DELAY_NS, time_text),
        default=0,
        metavar="TIME",
        help="extra time on every cable between T0 and T1, each direction; 100us or more",
    )
    links.add_argument(
        "--ecn",
        nargs="?",
        const=True,
        type=_marks,
        metavar="LO..HI",
        help="switches mark CE never below LO bytes waiting, always above HI, but not towards "
        "hosts (default: a fifth and four fifths of the queue)",
    )
    links.add_argument(
        "--trim",
        action="store_true",
        help="switches cut what they cannot queue to its headers",
    )
    parser.add_argument(
        "--userns",
        action="store_true",
        help="in a user namespace even as root, as for an ordinary user",
    )
    _json(parser)


def _fault(parser: argparse.ArgumentParser, kind: FaultKind) -> None:
    spot = "TARGET[=VALUE][@START[..END]]" if kind.has_value else "TARGET[@START[..END]]"
    parser.add_argument(
        "spots", nargs="+", metavar=spot, help="what, how much, and when; see below"
    )
    parser.add_argument(
        "--for",
        dest="seconds",
        type=_TIME,
        metavar="TIME",
        help="heal it after that time",
    )
    if kind is FaultKind.FAIL:
        parser.add_argument("--visible", action="store_true", help="the carrier is lost, too")
    if kind is FaultKind.FLAP:
        parser.add_argument("--silent", action="store_true", help="the carrier stays")
    _pair(parser)
