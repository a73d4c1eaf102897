# SPDX-License-Identifier: BSD-2-Clause
"""A copy of the tree in which one mutant at a time is tried."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from .rows import Mutant, is_c, split_test

BUILD = "build/prove"
MAKE = ("make", "-s", f"B={BUILD}", "X=-O0 -g0 -w")  # built more often than run
BUILD_S = 300
C_TEST_S = 60
PYTHON_TEST_S = 150
LEAST_TEST_S, TIMES_LONGER = 30, 10
"""A test that takes so many times as long as without a mutant hangs, but for short ones."""
LEFT_OUT = (".git", ".venv", "build", "dist", "__pycache__", ".pytest_cache", ".mypy_cache",
            ".ruff_cache", ".hypothesis", "*.egg-info")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a test did."""

    kind: str  # passes, fails, panics, crashes, hangs, is skipped, does not compile
    said: str = ""
    took_s: float = 0.0

    @property
    def patience_s(self) -> float:
        """How long the same test is waited for under a mutant."""
        return max(LEAST_TEST_S, TIMES_LONGER * self.took_s)

    @property
    def noticed(self) -> bool:
        """Whether the test saw that something is wrong."""
        return self.kind in ("fails", "panics", "crashes", "hangs")


def run(command: list[str], cwd: Path, limit_s: float) -> tuple[int | None, str]:
    """Exit status and output of a command; None when it had to be stopped."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    env |= {"PYTHONPATH": str(cwd), "PYTHONDONTWRITEBYTECODE": "1"}
    child = subprocess.Popen(
        command, cwd=cwd, env=env, text=True, errors="replace", start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        said, _ = child.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        said, _ = child.communicate()
        return None, said
    return child.returncode, said


def program(test: str) -> str:
    """The program of a C test, as make names it."""
    return f"{BUILD}/{Path(split_test(test)[0]).stem}"


def build(root: Path, tests: list[str], jobs: int) -> str:
    """Build the programs of C tests; what make said where it failed, else nothing."""
    targets = sorted({program(t) for t in tests})
    if not targets:
        return ""
    status, said = run([*MAKE, f"-j{jobs}", *targets], root, BUILD_S)
    return "" if status == 0 else said or "no end"


def _extension(root: Path) -> str:
    """Build the compiled module of the copy in place; what the compiler said where it failed."""
    table = tomllib.loads((root / "pyproject.toml").read_text())
    ext = table["tool"]["setuptools"]["ext-modules"][0]
    target = root / (ext["name"].replace(".", "/") + ".abi3.so")
    macros = [f"-D{name}={value}" for name, value in ext["define-macros"]]
    include = [f"-I{d}" for d in (*ext["include-dirs"], sysconfig.get_path("include"))]
    command = [os.environ.get("CC", "gcc"), "-shared", "-fPIC", *ext["extra-compile-args"], "-O1"]
    command += ["-w", *macros, *include, *ext["sources"], "-o", str(target)]
    status, said = run(command, root, BUILD_S)
    return "" if status == 0 else said or "no end"


class Bench:
    """One copy; one mutant in it at a time. Not for two threads at once."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = folder
        self.built = root / BUILD
        shutil.copytree(root, folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
        if self.built.is_dir():  # with its times, so that make finds it up to date
            shutil.copytree(self.built, folder / BUILD)

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """Within, the tree has the mutant."""
        path = self.root / mutant.file
        whole, times = path.read_text(), path.stat()
        modules = {p: p.read_bytes() for p in self.root.glob("mrc/*.so")}
        path.write_text(whole.replace(mutant.find, mutant.replace))
        try:
            yield
        finally:
            path.write_text(whole)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            self._restore_built()
            for module, content in modules.items():
                module.write_bytes(content)

    def _restore_built(self) -> None:
        """What was built under a mutant is as it was before: cheaper than building it again."""
        for there in self.built.rglob("*"):
            here = self.root / BUILD / there.relative_to(self.built)
            if there.is_file() and here.stat().st_mtime_ns != there.stat().st_mtime_ns:
                shutil.copy2(there, here)

    def prepare(self, tests: list[str], mutant: Mutant) -> str:
        """Build what the tests need under the mutant; what failed, else nothing."""
        if not mutant.file.startswith("csrc/"):
            return ""
        failed = build(self.root, [t for t in tests if is_c(t)], 1)
        if not failed and not all(is_c(t) for t in tests):
            failed = _extension(self.root)
        return failed

    def test(self, test: str, limit_s: float = math.inf) -> Outcome:
        """Run one test, already built."""
        begin = time.monotonic()
        outcome = self._c(test, limit_s) if is_c(test) else self._python(test, limit_s)
        return replace(outcome, took_s=time.monotonic() - begin)

    def _c(self, test: str, limit_s: float) -> Outcome:
        command = [str(self.root / program(test)), f"={split_test(test)[1]}"]
        status, said = run(command, self.root, min(limit_s, C_TEST_S))
        if status is None:
            return Outcome("hangs", said)
        if status in (0, 1):
            return Outcome("passes" if status == 0 else "fails", said)
        return Outcome("panics" if "panic in" in said else "crashes", said)

    def _python(self, test: str, limit_s: float) -> Outcome:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-rs", "-p", "no:cacheprovider"]
        status, said = run([*command, test], self.root, min(limit_s, PYTHON_TEST_S))
        if status is None:
            return Outcome("hangs", said)
        if status == 0:
            return Outcome("passes" if " passed" in said else "is skipped", said)
        if status == 1:
            return Outcome("fails", said)
        return Outcome("does not compile" if status > 0 else "crashes", said)

