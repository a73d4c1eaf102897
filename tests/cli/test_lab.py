# SPDX-License-Identifier: BSD-2-Clause
"""The command line of mrc-lab: what is understood, what is refused and how. Nothing is built."""

import pytest

from mrc.cli.exits import CliError
from mrc.cli.lab import main
from mrc.cli.labfault import given_faults, given_pair
from mrc.cli.labparser import FAULTS, lab_parser
from mrc.cli.labshow import happened, healed
from mrc.fabric import FabricError


def faults(*argv: str) -> list[str]:
    return [str(f) for f in given_faults(lab_parser().parse_args(argv))]


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        (["fail", "p1.t1.2"], ["fail p1.t1.2"]),
        (["fail", "p1.t1.2", "plane3@1s..2s"], ["fail p1.t1.2", "fail plane3@1s..2s"]),
        (["fail", "--visible", "h1.port2"], ["down h1.port2"]),
        (["fail", "all", "--for", "20ms"], ["fail all@0s..20ms"]),
        (["loss", "ev7=5%"], ["loss ev7=5%"]),
        (["loss", "ev7", "ev8@1s", "300ppm"], ["loss ev7=300ppm", "loss ev8=300ppm@1s"]),
        (["loss", "ev7:1%", "ev8", "5%"], ["loss ev7=1%", "loss ev8=5%"]),
        (["delay", "p1.t1.1", "2ms", "--for", "1s"], ["delay p1.t1.1=2ms@0s..1s"]),
        (["rate", "p1.t0.a->t1.1", "100mbit"], ["rate p1.t0.a->t1.1=100mbit"]),
        (["flap", "h1.port1", "1s", "--silent"], ["flap h1.port1=1s silent"]),
        (["reboot", "p1.t1.2", "2s"], ["reboot p1.t1.2=2s"]),
    ],
)
def test_faults_as_they_are_said(argv, wanted):
    assert faults(*argv) == wanted


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["loss", "ev7"], "loss needs a value: loss TARGET=5%"),
        (["fail", "spine1"], "names are like all, plane1"),
        (["loss", "5%"], "names nothing"),
        (["fail", "ev1@2s..3s", "--for", "1s"], "--for and an end"),
        (["reboot", "h1", "2s"], "only switches reboot"),
    ],
)
def test_faults_that_make_no_sense(argv, says):
    with pytest.raises(FabricError, match=says):
        faults(*argv)


def test_every_fault_has_a_verb_with_targets_in_its_help(capsys):
    for kind in FAULTS:
        with pytest.raises(SystemExit) as ended:
            lab_parser().parse_args([kind, "--help"])
        assert ended.value.code == 0
        text = capsys.readouterr().out
        assert "p1.t0.a--t1.2" in text
        assert "TARGET" in text


def test_pairs():
    assert given_pair("h1-h3") == (0, 2)
    for wrong in ("h1", "h1-h1", "h0-h2", "1-2"):
        with pytest.raises(FabricError, match="two hosts"):
            given_pair(wrong)


@pytest.fixture
def empty(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("MRC_LAB", raising=False)


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        ([], 1, "required: VERB"),
        (["fail"], 1, "required"),
        (["up", "--rate", "fast"], 1, "fast"),
        (["up", "--ecn"], 1, "need a --rate"),
        (["up", "--delay", "10us"], 1, "--delay: 10us is outside 100us..10s"),
        (["fly"], 1, "'fail', 'loss', 'corrupt'"),
        (["up", "--hosts", "1"], 1, "--hosts: 1 is outside 2..200"),
        (["up", "--t0", "5"], 1, "--t0 5: some"),
        (["up", "--name", "a/b"], 1, "no name for a lab"),
        (["up", "--rate", "1gbit", "--ecn", "9KB"], 1, "no range"),
        (["exec", "h1"], 1, "no command"),
        (["exec", "h1", "--", "true"], 1, "no lab is up: mrc-lab up"),
        (["fail", "p1.t1.1"], 1, "no lab is up"),
        (["status", "--name", "x"], 1, "no lab named x"),
        (["heal", "--name", "x"], 1, "no lab named x"),
        (["down", "--all", "--name", "x"], 1, "exclude each other"),
        (["down", "--name", "a/b"], 1, "no name for a lab"),
    ],
)
def test_refusals_have_a_sentence_and_a_code(empty, capsys, argv, code, says):
    assert main(argv) == code
    said = capsys.readouterr().err
    assert says in said
    assert "Traceback" not in said


def test_where_help_is_found_stands_on_a_line_of_its_own(empty, capsys):
    assert main(["fly\nnow"]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("mrc-lab: argument VERB: invalid choice: 'fly")
    assert second == "Try 'mrc-lab --help'."


def test_a_fault_command_speaks_of_its_own_faults_only(capsys):
    events = [
        {"number": n, "what": what, "on": True, "due_ns": 0, "done_ns": 10**6}
        for n, what in ((1, "flap h1.port1=1s"), (2, "fail plane2"))
    ]
    happened({"numbers": [2, 3], "happened": events}, ["fail plane2", "fail plane3@1s"])
    assert capsys.readouterr().out == (
        "fail plane2: in force after 1.0 ms\nfail plane3@1s: to come\n"
    )


def test_nothing_to_do_is_no_error(empty, capsys):
    assert main(["status"]) == 0
    assert capsys.readouterr().out == "no lab is up\n"
    assert main(["down"]) == 0
    assert capsys.readouterr().err == "mrc-lab: no lab is up\n"
    assert main(["down", "--all"]) == 0
    assert main(["down", "--name", "x"]) == 0
    assert capsys.readouterr().err == "mrc-lab: there is no lab named x\n"


def test_a_heal_says_what_it_drops_and_what_is_still_to_come(capsys):
    flap = {"what": "flap h1.port1=1s", "on": False, "from_s": 5.0, "until_s": None}
    event = {"what": "fail plane2"}
    healed({"happened": [event], "dropped": [flap], "waiting": []}, "all")
    assert capsys.readouterr().out == (
        "end of fail plane2\ndropped before it began: flap h1.port1=1s in 5 s\n"
    )
    healed({"happened": [], "dropped": [], "waiting": [flap]}, "h1")
    assert capsys.readouterr().out == (
        "nothing was wrong within h1\n"
        "still to come: flap h1.port1=1s in 5 s (heal without a target drops it, too)\n"
    )


def test_the_usage_error_is_ours():
    with pytest.raises(CliError):
        lab_parser().parse_args(["fly"])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("loss ev7 150%", "loss: '150%' is more than 100%"),
        ("loss ev7 -5%", "loss: '-5%' is not a share"),
        ("loss ev7 5", "loss: '5' is not a share"),
        ("loss ev7 much", "loss: 'much' is not a share"),
        ("loss ev7 5%@3s", "the time stands behind the target: loss ev7@3s 5%"),
        ("loss ev7 5% --for 0s", "--for: 0s is outside 1ns.."),
        ("loss ev7 5% --for -1s", "--for: '-1s' is not a time"),
        ("loss ev7 5% --pair h1", "two hosts, such as h1-h2"),
        ("loss", "Try 'mrc-lab loss --help'"),
        ("delay ev7 -5ms", "delay: '-5ms' is not a time"),
        ("rate ev7 fast", "rate: 'fast' is not a rate"),
        ("fail p1.t1.1 --visable", "unrecognized arguments: --visable"),
        ("fail p1.t1.1@3s@4s", "'3s@4s' is not a time"),
        ("heal @3s", "a heal is now"),
        ("heal p1.t1.1@3s", "a heal is now"),
        ("exec h1 --name lab true", "options such as --name stand before the host"),
        ("down --all --name lab", "--all and --name exclude each other"),
        ("up --planes 0", "--planes: 0 is outside 1..14"),
        ("up --planes many", "--planes: 'many' is not a number"),
        ("up --hosts 99999999999999999999", "--hosts: 99999999999999999999 is outside 2..200"),
        ("up --t0 -1", "--t0: -1 is outside 0..200"),
        ("up --mtu 1000", "--mtu: 1000 is outside 1420..65535"),
        ("up --rate 1bit", "--rate: 1bit is outside 1mbit..10tbit"),
        ("up --rate -5mbit", "--rate: '-5mbit' is not a rate"),
        ("up --rate 1mbit --queue 1", "--queue 1: less than a packet of --mtu 9500"),
        ("up --rate 1mbit --queue 0", "--queue: 0 is outside 1..2G bytes"),
        ("up --rate 1mbit --ecn 60KB..20KB", "60KB..20KB: no room between the two"),
        ("up --planes 14 --t1 200 --hosts 200", "562800 cables: a lab has 4096 at most"),
        ("up --planes 8 --t1 64 --hosts 64 --t0 2", "a lab has 500000 at most"),
        ("run", "which scenario?"),
        ("run no.toml", "no.toml: there is no such file"),
        ("run /", "is a folder"),
        ("run --list ev-loss", "--list shows what there is"),
        ("run ev-loss --json /no/such/x", "there is no folder /no/such"),
        ("run ev-loss --json /", "--json /: is a folder"),
        ("run ev-loss --figure /no/such/x.svg", "there is no folder /no/such"),
        ("run ev-loss --seed x", "--seed"),
        (
            "run ev-loss --set fault.0.do=delay --set fault.0.value=20s",
            "a lab keeps packets for 10s at most",
        ),
    ],
)
def test_a_wrong_argument_gets_a_sentence_that_says_what_to_do(empty, capsys, line, says):
    assert main(line.split()) == 1
    said = capsys.readouterr()
    assert says in said.err
    first, *rest = said.err.splitlines()
    assert first.startswith("mrc-lab: ")
    assert rest in ([], [f"Try 'mrc-lab {line.split()[0]} --help'."])
    assert said.out == ""


def test_no_name_is_not_the_default_name(empty, capsys):
    for verb in ("up", "status", "down", "heal"):
        assert main([verb, "--name", ""]) == 1
        assert "'' is no name for a lab" in capsys.readouterr().err


def test_help_of_heal_offers_no_values_and_no_times(capsys):
    with pytest.raises(SystemExit):
        lab_parser().parse_args(["heal", "--help"])
    text = capsys.readouterr().out
    assert "p1.t0.a--t1.2" in text
    assert "TARGET=VALUE" not in text
