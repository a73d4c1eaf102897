# SPDX-License-Identifier: BSD-2-Clause
"""Options of mrc-send that break parts of a lab while it runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from mrc.fabric import FabricError, Fault, FaultKind
from mrc.fabric.fault import parse_spot

_ABOUT = """\
Only in a host of a lab (mrc-lab exec h1 -- mrc-send ...). TARGET is a part of
  it: plane1, p1.t1.2, p1.t0.a, p1.t0.a--t1.2, h2.port1, ev7, all. Times count
  from the start of the test: @3s, @3s..5s. Each may be given several times.
  What is still wrong at the end of the run is healed."""

_WORDS = {
    FaultKind.FAIL: ("TARGET[@T[..T]]", "packets vanish, the carrier stays"),
    FaultKind.DOWN: ("TARGET[@T[..T]]", "the carrier is lost, too"),
    FaultKind.LOSS: ("TARGET:5%%[@T[..T]]", "that share of the packets vanishes"),
    FaultKind.CORRUPT: ("TARGET:1%%[@T[..T]]", "that share is damaged"),
    FaultKind.TRIM: ("TARGET:1%%[@T[..T]]", "that share is cut to headers"),
    FaultKind.DELAY: ("TARGET:2ms[@T[..T]]", "packets take so much longer"),
    FaultKind.RATE: ("TARGET:100mbit[@T[..T]]", "links have that rate"),
    FaultKind.FLAP: ("TARGET:1s[@T[..T]]", "down for half of each period"),
    FaultKind.REBOOT: ("SWITCH:2s[@T]", "a switch is away for that time"),
    FaultKind.HEAL: ("[TARGET]@T", "end what this run did within the target, or all"),
}


def _spot(kind: FaultKind) -> Callable[[str], Fault]:
    def convert(text: str) -> Fault:
        try:
            fault = parse_spot(kind, text)
        except FabricError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        if kind is FaultKind.HEAL and "@" not in text:
            raise argparse.ArgumentTypeError(f"{text}: when? {text}@5s ends it 5 s into the test")
        return fault

    return convert


def add_faults(parser: argparse.ArgumentParser) -> None:
    """`--fail`, `--heal` and so on; all of them together are `faults`, in the order given."""
    group = parser.add_argument_group("faults", _ABOUT)
    for kind, (spot, words) in _WORDS.items():
        group.add_argument(
            f"--{kind}",
            dest="faults",
            action="append",
            type=_spot(kind),
            metavar=spot.replace("%%", "%"),
            help=words,
        )
