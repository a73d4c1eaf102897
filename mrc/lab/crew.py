# SPDX-License-Identifier: BSD-2-Clause
"""The programs of a run in the hosts of a lab: started, listened to, ended."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from .errors import FabricError
from .fabric import HOLDER_ENV, tcp_listens
from .jobs import Job
from .remote import entering
from .reports import Said
from .state import ENV_FOLDER, ENV_HOST, ENV_LAB

__all__ = ["Asked", "Crew", "Program", "Programs"]

READY_S = 60.0
_LOOK_S = 0.02
_CHUNK = 1 << 18


@dataclass(frozen=True, slots=True)
class Programs:
    """How to start them."""

    send: tuple[str, ...]
    """Says `{"event": "ready", "data": {}}` when it has been read in, and waits for a line."""
    recv: tuple[str, ...]


class Asked(Protocol):
    """A connection to the lab, as `Remote` is."""

    def fileno(self) -> int:
        """Readable when `hear` has something."""

    def hear(self) -> list[dict[str, Any]]:
        """Faults that began or ended."""


@dataclass
class Program:
    """One that runs."""

    job: Job
    process: subprocess.Popen[bytes]
    told_ns: int = 0
    """When it was let go."""
    said: Said = field(default_factory=Said)
    rest: bytes = b""

    @property
    def out(self) -> int:
        """The descriptor of what it says."""
        return self.process.stdout.fileno() if self.process.stdout else -1


class Crew:
    """All programs of a run. Use as a context manager: at its end none is left."""

    def __init__(self, said: dict[str, Any], folder: Path, programs: Programs) -> None:
        """`said`: what the lab says of itself; `folder`: its own."""
        self._lab = said
        self._folder = folder
        self._programs = programs
        self._select = selectors.DefaultSelector()
        self.senders: dict[int, Program] = {}
        self.receivers: dict[int, Program] = {}
        self.heard: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        """Nothing runs yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all."""
        every = [*self.senders.values(), *self.receivers.values()]
        for program in every:
            program.process.kill()
        for program in every:
            program.process.wait()
            for pipe in (program.process.stdin, program.process.stdout):
                if pipe is not None:
                    pipe.close()
        self._select.close()

    def pids(self) -> list[int]:
        """Of all programs."""
        return [p.process.pid for p in (*self.senders.values(), *self.receivers.values())]

    def listen(self, remote: Asked) -> None:
        """Hear of faults, too."""
        self._select.register(remote.fileno(), selectors.EVENT_READ, remote)

    def receive(self, job: Job, options: Sequence[str]) -> None:
        """Start the mrc-recv of a job."""
        self.receivers[job.number] = self._start(job, job.dst, [*self._programs.recv, *options])

    def prepare(self, job: Job, options: Sequence[str]) -> None:
        """Start its mrc-send, which then waits for `go`."""
        self.senders[job.number] = self._start(job, job.src, [*self._programs.send, *options])

    def go(self, job: Job) -> None:
        """Let it connect and send."""
        program = self.senders[job.number]
        program.told_ns = time.monotonic_ns()
        if program.process.stdin is not None:
            with contextlib.suppress(OSError):
                program.process.stdin.write(b"\n")
                program.process.stdin.close()

    def ready(self) -> bool:
        """Whether every receiver takes connections and every sender waits."""
        return all(s.said.ready for s in self.senders.values()) and all(
            _listens(program) for program in self.receivers.values()
        )

    def _start(self, job: Job, host: int, argv: Sequence[str]) -> Program:
        name = f"h{host + 1}"
        env = {
            **os.environ,
            ENV_LAB: self._folder.name,
            ENV_FOLDER: str(self._folder),
            ENV_HOST: name,
            HOLDER_ENV: str(self._lab["holder"]),
        }
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(
                entering(self._lab, name, argv),
                env=env,
                stdin=subprocess.PIPE,
                bufsize=0,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        program = Program(job, process)
        os.set_blocking(program.out, False)
        self._select.register(program.out, selectors.EVENT_READ, program)
        return program

    def turn(self, wait_s: float) -> None:
        """Wait for what the programs and the lab say, at most so long, and note it."""
        for key, _ in self._select.select(max(0.0, wait_s)):
            if isinstance(key.data, Program):
                self._read(key.data)
                continue
            heard = key.data.hear()
            if not heard:
                raise FabricError("the lab is gone")
            self.heard += heard

    def _read(self, program: Program) -> None:
        now = time.monotonic_ns()
        data = b""
        with contextlib.suppress(BlockingIOError):
            data = os.read(program.out, _CHUNK)
            if not data:
                self._select.unregister(program.out)
        *lines, program.rest = (program.rest + data).split(b"\n")
        for line in lines:
            program.said.take(now, line)

    def wait_until(self, what: str, done: Callable[[], bool]) -> None:
        """Listen until something is so. FabricError: a program ended before, or it never is."""
        limit = time.monotonic() + READY_S
        while not done():
            self.turn(_LOOK_S)
            for program in (*self.senders.values(), *self.receivers.values()):
                if program.said.failed or program.process.poll() not in (None, 0):
                    raise FabricError(f"before {what}: {self.failure(program)}")
            if time.monotonic() > limit:
                raise FabricError(f"{what}: not within {READY_S:g} s")

    def started_ns(self, jobs: Sequence[Job]) -> int | None:
        """When the last of these began to send; None: some have not."""
        times = [self.senders[job.number].said.started_ns for job in jobs]
        known = [t for t in times if t is not None]
        return max(known) if known and len(known) == len(times) else None

    def failed(self) -> dict[int, str]:
        """By number of the job: what went wrong in it."""
        found = {}
        for program in (*self.senders.values(), *self.receivers.values()):
            if program.said.failed or program.process.poll() not in (None, 0):
                found[program.job.number] = self.failure(program)
        return found

    def failure(self, program: Program) -> str:
        """In words."""
        job, sends = program.job, program in self.senders.values()
        who = f"mrc-send in h{job.src + 1}" if sends else f"mrc-recv in h{job.dst + 1}"
        return f"{who}: {program.said.failed or self._last_words(program)}"

    def _last_words(self, program: Program) -> str:
        with contextlib.suppress(OSError):
            lines = (self._folder / "log").read_text("utf-8", "replace").splitlines()
            if lines:
                return lines[-1]
        return f"ended with {program.process.poll()}"


def _listens(program: Program) -> bool:
    try:
        table = Path(f"/proc/{program.process.pid}/net/tcp6").read_text("ascii")
    except OSError:
        return False
    return tcp_listens(table, program.job.port)
