# SPDX-License-Identifier: BSD-2-Clause
"""``make scorecard`` as users run it, in little time: that it works and adds up, not how fast."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.scorecard.peers import every

pytestmark = pytest.mark.netns

ROOT = Path(__file__).resolve().parents[2]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tools.scorecard", *arguments]


@pytest.fixture(scope="module")
def card(netns, tmp_path_factory):
    """A quick scorecard of the black hole: the document, and its Markdown."""
    out = tmp_path_factory.mktemp("scorecard")
    peers = [p.key for p in every({}) if p.key in ("mrc", "tcp", "mptcp") and not p.missing()]
    which = ["--cases", "hole,reorder", "--peers", ",".join(peers)]
    done = subprocess.run(
        command("--quick", *which, "--out", str(out)),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads((out / "scorecard.json").read_text())
    return peers, document, (out / "scorecard.md").read_text()


def test_every_peer_met_the_same_faults(card):
    peers, document, _ = card
    records = document["records"]
    holes = [r for r in records if r["scenario"] == "hole"]
    assert [r["run"]["peer"] for r in holes] == peers
    for record in holes:
        assert "failed" not in record
        happened = [f["what"] for f in record["faults"]]
        assert happened == ["fail p1.t1.1", "end of fail p1.t1.1"]


def test_what_was_delivered_was_sent_before(card):
    for record in card[1]["records"]:
        result = record["result"]
        assert 0 < result["goodput_bps"] < 2e9
        assert 1 < result["sent_per_delivered"] < 3
        assert result["cpu_s_per_gb"] > 0
        # of the whole run, the gap of its judged part: neither bounds the other
        assert result["resolution_ms"] > 0
        assert result["gap_ms"] > 0
        assert all(math.isfinite(v) for v in result.values() if isinstance(v, float))


def test_one_path_was_all_that_tcp_had(card):
    result = next(r["result"] for r in card[1]["records"] if r["run"]["peer"] == "tcp")
    assert result["surviving_bps"] == 0
    assert result["to70_ms"] is None
    assert result["gap_ms"] > 400  # the hole is there for 750 ms


def test_mrc_verified_its_bytes_and_tells_of_its_paths(card):
    _, document, _ = card
    record = next(r for r in document["records"] if r["run"]["peer"] == "mrc")
    assert document["unverified"] == []
    changed = {(e["plane"], e["to"]) for e in record["events"]}
    assert (1, "ASSUMED_BAD") in changed
    assert record["result"]["errors"] == []


def test_what_the_fabric_cannot_do_is_said(card):
    _, document, page = card
    ran = {r["scenario"] for r in document["records"]}
    assert ran | set(document["not_run"]) == {"hole", "reorder"}
    for key in document["not_run"]:
        assert f"{document['cases'][key]}: not run" in page
    assert "| MRC |" in page


def test_a_missing_peer_is_named_and_the_others_run(netns, tmp_path):
    """A PATH with all the programs there are but SRT's: missing on the screen and in every file."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in ("/usr/local/bin", "/usr/bin", "/usr/sbin", "/bin", "/sbin"):
        for program in Path(folder).iterdir() if Path(folder).is_dir() else ():
            link = programs / program.name
            if program.name != "srt-live-transmit" and not link.is_symlink():
                link.symlink_to(program)
    out = tmp_path / "out"
    done = subprocess.run(
        command("--quick", "--cases", "clean", "--peers", "tcp,srt", "--out", str(out)),
        cwd=ROOT,
        env={**os.environ, "PATH": str(programs)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    words = "SRT: missing, srt-live-transmit is not installed"
    assert "srt is missing: srt-live-transmit is not installed (--install)" in done.stderr
    assert words in done.stdout
    assert words in (out / "scorecard.md").read_text()
    assert words in (out / "clean-9000.svg").read_text()
    document = json.loads((out / "scorecard.json").read_text())
    assert document["missing"] == {"srt": "srt-live-transmit is not installed"}
    assert [r["run"]["peer"] for r in document["records"]] == ["tcp"]


def test_a_folder_that_takes_no_file_is_told_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "out"
    argv = command("--quick", "--cases", "flap", "--out", str(out))
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert str(out.parent) in done.stderr
    assert "Gbit/s" not in done.stderr


def test_an_interrupt_takes_everything_along(netns, tmp_path):
    process = subprocess.Popen(
        command("--cases", "flap", "--peers", "tcp", "--out", str(tmp_path)),
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        # The holder of the fabric, the sampler of its ports, a receiver, a sender.
        started = wait_for_children(process.pid, 4)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=20)[1]
    finally:
        process.kill()
    assert process.returncode == 130
    assert errors.endswith("interrupted; nothing was written\n")
    assert [pid for pid in started if parent(pid) is not None] == []
    assert list(tmp_path.iterdir()) == []


def wait_for_children(pid: int, count: int) -> list[int]:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]
        children = [child for child in found if parent(child) == pid]
        if len(children) >= count:
            return children
        time.sleep(0.05)
    raise AssertionError(f"{count} processes did not start")


def parent(pid: int) -> int | None:
    """None: it is gone, or nobody has asked for its exit code yet."""
    try:
        state, ppid = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return None
    return None if state in "ZX" else int(ppid)
