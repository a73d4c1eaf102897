# SPDX-License-Identifier: BSD-2-Clause
"""``--install``: what is fetched, by whom, and what it says where it cannot."""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.scorecard import install
from tools.scorecard.install import InstallError
from tools.scorecard.peers import HEADER, LIBFABRIC, every
from tools.scorecard.stage import ROOT

APT = """#!/bin/sh
echo "$@" >> {log}
[ "$1" = {verb} ] && {{ echo "E: first"; echo "E: no such package" >&2; exit 100; }}
exit 0
"""


@dataclass
class Needs:
    missing: Callable[[], str]
    packages: tuple[str, ...]


GONE = Needs(lambda: "is not installed", ("some-tool", "some-library"))
THERE = Needs(lambda: "", ("other-tool",))
NOWHERE = Needs(lambda: "the kernel has none", ())


@pytest.fixture
def apt(monkeypatch, tmp_path) -> Callable[[str], Path]:
    """A package manager that keeps what it is asked; it fails at a verb."""

    def make(fails_at: str = "never") -> Path:
        program: Path = tmp_path / "apt-get"
        log: Path = tmp_path / "log"
        program.write_text(APT.format(log=log, verb=fails_at))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path))
        return log

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return make


def test_only_what_is_missing_is_fetched(apt):
    log = apt()
    assert install.install([THERE, GONE, NOWHERE]) == ["some-library", "some-tool"]
    update, fetch = log.read_text().splitlines()
    assert update.startswith("update")
    assert fetch.endswith("some-library some-tool")


def test_nothing_is_asked_of_anybody_where_all_is_there(apt):
    log = apt()
    assert install.install([THERE, NOWHERE]) == []
    assert not log.exists()


def test_who_is_not_root_is_told_what_to_run_as_root(apt, monkeypatch):
    log = apt()
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    with pytest.raises(InstallError, match=r"needs root; .*apt-get install .* some-library"):
        install.install([GONE])
    assert not log.exists()


@pytest.mark.parametrize("verb", ["update", "install"])
def test_what_went_wrong_is_the_last_thing_said(apt, verb):
    apt(verb)
    with pytest.raises(InstallError, match=rf"^apt-get {verb}: E: no such package; run as root"):
        install.install([GONE])


def test_without_apt_the_names_are_told(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstallError, match="install some-library some-tool by hand"):
        install.install([GONE])


def test_a_program_of_ours_is_compiled_where_only_that_is_missing(apt, monkeypatch):
    log, compiled = apt(), []
    monkeypatch.setattr(install, "_compile", lambda: compiled.append(True))
    monkeypatch.setattr(install, "HEADER", Path(__file__))
    peer = Needs(lambda: "is not compiled", (LIBFABRIC,))
    assert install.install([peer]) == []
    assert compiled
    assert not log.exists()


def test_the_header_is_where_the_makefile_looks_for_it():
    makefile = (ROOT / "Makefile").read_text()
    assert f"$(wildcard {HEADER})" in makefile


def test_peers_that_debian_has_can_be_installed():
    assert {p.key for p in every({}) if p.packages} == {"rxd", "srt"}
