# SPDX-License-Identifier: BSD-2-Clause
"""mrc-recv and mrc-send in the hosts of a fabric, for the tests."""

import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from mrc.lab import Fabric, Mode

from .world import wait_for

PORT = 18515
RUN_S = 60.0


@dataclass
class Transfer:
    """One mrc-send run, and what it said."""

    code: int = -1
    stderr: str = ""
    intervals: list[dict[str, Any]] = field(default_factory=list)
    end: dict[str, Any] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    clock: float = float("inf")
    """The monotonic time of the sender's second 0, to within a report's delay."""

    @property
    def goodput(self) -> float:
        """Bits per second, as the receiver saw it."""
        return float(self.end["sum_received"]["bits_per_second"])

    def events(self, ev: int) -> list[tuple[float, str]]:
        """(monotonic time, new state) of one EV's changes."""
        mrc = self.end["mrc"]
        return [(self.clock + e["t"], e["to"]) for e in mrc["ev_events"] if e["ev"] == ev]


def installed(name: str) -> str:
    script = Path(sys.executable).with_name(name)
    assert script.exists(), f"{script} is missing: run make"
    return str(script)


class Pair:
    """A receiver on host 2 that serves transfers from host 1, one after the other."""

    def __init__(self, fabric: Fabric, folder: Path, mode: Mode, backend: str, *argv: str) -> None:
        self.fabric, self.backend = fabric, backend
        self.profiles = [
            host.write_profile(folder / f"{mode.value}-{host.index}.toml", mode)
            for host in fabric.hosts
        ]
        self.receiver = fabric.hosts[1].exec(
            [installed("mrc-recv"), *self._paths(1), "--json-stream", *argv],
            stdout=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        try:
            wait_for(self._ready, "mrc-recv listens")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.receiver.terminate()
        try:
            self.receiver.wait(5)
        finally:
            self.receiver.kill()
            self.receiver.wait()

    def _ready(self) -> bool:
        assert self.receiver.poll() is None, f"mrc-recv ended with {self.receiver.returncode}"
        return self.fabric.hosts[1].listens(PORT)

    def _paths(self, end: int) -> list[str]:
        return ["--backend", self.backend, "--ev-profile", str(self.profiles[end])]

    def start(self, *argv: str, prefix: tuple[str, ...] = ()) -> "Running":
        """mrc-send in the background; ``prefix`` goes before it, for instance setpriv."""
        command = [*prefix, installed("mrc-send"), str(self.fabric.hosts[1].address)]
        command += [*self._paths(0), "--json-stream", "-i", "0.05", *argv]
        return Running(
            self.fabric.hosts[0].exec(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )

    def send(self, *argv: str, prefix: tuple[str, ...] = ()) -> Transfer:
        """mrc-send to its end; the caller looks at the exit code."""
        return self.start(*argv, prefix=prefix).finish()


class Running:
    """An mrc-send whose reports are read as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.transfer = Transfer()
        self._flowing = threading.Event()
        self._readers = [threading.Thread(target=f) for f in (self._read, self._read_errors)]
        for reader in self._readers:
            reader.start()

    def wait_flowing(self) -> None:
        """Until bytes have moved."""
        assert self._flowing.wait(RUN_S), self.transfer

    def finish(self) -> Transfer:
        try:
            self.transfer.code = self.process.wait(RUN_S)
        finally:
            self.process.kill()
            self.process.wait()
            for reader in self._readers:
                reader.join()
        self._flowing.set()
        return self.transfer

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            now = time.monotonic()
            message = json.loads(line)
            data = message["data"]
            if message["event"] == "interval":
                self.transfer.intervals.append(data)
                self.transfer.clock = min(self.transfer.clock, now - data["sum"]["end"])
                if data["sum"]["bytes"]:
                    self._flowing.set()
            elif message["event"] == "end":
                self.transfer.end = data
            elif message["event"] == "error":
                self.transfer.errors.append(data)
        self._flowing.set()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.transfer.stderr = self.process.stderr.read()
