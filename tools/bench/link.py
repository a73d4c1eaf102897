# SPDX-License-Identifier: BSD-2-Clause
"""What is measured over: a bare veth between two namespaces, or a whole SRv6 fabric."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mrc.lab import Fabric, FabricSpec, Mode
from mrc.lab.client import HolderClient
from mrc.lab.config import TABLE_BASE, UDP, host_ns, links
from mrc.lab.fabric import tcp_listens
from mrc.lab.plan import Path as Route
from tools.scorecard.roads import plane_address, road_lines

JUMBO = 9500
"""MTU of links in bytes: a 4096-byte packet with every header fits."""
STANDARD = 1500

IPV4 = ("192.0.2.1", "192.0.2.2")
MACS = {"a": "02:00:00:00:00:01", "b": "02:00:00:00:00:02"}
SPORT_BASE = 49152
LANES_MAX = 256
RULE_PREF = 900
"""Rules of source ports beyond the fabric's own: before those, and before its rule for the rest."""


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
    address: str
    """The receiver's, for MRC and the bare loops."""
    peer_address: str
    """The receiver's, for all other protocols; the same wire leads there."""
    netdev: Path
    """The receiver's table of interfaces, readable from here."""
    ipv4_address: str = ""
    """The receiver's, for tools that know no IPv6; empty where there is none."""
    outer: tuple[str, ...] = ()
    """uSID carriers to the receiver's raw socket; empty where there is no SRv6."""
    roads: tuple[str, ...] = ()
    """For whole frames, by path: ``DEVICE/MAC`` of the next hop, with ``/OUTER`` for SRv6."""
    source: str = ""
    """The sender's address, for those."""
    profiles: tuple[Path, ...] = ()
    """EV profiles of the sender and the receiver with the same carriers."""

    def offloads(self, *, on: bool) -> None:
        """Segmentation and merging by the veth's driver; needs ethtool."""
        word = "on" if on else "off"
        for host in (self.sender, self.receiver):
            output(host(["ethtool", "-K", "v", "tso", word, "gso", word, "gro", word]))


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
    return argv if core is None else among([core], argv)


def among(cores: Sequence[int], argv: list[str]) -> list[str]:
    """``argv`` on some cores; anywhere when taskset is not installed."""
    if shutil.which("taskset") is None:
        return argv
    return ["taskset", "-c", ",".join(map(str, cores)), *argv]


@contextmanager
def open_link(kind: str) -> Iterator[Link]:
    """``veth``, ``veth1500`` or ``fabric``."""
    if kind == "fabric":
        with fabric() as link:
            yield link
    else:
        with veth(STANDARD if kind == "veth1500" else JUMBO) as link:
            yield link


@contextmanager
def resident(host: Within) -> Iterator[Path]:
    """A process that does nothing in a host: its /proc/PID/net/dev is the host's."""
    own = Path("/proc/self/ns/net").readlink()
    with subprocess.Popen(host(["sleep", "infinity"]), start_new_session=True) as process:
        try:
            there = Path(f"/proc/{process.pid}")
            wait_for(lambda: (there / "ns/net").readlink() != own, 5, "entering the receiving host")
            yield there / "net" / "dev"
        finally:
            process.kill()


@contextmanager
def veth(mtu: int) -> Iterator[Link]:
    """Two namespaces and one veth; they end with this process, whatever happens to it."""
    holder = HolderClient(userns=None)
    try:
        holder.create(["a", "b"])
        _join(holder, mtu)

        def inside(name: str, argv: list[str]) -> list[str]:
            enter = ["nsenter", f"--net={holder.path(name)}"]
            if holder.userns:
                enter += [f"--user=/proc/{holder.pid}/ns/user", "--preserve-credentials"]
            return [*enter, "--", *argv]

        def up(name: str) -> bool:
            shown = json.loads(output(inside(name, ["ip", "-j", "link", "show", "dev", "v"])))
            return bool(shown[0]["operstate"] == "UP")

        for name in "ab":
            wait_for(partial(up, name), 5, "carrier of the veth")
        with resident(partial(inside, "b")) as netdev:
            hosts = partial(inside, "a"), partial(inside, "b")
            for host, own in zip(hosts, IPV4, strict=True):
                output(host(["ip", "addr", "add", f"{own}/24", "dev", "v"]))
            to = "fd0b::2"
            road = f"v/{MACS['b']}"
            yield Link(f"veth {mtu}", *hosts, to, to, netdev, ipv4_address=IPV4[1], roads=(road,),
                       source="fd0b::1")  # fmt: skip
    finally:
        holder.close()


def _join(holder: HolderClient, mtu: int) -> None:
    ends = [f"name v mtu {mtu} address {MACS[n]} netns {holder.path(n)}" for n in "ab"]
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
                f"neigh replace {address[other]} lladdr {MACS[other]} dev v nud permanent",
            ],
        )


@contextmanager
def fabric() -> Iterator[Link]:
    """4 planes of 4 spines, a kernel SRv6 path for each of 256 source ports.

    Source port i beyond the 16 paths takes path i mod 16. TCP and the like have an address of
    theirs in plane 1, with the same encapsulation.
    """
    spec = FabricSpec(mtu=JUMBO, sport_base=SPORT_BASE)
    more = [
        f"rule add pref {RULE_PREF} ipproto {UDP} sport {SPORT_BASE + i}"
        f" lookup {TABLE_BASE + i % spec.paths}"
        for i in range(spec.paths, LANES_MAX)
    ]
    with Fabric(spec) as built, tempfile.TemporaryDirectory(prefix="mrc-bench-") as folder:
        for host in built.hosts:
            built.client.ask("sysctl", ns=host.ns, values={"net/ipv4/tcp_no_metrics_save": "1"})
            built.client.batch(host.ns, "ip", [*more, *road_lines(spec, host.index)])
        a, b = built.hosts
        profiles = tuple(
            host.write_profile(Path(folder) / f"{host.ns}.toml", Mode.SRV6) for host in (a, b)
        )

        def within(number: int, argv: list[str]) -> list[str]:
            return built.hosts[number].command(argv)

        with resident(partial(within, 1)) as netdev:
            yield Link(
                "fabric",
                partial(within, 0),
                partial(within, 1),
                str(b.address),
                str(plane_address(1, 1)),
                netdev,
                outer=tuple(str(path.raw_carrier) for path in a.paths()),
                roads=tuple(_road(spec, path) for path in a.paths()),
                source=str(a.address),
                profiles=profiles,
            )


def _road(spec: FabricSpec, path: Route) -> str:
    device = f"plane{path.plane}"
    first = next(w for w in links(spec) if (w.a.ns, w.a.dev) == (host_ns(path.src), device))
    return f"{device}/{first.b.mac}/{path.kernel_carrier}"


def wait_listening(link: Link, port: int, ended: Callable[[], bool]) -> None:
    """Until a TCP port is open at the receiver; at most ten seconds, less if its owner ends."""
    table = link.netdev.with_name("tcp6")

    def listening() -> bool:
        if ended():
            raise BenchError(f"nothing listens on TCP port {port}: its program ended")
        return tcp_listens(table.read_text(), port)

    wait_for(listening, 10, f"a listener on TCP port {port}")
