# SPDX-License-Identifier: BSD-2-Clause
"""One peer through one case: processes started, faults applied in time, everything collected."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.scorecard.cases import PLANES, Case
from tools.scorecard.peers import Peer
from tools.scorecard.stage import ROOT, SENDER, Stage, Wire

READY_S = 15.0
STOP_S = 8.0
TICKS = os.sysconf("SC_CLK_TCK")


class PlayError(Exception):
    """The peer did not get through this case; the text is for the user."""


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
        ports = stack.enter_context(_Process.running("wire", stage.end(SENDER, "wire", *devices)))
        receiver = stack.enter_context(_Process.running("receiver", peer.receiver(stage)))
        for process in (ports, receiver):
            process.wait_ready()
        sender = stack.enter_context(_Process.running("sender", peer.sender(stage)))
        sender.wait_ready()
        played = _watch(stage, case, sender, receiver)
        played.sender = sender.finish()
        played.receiver = receiver.finish()
        played.ports = ports.finish()
        return played


def _watch(stage: Stage, case: Case, sender: _Process, receiver: _Process) -> Played:
    """The measured time, with all that happens in it."""
    ends = {"sender": sender, "receiver": receiver}
    time.sleep(case.warm_s)
    played = Played()
    wire = stage.wire()
    cpu = {name: end.cpu_s() for name, end in ends.items()}
    busy = _others_s()
    played.begin_s = time.monotonic()
    played.faults = stage.play(case, played.begin_s)
    played.end_s = time.monotonic()
    played.others = (_others_s() - busy) / (os.cpu_count() or 1) / case.seconds
    played.cpu_s = {name: end.cpu_s() - cpu[name] for name, end in ends.items()}
    played.wire = stage.wire() - wire
    return played


class _Process:
    """One end that runs."""

    def __init__(self, name: str, argv: list[str]) -> None:
        self.name = name
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by kill()
        self._popen = subprocess.Popen(
            argv,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,  # Ctrl-C is for us; we end them
        )

    @classmethod
    @contextlib.contextmanager
    def running(cls, name: str, argv: list[str]) -> Iterator[_Process]:
        """Runs within the block, whatever happens in it."""
        process = cls(name, argv)
        try:
            yield process
        finally:
            process.kill()

    def wait_ready(self) -> None:
        """Until it says so."""
        assert self._popen.stdout is not None
        if not select.select([self._popen.stdout], [], [], READY_S)[0]:
            raise PlayError(f"the {self.name} is not ready after {READY_S:.0f} s")
        line = self._popen.stdout.readline()
        if line != "ready\n":
            raise PlayError(f"the {self.name} did not start: {line.strip()} {self._complaint()}")

    def cpu_s(self) -> float:
        """Processor time of it and its children until now, user and system."""
        return sum(map(_cpu_s, _tree(self._popen.pid)))

    def finish(self) -> dict[str, Any]:
        """Ask it to end; what it reports."""
        if self._popen.poll() is None:
            self._popen.send_signal(signal.SIGTERM)
        try:
            text = self._popen.communicate(timeout=STOP_S)[0]
        except subprocess.TimeoutExpired:
            raise PlayError(f"the {self.name} did not end within {STOP_S:.0f} s") from None
        try:
            report: dict[str, Any] = json.loads(text)
        except ValueError:
            said = f"{text[:100]!r} ({len(text)} characters), {self._complaint()}"
            raise PlayError(f"the {self.name} made no report: {said}") from None
        return report

    def kill(self) -> None:
        """End it and what it started, now."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.communicate()
        self._errors.close()

    def _complaint(self) -> str:
        if self._popen.poll() is None:
            return ""
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        return lines[-1] if lines else f"exit code {self._popen.returncode}"


def _tree(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for entry in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in entry.read_text().split():
                found += _tree(int(child))
    return found


USER, ALL = (11, 13), (11, 12, 13, 14)
"""Fields of /proc/PID/stat behind the name: user, and system too; with children that ended."""


def _cpu_s(pid: int, which: tuple[int, ...] = ALL) -> float:
    """Processor time of one process and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(fields[i]) for i in which) / TICKS


def _others_s() -> float:
    """User time of all processes but ours, and what the hypervisor gave to others, until now.

    System time is left out: forwarding is the kernel's work for us, whoever is charged for it.
    """
    words = Path("/proc/stat").read_text().split(maxsplit=9)
    user, nice, steal = (int(words[i]) / TICKS for i in (1, 2, 8))
    return user + nice + steal - sum(_cpu_s(pid, USER) for pid in _tree(os.getpid()))
