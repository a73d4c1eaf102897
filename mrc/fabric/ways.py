# SPDX-License-Identifier: BSD-2-Clause
"""Who sends to whom in a scenario, by which paths, and how far that is. Pure.

The same case and seed give the same pairs and paths on every fabric.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from .capacity import ENCAP, HEADERS, TIMESTAMP
from .errors import FabricError
from .plan import Work
from .scenario import Case
from .shape import FabricShape, Link
from .target import parse_target

__all__ = ["SACK_BYTES", "TURN_NS", "Pair", "base_rtt_ns", "flow_name", "path_numbers", "permuted"]

SACK_BYTES = 40 + HEADERS + 36
"""What a SACK takes on the way back, with the outer header: about."""
TURN_NS = 500
"""From a packet's arrival to the SACK that answers it, at best."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A queue pair that is needed. Hosts are 0-based."""

    a: int
    b: int
    work: Work
    number: int
    """Of the queue pairs of that work between those hosts."""


def flow_name(src: int, dst: int, number: int, count: int) -> str:
    """`h1>h2`; of several queue pairs `h1>h2#2`. Hosts are 0-based here, 1-based in the name."""
    return f"h{src + 1}>h{dst + 1}" + (f"#{number + 1}" if count > 1 else "")


def permuted(work: Work, rank: random.Random) -> list[tuple[int, int]]:
    """Each host of a permutation and the one it sends to."""
    hosts = list(work.hosts)
    if work.shift:
        to = [hosts[(i + work.shift) % len(hosts)] for i in range(len(hosts))]
    else:
        to = _derangement(hosts, rank)
    return list(zip(hosts, to, strict=True))


def _derangement(hosts: list[int], rank: random.Random) -> list[int]:
    """Drawn anew until nobody sends to itself: 1 in e draws is one."""
    while True:
        to = hosts.copy()
        rank.shuffle(to)
        if all(a != b for a, b in zip(hosts, to, strict=True)):
            return to


def base_rtt_ns(case: Case) -> int:
    """Round trip of a full packet and its SACK over the longest path of an idle fabric (E.4)."""
    shape = case.shape
    data = case.transport.path_mtu + HEADERS + ENCAP + TIMESTAMP
    far = shape.t0 > 1
    rates = [shape.rate_bps, *([shape.t1_rate_bps] * 2 if far else []), shape.rate_bps]
    wire = sum((data + SACK_BYTES) * 8 * 10**9 // rate for rate in rates)
    return wire + 2 * len(rates) * shape.delay_ns + 2 * TURN_NS


def path_numbers(case: Case, pair: Pair) -> list[int]:
    """Paths of a queue pair, one for each EV of its profile, in order.

    All paths in their own order; of a part of them as many of each plane, drawn (D.1). In mode rc
    one, drawn for each queue pair as a hash of its ports would.
    """
    shape, transport = case.shape, case.transport
    count = shape.path_count(pair.a, pair.b)
    rank = random.Random(f"{case.run.seed} {pair.a} {pair.b} {pair.work.name}")  # noqa: S311
    known = list(pair.work.paths) or list(range(count))
    for number in known:
        if number >= count:
            raise FabricError(f"there is no path {number} from h{pair.a + 1} to h{pair.b + 1}")
    known = [n for n in known if not _denied(case, pair, n)]
    if not known:
        raise FabricError(f"no path is left from h{pair.a + 1} to h{pair.b + 1}: all are denied")
    if transport.mode == "rc":
        if pair.work.paths:
            return [known[pair.number % len(known)]]
        rank = random.Random(f"{case.run.seed} {pair.a} {pair.b} {pair.number}")  # noqa: S311
        return [rank.choice(known)]
    wanted = len(known) if pair.work.paths else transport.evs or len(known)
    if wanted < len(known):
        known = _some(shape, known, wanted, rank)
    return [known[i % len(known)] for i in range(wanted)]


def _some(shape: FabricShape, known: list[int], wanted: int, rank: random.Random) -> list[int]:
    """As many of each plane, planes in turn."""
    planes = [[n for n in known if n % shape.planes == p] for p in range(shape.planes)]
    for numbers in planes:
        rank.shuffle(numbers)
    turns = max(len(numbers) for numbers in planes)
    return [n[k] for k in range(turns) for n in planes if k < len(n)][:wanted]


def _denied(case: Case, pair: Pair, number: int) -> bool:
    if not case.transport.deny:
        return False
    shape = case.shape
    route = shape.route(pair.a, pair.b, shape.path(pair.a, pair.b, number))
    ways = set(route) | {link.back for link in route}
    nodes = {(link.plane, node) for link in route for node in (link.src, link.dst)}
    for name in case.transport.deny:
        for part in parse_target(name).parts(shape, (pair.a, pair.b)):
            if part in ways if isinstance(part, Link) else (part.plane, part.node) in nodes:
                return True
    return False
