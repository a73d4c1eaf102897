# SPDX-License-Identifier: BSD-2-Clause
"""EVs that the device makes up: from fields (GENERATED, D.4), or from a number of them (AUTO)."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from ipaddress import IPv6Address

from .errors import MrcProfileError
from .ev import VALUE_BITS, EvEntry, EvField, EvProfile, expand
from .types import EV_MAX, PLANE_MAX, EvFormat

__all__ = ["SPORT_BASE", "automatic", "combinations", "entry_of", "generate", "scattered"]

SPORT_BASE = 49152  # source port of EV 0, where the EV is a tag (H23)


def generate(
    fmt: EvFormat,
    fields: Sequence[EvField],
    widths: Sequence[int],
    count: int,
    *,
    ports: Sequence[int] = (1,),
    plane_field: int | None = None,
    sport_base: int = SPORT_BASE,
) -> list[EvEntry]:
    """`count` EVs, an even share of all combinations of the fields' values (D.3, H25).

    Enumerated with the last field fastest, ports round robin, then shuffled, the same way each
    time. plane_field: its value decides the port instead, its min is port 1. MrcProfileError: a
    port or a source port beyond its range.
    """
    spans = [f.top - f.min + 1 if f.mask else 1 for f in fields]
    chosen = scattered(spans, count, plane_field)
    rank = {number: k for k, number in enumerate(sorted(chosen))}
    entries = []
    for i, number in enumerate(chosen):
        offsets = _digits(number, spans)
        if plane_field is None:
            port = ports[rank[number] % len(ports)]
        else:
            port = 1 + offsets[plane_field]
            if port > PLANE_MAX:
                raise MrcProfileError(
                    f"plane_field: gives plane {port}, which is not in 1..{PLANE_MAX}"
                )
        values = [f.min + o if f.mask else 0 for f, o in zip(fields, offsets, strict=True)]
        path = expand(fields, widths, values, VALUE_BITS[fmt])
        entries.append(entry_of(fmt, path, sport_base + i, port))
    return entries


def combinations(fields: Sequence[EvField]) -> int:
    """How many EVs the fields have."""
    return math.prod(f.top - f.min + 1 for f in fields if f.mask)


def scattered(spans: Sequence[int], count: int, first: int | None = None) -> list[int]:
    """`count` numbers in mixed radix `spans` (the last digit the fastest), shuffled.

    They are walked in a stride coprime to their number, so that any count takes an even, fixed,
    scattered share (D.1). The values of digit `first` take turns.
    """
    rest = [1 if k == first else span for k, span in enumerate(spans)]
    turns = 1 if first is None else spans[first]
    weight = 0 if first is None else math.prod(spans[first + 1 :])
    total = math.prod(rest)
    stride = max(1, int(total * 0.618))
    while math.gcd(stride, total) != 1:
        stride += 1
    numbers = []
    for i in range(count):
        digits = _digits(i // turns * stride % total, rest)
        numbers.append(_number(digits, spans) + i % turns * weight)
    return numbers


def _digits(number: int, spans: Sequence[int]) -> list[int]:
    digits = []
    for span in reversed(spans):
        number, digit = divmod(number, span)
        digits.append(digit)
    return digits[::-1]


def _number(digits: Sequence[int], spans: Sequence[int]) -> int:
    number = 0
    for digit, span in zip(digits, spans, strict=True):
        number = number * span + digit
    return number


def entry_of(fmt: EvFormat, path: int, source_port: int, port: int) -> EvEntry:
    """The entry of an expanded path value.

    UDP and STEV carry the value itself; SRv6 needs a 32-bit EV for the echo: a tag (H23).
    """
    if fmt in (EvFormat.UDP, EvFormat.STEV):
        return EvEntry(path, port)
    if fmt is EvFormat.SRV6:
        return EvEntry(source_port, port, IPv6Address(path))
    segment = IPv6Address(path & (1 << 128) - 1)
    return EvEntry(source_port, port, IPv6Address(path >> 128), segment)


def automatic(
    fmt: EvFormat, count: int, *, ports: Sequence[int] = (1,), seed: int = 0
) -> list[EvEntry]:
    """EVs of the device's choice (AUTO). MrcProfileError: SRv6, whose addresses it cannot know."""
    if not 1 <= count <= EV_MAX:
        raise MrcProfileError(f"the number of EVs {count} is not in 1..{EV_MAX}")
    if fmt is EvFormat.UDP:
        values = [e.value for e in EvProfile.udp(count, min(SPORT_BASE, 0x10000 - count))]
    elif fmt is EvFormat.STEV:
        rng = random.Random(seed)  # noqa: S311 - spreads paths, protects nothing
        values = []
        taken: set[int] = set()
        while len(values) < count:
            value = rng.randrange(1 << 16) << 16 | rng.randrange(SPORT_BASE, 1 << 16)
            if value not in taken:
                taken.add(value)
                values.append(value)
    else:
        raise MrcProfileError(
            f"format {fmt.value} cannot be automatic: nobody but you knows its addresses"
        )
    return [EvEntry(value, ports[i % len(ports)]) for i, value in enumerate(values)]
