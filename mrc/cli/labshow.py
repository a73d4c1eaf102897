# SPDX-License-Identifier: BSD-2-Clause
"""What mrc-lab tells people."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from mrc.lab.plan import FabricSpec
from mrc.units import format_bytes, format_rate

SHOWN_HOSTS = 8
CUT_MAX, KEPT = 4095, 64
"""Bytes: what the kernel takes out of a packet at most (ADR 109), what stays behind UDP."""


def size(spec: FabricSpec) -> str:
    """`2 hosts, 4 planes x 4 spines`."""
    t0 = spec.shape.t0
    shared = f" under {t0} T0" if t0 != spec.hosts else ""
    clos = f"{_count(spec.planes, 'plane')} x {_count(spec.spines, 'spine')}"
    return f"{spec.hosts} hosts{shared}, {clos}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def progress(text: str) -> None:
    """While nothing else is said, for whoever sits at the terminal."""
    if sys.stderr.isatty():
        with contextlib.suppress(OSError):
            print(f"\r{text:70}\r", end="", file=sys.stderr, flush=True)


def spec_of(said: dict[str, Any]) -> FabricSpec:
    """The fabric of a lab that says this of itself."""
    marks = said["spec"]["ecn_bytes"]
    return FabricSpec(**{**said["spec"], "ecn_bytes": tuple(marks) if marks else None})


def _links(spec: FabricSpec) -> str:
    if spec.rate_mbit is None:
        parts = ["links as fast as the machine"]
    else:
        parts = [f"links {format_rate(spec.rate_mbit * 1e6)}"]
        if spec.t1_rate_mbit is not None and spec.t1_rate_mbit != spec.rate_mbit:
            parts.append(f"T0-T1 {format_rate(spec.t1_rate_mbit * 1e6)}")
        parts.append(f"queues {format_bytes(spec.shape.queue_bytes)}")
    parts.append(f"MTU {spec.mtu}")
    if spec.delay_ns:
        parts.append(f"delay {_time(spec.delay_ns / 1e9)}")
    if spec.ecn_bytes:
        parts.append("marks from {} to {}".format(*map(format_bytes, spec.ecn_bytes)))
    if spec.trim:
        parts.append("trims")
    return ", ".join(parts)


def welcome(said: dict[str, Any]) -> None:
    """A lab came up."""
    progress("")
    option = "" if said["name"] == "lab" else f" --name {said['name']}"
    print(f"{said['name']}: {size(spec_of(said))}; {_links(spec_of(said))}")
    print(f"  mrc-lab exec{option} h2 -- mrc-recv &")
    print(f"  mrc-lab exec{option} h1 -- mrc-send h2")
    if said["spec"]["trim"] and said["spec"]["mtu"] > CUT_MAX + KEPT:
        print(
            f"  only what fits into {CUT_MAX + KEPT} bytes behind its UDP header is cut, as all of"
        )
        print("  MRC does; longer packets of other programs are lost where there is no room")


def status(said: dict[str, Any]) -> None:
    """One lab."""
    spec = spec_of(said)
    where = "in a user namespace" if said["userns"] else "as root"
    print(f"{said['name']}: {size(spec)}, up {_time(said['up_s'])}, {where}")
    print(f"  {_links(spec)}")
    hosts = list(said["hosts"].items())
    shown = "  ".join(f"{name} {address}" for name, address in hosts[:SHOWN_HOSTS])
    more = f"  and {len(hosts) - SHOWN_HOSTS} more" if len(hosts) > SHOWN_HOSTS else ""
    print(f"  {shown}{more}")
    if not said["faults"]:
        print("  nothing is wrong")
    for fault in said["faults"]:
        print(f"  {_fault(fault)}")
    if "links" in said:
        _counters(said["links"])


def _fault(fault: dict[str, Any]) -> str:
    text = str(fault["what"])
    from_s, until_s = fault["from_s"], fault["until_s"]
    text += f" in {_time(from_s)}" if from_s > 0 else f", since {_time(-from_s)} ago"
    if until_s is not None:
        text += f", until {_time(until_s)} from now"
    return text if fault["on"] or from_s > 0 else f"{text} (not at this moment)"


def _counters(links: dict[str, dict[str, int]]) -> None:
    head = f"{'link':24} {'bytes':>16} {'packets':>12} {'no room':>10} {'by faults':>10}"
    print(f"  {head}")
    for name, count in links.items():
        if count["packets"]:
            print(
                f"  {name:24} {count['bytes']:16} {count['packets']:12}"
                f" {count['dropped']:10} {count['lost']:10}"
            )
    print("  (a train that the kernel had not cut up yet is one packet here; bytes are exact)")


def happened(answer: dict[str, Any], script: list[str]) -> None:
    """What a fault command did."""
    # A fault given before may just have flapped.
    events = [h for h in answer["happened"] if h["number"] in answer["numbers"]]
    begun = {h["number"] for h in events}
    for event in events:
        late_ms = (event["done_ns"] - event["due_ns"]) / 1e6
        state = "in force" if event["on"] else "over"
        print(f"{event['what']}: {state} after {late_ms:.1f} ms")
    for number, line in zip(answer["numbers"], script, strict=True):
        if number not in begun:
            print(f"{line}: to come")
    if any(line.startswith("trim ") for line in script):
        print(f"(packets of more than {CUT_MAX + KEPT} bytes behind UDP pass uncut; MRC has none)")


def healed(answer: dict[str, Any], target: str) -> None:
    """What a heal did."""
    for event in answer["happened"]:
        print(f"end of {event['what']}")
    if not answer["happened"]:
        print(f"nothing was wrong within {target}" if target != "all" else "nothing was wrong")
    for fault in answer["dropped"]:
        print(f"dropped before it began: {_fault(fault)}")
    for fault in answer["waiting"]:
        print(f"still to come: {_fault(fault)} (heal without a target drops it, too)")


def _time(seconds: float) -> str:
    """As exact as a person wants it."""
    for limit, unit, factor in ((1e-3, "us", 1e6), (1.0, "ms", 1e3), (120.0, "s", 1.0)):
        if seconds < limit:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds / 60:.0f} min"
