# SPDX-License-Identifier: BSD-2-Clause
"""The fabric the peers meet on: two hosts, four planes of one spine, and what can happen to it."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrc.lab import Fabric, FabricSpec, Mode, Spine, config
from mrc.lab.faults import drop_program
from tools.scorecard.cases import PLANES, Case, Event
from tools.scorecard.roads import SYSCTLS, mptcp_lines, road_lines

RATE_MBIT = 500
ROOT = Path(__file__).resolve().parents[2]
SENDER, RECEIVER = 0, 1


@dataclass(frozen=True, slots=True)
class Shape:
    """What the links can do."""

    mtu: int
    """Of every link, in bytes."""
    path_mtu: int
    """Payload of an MRC packet."""
    rate_mbit: int = RATE_MBIT

    @property
    def plane_bps(self) -> float:
        """Of one plane, each direction."""
        return self.rate_mbit * 1e6


SHAPES = {9000: Shape(9000, 4096), 1500: Shape(1500, 1024)}


@dataclass(frozen=True, slots=True)
class Wire:
    """What the queues of the sending host's ports have counted, all headers included."""

    bytes: int
    packets: int
    drops: int

    def __sub__(self, other: Wire) -> Wire:
        """What came since."""
        return Wire(
            self.bytes - other.bytes, self.packets - other.packets, self.drops - other.drops
        )


class Stage:
    """A fabric that is up, with the roads of all peers in place."""

    def __init__(self, fabric: Fabric, shape: Shape, folder: Path) -> None:
        """``folder`` takes the EV profiles."""
        self.fabric = fabric
        self.shape = shape
        self.profiles = [folder / f"host{host.index + 1}.toml" for host in fabric.hosts]
        planes = "".join(
            f'\n[[plane]]\nnumber = {p}\ninterface = "plane{p}"\n' for p in range(1, PLANES + 1)
        )
        for host, file in zip(fabric.hosts, self.profiles, strict=True):
            host.write_profile(file, Mode.UDP)
            file.write_text(file.read_text() + planes)
            fabric.client.ask("sysctl", ns=host.ns, values=SYSCTLS)
            lines = [
                *road_lines(fabric.spec, host.index),
                *mptcp_lines(fabric.spec, host.index),
            ]
            fabric.client.batch(host.ns, "ip", lines)

    def command(self, end: int, argv: Sequence[str]) -> list[str]:
        """The command line that runs ``argv`` in a host, each end on a core of its own."""
        return self.fabric.hosts[end].command([*_pinned(end), *argv])

    def end(self, end: int, module: str, *arguments: str) -> list[str]:
        """One of our programs in a host."""
        return self.command(
            end, [sys.executable, "-m", f"tools.scorecard.ends.{module}", *arguments]
        )

    def wire(self) -> Wire:
        """What the sender's ports have counted until now."""
        client, ns = self.fabric.client, self.fabric.hosts[SENDER].ns
        text = client.ask("run", ns=ns, argv=["tc", "-s", "-j", "qdisc"], text="")["out"]
        queues = [q for q in json.loads(text) if q["kind"] == "tbf"]
        return Wire(*(sum(q[key] for q in queues) for key in ("bytes", "packets", "drops")))

    # -- faults ------------------------------------------------------------------------------

    def prepare(self, case: Case) -> None:
        """What the case wants before anybody sends."""
        for event in case.before:
            self.apply(event)

    def apply(self, event: Event) -> dict[str, Any]:
        """Do it; returns what was done, from when to when (CLOCK_MONOTONIC, s)."""
        faults, spines = self.fabric.faults, self._spines(event.planes)
        begin = time.monotonic()
        match event.do:
            case "fail":
                faults.cut(*spines)
            case "heal":
                faults.heal(*spines)
            case "loss":
                self._lose(event.planes, event.value)
            case "down" | "up":
                for plane in event.planes:
                    self._port(plane, up=event.do == "up")
            case _:
                raise NotImplementedError(f"this fabric has no {event.do}")
        return {
            "what": event.do,
            "planes": event.planes,
            "value": event.value,
            "t_s": begin,
            "took_s": time.monotonic() - begin,
        }

    def _lose(self, planes: Sequence[int], probability: float) -> None:
        """Random loss at the last hop, in both directions.

        A train would be lost as one: it is cut up before. Nowhere earlier than needed, since single
        packets cost each hop, and this machine has two cores to be four switches.
        """
        program = drop_program(probability)
        for host in self.fabric.hosts:
            lines = []
            for plane in planes:
                dev = f"plane{plane}"
                cut = ["link set dev host gso_max_segs 1"]
                self.fabric.client.batch(config.t0_ns(plane, host.index), "ip", cut)
                place = f"dev {dev} ingress pref 1 handle 1 protocol all"
                lines += [
                    f"qdisc replace dev {dev} clsact",
                    f"filter replace {place} bpf da bytecode '{program}'",
                ]
            self.fabric.client.batch(host.ns, "tc", lines)

    def _port(self, plane: int, *, up: bool) -> None:
        if not up:
            self.fabric.faults.link_down(plane, SENDER)
            return
        # As link_up, which then waits for silence on the wire: here there is none.
        spec, ns = self.fabric.spec, config.t0_ns(plane, SENDER)
        lines = ["link set host up", *config.namespace_lines(spec)[ns]]
        self.fabric.client.batch(ns, "ip", lines)

    def _spines(self, planes: Sequence[int]) -> list[Spine]:
        spines = range(1, self.fabric.spec.spines + 1)
        return [(plane, spine) for plane in planes for spine in spines]


def unsupported(case: Case) -> str:
    """Why the fabric cannot play a case; empty when it can."""
    missing = {e.do for e in (*case.before, *case.events)} - {"fail", "heal", "down", "up", "loss"}
    return f"the fabric has no {', '.join(sorted(missing))} yet" if missing else ""


@contextmanager
def stage(shape: Shape, folder: Path) -> Iterator[Stage]:
    """A new fabric; FabricError or FabricUnavailableError where there can be none."""
    spec = FabricSpec(planes=PLANES, spines=1, mtu=shape.mtu, rate_mbit=shape.rate_mbit)
    with Fabric(spec) as fabric:
        yield Stage(fabric, shape, folder)


def _pinned(end: int) -> list[str]:
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2 or shutil.which("taskset") is None:
        return []
    return ["taskset", "-c", str(usable[end])]
