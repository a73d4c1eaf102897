# SPDX-License-Identifier: BSD-2-Clause
"""The near side of the holder process: requests out, answers in, errors sorted."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import FabricError, FabricUnavailableError

MESSAGE_MAX = 1 << 20
LINES_MAX = 250
"""Batch lines in one message: some 200 bytes each, which a pipe and a datagram take."""

_ARGV = {"ip": ["ip", "-6", "-batch", "-"], "tc": ["tc", "-batch", "-"]}

_UNSUPPORTED = (
    (r'"(flavors|next-csid|encap\.red|seg6local)"|"seg6', "iproute2 without uSID", "6.1 or newer"),
    (r"[Oo]peration not supported", "a kernel feature", "Linux 6.1 with CONFIG_IPV6_SEG6_LWTUNNEL"),
    (r"[Uu]nknown device type|Unknown qdisc|qdisc kind", "a kernel feature", "modprobe it"),
    (r"[Oo]peration not permitted", "a privilege", "CAP_NET_ADMIN over the namespaces"),
)


class HolderClient:
    """Starts a holder process and talks to it. Not for use by two threads at a time."""

    def __init__(self, *, userns: bool | None) -> None:
        """Start the holder. ``userns``: True forces a user namespace, None takes one if needed."""
        self.fds: dict[str, int] = {}
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (near, far):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        script = str(Path(__file__).with_name("holder.py"))
        with far:
            # Its own session: a Ctrl-C at the terminal must not take the fabric from under us.
            self._process = subprocess.Popen(
                [sys.executable, "-I", script, str(far.fileno())],
                pass_fds=[far.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PATH": _with_sbin(os.environ.get("PATH", os.defpath))},
                start_new_session=True,
            )
        self._control = near
        try:
            answer = self.ask("enter", userns=userns)
        except BaseException:
            self.close()
            raise
        self.pid: int = answer["pid"]
        self.userns: bool = answer["userns"]

    def ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        """One request, one answer. FabricUnavailableError: the system says no."""
        return self._ask(op, arguments)[0]

    def socket(self, ns: str, family: int, kind: int, proto: int) -> socket.socket:
        """A socket of ours that lives in namespace ``ns``."""
        _, fds = self._ask("socket", {"ns": ns, "family": family, "kind": kind, "proto": proto})
        return socket.socket(fileno=fds[0])

    def _ask(self, op: str, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[int]]:
        try:
            self._control.send(json.dumps({"op": op, **arguments}).encode())
            data, fds, _, _ = socket.recv_fds(self._control, MESSAGE_MAX, 1)
        except OSError as error:
            raise FabricError(f"the process holding the fabric is gone ({error})") from error
        if not data:
            raise FabricError("the process holding the fabric is gone")
        answer: dict[str, Any] = json.loads(data)
        if "missing" in answer:
            raise FabricUnavailableError(answer["missing"], answer["hint"])
        if "error" in answer:
            raise FabricError(f"{op}: {answer['error']}")
        return answer, fds

    def create(self, names: Sequence[str]) -> None:
        """Make namespaces; ``fds`` then knows the descriptor the holder has of each."""
        self.fds = self.ask("create", names=list(names))["fds"]

    def path(self, ns: str) -> str:
        """A file that stands for the namespace, for nsenter and for ``ip ... netns``."""
        return f"/proc/{self.pid}/fd/{self.fds[ns]}"

    def batch(self, ns: str, tool: str, lines: Sequence[str]) -> None:
        """Run ``ip -6 -batch`` or ``tc -batch`` in a namespace; all lines must succeed."""
        self.batches({(ns, tool): lines})

    def batches(self, jobs: Mapping[tuple[str, str], Sequence[str]]) -> None:
        """The same in several namespaces at a time, given as (namespace, tool)."""
        for some in _portions(jobs):
            asked = [
                {"ns": ns, "argv": _ARGV[tool], "text": "\n".join(lines) + "\n"}
                for (ns, tool), lines in some
            ]
            answers = self.ask("runs", jobs=asked)["answers"]
            for ((ns, tool), lines), answer in zip(some, answers, strict=True):
                if answer["code"]:
                    raise _failure(ns, tool, lines, answer["err"].strip())

    def close(self) -> None:
        """End the holder and with it the fabric. May be called again."""
        self._control.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _with_sbin(path: str) -> str:
    """Ordinary users of Debian have no sbin in their PATH, where tc is."""
    return os.pathsep.join([path, "/usr/sbin", "/sbin"])


def _portions(
    jobs: Mapping[tuple[str, str], Sequence[str]],
) -> Iterator[list[tuple[tuple[str, str], Sequence[str]]]]:
    """Each fits a datagram and, one job of it, a pipe; jobs of one namespace stay in order."""
    some: list[tuple[tuple[str, str], Sequence[str]]] = []
    for where, lines in jobs.items():
        for first in range(0, len(lines), LINES_MAX):
            portion = lines[first : first + LINES_MAX]
            if some and sum(len(x) for _, x in some) + len(portion) > LINES_MAX:
                yield some
                some = []
            some.append((where, portion))
    if some:
        yield some


def _failure(ns: str, tool: str, lines: Sequence[str], said: str) -> FabricError:
    number = re.search(r"Command failed -:(\d+)", said)
    line = lines[int(number[1]) - 1] if number else lines[0]
    reason = said.splitlines()[0] if said else "no reason given"
    for pattern, missing, hint in _UNSUPPORTED:
        if re.search(pattern, reason):
            return FabricUnavailableError(f"{missing} is missing: {reason}: {tool} {line}", hint)
    return FabricError(f"{ns}: {tool} {line}: {said}")
