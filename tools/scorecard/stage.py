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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mrc.fabric import parse_script
from mrc.lab import Fabric, FabricSpec, Mode
from mrc.lab.player import Player
from tools.scorecard.cases import PLANES, Case
from tools.scorecard.roads import SYSCTLS, mptcp_lines, road_lines

RATE_MBIT = 500
SCRIPT = 1
"""Who owns the faults of a case's script; what came before it stays."""
QUIET_S, QUIET_BYTES = 0.1, 10_000
"""So little in such a time: nobody sends any more, but for neighbours who ask for each other."""
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
    relayed_mbit: int = RATE_MBIT
    """The same where a relay keeps the packets: it carries so many a second, not so many bits."""

    def of(self, case: Case) -> Shape:
        """With the rate that this case has."""
        return replace(self, rate_mbit=self.relayed_mbit) if case.delays else self

    @property
    def plane_bps(self) -> float:
        """Of one plane, each direction."""
        return self.rate_mbit * 1e6


SHAPES = {9000: Shape(9000, 4096), 1500: Shape(1500, 1024, relayed_mbit=RATE_MBIT // 4)}
"""A quarter of the payload in a packet: a quarter of the rate is as many packets a second, and a
delay is as many packets long."""


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
        self._player = Player(fabric.spec.shape, fabric.faults.apply, time.monotonic_ns)
        self.profiles = [folder / f"host{host.index + 1}.toml" for host in fabric.hosts]
        for host, file in zip(fabric.hosts, self.profiles, strict=True):
            host.write_profile(file, Mode.UDP)
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

    def wait_quiet(self, limit_s: float = 5.0) -> None:
        """Until what a peer left behind has been sent: queues, and buffers of closed sockets."""
        deadline = time.monotonic() + limit_s
        before = self.wire()
        while time.monotonic() < deadline:
            time.sleep(QUIET_S)
            now = self.wire()
            if (now - before).bytes <= QUIET_BYTES:
                return
            before = now

    # -- faults ------------------------------------------------------------------------------

    def prepare(self, case: Case) -> None:
        """What the case wants before anybody sends.

        FabricUnavailableError: this fabric cannot do what the case asks for.
        """
        script = parse_script(case.before)
        self.fabric.faults.require((*script, *case.faults))
        self._player.add(script)
        self._player.advance()

    def play(self, case: Case, begin_s: float) -> list[dict[str, Any]]:
        """The case's script from a time on; returns what happened. Ends with the measured time.

        Times are CLOCK_MONOTONIC, in s: ``t_s`` is just before a change, ``took_s`` how long it
        took. What is in force then stays so: see ``mend``.
        """
        self._player.add(case.faults, start_ns=round(begin_s * 1e9), owner=SCRIPT)
        end_s = begin_s + case.seconds
        happened: list[dict[str, Any]] = []
        while (due_ns := self._player.due()) is not None and due_ns / 1e9 < end_s:
            _sleep_until(due_ns / 1e9)
            now = time.monotonic()
            for change in self._player.advance():
                what = change.what if change.on else f"end of {change.what}"
                took_s = change.done_ns / 1e9 - now
                happened.append({"what": what, "on": change.on, "t_s": now, "took_s": took_s})
        _sleep_until(end_s)
        return happened

    def mend(self) -> None:
        """End what a script has left in force."""
        self._player.forget(SCRIPT)


def _sleep_until(t_s: float) -> None:
    time.sleep(max(0.0, t_s - time.monotonic()))


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
