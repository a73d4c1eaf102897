# SPDX-License-Identifier: BSD-2-Clause
"""mrc-send and mrc-recv in the hosts of a lab: they know its paths, and break it on request."""

import json
import subprocess

import pytest

from mrc.lab.bpf import OBJECT
from tests.needs import skip_or_fail

from .world import WAIT_S, wait_for

pytestmark = pytest.mark.netns


def test_faults_on_the_command_line_happen_in_time_and_are_reported(served):
    said = served.run(
        *("exec", "h1", "--", "mrc-send", "h2", "-t", "1.5", "-i", "0.5", "--json"),
        *("--fail", "p1.t1.1@300ms", "--heal", "@800ms", "--loss", "ev3:20%@1s"),
    )
    document = json.loads(said[: said.rindex("}") + 1])
    happened = document["end"]["faults"]
    assert [(f["what"], f["on"]) for f in happened] == [
        ("fail p1.t1.1", True),
        ("fail p1.t1.1", False),
        ("loss ev3=20%", True),
    ]
    for fault, due_s in zip(happened, (0.3, 0.8, 1.0), strict=True):
        assert due_s <= fault["t"] == pytest.approx(due_s + fault["late_ms"] / 1e3, abs=2e-3)
    assert [f for i in document["intervals"] for f in i["faults"]] == happened
    bad = [e for e in document["end"]["mrc"]["ev_events"] if e["to"] == "ASSUMED_BAD"]
    assert bad[0]["ev"] == 49152
    assert bad[0]["t"] > 0.3
    assert bad[0]["plane"] == 1
    assert served.lab()["faults"] == []
    lost = {name: c["lost"] for name, c in served.links().items() if c["lost"]}
    assert set(lost) <= {"p1.t0.a->t1.1", "p1.t0.b->t1.1", "p1.t1.1->t0.a", "p1.t1.1->t0.b"} | {
        "p2.t0.a->t1.2"
    }
    assert lost["p2.t0.a->t1.2"] > 0


def test_faults_end_with_the_run_however_it_ends(served):
    argv = [*served.command, "exec", "h1", "--", "mrc-send", "h2", "-t", "60", "--fail", "plane1"]
    sender = subprocess.Popen(argv, env=served.env, stdout=subprocess.DEVNULL)
    wait_for(lambda: any(f["on"] for f in served.lab()["faults"]), "the fault is in force")
    sender.kill()
    sender.wait(WAIT_S)
    wait_for(lambda: served.lab()["faults"] == [], "the fault is over")


@pytest.mark.parametrize("served", [("--backend", "raw")], indirect=True)
def test_raw_takes_the_paths_of_the_lab_and_is_trimmed(served):
    if not OBJECT.exists():
        skip_or_fail("no tc program for trims: no clang")
    served.run("trim", "ev3", "50%")
    argv = "exec h1 -- mrc-send h2 -n 64 --backend raw --json"
    said = served.run(*argv.split())
    paths = json.loads(said[: said.rindex("}") + 1])["end"]["paths"]
    assert [p["plane"] for p in paths] == [1, 2, 1, 2]
    assert [bool(p["trims"]) for p in paths] == [False, False, False, True]
    assert served.links()["p2.t0.a->t1.2"]["trimmed"] >= paths[3]["trims"]


def test_what_a_run_did_not_come_to_is_named(served):
    """A heal of what others broke, and faults that the run did not reach."""
    served.run("fail", "p1.t1.2")
    said = served.run(
        *("exec", "h1", "--", "mrc-send", "h2", "-n", "4", "--json"),
        *("--heal", "@0s", "--fail", "p1.t1.1@60s", "--heal", "@61s"),
    )
    end = json.loads(said[: said.rindex("}") + 1])["end"]
    assert end["faults"] == []
    assert [(f["what"], f["why"]) for f in end["faults_idle"]] == [
        ("heal all", "nothing_to_heal"),
        ("fail p1.t1.1@60s", "run_over"),
        ("heal all@61s", "run_over"),
    ]
    assert [f["what"] for f in served.lab()["faults"]] == ["fail p1.t1.2"]
    text = served.run("exec", "h1", "--", "mrc-send", "h2", "-n", "4", "--heal", "@0s")
    assert "heal all: this run had nothing to heal" in text


def test_an_outage_from_the_start_is_the_longest_gap(served):
    argv = ("mrc-send", "h2", "-t", "0.5", "--json", "--fail", "all@0s..400ms")
    said = served.run("exec", "h1", "--", *argv)
    end = json.loads(said[: said.rindex("}") + 1])["end"]
    assert end["mrc"]["longest_gap_source"] == "receiver"
    assert end["mrc"]["longest_gap_ms"] > 300


def test_headers_of_its_own_answer_every_host(user):
    """Also one under the receiver's T0, to which there are fewer paths."""
    user.run("up", "--planes", "2", "--t1", "2", "--hosts", "4", "--t0", "2")
    receiver = subprocess.Popen(
        [*user.command, "exec", "h3", "--", "mrc-recv", "--backend", "raw"],
        env=user.env,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert receiver.stdout is not None
        assert "listening" in receiver.stdout.readline()
        for host in ("h1", "h2", "h4"):
            said = user.run("exec", host, "--", "mrc-send", "h3", "--backend", "raw", "-n", "8")
            assert "verified: every byte" in said
    finally:
        receiver.terminate()
        receiver.communicate(timeout=WAIT_S)


def test_what_the_lab_does_not_have_is_said_before_anything_is_sent(lab):
    for argv, code, says in (
        (["h2", "--fail", "p1.t1.9"], 1, "there is no spine 9 in plane 1: t1.1 to t1.2"),
        (["h9"], 3, "there is no host h9 in this lab, which has h1 to h2"),
    ):
        assert says in lab.run("exec", "h1", "--", "mrc-send", *argv, code=code)
    assert "there is no host h3 in this lab, which has h1 to h2" in lab.run(
        "exec", "h3", "--", "true", code=1
    )
