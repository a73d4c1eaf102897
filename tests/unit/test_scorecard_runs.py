# SPDX-License-Identifier: BSD-2-Clause
"""Who runs where and in which order, on a stage that only takes notes."""

from contextlib import contextmanager

import pytest

from mrc.lab import FabricUnavailableError
from tools.scorecard import report, runs
from tools.scorecard.cases import CASES
from tools.scorecard.peers import every
from tools.scorecard.process import PlayError
from tools.scorecard.stage import SHAPES, Shape

CASE = {c.key: c for c in CASES}
PEER = {p.key: p for p in every({})}


class Notes:
    """Stands for all fabrics: what happened in them, in order."""

    def __init__(self) -> None:
        self.log: list[tuple[str, ...]] = []
        self.shape = SHAPES[9000]
        self.cannot = ""
        self.fails = ""

    @contextmanager
    def stage(self, shape, folder):
        self.shape = shape
        self.log.append(("up", str(shape.mtu)))
        yield self
        self.log.append(("down",))

    def prepare(self, case) -> None:
        if case.key == self.cannot:
            raise FabricUnavailableError("no delay here", "nothing")
        self.log.append(("prepare", case.key))

    def mend(self) -> None:
        self.log.append(("mend",))

    def wait_quiet(self) -> None:
        self.log.append(("quiet",))

    def play(self, stage, peer, case):
        self.log.append((peer.key, case.key))
        if peer.key == self.fails:
            raise PlayError("it hung")


@pytest.fixture
def notes(monkeypatch):
    made = Notes()
    monkeypatch.setattr(runs, "stage", made.stage)
    monkeypatch.setattr(runs, "play", made.play)
    monkeypatch.setattr(runs, "_seen", lambda *_: {"result": {"goodput_bps": 1.0, "gap_ms": 1.0}})
    return made


def carry_out(tmp_path, cases=("hole",), peers=("tcp", "mptcp"), **more):
    plan = runs.Plan(
        peers=tuple(PEER[key] for key in peers),
        cases=tuple(CASE[key] for key in cases),
        shapes=more.pop("shapes", (SHAPES[9000],)),
        runs=more.pop("runs", 1),
        **more,
    )
    return runs.carry_out(plan, tmp_path, lambda text: None)


def test_all_peers_of_a_case_meet_in_one_fabric(notes, tmp_path):
    carry_out(tmp_path, cases=("clean", "hole"))
    after = [("mend",), ("quiet",)]
    for case in ("clean", "hole"):
        at = notes.log.index(("prepare", case))
        assert notes.log[at - 1] == ("up", "9000")
        assert notes.log[at + 1 : at + 8] == [
            ("tcp", case), *after, ("mptcp", case), *after, ("down",)
        ]  # fmt: skip
    assert notes.log.count(("down",)) == 2


def test_nobody_is_always_first(notes, tmp_path):
    whole = carry_out(tmp_path, peers=("tcp", "mptcp", "srt"), runs=3)
    order = [r["run"]["peer"] for r in whole["records"]]
    assert order == ["tcp", "mptcp", "srt", "mptcp", "srt", "tcp", "srt", "tcp", "mptcp"]
    parts = [carry_out(tmp_path, peers=("tcp", "mptcp", "srt"), first=n) for n in range(3)]
    assert [r["run"] for part in parts for r in part["records"]] == [
        r["run"] for r in whole["records"]
    ]


def test_a_peer_that_fails_does_not_end_the_case(notes, tmp_path):
    notes.fails = "tcp"
    records = carry_out(tmp_path)["records"]
    assert records[0]["failed"] == "it hung"
    assert "result" in records[1]


def test_a_case_that_cannot_be_is_named_and_the_next_one_runs(notes, tmp_path):
    notes.cannot = "reorder"
    document = carry_out(tmp_path, cases=("reorder", "hole"))
    assert "no delay here" in document["not_run"]["reorder"]
    assert {r["scenario"] for r in document["records"]} == {"hole"}


def test_a_record_says_when_and_what_was_measured(notes, tmp_path):
    document = carry_out(tmp_path)
    for record in document["records"]:
        assert record["started"] == document["started"]
        assert record["commit"]


def test_who_does_not_fit_the_links_is_left_out_there_and_named(notes, tmp_path):
    shapes = (SHAPES[9000], SHAPES[1500])
    document = carry_out(tmp_path, peers=("tcp", "rxd"), shapes=shapes)
    ran = [(r["run"]["mtu"], r["run"]["peer"]) for r in document["records"]]
    assert ran == [(9000, "tcp"), (9000, "rxd"), (1500, "tcp")]
    (left_out,) = document["unfit"]
    assert (left_out["peer"], left_out["mtu"]) == ("rxd", 1500)
    document |= {"missing": {}, "peers": {"tcp": "TCP", "rxd": "libfabric"}}
    document["cases"] = {"hole": "black hole"}
    assert any(n.startswith("libfabric, MTU 1500: not run, ") for n in report.notes(document))
    assert runs.join([document, document])["unfit"] == [left_out]


def test_what_a_relay_keeps_has_as_many_packets_a_second_at_either_mtu(notes, tmp_path):
    cases, shapes = ("hole", "equal", "reorder"), (SHAPES[9000], SHAPES[1500])
    document = carry_out(tmp_path, peers=("tcp",), cases=cases, shapes=shapes)
    rate = {(r["run"]["mtu"], r["scenario"]): r["run"]["rate_mbit"] for r in document["records"]}
    assert rate == {
        (9000, "hole"): 500, (9000, "equal"): 500, (9000, "reorder"): 500,
        (1500, "hole"): 500, (1500, "equal"): 125, (1500, "reorder"): 125,
    }  # fmt: skip
    per_second = [s.of(CASE["equal"]).rate_mbit / s.path_mtu for s in shapes]
    assert per_second[0] == per_second[1]
    document |= {"missing": {}, "peers": {"tcp": "TCP"}, "cases": {c.key: c.title for c in CASES}}
    told = [sheet.title for sheet in report.sheets(document) if "Mbit/s" in sheet.title]
    assert len(told) == 2
    assert all(title.endswith("planes of 125 Mbit/s, MTU 1500") for title in told)


@pytest.mark.parametrize(("mtu", "fits"), [(1559, False), (1560, True)])
def test_the_datagrams_of_rxd_fit_links_of_1560_bytes(mtu, fits):
    assert (PEER["rxd"].unfit(Shape(mtu, 1024)) == "") is fits
