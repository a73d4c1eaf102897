# SPDX-License-Identifier: BSD-2-Clause
"""Faults by mrc-lab: each does what it says to packets and carriers, and ends."""

import json
import subprocess
import time

import pytest

from .world import WAIT_S, wait_for

pytestmark = pytest.mark.netns


def test_a_silent_failure_takes_packets_and_no_carrier(faulty):
    assert "in force" in faulty.run("fail", "p1.t1.1")
    assert faulty.pings(49152) == 0
    assert faulty.pings(49153) == 50
    shown = faulty.run("exec", "h1", "--", "ip", "-j", "link", "show", "plane1")
    assert json.loads(shown)[0]["operstate"] == "UP"
    assert [f["what"] for f in faulty.lab()["faults"]] == ["fail p1.t1.1"]
    assert faulty.run("heal") == "end of fail p1.t1.1\n"
    assert faulty.pings(49152) == 50


def test_a_visible_failure_takes_the_carrier_at_both_ends(faulty):
    faulty.run("fail", "--visible", "h1.port1")
    shown = faulty.run("exec", "h1", "--", "ip", "-j", "link", "show", "plane1")
    assert "NO-CARRIER" in json.loads(shown)[0]["flags"]
    assert faulty.pings(49152) == 0
    faulty.run("heal", "h1.port1")
    assert faulty.pings(49152) == 50


def test_one_direction_of_one_cable(faulty):
    faulty.run("fail", "p2.t1.2->t0.b")
    before = faulty.links()
    assert faulty.pings(49155) == 0
    assert faulty.pings(49153) == 50
    lost = {n: c["lost"] - before[n]["lost"] for n, c in faulty.links().items()}
    assert {name: count for name, count in lost.items() if count} == {"p2.t1.2->t0.b": 50}


def test_loss_takes_about_its_share_and_heals_after_its_time(faulty):
    faulty.run("loss", "ev2", "50%")
    assert 100 < faulty.pings(49154, 400) < 300
    assert faulty.pings(49152, 100) == 100
    faulty.run("heal")
    faulty.run("loss", "ev2", "50%", "--for", "200ms")
    wait_for(lambda: faulty.lab()["faults"] == [], "the loss ends by itself")
    assert faulty.pings(49154, 100) == 100


def test_a_flap_comes_and_goes(faulty):
    faulty.run("flap", "p1.t0.a--t1.1", "200ms")
    states: set[bool] = set()
    deadline = time.monotonic() + WAIT_S
    while len(states) < 2 and time.monotonic() < deadline:
        states.add(faulty.lab()["faults"][0]["on"])
    assert states == {True, False}
    faulty.run("heal")
    assert faulty.pings(49152) == 50


def test_a_switch_reboots_and_forwards_again(faulty):
    faulty.run("reboot", "p1.t0.a", "2s")
    assert faulty.pings(49152) == 0
    assert faulty.lab()["faults"][0]["on"]
    wait_for(lambda: faulty.lab()["faults"] == [], "the switch is back")
    assert faulty.pings(49152) == 50
    assert faulty.pings(49154) == 50


def test_a_rate_is_kept(faulty):
    faulty.run("rate", "p1.t0.a->t1.1", "10mbit")
    shown = faulty.run("status")
    assert "rate p1.t0.a->t1.1=10mbit" in shown
    namespace = faulty.lab()["namespaces"]["p1t0-1"]
    show = ["nsenter", f"--net={namespace}", "tc", "qdisc", "show", "dev", "spine1"]
    assert "rate 10Mbit" in subprocess.run(show, capture_output=True, text=True, check=True).stdout
    faulty.run("heal")
    assert "tbf" not in subprocess.run(show, capture_output=True, text=True, check=True).stdout


def test_what_does_not_exist_is_named(faulty):
    said = faulty.run("fail", "p1.t1.3", code=1)
    assert "there is no spine 3 in plane 1: t1.1 to t1.2" in said
    assert faulty.lab()["faults"] == []
