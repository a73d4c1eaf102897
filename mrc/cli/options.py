# SPDX-License-Identifier: BSD-2-Clause
"""What the commands were asked to do, checked."""

import argparse
import dataclasses
import os
import pathlib
import random
import re
import sys
import tempfile
from collections.abc import Sequence
from ipaddress import IPv6Address
from typing import Literal

from mrc.cli.early import bare_report, wants_json
from mrc.cli.exits import CliError, Exit
from mrc.cli.output import Lines, say
from mrc.cli.parser import DEPTH, EVS, MESSAGE_MAX, PUMP, SPORT_BASE, recv_parser, send_parser
from mrc.cli.plainfile import is_waiting_fifo, open_plain
from mrc.dscp import DscpClasses
from mrc.fabric.fault import Fault

RING_BYTES_MAX = 4 << 30


@dataclasses.dataclass(frozen=True, slots=True)
class Common:
    """What both commands know: how to run and how to report."""

    port: int
    bind: str | None
    """Address of this host; None is all of them, or the one the route to the peer has."""
    udp_port: int | None
    backend: str
    ev_profile: str | None
    interval: float
    output: str
    """`human`, `json` or `json-stream`."""
    loop: str
    dscp: DscpClasses | None
    plane_addresses: dict[int, IPv6Address]
    """Addresses of this host in planes."""
    mode: str
    """`mrc`, or `rc` for comparisons."""
    pump: Literal["loop", "thread"]


@dataclasses.dataclass(frozen=True, slots=True)
class RecvOptions:
    """mrc-recv: seconds are floats, None means "not given"."""

    common: Common
    one_off: bool
    directory: str | None
    idle_timeout: float
    idle_timeout_given: bool


@dataclasses.dataclass(frozen=True, slots=True)
class SendOptions:
    """mrc-send: sizes in bytes, seconds as floats, None means "not given"."""

    common: Common
    host: str
    connect_timeout: float
    size: int
    seconds: float | None
    messages: int | None
    parallel: int
    evs: int | None
    sport_base: int
    mtu: int
    depth: int
    cc: str
    window: int | None
    train: int
    dynamic_mpr: bool
    timestamps: bool
    start_psn: int | None
    imm: bool
    files: tuple[str, ...]
    verify: bool
    latency: bool
    sweep: tuple[int, int] | None
    bidir: bool
    seed: int
    faults: tuple[Fault, ...] = ()
    """What is broken, in a lab, while it runs."""


_WITH_PORT = re.compile(r"\[(?P<address>.*)\]:(?P<port>.*)|(?P<name>[^:]*):(?P<its_port>[^:]*)")


def _host(what: str, text: str) -> str:
    """An address without brackets. One with its port, as others write it, is told how we do."""
    if found := _WITH_PORT.fullmatch(text):
        host = found["address"] if found["name"] is None else found["name"]
        port = found["port"] if found["name"] is None else found["its_port"]
        how = f"{host or what} -p {port or 'PORT'}"
        raise CliError(Exit.USAGE, f"{what} {text!r} has a port with it: give it as {how}")
    return text[1:-1] if text.startswith("[") and text.endswith("]") else text


def _common(args: argparse.Namespace) -> Common:
    if args.ev_profile is not None:
        try:
            if is_waiting_fifo(args.ev_profile):
                raise CliError(Exit.USAGE, f"--ev-profile {args.ev_profile}: is a FIFO")
            with pathlib.Path(args.ev_profile).open("rb"):
                pass  # that it can be read is all there is to know yet
        except OSError as error:
            raise CliError(
                Exit.USAGE, f"--ev-profile {args.ev_profile}: {error.strerror}"
            ) from None
    if 0 < args.interval < 0.01:
        raise CliError(Exit.USAGE, "argument -i: at least 0.01 seconds, or 0 for none")
    bind = _host("-B", args.bind) if args.bind else None
    planes = dict(args.plane_address)
    if len(planes) != len(args.plane_address):
        raise CliError(Exit.USAGE, "argument --plane-address: a plane is given twice")
    return Common(
        port=args.port,
        bind=bind,
        udp_port=args.udp_port,
        backend=args.backend,
        ev_profile=args.ev_profile,
        interval=args.interval,
        output=args.output,
        loop=args.loop,
        dscp=args.dscp,
        plane_addresses=planes,
        mode=args.mode,
        pump=_pump(args.pump),
    )


def _check_directory(path: str) -> None:
    """Refuse at once what would fail with the first file; a trial is the only sure test."""
    if not pathlib.Path(path).is_dir():
        there = pathlib.Path(path).exists()
        raise CliError(Exit.USAGE, f"-o {path}: {'is no' if there else 'no such'} directory")
    try:
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise CliError(
            Exit.USAGE, f"-o {path}: no file can be made there: {error.strerror}"
        ) from None


def parse_recv(argv: Sequence[str]) -> RecvOptions:
    """Options of mrc-recv; CliError(USAGE) for what cannot be meant."""
    args = recv_parser().parse_args(argv)
    if args.directory is not None:
        _check_directory(args.directory)
    idle = args.idle_timeout
    return RecvOptions(
        common=_common(args),
        one_off=args.one_off,
        directory=args.directory,
        idle_timeout=30.0 if idle is None else idle,
        idle_timeout_given=idle is not None,
    )


def _check_together(args: argparse.Namespace) -> None:
    """Options that contradict each other are an error: silently dropping one would mislead."""
    modes = [
        name
        for name, on in (
            ("--file", args.file),
            ("--latency", args.latency),
            ("--bidir", args.bidir),
        )
        if on
    ]
    timed = args.sweep or args.time is not None or args.messages is not None
    base_given = args.sport_base != SPORT_BASE
    for wrong, message in (
        (len(modes) > 1, f"{' and '.join(modes)} exclude each other"),
        (args.file and timed, "--file sends whole files: --sweep, -t and -n do not apply"),
        (args.file and args.verify is False, "files are always verified: not with --no-verify"),
        (args.sweep and args.bidir, "--sweep and --bidir exclude each other"),
        (args.sweep and args.size is not None, "--sweep chooses the sizes: -s does not apply"),
        (args.sweep and args.sweep[1] > MESSAGE_MAX, f"--sweep: at most {MESSAGE_MAX} bytes"),
        (args.cc == "none" and args.window is not None, "--cc none has no --window"),
        (args.window is not None and args.window < args.mtu, "--window is less than one --mtu"),
        (args.sport_base + (args.evs or EVS) > 65536, "--sport-base + -e passes UDP port 65535"),
        (args.ev_profile and base_given, "--ev-profile names the paths, not --sport-base"),
    ):
        if wrong:
            raise CliError(Exit.USAGE, message)


def _check_files(paths: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for path in paths:
        try:
            open_plain(path).close()
        except OSError as error:
            raise CliError(Exit.USAGE, f"--file {path}: {error.strerror}") from None
        name = pathlib.Path(path).name
        if name in seen:
            raise CliError(Exit.USAGE, f"--file: {seen[name]} and {path} have the same name")
        seen[name] = path


def _pump(given: Literal["loop", "thread"] | None) -> Literal["loop", "thread"]:
    match given or os.environ.get("MRC_PUMP") or PUMP:
        case "loop":
            return "loop"
        case "thread":
            return "thread"
        case other:
            raise CliError(Exit.USAGE, f"MRC_PUMP={other!r} is not loop or thread")


def _seed() -> int:
    text = os.environ.get("MRC_SEED")
    if text is None:
        return random.SystemRandom().getrandbits(32)
    try:
        return int(text, 0) & (2**63 - 1)
    except ValueError:
        raise CliError(Exit.USAGE, f"MRC_SEED={text!r} is not a whole number") from None


def parse_send(argv: Sequence[str]) -> SendOptions:
    """Options of mrc-send; CliError(USAGE) for what cannot be meant."""
    args = send_parser().parse_args(argv)
    _check_together(args)
    _check_files(args.file)
    size = args.size or (args.sweep[1] if args.sweep else 64 if args.latency else 1 << 20)
    depth = args.depth or max(1, min(DEPTH, RING_BYTES_MAX // (size * args.parallel)))
    if size * depth * args.parallel > RING_BYTES_MAX:
        raise CliError(
            Exit.USAGE,
            f"-s x --depth x -P is {size * depth * args.parallel} bytes of "
            f"buffer, the limit is {RING_BYTES_MAX}",
        )
    if args.mode == "rc" and args.evs not in (None, 1):
        raise CliError(Exit.USAGE, f"--mode rc has one path, not -e {args.evs}")
    seconds = args.time
    if seconds is None and args.messages is None:
        seconds = 1.0 if args.sweep else 10.0
    _check_faults(args, seconds)
    return SendOptions(
        common=_common(args),
        host=_host("HOST", args.host),
        connect_timeout=args.connect_timeout,
        size=size,
        seconds=seconds,
        messages=args.messages,
        parallel=args.parallel,
        evs=args.evs,
        sport_base=args.sport_base,
        mtu=args.mtu,
        depth=depth,
        cc=args.cc,
        window=args.window,
        train=args.train,
        dynamic_mpr=not args.no_dynamic_mpr,
        timestamps=args.timestamps,
        start_psn=args.start_psn,
        imm=args.imm,
        files=tuple(args.file),
        verify=args.verify is not False,
        latency=args.latency,
        sweep=args.sweep,
        bidir=args.bidir,
        seed=_seed() if args.seed is None else args.seed,
        faults=tuple(args.faults or ()),
    )


def _check_faults(args: argparse.Namespace, seconds: float | None) -> None:
    """Each begins before the end of the run, where -t is what ends it."""
    if not seconds or args.messages or args.file or args.sweep:
        return
    for fault in args.faults or ():
        if fault.at_ns >= seconds * 1e9:
            raise CliError(
                Exit.USAGE, f"--{fault.kind}: {fault} begins when the run is over, -t {seconds:g}"
            )


def usage_error(prog: str, argv: Sequence[str], error: CliError) -> int:
    """Report a command line that cannot be run, in the form it asked for."""
    say(prog, str(error), hint=error.code == Exit.USAGE)
    report = bare_report(wants_json(argv), str(error))
    if report:
        Lines(sys.stdout).write(report.removesuffix("\n"))
    return error.code
