# SPDX-License-Identifier: BSD-2-Clause
"""What the arguments of options are made into; argparse shows what is wrong with one."""

import argparse
from collections.abc import Callable
from ipaddress import IPv6Address
from typing import Any

from mrc.dscp import DscpClasses
from mrc.errors import MrcUsageError
from mrc.planes import plane_addresses
from mrc.units import parse_seconds, parse_size

TRAIN_MAX = 16


def checked(
    parse: Callable[[str], Any], low: float = 0, high: float = 2**63
) -> Callable[[str], Any]:
    """A parser of one argument with bounds, whose complaint names the value."""

    def convert(text: str) -> Any:
        try:
            value = parse(text)
        except ValueError as error:
            message = str(error) if "not a" in str(error) else f"{text!r} is not a number"
            raise argparse.ArgumentTypeError(message) from None
        if not isinstance(value, tuple) and not low <= value <= high:
            shown = _UNITS.get(parse, "{0}..{1}").format(_plain(low, parse), _plain(high, parse))
            raise argparse.ArgumentTypeError(f"{text} is outside {shown}")
        return value

    return convert


_UNITS: dict[Callable[[str], Any], str] = {
    parse_size: "{0}..{1} bytes",
    parse_seconds: "{0}..{1} seconds",
}


def _plain(value: float, parse: Callable[[str], Any]) -> str:
    """A limit as one would type it: digits, and for sizes the letter of a power of 1024."""
    if value != int(value):
        return str(value)
    number, letters = int(value), iter(("", "k", "M", "G", "T"))
    letter = next(letters)
    while parse is parse_size and number and number % 1024 == 0:
        number, letter = number // 1024, next(letters)
    return f"{number}{letter}"


def train(text: str) -> int:
    """Packets of a train; 0 stands for auto."""
    if text == "auto":
        return 0
    if not text.isdecimal() or not 1 <= int(text) <= TRAIN_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not auto or 1..{TRAIN_MAX}")
    return int(text)


def plane_address(text: str) -> tuple[int, IPv6Address]:
    """N=ADDR: a plane and this host's address there."""
    number, _, address = text.partition("=")
    if "=" not in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not PLANE=ADDRESS")
    try:
        (pair,) = plane_addresses({int(number): address})
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not PLANE=ADDRESS") from None
    except MrcUsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return pair


def classes(text: str) -> DscpClasses:
    """CLASS=N,...: the DSCP of traffic classes."""
    try:
        return DscpClasses.parse(text)
    except MrcUsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def whole(text: str) -> int:
    """A whole number, decimal or with a prefix."""
    return int(text, 0)


def something(text: str) -> str:
    """A name or an address: a variable that a script forgot to set is none."""
    if not text:
        raise argparse.ArgumentTypeError("nothing is given")
    return text
