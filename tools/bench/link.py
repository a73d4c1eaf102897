# SPDX-License-Identifier: BSD-2-Clause
"""What is measured over: a bare veth between two namespaces, or a whole SRv6 fabric."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from mrc.lab import Fabric
from mrc.lab.client import HolderClient

MTU = 9500
"""MTU of the veth in bytes: a 4096-byte packet with every header fits, a jumbo frame too."""

SPORT_BASE = 49152


class BenchError(Exception):
    """The environment does not allow a measurement; the text says what is missing."""


Within = Callable[[list[str]], list[str]]
"""Makes the command line that runs another one inside a host."""


@dataclass(frozen=True, slots=True)
class Link:
    """Two hosts that can reach each other."""

    name: str
    sender: Within
    receiver: Within
    receiver_address: str
    tcp: bool
    """Whether TCP takes the measured link; on the fabric it has a network of its own."""

    def up(self, host: Within) -> bool:
        """Whether a host's end of the veth has a carrier."""
        shown = json.loads(output(host(["ip", "-j", "link", "show", "dev", "v"])))
        return bool(shown[0]["operstate"] == "UP")


def output(argv: list[str]) -> str:
    """Standard output of a short command; BenchError with its own words when it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Until ``condition`` holds; BenchError naming ``what`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise BenchError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.02)


def pinned(core: int | None, argv: list[str]) -> list[str]:
    """``argv`` on one core; anywhere when ``core`` is None or taskset is not installed."""
    if core is None or shutil.which("taskset") is None:
        return argv
    return ["taskset", "-c", str(core), *argv]


@contextmanager
def veth() -> Iterator[Link]:
    """Two namespaces and one veth; they end with this process, whatever happens to it."""
    holder = HolderClient(userns=None)
    try:
        holder.create(["a", "b"])
        _join(holder)

        def inside(name: str, argv: list[str]) -> list[str]:
            enter = ["nsenter", f"--net={holder.path(name)}"]
            if holder.userns:
                enter += [f"--user=/proc/{holder.pid}/ns/user", "--preserve-credentials"]
            return [*enter, "--", *argv]

        link = Link("veth", partial(inside, "a"), partial(inside, "b"), "fd0b::2", tcp=True)
        for host in (link.sender, link.receiver):
            wait_for(partial(link.up, host), 5, "carrier of the veth")
        yield link
    finally:
        holder.close()


def _join(holder: HolderClient) -> None:
    mac = {"a": "02:00:00:00:00:01", "b": "02:00:00:00:00:02"}
    ends = [f"name v mtu {MTU} address {mac[n]} netns {holder.path(n)}" for n in "ab"]
    holder.batch("a", "ip", [f"link add {ends[0]} type veth peer {ends[1]}"])
    address = {"a": "fd0b::1", "b": "fd0b::2"}
    for name, other in ("ab", "ba"):
        # Neighbours are fixed: a solicitation lost while the link comes up costs a second.
        holder.batch(
            name,
            "ip",
            [
                "link set lo up",
                f"addr add {address[name]}/64 dev v nodad",
                "link set v up",
                f"neigh replace {address[other]} lladdr {mac[other]} dev v nud permanent",
            ],
        )


@contextmanager
def fabric() -> Iterator[Link]:
    """The fabric of the demo: 4 planes of 4 spines, a kernel SRv6 path for each source port."""
    with Fabric() as built:
        a, b = built.hosts
        yield Link("fabric", a.command, b.command, str(b.address), tcp=False)


def wait_listening(host: Within, port: int, process: subprocess.Popen[str]) -> None:
    """Until a TCP port is open in a host; at most five seconds, less if its owner dies."""

    def listening() -> bool:
        if process.poll() is not None:
            raise BenchError(f"{process.args!r} ended early: {process.communicate()[1].strip()}")
        return bool(output(host(["ss", "-Hltn", f"sport = :{port}"])))

    wait_for(listening, 5, f"a listener on TCP port {port}")
