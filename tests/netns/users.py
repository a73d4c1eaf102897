# SPDX-License-Identifier: BSD-2-Clause
"""People who type mrc-lab: root, and the user nobody."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from mrc.lab.remote import Remote, entering
from mrc.lab.state import Place
from tests.needs import skip_or_fail

ROOT = FilePath(__file__).resolve().parents[2]
SMALL = ("--planes", "2", "--t1", "2")
RUN_S = 30.0
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@dataclass
class User:
    """Somebody with a runtime directory, who types commands."""

    env: dict[str, str]
    command: tuple[str, ...]
    prefix: int = 0
    """Words of the command that make another user of this one."""
    python: str = ""
    """An interpreter that this user can run."""

    def run(self, *argv: str, code: int = 0) -> str:
        done = subprocess.run(
            [*self.command, *argv],
            cwd="/" if self.prefix else ROOT,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    def remote(self, name: str = "lab") -> Remote:
        return Remote(Place(FilePath(self.env["XDG_RUNTIME_DIR"]) / "mrc-lab" / name))

    def lab(self, name: str = "lab") -> dict[str, Any]:
        with self.remote(name) as remote:
            return remote.ask("status")

    def names(self) -> list[str]:
        return [x["name"] for x in json.loads(self.run("status", "--json"))["labs"]]

    def links(self) -> dict[str, dict[str, int]]:
        with self.remote() as remote:
            found: dict[str, dict[str, int]] = remote.ask("links")["links"]
            return found

    def pings(self, sport: int, count: int = 50) -> int:
        """How many of so many datagrams reach h2 by the path of that source port."""
        code = (
            "import socket,time\n"
            f"s=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM); s.bind(('::',{sport}))\n"
            f"[(s.sendto(b'x'*100,('fd00::2',4791)),time.sleep(0.0002)) for _ in range({count})]\n"
        )
        before = self.links()
        python = self.python or sys.executable
        argv = entering(self.lab(), "h1", [python, "-c", code])
        subprocess.run([*self.command[: self.prefix], *argv], check=True)
        after = self.links()
        return sum(
            after[f"->h2.port{p}"]["packets"] - before[f"->h2.port{p}"]["packets"] for p in (1, 2)
        )


def make_user(folder: FilePath, *command: str) -> User:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MRC_")}
    return User({**kept, "XDG_RUNTIME_DIR": str(folder)}, command)


@contextmanager
def nobody(tmp: FilePath, module: str) -> Iterator[User]:
    """The user nobody, who can read neither this checkout nor its environment: with a copy.

    Has what a lab needs, not the programs that move data.
    """
    if os.geteuid() != 0:
        skip_or_fail("only root can become another user")
    folder = FilePath(f"/tmp/mrc-nobody-{os.getpid()}-{tmp.name}")
    folder.mkdir(mode=0o755)
    try:
        shutil.copytree(ROOT / "mrc", folder / "mrc", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(str(importlib.import_module("_cffi_backend").__file__), folder)
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        runtime = folder / "run"
        runtime.mkdir(mode=0o700)
        os.chown(runtime, 65534, 65534)
        made = make_user(runtime)
        made.env |= {"PYTHONPATH": str(folder)}
        made.python = _python_for_nobody(made.env)
        made.command = (*AS_NOBODY, made.python, "-B", "-m", module)
        made.prefix = len(AS_NOBODY)
        yield made
    finally:
        shutil.rmtree(folder)


def _python_for_nobody(env: dict[str, str]) -> str:
    """This interpreter may lie in a folder of root's."""
    trial = "import os, sys, mrc.cli.lab; os.execv(sys.executable, [sys.executable, '-V'])"
    said = []
    for python in (str(FilePath(sys.executable).resolve()), "/usr/bin/python3"):
        done = subprocess.run(
            [*AS_NOBODY, python, "-B", "-c", trial],
            cwd="/",
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return python
        said.append(f"{python}: {done.stderr.strip().splitlines()[-1]}")
    skip_or_fail(f"the user nobody can run no Python: {said}")
    raise AssertionError
