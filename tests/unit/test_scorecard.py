# SPDX-License-Identifier: BSD-2-Clause
"""The arithmetic of the scorecard on made-up runs, and what is shown of it."""

import fcntl
import json
import resource
import struct
import subprocess
import sys
import termios
import time
from typing import IO, Any

import pytest

from mrc.fabric import FabricShape, parse_script
from tools.scorecard import draw, judge, report, rows
from tools.scorecard.cases import CASES, Case, quick
from tools.scorecard.peers import every
from tools.scorecard.play import Played
from tools.scorecard.stage import SHAPES, Wire

ALL = frozenset({1, 2, 3, 4})
HOLE = Case("hole", "black hole", 7.0, "fail p1.t1.1@1s..4s")
PEERS = {p.key: p for p in every({})}
SHAPE = SHAPES[9000]
FABRIC = FabricShape(planes=4, t1=1, hosts=2)


def test_planes_that_can_carry_follow_the_script():
    assert HOLE.capacity(FABRIC, ALL) == [(0.0, 4), (1.0, 3), (4.0, 4)]
    assert HOLE.mean_planes(FABRIC, ALL) == pytest.approx((4 * 4 + 3 * 3) / 7)
    assert HOLE.mean_planes(FABRIC, frozenset({1})) == pytest.approx(4 / 7)
    assert HOLE.mean_planes(FABRIC, frozenset({2})) == 1


def test_a_flapping_port_is_there_half_of_the_time():
    flap = next(c for c in CASES if c.key == "flap")
    away = [t for t, planes in flap.capacity(FABRIC, ALL) if planes == 3]
    assert len(away) == flap.seconds == 60
    assert flap.mean_planes(FABRIC, ALL) == 3.5


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.key)
def test_scripts_fit_the_fabric_and_the_time_also_in_a_hurry(case):
    for script in (case, quick(case)):
        faults = (*script.faults, *parse_script(script.before))
        for fault in faults:
            fault.check(FABRIC)
            assert fault.at_ns < script.seconds * 1e9
            assert fault.until_ns is None or fault.until_ns <= script.seconds * 1e9
    assert [f.kind for f in quick(case).faults] == [f.kind for f in case.faults]
    assert quick(case).seconds < case.seconds


def samples(columns: list[str], rates: list[tuple[float, list[float]]]) -> dict[str, Any]:
    """An end's report: for each (until, bit/s of each column), a sample each 5 ms from -1 s."""
    rows, totals, t = [], [0.0] * len(columns), -1000
    for until, bps in rates:
        while t < until * 1000:
            t += 5
            totals = [n + r * 0.005 / 8 for n, r in zip(totals, bps, strict=True)]
            rows.append([(100_000 + t) * 1_000_000, *map(round, totals)])
    return {"columns": ["t_ns", *columns], "samples": rows, "error": ""}


def hole(peer: str, delivered: list[tuple[float, list[float]]], **more) -> Played:
    sent = [(t, [bps[0] / 4 if t not in (2.0, 4.0) else 0.0]) for t, bps in delivered]
    return Played(
        begin_s=100.0,
        end_s=107.0,
        faults=[{"on": True, "t_s": 101.0}, {"on": False, "t_s": 104.0}],
        cpu_s={"sender": 2.0, "receiver": 1.0},
        wire=Wire(1_500_000_000, 1, 0),
        receiver=samples(["delivered", "duplicates"], [(t, [b[0], 0]) for t, b in delivered]),
        sender=more.get("sender", {"columns": [], "samples": []}),
        ports=samples(["tx_plane1"], sent),
    )


def test_figures_of_a_hole_that_is_found_after_a_second():
    full = SHAPE.plane_bps * PEERS["mptcp"].payload_share(SHAPE)
    script = [(1.0, [4 * full]), (2.0, [0.0]), (4.0, [3 * full]), (7.0, [4 * full])]
    found = judge.figures(PEERS["mptcp"], HOLE, SHAPE, FABRIC, hole("mptcp", script))
    assert found["gap_ms"] == pytest.approx(1005)
    assert found["to70_ms"] == found["to95_ms"] == pytest.approx(1000)
    assert found["after_fault_bps"] == pytest.approx(3 * full, rel=1e-6)
    assert found["full_ms"] == pytest.approx(0, abs=6)
    assert found["out_ms"] == pytest.approx(0, abs=6)
    assert found["reuse_ms"] == pytest.approx(5, abs=6)
    delivered = (4 + 0 + 2 * 3 + 3 * 4) * full / 8
    assert found["goodput_bps"] == pytest.approx(delivered * 8 / 7, rel=1e-3)
    assert found["sent_per_delivered"] == pytest.approx(1.5e9 / delivered, rel=1e-3)
    assert found["cpu_s_per_gb"] == pytest.approx(3e9 / delivered, rel=1e-3)
    assert found["share_of_capacity"] == pytest.approx(22 / 25, rel=1e-3)


def test_nothing_survives_of_the_only_path():
    full = SHAPE.plane_bps * PEERS["tcp"].payload_share(SHAPE)
    script = [(1.0, [full]), (4.0, [0.0]), (5.0, [0.0]), (7.0, [full])]
    found = judge.figures(PEERS["tcp"], HOLE, SHAPE, FABRIC, hole("tcp", script))
    assert found["surviving_bps"] == 0
    assert (found["to70_ms"], found["to95_ms"]) == (None, None)
    assert found["full_ms"] == pytest.approx(1000)
    assert found["gap_ms"] == pytest.approx(4005)


def test_a_peer_cannot_have_more_than_its_framing_leaves():
    for shape in SHAPES.values():
        for peer in PEERS.values():
            assert 0.7 < peer.payload_share(shape) < 1
    assert PEERS["mrc"].payload_share(SHAPE) == pytest.approx(0.967, abs=1e-3)
    assert PEERS["mrc"].payload_share(SHAPES[1500]) == pytest.approx(0.881, abs=1e-3)


def document(**more) -> dict[str, Any]:
    base = {
        "started": "today",
        "where": {"planes": 4, "rate_mbit": 500, "kernel": "Linux", "cores": 2, "runs": 3,
                  "tcp_congestion": "cubic"},
        "records": [],
        "peers": {"mrc": "MRC", "srt": "SRT"},
        "cases": {"hole": "black hole", "reorder": "delays"},
        "missing": {},
        "not_run": {},
        "unverified": [],
    }  # fmt: skip
    return base | more


def record(peer: str, **result) -> dict[str, Any]:
    run = {"peer": peer, "mtu": 9000}
    figures = {"goodput_bps": 1e9, "gap_ms": 1.0, "errors": [], **result}
    samples = {"t_s": [0.0, 1.0], "delivered": [1e9, 1e9]}
    return {"scenario": "hole", "run": run, "faults": [], "samples": samples, "result": figures}


def test_medians_know_that_never_is_later_than_late():
    records = [record("mrc", to95_ms=v) for v in (10.0, None, 30.0)]
    assert rows.rows(document(records=records))[0]["to95_ms"] == 30.0
    records = [record("mrc", to95_ms=v) for v in (10.0, None, None)]
    page = report.markdown(document(records=records))
    assert "| to 95 % of what survives, ms | never |" in page


def test_what_is_missing_or_failed_is_named():
    failed = {"scenario": "hole", "run": {"peer": "srt", "mtu": 9000}, "failed": "it hung"}
    page = report.markdown(
        document(
            records=[record("mrc"), failed],
            missing={"srt": "not installed"},
            not_run={"reorder": "no delay"},
            unverified=["1 of 2 messages are wrong"],
        )
    )
    for words in ("SRT: missing, not installed", "delays: not run, no delay", "it hung",
                  "SRT (1 of 1 failed)", "1 of 2 messages are wrong"):  # fmt: skip
        assert words in page


def test_scorecards_of_parts_join_to_one(tmp_path):
    base = document(schema=1, missing={"srt": "not installed"}, not_run={"reorder": "no delay"})
    parts = [base | {"records": [record("mrc", to95_ms=v)]} for v in (10.0, 20.0, None)]
    parts.append(base | {"records": [record("srt")], "missing": {}})
    files = []
    for number, part in enumerate(parts):
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(json.dumps(part))
    done = scorecard("--join", *map(str, files), "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    joined = json.loads((tmp_path / "scorecard.json").read_text())
    assert rows.rows(joined)[0]["to95_ms"] == 20.0
    assert joined["missing"] == {}
    assert joined["not_run"] == {"reorder": "no delay"}


def test_a_signal_does_not_cut_a_long_report_short():
    program = (
        "from tools.scorecard.ends.common import Stop, ready, report\n"
        "stop = Stop(); ready(); report(text='x' * 1_000_000)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-u", "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        wait_until_full(process.stdout)
        process.terminate()
        assert len(json.loads(process.stdout.read())["text"]) == 1_000_000


def wait_until_full(pipe: IO[str]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        waiting = struct.unpack("i", fcntl.ioctl(pipe.fileno(), termios.FIONREAD, b"\0" * 4))[0]
        # Of a page that was read in part the rest is not used again.
        if waiting > fcntl.fcntl(pipe.fileno(), fcntl.F_GETPIPE_SZ) - resource.getpagesize():
            return
        time.sleep(0.01)
    raise AssertionError("the pipe does not fill")


def test_a_missing_peer_is_named_in_every_output(tmp_path):
    given = document(schema=1, records=[record("mrc")], missing={"srt": "not installed"})
    given["quick"] = True
    (tmp_path / "1.json").write_text(json.dumps(given))
    done = scorecard("--join", str(tmp_path / "1.json"), "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "SRT: missing, not installed" in done.stdout
    assert json.loads((tmp_path / "scorecard.json").read_text())["missing"] == given["missing"]
    assert "SRT: missing, not installed" in (tmp_path / "scorecard.md").read_text()
    assert draw.possible()  # make test installs it: the figure is part of what is tested
    assert "SRT: missing, not installed" in (tmp_path / "hole-9000.svg").read_text()


def test_what_is_no_scorecard_is_not_joined(tmp_path):
    file = tmp_path / "x.json"
    for text in ("[]", '{"schema": 2, "records": []}', "{"):
        file.write_text(text)
        done = scorecard("--join", str(file), "--out", str(tmp_path))
        assert done.returncode == 4
        assert "is no scorecard" in done.stderr


def scorecard(*arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "tools.scorecard", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cases", "storm"], "there is no 'storm'"),
        (["--peers", "mrc,quic"], "there is no 'quic'"),
        (["--mtu", "1400"], "9000, 1500"),
        (["--runs", "0"], "1 to 100"),
        (["--mrc", "cc=fixed"], "no JSON"),
    ],
)
def test_a_wrong_command_line_is_refused(arguments, words):
    done = scorecard(*arguments)
    assert done.returncode == 1
    assert words in done.stderr


def test_the_document_is_strict_json():
    json.dumps(document(records=[record("mrc", to95_ms=None)]), allow_nan=False)


def test_a_case_that_only_degrades_has_all_planes():
    lossy = next(c for c in CASES if c.key == "loss-one")
    assert lossy.mean_planes(FABRIC, ALL) == 4
