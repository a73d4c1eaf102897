# SPDX-License-Identifier: BSD-2-Clause
"""``--install``: what the other peers need, from Debian."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Protocol

from tools.scorecard.peers import HEADER, LIBFABRIC, RXD
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
    missing = [peer for peer in peers if peer.missing() and peer.packages]
    # Where only our program is not compiled nothing need be fetched.
    wanted = sorted({name for peer in missing for name in peer.packages if not _there(peer)})
    if wanted:
        _fetch(wanted)
    if any(LIBFABRIC in peer.packages for peer in missing):
        _compile()
    return wanted


def _there(peer: Wanted) -> bool:
    return LIBFABRIC in peer.packages and HEADER.exists()


def _fetch(packages: Sequence[str]) -> None:
    names = " ".join(packages)
    if shutil.which("apt-get") is None:
        raise InstallError(f"no apt-get here: install {names} by hand")
    by_hand = f"run as root: apt-get install --no-install-recommends {names}"
    if os.geteuid() != 0:
        raise InstallError(f"--install needs root; {by_hand}")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for argv in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
    ):
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise InstallError(f"{' '.join(argv[:2])}: {' '.join(last)}; {by_hand}")


def _compile() -> None:
    argv = ["make", "-s", str(RXD.relative_to(ROOT))]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        raise InstallError(f"the libfabric peer does not compile: {' '.join(last)}")
