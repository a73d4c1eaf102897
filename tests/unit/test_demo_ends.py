# SPDX-License-Identifier: BSD-2-Clause
"""However the demo ends, it leaves no file and no process behind, and no traceback."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.demo import __main__ as command
from tools.demo.folder import PREFIX, remove_stale, work_folder

ROOT = Path(__file__).parents[2]


def test_a_folder_is_gone_after_use_and_spared_while_in_use(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with work_folder() as folder:
        (folder / "received").mkdir()
        with work_folder() as other:
            assert folder.is_dir()
            assert other != folder
        assert remove_stale(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_demo_left_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = (
        "import signal\nfrom tools.demo.folder import work_folder\n"
        "with work_folder() as folder:\n    print(folder, flush=True); signal.pause()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as living:
        assert living.stdout is not None
        folder = Path(living.stdout.readline().strip())
        (folder / "random.bin").write_bytes(b"x" * 1000)
        assert remove_stale(tmp_path) == []
        living.kill()
    assert folder.is_dir()
    with work_folder() as mine:
        assert list(tmp_path.iterdir()) == [mine]


def test_stale_folders_are_neither_links_nor_files_nor_other_names(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(precious)
    (tmp_path / f"{PREFIX}file").write_text("not a folder")
    assert remove_stale(tmp_path) == []
    assert len(list(tmp_path.iterdir())) == 3


@pytest.fixture
def demo(tmp_path) -> Iterator[list[str]]:
    """The command line of a short demo over [::1]; it must leave no file and no process behind."""
    yield [sys.executable, "-m", "tools.demo", "--loopback", "--duration", "1.5"]
    assert list(tmp_path.iterdir()) == []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command_line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            assert os.fsencode(tmp_path) not in command_line


@pytest.mark.parametrize(("form", "lines"), [([], 0), ([], 1), ([], 3), (["--json"], 0)])
def test_a_reader_that_leaves_is_no_crash(demo, tmp_path, form: list[str], lines: int):
    """make demo | head -2."""
    with subprocess.Popen(
        [*demo, *form],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(lines):
            assert process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == command.EXIT_UNREAD
    assert said == "" if not form else "Traceback" not in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_demo_that_is_stopped_leaves_nothing(demo, tmp_path, number: signal.Signals):
    with subprocess.Popen(
        demo,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        while "mrc-send" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(number)
        said = process.stdout.read()
    assert process.returncode == command.EXIT_INTERRUPTED
    assert "interrupted" in said
    assert "Traceback" not in said
