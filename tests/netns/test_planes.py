# SPDX-License-Identifier: BSD-2-Clause
"""Hosts with a NIC and an address for each plane: no SRv6, one subnet a plane (C.4)."""

import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from .programs import PORT, Running, Transfer, installed
from .world import wait_for

pytestmark = pytest.mark.netns

PLANES = (1, 2, 3, 4)
CUT = 3
SPREAD = (0.9, 1.1)

# Two namespaces: this one, and that of a sleeping child. Addresses stay when a link goes down, as
# on a host that is set up so.
SETUP = r"""
unshare --net sleep 600 &
far=$!
until [ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
for i in 1 2 3 4; do ip link add p$i type veth peer name q$i netns $far; done
sh -e -c "$END" sh p 1
nsenter --target $far --net sh -e -c "$END" sh q 2
echo $far
exec sleep 600
"""
END = r"""
ip link set lo up
for i in 1 2 3 4; do
    echo 1 >/proc/sys/net/ipv6/conf/$1$i/keep_addr_on_down
    ip link set $1$i addrgenmode none
    ip addr add fd00:$i::$2/64 dev $1$i nodad
    ip link set $1$i up
done
"""


class Links:
    """Host 1 and host 2, joined by four links."""

    def __init__(self, unshare: Sequence[str]) -> None:
        self._holder = subprocess.Popen(
            [*unshare, "env", f"END={END}", "sh", "-e", "-c", SETUP],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout is not None
        with self._holder.stdout as said:
            self._far = int(said.readline() or 0)

    def run(self, host: int, argv: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        pid = self._holder.pid if host == 1 else self._far
        enter = ["nsenter", f"--target={pid}", "--user", "--preserve-credentials", "--net"]
        return subprocess.Popen([*enter, *argv], text=True, **options)

    def ip(self, *argv: str) -> None:
        """ip, on host 1."""
        assert self.run(1, ["ip", *argv]).wait(10) == 0

    def close(self) -> None:
        if self._far:
            self.run(1, ["kill", str(self._far)]).wait(10)
        self._holder.kill()
        self._holder.wait()


@pytest.fixture
def links(unshare: list[str]) -> Iterator[Links]:
    built = Links(unshare)
    try:
        yield built
    finally:
        built.close()


def addresses(host: int) -> list[str]:
    return [word for n in PLANES for word in ("--plane-address", f"{n}=fd00:{n}::{host}")]


def start(
    links: Links, log: Path, backend: str, *argv: str
) -> tuple[subprocess.Popen[str], Running]:
    """A receiver on host 2 for one client, and a sender on host 1."""
    argv = ("--backend", backend, *argv)
    command = [installed("mrc-recv"), "-1", "--backend", backend, *addresses(2)]
    with log.open("w") as out:
        receiver = links.run(2, command, stdout=out)
    wait_for(lambda: f":{PORT}" in log.read_text(), "mrc-recv listens")
    command = [installed("mrc-send"), "fd00:1::2", *addresses(1), "--json-stream", "-i", "0.05"]
    sender = links.run(1, [*command, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return receiver, Running(sender)


def finish(receiver: subprocess.Popen[str], running: Running) -> Transfer:
    transfer = running.finish()
    try:
        code = receiver.wait(10)
    finally:
        receiver.kill()
        receiver.wait()
    assert (transfer.code, code, transfer.errors) == (0, 0, []), transfer.stderr
    assert transfer.end["verified"] is True
    return transfer


def sent(paths: Sequence[dict[str, Any]]) -> dict[int, int]:
    """Packets by plane."""
    found = dict.fromkeys(PLANES, 0)
    for path in paths:
        found[path["plane"]] += path["packets_sent"]
    return found


@pytest.mark.parametrize("backend", ["udp", "raw"])
def test_planes_share_and_a_dead_link_costs_its_plane_alone(
    links: Links, tmp_path: Path, backend: str
):
    receiver, running = start(links, tmp_path / "first", backend, "-t", "1")
    by_plane = sent(finish(receiver, running).end["paths"])
    mean = sum(by_plane.values()) / len(by_plane)
    assert all(SPREAD[0] <= n / mean <= SPREAD[1] for n in by_plane.values()), by_plane

    receiver, running = start(links, tmp_path / "second", backend, "-t", "4")
    running.wait_flowing()
    time.sleep(0.5)
    links.ip("link", "set", f"p{CUT}", "down")
    time.sleep(1.0)
    during = running.transfer.intervals[-1]
    links.ip("link", "set", f"p{CUT}", "up")
    transfer = finish(receiver, running)
    assert during["sum"]["bytes"] > 0
    assert sent(during["paths"])[CUT] == 0
    last = sent(transfer.intervals[-1]["paths"])
    assert all(last[plane] > 0 for plane in PLANES), last
    events = transfer.end["mrc"]["ev_events"]
    assert CUT in {e["plane"] for e in events if e["to"] == "ASSUMED_BAD"}, events
