# SPDX-License-Identifier: BSD-2-Clause
"""The parsers of both commands. What the options mean together is checked in options.py."""

import argparse
import re
import sys
from importlib import metadata
from typing import Any, NoReturn

from mrc import _stdout
from mrc.cli import helptext
from mrc.cli.argtypes import checked, classes, plane_address, something, train, whole
from mrc.cli.exits import CliError, Exit
from mrc.cli.faultparser import add_faults
from mrc.cli.output import Lines
from mrc.units import parse_count, parse_seconds, parse_size, parse_size_range

PORT = 18515
EVS = 16
SPORT_BASE = 49152
DEPTH = 16
EVS_MAX = 4096
MESSAGE_MAX = 1 << 31  # H20
PUMP = "loop"
MTUS = (256, 512, 1024, 2048, 4096)


class Parser(argparse.ArgumentParser):
    """argparse, with our exit code for usage errors."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # What begins as a negative number is a value that is wrong, no option that nobody knows.
        self._negative_number_matcher = re.compile(r"-\.?\d.*")

    def error(self, message: str) -> NoReturn:  # noqa: D102 - as argparse has it
        raise CliError(Exit.USAGE, message)

    def _print_message(self, message: str, file: Any = None) -> None:
        """--help and --version to a stdout that takes them, or an error."""
        lines = Lines(file or sys.stdout)
        lines.write(message.removesuffix("\n"))
        if lines.error is not None:
            raise CliError(Exit(_stdout.code_of(lines.error)), _stdout.why_not(lines.error))


def version() -> str:
    """Version of the installed package."""
    try:
        return metadata.version("mrc")
    except metadata.PackageNotFoundError:
        return "0+source"


def _add_common(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("common")
    lowest, note = (0, ", 0 for any free one") if parser.prog == "mrc-recv" else (1, "")
    group.add_argument(
        "-p",
        "--port",
        type=checked(whole, lowest, 65535),
        default=PORT,
        metavar="PORT",
        help=f"TCP port of the receiver, where both agree on a test (default {PORT}{note})",
    )
    group.add_argument(
        "-B",
        "--bind",
        type=something,
        metavar="ADDR",
        help="address of this host to use, with %%zone if link-local",
    )
    group.add_argument(
        "--udp-port",
        type=checked(whole, 1, 65535),
        metavar="PORT",
        help="UDP port on which this end takes data, no other (default 4791 or the next free)",
    )
    group.add_argument(
        "--backend",
        choices=("auto", "udp", "raw"),
        default="auto",
        help="how packets leave: udp needs no privilege, raw builds SRv6 itself and needs "
        "CAP_NET_RAW; auto takes raw when the EV profile asks for SRv6, else udp",
    )
    group.add_argument(
        "--mode",
        choices=("mrc", "rc"),
        default="mrc",
        help="rc, for comparison only: one path and go-back-N; both ends say the same",
    )
    group.add_argument(
        "--pump",
        choices=("loop", "thread"),
        help="who moves the packets of this end: the event loop, or a thread of its own "
        f"(default: MRC_PUMP, else {PUMP})",
    )
    group.add_argument(
        "--ev-profile",
        type=something,
        metavar="FILE",
        help="TOML file that names the paths (entropy values); without it EV i is a source port",
    )
    group.add_argument(
        "--plane-address",
        type=plane_address,
        action="append",
        default=[],
        metavar="N=ADDR",
        help="address of this host in plane N, where each plane has its own NIC; once for each",
    )
    group.add_argument(
        "--dscp",
        type=classes,
        metavar="CLASS=N,...",
        help="DSCP of traffic classes (default no-trim=0,trimmable=4,trimmable-retx=8,trimmed=12,"
        "trimmed-lasthop=16,control=46); trimmed=0: the fabric does not trim",
    )
    _add_reports(parser, group)


def _add_reports(parser: argparse.ArgumentParser, group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-i",
        "--interval",
        type=checked(parse_seconds, 0, 3600),
        default=1.0,
        metavar="S",
        help="seconds between reports, 0 for none (default 1)",
    )
    form = group.add_mutually_exclusive_group()
    form.add_argument(
        "-J",
        "--json",
        dest="output",
        action="store_const",
        const="json",
        default="human",
        help="print one JSON object at the end, whatever happens",
    )
    form.add_argument(
        "--json-stream",
        dest="output",
        action="store_const",
        const="json-stream",
        help="print one JSON object a line, as things happen",
    )
    group.add_argument(
        "--loop",
        choices=("auto", "uvloop", "asyncio"),
        default="auto",
        help="event loop; auto is uvloop where it is installed",
    )
    group.add_argument("--version", action="version", version=f"{parser.prog} {version()}")
    group.add_argument("-h", "--help", action="help", help="show this text and exit")


def recv_parser() -> argparse.ArgumentParser:
    """The parser of mrc-recv; completion and the reference page are made from it, too."""
    parser = Parser(
        prog="mrc-recv",
        add_help=False,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=helptext.RECV_ABOUT,
        epilog=helptext.RECV_EPILOG,
    )
    group = parser.add_argument_group("receiver")
    group.add_argument(
        "-1",
        "--one-off",
        action="store_true",
        help="serve one client, then exit with the result of its test",
    )
    group.add_argument(
        "-o",
        "--output-dir",
        dest="directory",
        type=something,
        metavar="DIR",
        help="keep received files in this directory; without it they are hashed "
        "and dropped. An existing file is never overwritten",
    )
    group.add_argument(
        "--idle-timeout",
        type=checked(parse_seconds, 0.1, 86400),
        metavar="S",
        help="give a silent client up after S seconds (default 30) and take the "
        "next; with -1, when given, also how long to wait for a client",
    )
    _add_common(parser)
    return parser


def _add_load(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to send")
    group.add_argument(
        "-s",
        "--size",
        type=checked(parse_size, 1, MESSAGE_MAX),
        metavar="BYTES",
        help="bytes of a message (default 1M; 64 with --latency); k, M, G are powers of 1024",
    )
    length = group.add_mutually_exclusive_group()
    length.add_argument(
        "-t",
        "--time",
        type=checked(parse_seconds, 0.05, 86400 * 365),
        metavar="S",
        help="seconds to send for (default 10; 1 a size with --sweep)",
    )
    length.add_argument(
        "-n",
        "--messages",
        type=checked(parse_count, 1),
        metavar="N",
        help="send N messages on each connection instead; k, M, G are powers of 1000",
    )
    _add_kind(group)
    _add_check(group)


def _add_kind(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--file",
        nargs="+",
        action="extend",
        metavar="PATH",
        default=[],
        help="send these files; contents are compared by SHA-256 at the end",
    )
    group.add_argument(
        "--latency",
        action="store_true",
        help="ping-pong of writes with immediate; reports half the round trip",
    )
    group.add_argument(
        "--sweep",
        type=checked(parse_size_range),
        metavar="MIN:MAX",
        help="one run for each power of two from MIN to MAX bytes, as a table",
    )
    group.add_argument("--bidir", action="store_true", help="both sides send at the same time")
    group.add_argument(
        "--imm", action="store_true", help="send every message as a write with immediate"
    )


def _add_check(group: argparse._ArgumentGroup) -> None:
    verify = group.add_mutually_exclusive_group()
    verify.add_argument(
        "--verify",
        dest="verify",
        action="store_true",
        default=None,
        help="the receiver checks every byte of every message before its slot is "
        "used again (the default; implies --imm)",
    )
    verify.add_argument(
        "--no-verify",
        dest="verify",
        action="store_false",
        help="plain writes; only the number of bytes placed is compared",
    )
    group.add_argument(
        "--seed",
        type=checked(whole, 0, 2**63 - 1),
        metavar="N",
        help="seed of test data and path order (default: drawn, and reported)",
    )


def _add_transport(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("transport")
    group.add_argument(
        "-P",
        "--parallel",
        type=checked(whole, 1, 256),
        default=1,
        metavar="QPS",
        help="connections (queue pairs) that send at the same time (default 1)",
    )
    group.add_argument(
        "-e",
        "--evs",
        type=checked(whole, 1, EVS_MAX),
        metavar="EVS",
        help=f"paths to spray over (default {EVS}, or what the EV profile lists)",
    )
    group.add_argument(
        "--sport-base",
        type=checked(whole, 1024, 65535),
        default=SPORT_BASE,
        metavar="PORT",
        help="EV i uses UDP source port PORT + i (default 49152)",
    )
    group.add_argument(
        "--mtu",
        type=checked(whole),
        choices=MTUS,
        default=4096,
        help="payload bytes of a packet (default 4096; the smaller of both ends)",
    )
    group.add_argument(
        "--depth",
        type=checked(whole, 1, 1024),
        metavar="N",
        help="messages in flight on a connection (default 16, fewer if they are huge)",
    )
    _add_sending(group)


def _add_sending(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--cc",
        choices=("nscc", "fixed", "none"),
        default="nscc",
        help="congestion control (default nscc)",
    )
    group.add_argument(
        "--window",
        type=checked(parse_size, 256, 1 << 40),
        metavar="BYTES",
        help="fixed: the window; nscc: its ceiling",
    )
    group.add_argument(
        "--train",
        type=train,
        default=0,
        metavar="auto|1..16",
        help="packets that follow each other on one path (default auto)",
    )
    for flag, words in (
        ("--no-dynamic-mpr", "the receiver may not change the packet window while it runs"),
        ("--timestamps", "a timestamp in every data packet, 4 bytes more"),
    ):
        group.add_argument(flag, action="store_true", help=words)
    group.add_argument(
        "--start-psn",
        type=checked(whole, 0, 0xFFFFFF),
        metavar="PSN",
        help="first packet sequence number (default: drawn), e.g. 0xfffff0 to "
        "cross the wrap at once",
    )
    group.add_argument(
        "--connect-timeout",
        type=checked(parse_seconds, 0.1, 3600),
        default=10.0,
        metavar="S",
        help="seconds to wait for the receiver (default 10)",
    )


def send_parser() -> argparse.ArgumentParser:
    """The parser of mrc-send; completion and the reference page are made from it, too."""
    parser = Parser(
        prog="mrc-send",
        add_help=False,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=helptext.SEND_ABOUT,
        epilog=helptext.SEND_EPILOG,
    )
    parser.add_argument(
        "host",
        metavar="HOST",
        help="name or IPv6 address of the receiver, with %%zone if link-local",
    )
    _add_load(parser)
    _add_transport(parser)
    add_faults(parser)
    _add_common(parser)
    return parser
