# SPDX-License-Identifier: BSD-2-Clause
"""What is wanted of MRC, judged by the scorecard itself, and what its exit code makes of it."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tools.scorecard import wanted
from tools.scorecard.cases import CASES
from tools.scorecard.emulated import TITLES, emulate
from tools.scorecard.report import markdown

GOOD = {
    "clean": {"goodput_bps": 1.93e9},
    "loss": {"goodput_bps": 1.90e9},
    "loss-one": {"out_ms": 9.0, "still_share": 0.01, "after_fault_bps": 1.45e9,
                 "late_loss_share": 1e-5},
    "hole": {"gap_ms": 11.0, "to95_ms": 0.0, "full_ms": 44.0},
    "flap": {"share_of_capacity": 0.99},
    "reorder": {"share_of_capacity": 0.99, "spurious_share": 0.0},
}  # fmt: skip
EMULATED = {
    "incast": {"victim_share": 0.99, "jain": 0.99},
    "update": {"stopped_ms": 0.9, "rtt_ms": 2.04, "lost": 10},
}


def run(
    case: str, number: int = 0, mtu: int = 9000, peer: str = "mrc", **figures: Any
) -> dict[str, Any]:
    result = {"goodput_bps": 1e9, "errors": [], **figures}
    return {
        "scenario": case,
        "run": {"peer": peer, "number": number, "mtu": mtu},
        "faults": [],
        "samples": {"t_s": [0.0], "delivered": [0]},
        "result": result,
    }


def document(records: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "started": "today",
        "where": {"planes": 4, "rate_mbit": 500, "kernel": "Linux", "cores": 2, "runs": 1,
                  "tcp_congestion": "cubic"},
        "records": records,
        "peers": {"mrc": "MRC", "tcp": "TCP"},
        "cases": {c.key: c.title for c in CASES},
        "missing": {},
        "not_run": {},
        "unverified": [],
        "quick": False,
        "emulated": {},
        **more,
    }  # fmt: skip


def good(**changed: dict[str, Any]) -> list[dict[str, Any]]:
    """One run of each case, all as wanted but for what is given."""
    figures = {key: {**value, **changed.get(key.replace("-", "_"), {})}
               for key, value in GOOD.items()}  # fmt: skip
    return [run(case, **values) for case, values in figures.items()]


def missed(records: list[dict[str, Any]], **more: Any) -> list[tuple[str, str]]:
    return [(v.case, v.what) for v in wanted.missed(document(records, **more))]


def test_what_is_as_wanted_is_met():
    found = wanted.verdicts(document(good(), emulated=EMULATED))
    assert [v for v in found if v.met is not True] == []
    assert {v.case for v in found} == {*GOOD, *TITLES}


@pytest.mark.parametrize(
    ("case", "figure", "value", "what"),
    [
        ("clean", "goodput_bps", 1.89e9, "goodput"),
        ("loss", "goodput_bps", 1.83e9, "goodput, of clean"),
        ("loss_one", "out_ms", 100.0, "path out of use"),
        ("loss_one", "out_ms", None, "path out of use"),
        ("loss_one", "after_fault_bps", 1.39e9, "goodput with it out"),
        ("loss_one", "late_loss_share", 0.001, "lost later"),
        ("hole", "gap_ms", 20.1, "longest gap"),
        ("hole", "to95_ms", None, "95 % of what is left"),
        ("hole", "full_ms", 201.0, "full rate after the heal"),
        ("flap", "share_of_capacity", 0.89, "of the time-averaged capacity"),
        ("flap", "errors", ["it is in ERR"], "runs with an error of the queue pair"),
        ("reorder", "spurious_share", 0.005, "sent needlessly"),
    ],
)
def test_each_figure_is_judged(case, figure, value, what):
    assert missed(good(**{case: {figure: value}})) == [(case.replace("_", "-"), what)]


def test_a_path_that_is_left_and_taken_up_again_is_still_in_use():
    records = good(loss_one={"out_ms": 9.0, "still_share": 0.3})
    assert [what for _, what in missed(records)] == [
        "load of that path 100 ms after the fault and later"
    ]


def test_the_median_of_the_runs_counts_and_every_run_is_shown():
    runs = [run("hole", n, gap_ms=gap, to95_ms=0.0, full_ms=10.0)
            for n, gap in enumerate((11.0, 12.0, 95.0))]  # fmt: skip
    gap = next(v for v in wanted.verdicts(document(runs)) if v.what == "longest gap")
    assert gap.met is True
    assert gap.found == "12.0 ms (11.0, 12.0, 95)"
    assert missed([*runs[1:], run("hole", 3, gap_ms=96.0, to95_ms=0.0, full_ms=10.0)])


def test_one_error_in_any_run_of_the_flapping_port_is_too_many():
    runs = [run("flap", n, share_of_capacity=0.99) for n in range(2)]
    runs.append(run("flap", 2, share_of_capacity=0.99, errors=["gone"]))
    assert missed(runs) == [("flap", "runs with an error of the queue pair")]


def test_what_was_not_measured_is_neither_met_nor_missed():
    runs = [run("clean", goodput_bps=1.93e9), run("reorder", peer="tcp")]
    found = wanted.verdicts(document(runs, not_run={"hole": "no fabric"}))
    assert [v.what for v in found if v.met] == ["goodput"]
    rest = [v for v in found if not v.met]
    assert {v.case for v in rest} == {"hole", "reorder"}
    assert all(v.met is None and v.found == "not measured" for v in rest)


def test_what_is_relative_to_clean_needs_clean():
    (verdict,) = wanted.verdicts(document([run("loss", goodput_bps=1.9e9)]))
    assert verdict.met is None


def test_rates_follow_the_framing_at_small_packets():
    found = wanted.verdicts(document([run("clean", mtu=1500, goodput_bps=1.76e9)]))
    assert found[0].met is True
    assert found[0].wanted.startswith(">= 1.73")
    assert missed([run("clean", mtu=1500, goodput_bps=1.70e9)])


def test_other_peers_are_not_judged():
    assert missed([run("clean", peer="tcp", goodput_bps=1e6)]) == []


@pytest.mark.parametrize(
    ("key", "figure", "value"),
    [("incast", "victim_share", 0.94), ("incast", "jain", 0.97), ("update", "stopped_ms", 2.05)],
)
def test_the_emulated_fabric_is_judged(key, figure, value):
    figures = {**EMULATED, key: {**EMULATED[key], figure: value}}
    assert [case for case, _ in missed([], emulated=figures)] == [key]


def join(tmp_path, given: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    (tmp_path / "in.json").write_text(json.dumps(given))
    argv = [sys.executable, "-m", "tools.scorecard", "--join", str(tmp_path / "in.json"),
            "--out", str(tmp_path)]  # fmt: skip
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_the_exit_code_says_whether_all_is_met(tmp_path):
    assert join(tmp_path, document(good(), emulated=EMULATED)).returncode == 0
    slow = document(good(clean={"goodput_bps": 1.95e9}, loss={"goodput_bps": 1.80e9}))
    done = join(tmp_path, slow)
    assert done.returncode == 2
    assert "NOT MET" in done.stdout
    assert "NOT MET" in (tmp_path / "scorecard.md").read_text()
    assert "NOT met" in (tmp_path / "loss-9000.svg").read_text()
    judged = json.loads((tmp_path / "scorecard.json").read_text())["wanted"]
    assert [v["case"] for v in judged if v["met"] is False] == ["loss"]


def test_a_quick_run_is_not_judged(tmp_path):
    slow = document(good(clean={"goodput_bps": 1e9}), quick=True)
    done = join(tmp_path, slow)
    assert done.returncode == 0
    assert "is not judged" in done.stdout


def test_a_busy_machine_is_told():
    page = markdown(document([run("clean", goodput_bps=1.7e9, others_share=0.34)]))
    assert "more than 5% of the machine in 1 of 1 runs, up to 34%" in page
    assert "other programs" not in markdown(document([run("clean", others_share=0.01)]))


def test_peers_leave_a_plane_within_a_round_trip_of_the_update():
    found = emulate("update")
    assert 0 < found["stopped_ms"] <= found["rtt_ms"]
    assert found["lost"] > 0


def test_the_scenario_of_the_update_can_fail(monkeypatch, tmp_path):
    """The same port loses its packets silently: nobody is told, the plane is used for longer."""
    from tools.scorecard import emulated

    silent = tmp_path / "silent.toml"
    text = (emulated._HERE / "port-update.toml").read_text()
    assert text.count('do = "down"') == 1
    silent.write_text(text.replace('do = "down"', 'do = "fail"'))
    monkeypatch.setitem(emulated._SCENARIOS, "update", (lambda: silent, emulated._update))
    found = emulate("update")
    assert found["stopped_ms"] > found["rtt_ms"]
