# SPDX-License-Identifier: BSD-2-Clause
"""What is measured over: a bare veth between two namespaces, or the SRv6 fabric of tools/netlab."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

MTU = 9500
"""MTU of the veth in bytes: a 4096-byte packet with every header fits, a jumbo frame too."""


class BenchError(Exception):
    """The environment does not allow a measurement; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class Link:
    """Two hosts that can reach each other."""

    sender: str
    """Name of the sender's namespace, for ``ip netns exec``."""
    receiver: str
    receiver_address: str
    paths: int
    """How many source ports lead to paths of their own; 1 on a bare veth."""
    sport_base: int

    def command(self, host: str, core: int | None, argv: list[str]) -> list[str]:
        """``argv`` inside one host's namespace, pinned to a core when there are enough."""
        pin = [] if core is None else ["taskset", "-c", str(core)]
        return ["ip", "netns", "exec", host, *pin, *argv]


def ip(*words: str) -> str:
    """Output of one ip command; BenchError with the command's own words when it fails."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Until ``condition`` holds; BenchError naming ``what`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise BenchError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.02)


def is_up(namespace: str) -> bool:
    """Whether the namespace's end of the veth has a carrier."""
    shown = json.loads(ip("-j", "-n", namespace, "link", "show", "dev", "v"))
    return bool(shown[0]["operstate"] == "UP")


@contextmanager
def veth() -> Iterator[Link]:
    """Two namespaces and one veth; both are gone afterwards, whatever happened."""
    if os.geteuid() != 0:
        raise BenchError("making network namespaces needs root")
    names = [f"mrcbench{os.getpid()}{end}" for end in "ab"]
    macs = ["02:00:00:00:00:01", "02:00:00:00:00:02"]
    made: list[str] = []
    try:
        for name in names:
            ip("netns", "add", name)
            made.append(name)
        end = [["name", "v", "mtu", str(MTU), "netns", n] for n in names]
        ip("link", "add", *end[0], "address", macs[0],
           "type", "veth", "peer", *end[1], "address", macs[1])  # fmt: skip
        for number, name in enumerate(names, 1):
            ip("-n", name, "addr", "add", f"fd0b::{number}/64", "dev", "v", "nodad")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", "v", "up")
        for name in names:
            wait_for(partial(is_up, name), 5, f"carrier of the veth in {name}")
        # A neighbour solicitation lost while the link came up would cost a whole short run.
        for number, name in enumerate(names):
            peer = ["neigh", "replace", f"fd0b::{2 - number}", "lladdr", macs[1 - number]]
            ip("-n", name, *peer, "dev", "v", "nud", "permanent")
        yield Link(names[0], names[1], "fd0b::2", 1, 49152)
    finally:
        for name in made:
            ip("netns", "del", name)


def wait_listening(host: str, port: int, process: subprocess.Popen[str]) -> None:
    """Until a TCP port is open in a namespace; at most five seconds, less if its owner dies."""

    def listening() -> bool:
        if process.poll() is not None:
            raise BenchError(f"{process.args!r} ended early: {process.communicate()[1].strip()}")
        return bool(ip("netns", "exec", host, "ss", "-Hltn", f"sport = :{port}"))

    wait_for(listening, 5, f"a listener on TCP port {port}")
