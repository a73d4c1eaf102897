# SPDX-License-Identifier: BSD-2-Clause
"""Two hosts joined by a link for each plane, with an address for each (C.4), and programs there."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .programs import PORT, Running, Transfer, installed
from .world import wait_for

PLANES = (1, 2, 3, 4)

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

# A router in the middle of one link: host 2 has another address there.
ROUTER = r"""
unshare --net sleep 600 >/dev/null 2>&1 &
mid=$!
until [ "$(readlink /proc/$mid/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
middle() { nsenter --target $mid --net "$@"; }
far() { nsenter --target $FAR --net "$@"; }
ip link del p$N
ip link add p$N type veth peer name near netns $mid
middle ip link add name distant type veth peer name q$N netns $FAR
middle sh -c "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding"
ip addr add fd00:$N::1/64 dev p$N nodad
middle ip addr add fd00:$N::ff/64 dev near nodad
middle ip addr add fd01:$N::ff/64 dev distant nodad
far ip addr add fd01:$N::2/64 dev q$N nodad
ip link set p$N up
middle ip link set near up
middle ip link set distant up
far ip link set q$N up
ip route add fd01:$N::/64 via fd00:$N::ff
far ip route add fd00:$N::/64 via fd01:$N::ff
echo $mid
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
        self._middle = 0
        self.theirs = {n: f"fd00:{n}::2" for n in PLANES}  # addresses of host 2

    def run(self, host: int, argv: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        pid = (self._holder.pid, self._far, self._middle)[host - 1]
        enter = ["nsenter", f"--target={pid}", "--user", "--preserve-credentials", "--net"]
        return subprocess.Popen([*enter, *argv], text=True, **options)

    def ip(self, host: int, *argv: str) -> None:
        assert self.run(host, ["ip", *argv]).wait(10) == 0

    def route(self, plane: int) -> None:
        """A router in the middle of that link, from now on host 3; its far port is distant."""
        argv = ["env", f"N={plane}", f"FAR={self._far}", "sh", "-e", "-c", ROUTER]
        with self.run(1, argv, stdout=subprocess.PIPE) as made:
            assert made.stdout is not None
            self._middle = int(made.stdout.readline() or 0)
        assert self._middle
        self.theirs[plane] = f"fd01:{plane}::2"

    def close(self) -> None:
        for pid in filter(None, (self._far, self._middle)):
            self.run(1, ["kill", str(pid)]).wait(10)
        self._holder.kill()
        self._holder.wait()


def _addresses(by_plane: Mapping[int, str]) -> list[str]:
    return [word for n, a in by_plane.items() for word in ("--plane-address", f"{n}={a}")]


def start(
    links: Links, log: Path, backend: str, *argv: str
) -> tuple[subprocess.Popen[str], Running]:
    """A receiver on host 2 for one client, and a sender on host 1."""
    argv = ("--backend", backend, *argv)
    command = [installed("mrc-recv"), "-1", "--backend", backend, *_addresses(links.theirs)]
    with log.open("w") as out:
        receiver = links.run(2, command, stdout=out)
    wait_for(lambda: f":{PORT}" in log.read_text(), "mrc-recv listens")
    command = [
        installed("mrc-send"),
        "fd00:1::2",
        *_addresses({n: f"fd00:{n}::1" for n in PLANES}),
        "--json-stream",
        "-i",
        "0.05",
    ]
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
