# SPDX-License-Identifier: BSD-2-Clause
"""What the words behind a fault of mrc-lab mean."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace

from mrc.fabric import FabricError, Fault, FaultKind, parse_target
from mrc.fabric.fault import parse_spot


def given_faults(args: argparse.Namespace) -> list[Fault]:
    """One for each target. FabricError (a ValueError): with what is wrong."""
    kind = FaultKind(args.verb)
    if kind is FaultKind.FAIL and args.visible:
        kind = FaultKind.DOWN
    spots, silent = list(args.spots), bool(getattr(args, "silent", False))
    value = _trailing_value(kind, spots)
    faults = [parse_spot(kind, _with_value(spot, value), silent=silent) for spot in spots]
    if args.seconds is None:
        return faults
    if any(f.until_ns is not None for f in faults):
        raise FabricError("--for and an end behind .. exclude each other")
    return [replace(f, until_ns=f.at_ns + args.seconds) for f in faults]


def _trailing_value(kind: FaultKind, spots: list[str]) -> str | None:
    """The last word where it is no target but a value for all before it; taken off the list.

    Whether the value is one is for others to say, and better than that it is no target.
    """
    if not kind.has_value or len(spots) < 2 or re.search("[=:]", spots[-1]):
        return None
    value, at, when = spots[-1].partition("@")
    try:
        parse_target(value)
    except FabricError:
        if at:
            meant = f"{kind} {spots[0]}@{when} {value}"
            raise FabricError(
                f"{spots[-1]!r}: the time stands behind the target: {meant}"
            ) from None
        return spots.pop()
    return None


def _with_value(spot: str, value: str | None) -> str:
    head, at, when = spot.partition("@")
    if value is None or "=" in head or ":" in head:
        return spot
    return f"{head}={value}{at}{when}"


def given_targets(args: argparse.Namespace) -> list[str]:
    """Of a heal; FabricError for what names nothing."""
    for text in args.targets:
        if re.search("[@=:]", text):
            raise FabricError(
                f"heal {text}: a heal is now, and has no value: heal TARGET ..; "
                "a fault ends by itself with --for TIME or TARGET@START..END"
            )
    return [str(parse_target(text)) for text in args.targets] or ["all"]


def given_pair(text: str) -> tuple[int, int]:
    """`h1-h3` as (0, 2)."""
    match = re.fullmatch(r"h([1-9]\d{0,8})-h([1-9]\d{0,8})", text)
    if match is None or match[1] == match[2]:
        raise FabricError(f"--pair {text}: two hosts, such as h1-h2")
    return int(match[1]) - 1, int(match[2]) - 1
