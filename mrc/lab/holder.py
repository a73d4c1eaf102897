# SPDX-License-Identifier: BSD-2-Clause
"""The process that owns a fabric: makes its namespaces, holds them open, works in them.

Namespaces without a name live exactly as long as somebody holds them. This process is that
somebody: when it ends, however it ends, the kernel removes every namespace, interface and route. It
ends when its control socket closes, hence when the program that started it exits, crashes or is
killed.

Standard library only, run as a script (``python -I holder.py FD``). One request is one datagram of
JSON on a SOCK_SEQPACKET socket, answered by one datagram; an opened socket travels with the answer.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
PR_SET_NAME = 15
MESSAGE_MAX = 1 << 20
LIMIT_ENOUGH = 10_000

_libc = ctypes.CDLL(None, use_errno=True)


class RefusedError(Exception):
    """The system does not let us; becomes FabricUnavailableError on the other side."""

    def __init__(self, missing: str, hint: str = "") -> None:
        super().__init__(missing)
        self.answer = {"missing": missing, "hint": hint}


def call(result: int) -> None:
    """Turn the -1 of a libc call into OSError."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def read(path: str) -> str:
    """The stripped contents of a small file; empty when it is not there."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def switch(setting: str, value: int, otherwise: str = "") -> str:
    """What an administrator can do about a sysctl."""
    return f"as root: sysctl -w {setting}={value}{otherwise}"


def limit_reached(what: str, setting: str, limit: str) -> RefusedError:
    """Too many namespaces of a kind: the kernel words it ENOSPC, and counts outer limits, too."""
    if not limit.isdigit() or int(limit) >= LIMIT_ENOUGH:
        missing = f"no more {what}: used up, or {setting} is lower outside of this container"
    else:
        missing = f"no more {what}: {setting} is {limit} here"
    return RefusedError(missing, switch(setting, LIMIT_ENOUGH))


def why_no_userns(error: OSError) -> RefusedError:
    """Name the setting that forbids user namespaces, as far as it can be told."""
    off = "kernel.unprivileged_userns_clone"
    if read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
        return RefusedError(f"user namespaces are off, {off} is 0 here", switch(off, 1))
    if error.errno == errno.ENOSPC:
        limit = read("/proc/sys/user/max_user_namespaces")
        return limit_reached("user namespaces", "user.max_user_namespaces", limit)
    if read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        return RefusedError(
            "AppArmor forbids user namespaces to ordinary users",
            switch("kernel.apparmor_restrict_unprivileged_userns", 0, ", or run this as root"),
        )
    return RefusedError(
        f"user namespaces are refused ({error.strerror})",
        "a container's seccomp policy is the usual reason; run as root with CAP_SYS_ADMIN",
    )


def why_no_netns(error: OSError, limit: str) -> RefusedError:
    """The same for network namespaces, whose sysctl had the value ``limit``."""
    if error.errno == errno.ENOSPC:
        return limit_reached("network namespaces", "user.max_net_namespaces", limit)
    return RefusedError(f"network namespaces are refused ({error.strerror})", "needs CAP_SYS_ADMIN")


def enter_userns() -> None:
    """Become root of a new user namespace that maps only our own user."""
    uid, gid = os.getuid(), os.getgid()
    try:
        call(_libc.unshare(CLONE_NEWUSER))
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"0 {uid} 1"),
            ("gid_map", f"0 {gid} 1"),
        ):
            Path(f"/proc/self/{name}").write_text(text)
    except OSError as error:
        raise why_no_userns(error) from error


class Holder:
    """The namespaces, and what can be done in them."""

    def __init__(self) -> None:
        self.fds: dict[str, int] = {}
        # read now: a user namespace that we enter later shows limits of its own
        self.net_limit = read("/proc/sys/user/max_net_namespaces")

    def op_enter(self, userns: bool | None) -> dict[str, Any]:
        """Get the right to make namespaces. None: directly if allowed, else by a user namespace."""
        if not Path("/proc/sys/net/ipv6").is_dir():
            raise RefusedError("IPv6 is disabled in this kernel", "boot without ipv6.disable=1")
        if userns is not True:
            try:
                call(_libc.unshare(CLONE_NEWNET))
            except OSError as error:
                if userns is False:
                    raise why_no_netns(error, self.net_limit) from error
            else:
                return {"pid": os.getpid(), "userns": False}
        enter_userns()
        try:
            call(_libc.unshare(CLONE_NEWNET))
        except OSError as error:
            raise why_no_netns(error, self.net_limit) from error
        return {"pid": os.getpid(), "userns": True}

    def op_create(self, names: list[str]) -> dict[str, Any]:
        """Make one network namespace per name."""
        for name in names:
            try:
                call(_libc.unshare(CLONE_NEWNET))
            except OSError as error:
                raise why_no_netns(error, self.net_limit) from error
            self.fds[name] = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        return {"fds": self.fds}

    def op_sysctl(self, ns: str, values: dict[str, str]) -> dict[str, Any]:
        """Write files below /proc/sys as seen from a namespace."""
        self.go(ns)
        for path, value in values.items():
            try:
                Path(f"/proc/sys/{path}").write_text(value)
            except OSError as error:
                raise RefusedError(f"sysctl {path} cannot be set ({error.strerror})") from error
        return {}

    def op_run(self, ns: str, argv: list[str], text: str) -> dict[str, Any]:
        """Run a tool in a namespace with ``text`` on its standard input."""
        return {**self.op_runs([{"ns": ns, "argv": argv, "text": text}])["answers"][0]}

    def op_runs(self, jobs: list[dict[str, Any]]) -> dict[str, Any]:
        """The same for several, all at once but those of one namespace, which keep their order."""
        answers: list[dict[str, Any]] = []
        while jobs:
            seen: set[str] = set()
            batch = []
            while jobs and jobs[0]["ns"] not in seen:
                seen.add(jobs[0]["ns"])
                batch.append(jobs.pop(0))
            started = [self.start(job["ns"], job["argv"]) for job in batch]
            for process, job in zip(started, batch, strict=True):
                out, err = process.communicate(job["text"])
                answers.append({"code": process.returncode, "out": out, "err": err})
        return {"answers": answers}

    def start(self, ns: str, argv: list[str]) -> subprocess.Popen[str]:
        """A tool that waits for its standard input."""
        self.go(ns)
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        except FileNotFoundError as error:
            raise RefusedError(f"{argv[0]} is not installed", "it is part of iproute2") from error

    def op_counters(self, names: list[str]) -> dict[str, Any]:
        """Counters per namespace and device: rx bytes, rx packets, tx bytes, tx packets."""
        found: dict[str, dict[str, list[int]]] = {}
        for name in names:
            found[name] = {}
            for line in self.op_read(name, "dev")["text"].splitlines()[2:]:
                dev, _, rest = line.partition(":")
                number = rest.split()
                found[name][dev.strip()] = [int(number[i]) for i in (0, 1, 8, 9)]
        return {"counters": found}

    def op_read(self, ns: str, name: str) -> dict[str, Any]:
        """A file of /proc/net as a namespace has it."""
        self.go(ns)
        return {"text": read(f"/proc/self/net/{name}")}

    def op_socket(self, ns: str, family: int, kind: int, proto: int) -> dict[str, Any]:
        """Open a socket that lives in a namespace; the caller receives its descriptor."""
        self.go(ns)
        return {"fd": socket.socket(family, kind, proto).detach()}

    def go(self, ns: str) -> None:
        """Move this process into a namespace; what it opens or starts next belongs there."""
        call(_libc.setns(self.fds[ns], CLONE_NEWNET))

    def end(self) -> NoReturn:
        """Stop whatever still runs in our namespaces, then let the kernel take them away."""
        mine = {str(Path(f"/proc/self/fd/{fd}").readlink()) for fd in self.fds.values()}
        deadline = time.monotonic() + 1.0
        while pids := self.inhabitants(mine):
            late = time.monotonic() > deadline
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
            if late:
                break
            time.sleep(0.02)
        os._exit(0)

    @staticmethod
    def inhabitants(nets: set[str]) -> list[int]:
        """The processes, other than this one, in any of these network namespaces."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):  # ended meanwhile, or not ours to look at
                    if str((entry / "ns/net").readlink()) in nets:
                        found.append(int(entry.name))
        return found


def serve(control: socket.socket, holder: Holder) -> None:
    """Answer requests until the other side is gone."""
    while request := control.recv(MESSAGE_MAX):
        fds: list[int] = []
        try:
            arguments = json.loads(request)
            answer = getattr(holder, "op_" + arguments.pop("op"))(**arguments)
            if "fd" in answer:
                fds.append(answer["fd"])
        except RefusedError as refused:
            answer = refused.answer
        except (OSError, KeyError, ValueError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        socket.send_fds(control, [json.dumps(answer).encode()], fds)
        for fd in fds:
            os.close(fd)


def main() -> None:
    """Serve the control socket whose descriptor number is the first argument."""
    _libc.prctl(PR_SET_NAME, b"mrc-lab", 0, 0, 0)
    holder = Holder()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # meant for the program that uses the fabric
    signal.signal(signal.SIGTERM, lambda _number, _frame: holder.end())
    with contextlib.suppress(OSError), socket.socket(fileno=int(sys.argv[1])) as control:
        control.set_inheritable(False)
        serve(control, holder)
    holder.end()


if __name__ == "__main__":
    main()
