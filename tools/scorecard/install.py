# SPDX-License-Identifier: BSD-2-Clause
"""``--install``: what the other peers need, from Debian."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Protocol

from tools.scorecard.peers import RXD
from tools.scorecard.stage import ROOT


class Wanted(Protocol):
    """Who needs packages."""

    @property
    def missing(self) -> Callable[[], str]:
        """Why it cannot run on this machine; empty when it can."""

    @property
    def packages(self) -> tuple[str, ...]:
        """What Debian calls what it needs."""


class InstallError(Exception):
    """It could not be fetched; the text is for the user."""


def install(peers: Sequence[Wanted]) -> list[str]:
    """Fetch the packages of peers that are missing; returns their names. InstallError."""
    wanted = sorted({name for peer in peers if peer.missing() for name in peer.packages})
    if not wanted:
        return []
    if shutil.which("apt-get") is None:
        raise InstallError(f"no apt-get here: install {' '.join(wanted)} by hand")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for argv in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *wanted],
    ):
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise InstallError(f"{' '.join(argv[:2])}: {' '.join(last)} (needs root)")
    compiled = subprocess.run(
        ["make", "-s", str(RXD.relative_to(ROOT))], cwd=ROOT, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if compiled.returncode:
        raise InstallError(f"the libfabric peer does not compile: {compiled.stderr.strip()}")
    return wanted
