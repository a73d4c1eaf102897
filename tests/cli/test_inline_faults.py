# SPDX-License-Identifier: BSD-2-Clause
"""Faults on the command line of mrc-send, outside of any lab."""

import dataclasses
from dataclasses import asdict

import pytest

from mrc.cli import inlab, send
from mrc.cli.exits import CliError
from mrc.cli.options import parse_recv, parse_send
from mrc.fabric import FabricShape
from mrc.lab.plan import FabricSpec


@pytest.fixture(autouse=True)
def outside(monkeypatch):
    monkeypatch.delenv("MRC_LAB_FOLDER", raising=False)
    monkeypatch.delenv("MRC_LAB_HOST", raising=False)


def test_they_are_kept_in_the_order_given():
    argv = "::1 --loss ev7:5% --fail p1.t1.2@3s --heal @5s --down h1.port1@2s..4s --flap h2=1s"
    assert [str(f) for f in parse_send(argv.split()).faults] == [
        "loss ev7=5%",
        "fail p1.t1.2@3s",
        "heal all@5s",
        "down h1.port1@2s..4s",
        "flap h2=1s",
    ]
    assert parse_send(["::1"]).faults == ()


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ("--loss ev7", "loss needs a value"),
        ("--fail nowhere", "names are like"),
        ("--fail p1.t1.1@5s..3s", "ends before it begins"),
        ("--reboot h1:2s", "only switches reboot"),
        ("--heal p1.t1.1", "when\\? p1.t1.1@5s ends it"),
        ("--loss ev7:150%", "'150%' is more than 100%"),
    ],
)
def test_what_makes_no_sense_is_said_at_once(argv, says):
    with pytest.raises(CliError, match=says):
        parse_send(["::1", *argv.split()])


@pytest.mark.parametrize(
    ("argv", "idle"),
    [
        ("--heal @5s", ["heal all@5s"]),
        ("--fail p1.t1.2@3s --heal @5s", []),
        ("--fail p1.t1.2@3s --heal p1.t1.1@5s", ["heal p1.t1.1@5s"]),
        ("--fail p1.t1.2@6s --heal @5s", ["heal all@5s"]),
        ("--fail p1.t1.2@3s..4s --heal @5s", ["heal all@5s"]),
        ("--fail p1.t1.2@3s --heal @5s --heal plane1@6s", ["heal plane1@6s"]),
        ("--heal @6s --fail p1.t1.2@3s --heal p1.t1.2@5s", ["heal all@6s"]),
        ("--loss ev1:5% --heal @5s", []),
    ],
)
def test_a_heal_that_ends_nothing_of_the_run_is_known(argv, idle):
    script = parse_send(["::1", *argv.split()]).faults
    found = inlab.idle_heals(script, FabricShape(planes=2, t1=2, hosts=2), (0, 1))
    assert [str(fault) for fault in found] == idle


def test_outside_of_a_lab_they_are_refused_and_the_way_in_is_shown(capsys):
    assert send.main(["::1", "--fail", "p1.t1.2@3s"]) == 1
    said = capsys.readouterr().err
    assert "--fail breaks a part of a lab" in said
    assert "mrc-lab exec h1 -- mrc-send" in said


def test_the_help_names_them(capsys):
    with pytest.raises(SystemExit):
        parse_send(["--help"])
    text = capsys.readouterr().out
    for option in ("--fail", "--down", "--loss TARGET:5%", "--heal [TARGET]@T"):
        assert option in text


def stand_in_a_lab(monkeypatch, fits=None):
    """In h1 of one with two planes of two spines: four paths to h2."""
    spec = asdict(FabricSpec(planes=2, spines=2))

    def ask(lab, op, **_):
        if op == "status":
            return {"hosts": {"h1": "fd00::1", "h2": "fd00::2"}, "spec": spec}
        return {"file": "x", "window": fits}

    monkeypatch.setattr(inlab, "surroundings", lambda: (None, "h1"))
    monkeypatch.setattr(inlab, "_ask", ask)


@pytest.mark.parametrize(
    ("argv", "strays"),
    [
        ("h2", 0),
        ("h2 -e 4", 0),
        ("h2 -e 9", 5),
        ("h2 -e 4 --sport-base 49153", 1),
        ("h2 -e 4 --sport-base 20000", 4),
        ("h2 -e 9 --backend raw", 0),
    ],
)
def test_evs_without_a_path_of_their_own_are_told_of(monkeypatch, capsys, argv, strays):
    stand_in_a_lab(monkeypatch)
    inlab.send_options(parse_send(argv.split()))
    said = " ".join(capsys.readouterr().err.split())
    assert (f"warning: {strays} of " in said) == (strays > 0)
    assert ("this lab has 4, from --sport-base 49152 on" in said) == (strays > 0)


@pytest.mark.parametrize(
    ("argv", "fits", "window"),
    [
        ("h2", 300_000, 300_000),
        ("h2", None, None),
        ("h2 --window 1M", 300_000, 1 << 20),
        ("h2 --cc none", 300_000, None),
        ("h2 --ev-profile /dev/null", 300_000, None),
        ("h2 --mode rc", 300_000, None),
        ("h2 -e 4", 300_000, None),
        ("h2 --mtu 1024", 100, 1024),
    ],
)
def test_the_window_is_one_the_lab_holds_unless_another_is_asked_for(
    monkeypatch, capsys, argv, fits, window
):
    stand_in_a_lab(monkeypatch, fits)
    assert inlab.send_options(parse_send(argv.split())).window == window
    told = "in flight, which the queues of this lab hold (--window)" in capsys.readouterr().err
    assert told == (fits is not None and window == max(fits, 1024))
    inlab.send_options(parse_send([*argv.split(), "--json"]))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("argv", "profile"),
    [
        ([], "h1-h2.udp"),
        (["--backend", "raw"], "h1-h2.srv6"),
        (["--mode", "rc"], None),
    ],
)
def test_paths_are_those_of_the_lab_unless_others_are_wanted(monkeypatch, argv, profile):
    def ask(lab, op, src=0, dst=0, mode="udp"):
        if op == "status":
            spec = dataclasses.asdict(FabricSpec())
            return {"hosts": {"h1": "fd00::1", "h2": "fd00::2"}, "spec": spec}
        return {"file": f"h{src + 1}-h{dst + 1}.{mode}"}

    monkeypatch.setattr(inlab, "surroundings", lambda: (None, "h1"))
    monkeypatch.setattr(inlab, "_ask", ask)
    assert inlab.recv_options(parse_recv(argv)).common.ev_profile == profile
    assert inlab.send_options(parse_send(["h2", *argv])).common.ev_profile == profile
