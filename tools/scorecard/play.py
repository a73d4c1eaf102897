# SPDX-License-Identifier: BSD-2-Clause
"""One peer through one case: processes started, faults applied in time, everything collected."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field
from typing import Any

from tools.scorecard.cases import PLANES, Case
from tools.scorecard.peers import Peer
from tools.scorecard.process import Process, others_s
from tools.scorecard.stage import SENDER, Stage, Wire


@dataclass(slots=True)
class Played:
    """What was seen of one run. Times are CLOCK_MONOTONIC, in s."""

    begin_s: float = 0.0
    end_s: float = 0.0
    faults: list[dict[str, Any]] = field(default_factory=list)
    cpu_s: dict[str, float] = field(default_factory=dict)
    """Of the measured time, by end."""
    wire: Wire = field(default_factory=lambda: Wire(0, 0, 0))
    sender: dict[str, Any] = field(default_factory=dict)
    receiver: dict[str, Any] = field(default_factory=dict)
    ports: dict[str, Any] = field(default_factory=dict)
    """Samples of the sending host's interfaces."""
    others: float = 0.0
    """Share of the machine that programs outside of the scorecard had in the measured time."""


def play(stage: Stage, peer: Peer, case: Case) -> Played:
    """PlayError: an end failed or did not start. Leaves no process behind."""
    with contextlib.ExitStack() as stack:
        devices = [f"plane{p}" for p in range(1, PLANES + 1)]
        ports = stack.enter_context(Process.running("wire", stage.end(SENDER, "wire", *devices)))
        receiver = stack.enter_context(Process.running("receiver", peer.receiver(stage)))
        for process in (ports, receiver):
            process.wait_ready()
        sender = stack.enter_context(Process.running("sender", peer.sender(stage)))
        sender.wait_ready()
        played = _watch(stage, case, sender, receiver)
        played.sender = sender.finish()
        played.receiver = receiver.finish()
        played.ports = ports.finish()
        return played


def _watch(stage: Stage, case: Case, sender: Process, receiver: Process) -> Played:
    """The measured time, with all that happens in it."""
    ends = {"sender": sender, "receiver": receiver}
    time.sleep(case.warm_s)
    played = Played()
    wire = stage.wire()
    cpu = {name: end.cpu_s() for name, end in ends.items()}
    busy = others_s()
    played.begin_s = time.monotonic()
    played.faults = stage.play(case, played.begin_s)
    played.end_s = time.monotonic()
    played.others = (others_s() - busy) / (os.cpu_count() or 1) / case.seconds
    played.cpu_s = {name: end.cpu_s() - cpu[name] for name, end in ends.items()}
    played.wire = stage.wire() - wire
    return played
