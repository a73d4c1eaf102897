# SPDX-License-Identifier: BSD-2-Clause
"""A running fabric: build it, work in its hosts, count at its spines, take it down."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from ipaddress import IPv6Address
from pathlib import Path as FilePath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from . import config
from .client import HolderClient
from .counters import SpineCounters, read_spines, settle
from .errors import FabricError, FabricUnavailableError
from .faults import Faults
from .plan import FabricSpec, Path, host_address, paths_between
from .profile import Mode, ev_profile

if TYPE_CHECKING:
    import socket

HOLDER_ENV = "MRC_NETLAB"
"""Set for every process started in a host: the pid of the holder it belongs to."""


class Host:
    """One host of a fabric that is up."""

    def __init__(self, fabric: Fabric, index: int) -> None:
        """Made by Fabric.up only."""
        self._fabric = fabric
        self.index = index
        self.ns = config.host_ns(index)

    @property
    def address(self) -> IPv6Address:
        """The address applications use."""
        return host_address(self.index)

    def paths(self, peer: int | None = None) -> tuple[Path, ...]:
        """All paths to another host; without ``peer``, to the next one."""
        spec = self._fabric.spec
        return paths_between(spec, self.index, self._other(peer))

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs ``argv`` in this host, from anywhere on this machine."""
        return self._fabric.command(self.ns, argv)

    def exec(self, argv: Sequence[str], **popen: Any) -> subprocess.Popen[Any]:
        """Start a process in this host. It is stopped when the fabric goes down, if not before."""
        return subprocess.Popen(self.command(argv), **_with_env(self._fabric, popen))

    def run(self, argv: Sequence[str], **options: Any) -> subprocess.CompletedProcess[Any]:
        """Run a process in this host to its end: subprocess.run with its options but ``check``."""
        options = _with_env(self._fabric, options)
        return subprocess.run(self.command(argv), check=False, **options)

    def socket(self, family: int, kind: int, proto: int = 0) -> socket.socket:
        """A socket of the calling process that lives in this host."""
        return self._fabric.client.socket(self.ns, family, kind, proto)

    def listens(self, port: int) -> bool:
        """Whether something in this host has a TCP port open; asks the kernel, not the port."""
        return tcp_listens(self._fabric.client.ask("read", ns=self.ns, name="tcp6")["text"], port)

    def write_profile(self, file: FilePath, mode: Mode, peer: int | None = None) -> FilePath:
        """Write the EV profile by which this host reaches ``peer``; returns ``file``."""
        text = ev_profile(self._fabric.spec, self.index, self._other(peer), mode)
        file.write_text(text, encoding="ascii")
        return file

    def _other(self, peer: int | None) -> int:
        other = (self.index + 1) % self._fabric.spec.hosts if peer is None else peer
        if other == self.index or not 0 <= other < self._fabric.spec.hosts:
            raise ValueError(f"host {self.index} has no peer {other}")
        return other


class Fabric:
    """Namespaces, links and routes as a FabricSpec says. Use as a context manager.

    Everything lives in namespaces without names, held by one child process: when this process ends,
    the child ends, and the kernel removes all of it. Any number of fabrics can stand side by side.
    """

    def __init__(self, spec: FabricSpec | None = None, *, userns: bool | None = None) -> None:
        """Builds nothing yet. ``userns``: a user namespace always, never, or (None) if needed."""
        self.spec = spec or FabricSpec()
        self._want_userns = userns
        self._client: HolderClient | None = None
        self._faults: Faults | None = None
        self.hosts: tuple[Host, ...] = ()

    def up(self) -> Self:
        """Build. FabricUnavailableError names what this machine refuses; nothing is left then."""
        if self._client is not None:
            raise FabricError("this fabric is up already")
        if shutil.which("nsenter") is None:
            raise FabricUnavailableError("nsenter is not installed", "it is part of util-linux")
        client = HolderClient(userns=self._want_userns)
        try:
            self._build(client)
        except BaseException:
            client.close()
            raise
        self._client = client
        self._faults = Faults(client, self.spec)
        try:
            self._faults.begin()
            settle(client, self.spec)
        except BaseException:
            self.down()
            raise
        self.hosts = tuple(Host(self, i) for i in range(self.spec.hosts))
        return self

    def down(self) -> None:
        """Stop what runs in the hosts and remove the fabric. Idempotent."""
        client, faults, self.hosts = self._client, self._faults, ()
        self._client = self._faults = None
        if faults is not None:
            faults.close()
        if client is not None:
            client.close()

    def __enter__(self) -> Self:
        """Build."""
        return self.up()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove."""
        self.down()

    @property
    def client(self) -> HolderClient:
        """The connection to the process that holds the namespaces."""
        if self._client is None:
            raise FabricError("this fabric is not up")
        return self._client

    @property
    def faults(self) -> Faults:
        """Cuts, losses, rates, links down; and how to heal them."""
        if self._faults is None:
            raise FabricError("this fabric is not up")
        return self._faults

    @property
    def userns(self) -> bool:
        """Whether the fabric stands in a user namespace of its own."""
        return self.client.userns

    def command(self, ns: str, argv: Sequence[str]) -> list[str]:
        """The command line that runs ``argv`` in any namespace of the fabric."""
        enter = ["nsenter", f"--net={self.client.path(ns)}"]
        if self.client.userns:
            enter += [f"--user=/proc/{self.client.pid}/ns/user", "--preserve-credentials"]
        return [*enter, "--", *argv]

    def spine_counters(self) -> dict[tuple[int, int], SpineCounters]:
        """Counters of every spine, by (plane, spine)."""
        return read_spines(self.client, self.spec)

    def _build(self, client: HolderClient) -> None:
        spec = self.spec
        names = config.namespaces(spec)
        client.create(names)
        for ns in names:
            client.ask("sysctl", ns=ns, values=config.sysctls(ns))
        client.batch(names[0], "ip", config.link_lines(spec, {n: client.path(n) for n in names}))
        lines = config.namespace_lines(spec)
        for host in range(spec.hosts):
            lines[config.host_ns(host)] += config.rule_lines(spec)
        jobs = {(ns, "ip"): text for ns, text in lines.items()}
        if spec.rate_mbit is not None:
            jobs |= {(ns, "tc"): text for ns, text in config.tbf_lines(spec).items()}
        client.batches(jobs)


def tcp_listens(table: str, port: int) -> bool:
    """Whether the text of /proc/net/tcp6 shows a listener on this port."""
    for line in table.splitlines()[1:]:
        local, _, state = line.split()[1:4]
        if state == "0A" and int(local.rpartition(":")[2], 16) == port:
            return True
    return False


def why_unavailable(*, userns: bool | None = None) -> FabricUnavailableError | None:
    """Try the smallest fabric. None: it works here; else the reason, to be shown."""
    try:
        with Fabric(FabricSpec(planes=1, spines=1), userns=userns):
            return None
    except FabricUnavailableError as error:
        return error


def cleanup_stale() -> list[int]:
    """Stop processes left in fabrics whose holder was killed; returns their pids.

    Namespaces need no such care. Only when both the program and the holder die by SIGKILL can a
    process started in a host survive, and keep its host's namespace.
    """
    stale = []
    for entry in FilePath("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environ = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for item in environ:
            name, _, holder = item.partition(b"=")
            if name == HOLDER_ENV.encode() and not _is_holder(holder.decode()):
                stale.append(int(entry.name))
    for pid in stale:
        try:
            os.kill(pid, 9)
        except OSError:
            continue
    return stale


def _is_holder(pid: str) -> bool:
    try:
        stat = FilePath(f"/proc/{int(pid)}/stat").read_text()
    except (OSError, ValueError):
        return False
    return "(mrc-lab)" in stat and stat.rpartition(")")[2].split()[0] not in "ZX"


def _with_env(fabric: Fabric, options: dict[str, Any]) -> dict[str, Any]:
    given: Mapping[str, str] | None = options.get("env")
    env = {**(os.environ if given is None else given), HOLDER_ENV: str(fabric.client.pid)}
    return {**options, "env": env}
