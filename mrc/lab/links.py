# SPDX-License-Identifier: BSD-2-Clause
"""What iproute2 is told so that one direction of a cable behaves as a LinkState says. Pure.

Loss is decided where a direction ends, at ingress, by a classic BPF program: that kind may be
loaded in a user namespace, where eBPF may not, and neither nftables nor netem need exist. Nothing
is reported to anybody: no ICMP, no carrier change. Trains (GSO) would be lost as one packet, so
where packets get lost one by one the sending port cuts trains up, as a wire would.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mrc.fabric.fault import Fault, FaultKind
from mrc.fabric.shape import Link as Way
from mrc.fabric.shape import Tier
from mrc.fabric.timeline import LinkState
from mrc.units import SECOND, rate_text, time_text

from . import config
from .plan import FabricSpec
from .relay import RELAY_BIT, SOURCE_BYTE
from .rtnl import Change, Instruction, Verb

Lines = dict[tuple[str, str], list[str]]
"""Batch lines by (namespace, tool)."""

NEW = LinkState()

_LOAD_RANDOM = (0x20, 0, 0, 0xFFFFF038)  # A = random 32 bits: BPF_LD|W|ABS at SKF_AD_OFF+RANDOM
_LOAD_SOURCE = (0x30, 0, 0, SOURCE_BYTE)
_JGE, _JSET = 0x35, 0x45
_DROP = (6, 0, 0, 2)  # TC_ACT_SHOT
_KEEP = (6, 0, 0, 0xFFFFFFFF)  # TC_ACT_UNSPEC: as if there were no filter

RATE_LEAST_BPS = 8_000
"""A packet of 4 KB takes four seconds."""
DELAY_MOST_NS = 10 * SECOND

LOSS_PREF = 1
"""Of the filter that loses packets. Others at the same place have higher numbers."""


def check_value(fault: Fault) -> None:
    """ValueError: a fault of a size that no lab can have."""
    if fault.kind is FaultKind.RATE and fault.value < RATE_LEAST_BPS:
        raise ValueError(f"{fault}: a lab keeps rates of {rate_text(RATE_LEAST_BPS)} and more")
    if fault.kind is FaultKind.DELAY and fault.value > DELAY_MOST_NS:
        raise ValueError(f"{fault}: a lab keeps packets for {time_text(DELAY_MOST_NS)} at most")


def drop_program(probability: float) -> tuple[Instruction, ...]:
    """Classic BPF that drops with this probability (0..1]."""
    if not 0.0 < probability <= 1.0:
        raise ValueError(f"probability must be above 0 and at most 1, not {probability}")
    if probability == 1.0:
        return (_DROP,)
    threshold = min(round((1.0 - probability) * 2**32), 2**32 - 1)
    # random >= threshold: fall through to the drop; else skip it
    return (_LOAD_RANDOM, (_JGE, 0, 1, threshold), _DROP, _KEEP)


def filter_program(probability: float, *, kept: bool) -> tuple[Instruction, ...]:
    """What is lost at the end of a link: besides, where a relay keeps packets, all but its own."""
    rest = drop_program(probability) if probability else (_KEEP,)
    if kept:
        return (_LOAD_SOURCE, (_JSET, 1, 0, RELAY_BIT), _DROP, *rest)
    return rest if probability else ()


def drop_probability(state: LinkState) -> float:
    """Of a packet in one direction, cut included."""
    return 1.0 if state.cut or state.down else state.loss_ppm / 1e6


def needs_single_packets(state: LinkState) -> bool:
    """Whether something happens to packets one by one. A cut takes trains as they are."""
    return bool(state.loss_ppm or state.corrupt_ppm or state.trim_ppm or state.delay_ns)


def loss_change(way: Way, before: LinkState, after: LinkState) -> list[Change]:
    """The filter that loses packets, where it changes."""
    was, wanted = (
        filter_program(drop_probability(s), kept=s.delay_ns > 0) for s in (before, after)
    )
    return [] if was == wanted else [Change(*config.in_port(way), Verb.DROP, program=wanted)]


def train_change(way: Way, *, whole: bool) -> list[Change]:
    """Trains leave this port as they are, or cut up."""
    return [Change(*config.out_port(way), Verb.SEGMENTS, 65535 if whole else 1)]


def rate_lines(spec: FabricSpec, way: Way, before: LinkState, after: LinkState) -> Lines:
    """The rate of a direction, where it changes; its own again where a fault ends."""
    if before.rate_bps == after.rate_bps:
        return {}
    ns, dev = config.out_port(way)
    rate_bps = after.rate_bps
    if rate_bps is None:
        if spec.rate_mbit is None:
            return {(ns, "tc"): [f"qdisc del dev {dev} root"]}
        rate_bps = spec.shape.rate_of(way)
    return {(ns, "tc"): [config.tbf_line(spec, dev, rate_bps)]}


def cable(way: Way) -> Way:
    """The direction that stands for both: out of the T0, whose port a `down` takes down."""
    return way if way.src.tier is Tier.T0 else way.back


def unplug(way: Way) -> list[Change]:
    """Take a cable's port at the T0 down; the other end sees its carrier go."""
    return [Change(*config.out_port(cable(way)), Verb.DOWN)]


def plug_lines(spec: FabricSpec, way: Way) -> Lines:
    """Plug a cable back in. The switch forgot routes and neighbours when its port went down."""
    ns, dev = config.out_port(cable(way))
    own = (line for line in config.namespace_lines(spec)[ns] if dev in line.split())
    return {(ns, "ip"): [f"link set {dev} up", *own]}


def joined(parts: Iterable[Mapping[tuple[str, str], list[str]]]) -> Lines:
    """Several sets of lines as one, in order."""
    found: Lines = {}
    for part in parts:
        for where, lines in part.items():
            found.setdefault(where, []).extend(lines)
    return found
