# SPDX-License-Identifier: BSD-2-Clause
"""One end that runs: it says ``ready``, works, and prints one JSON object when it ends."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.scorecard.stage import ROOT

READY_S = 15.0
STOP_S = 8.0
TICKS = os.sysconf("SC_CLK_TCK")


class PlayError(Exception):
    """The peer did not get through this case; the text is for the user."""


class Process:
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
    def running(cls, name: str, argv: list[str]) -> Iterator[Process]:
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

    @property
    def pid(self) -> int:
        """Its number, as long as it is not killed."""
        return self._popen.pid

    @property
    def ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._popen.poll() is not None

    def cpu_s(self) -> float:
        """Processor time of it and its children until now, user and system."""
        return sum(map(cpu_s, tree(self._popen.pid)))

    def finish(self) -> dict[str, Any]:
        """Ask it to end; what it reports."""
        if self._popen.poll() is None:
            self._popen.send_signal(signal.SIGTERM)
        return self.result(STOP_S)

    def result(self, seconds: float) -> dict[str, Any]:
        """What it reports when it ends by itself, within so much time."""
        text = self.text(seconds)
        try:
            report: dict[str, Any] = json.loads(text)
        except ValueError:
            said = f"{text[:100]!r} ({len(text)} characters), {self._complaint()}"
            raise PlayError(f"the {self.name} made no report: {said}") from None
        return report

    def text(self, seconds: float) -> str:
        """All it has printed when it ends by itself, within so much time."""
        try:
            return self._popen.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            raise PlayError(f"the {self.name} did not end within {seconds:.0f} s") from None

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


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for entry in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in entry.read_text().split():
                found += tree(int(child))
    return found


USER, ALL = (11, 13), (11, 12, 13, 14)
"""Fields of /proc/PID/stat behind the name: user, and system too; with children that ended."""


def cpu_s(pid: int, which: tuple[int, ...] = ALL) -> float:
    """Processor time of one process and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(fields[i]) for i in which) / TICKS


def others_s() -> float:
    """User time of all processes but ours, and what the hypervisor gave to others, until now.

    System time is left out: forwarding is the kernel's work for us, whoever is charged for it.
    """
    words = Path("/proc/stat").read_text().split(maxsplit=9)
    user, nice, steal = (int(words[i]) / TICKS for i in (1, 2, 8))
    return user + nice + steal - sum(cpu_s(pid, USER) for pid in tree(os.getpid()))
