# SPDX-License-Identifier: BSD-2-Clause
"""The command line is a contract: names, defaults, and what is refused."""

from __future__ import annotations

import contextlib
import io
import json
import os

import pytest

from mrc.cli import files
from mrc.cli.exits import CliError, Exit
from mrc.cli.options import parse_recv, parse_send
from mrc.cli.parser import recv_parser, send_parser, version
from mrc.cli.recv import main as recv_main
from mrc.cli.send import main as send_main
from mrc.dscp import DscpClasses

SEND_CONTRACT = [
    "-p",
    "-s",
    "-t",
    "-n",
    "-P",
    "-e",
    "--sport-base",
    "--ev-profile",
    "--plane-address",
    "--backend",
    "--mtu",
    "--depth",
    "--cc",
    "--window",
    "--train",
    "--imm",
    "--file",
    "--verify",
    "--no-verify",
    "--latency",
    "--sweep",
    "--bidir",
    "-i",
    "--json",
    "--json-stream",
    "--seed",
    "--version",
]
RECV_CONTRACT = [
    "-B",
    "-p",
    "-1",
    "-o",
    "--backend",
    "--ev-profile",
    "--plane-address",
    "--idle-timeout",
    "-i",
    "--json",
    "--json-stream",
    "--version",
]


def option_names(parser):
    return {name for action in parser._actions for name in action.option_strings}


def test_every_promised_option_exists():
    assert set(SEND_CONTRACT) <= option_names(send_parser())
    assert set(RECV_CONTRACT) <= option_names(recv_parser())


def test_defaults_of_the_sender():
    chosen = parse_send(["fd00::2"])
    assert (chosen.host, chosen.common.port, chosen.size) == ("fd00::2", 18515, 1 << 20)
    assert (chosen.seconds, chosen.messages, chosen.parallel) == (10.0, None, 1)
    assert (chosen.sport_base, chosen.mtu, chosen.depth) == (49152, 4096, 16)
    assert parse_send(["h", "-s", "2G"]).depth == 2
    assert (chosen.cc, chosen.window, chosen.train, chosen.verify) == ("nscc", None, 0, True)
    assert (chosen.common.backend, chosen.common.interval) == ("auto", 1.0)
    assert chosen.common.output == "human"


def test_defaults_of_the_receiver():
    chosen = parse_recv([])
    assert (chosen.common.port, chosen.one_off, chosen.directory) == (18515, False, None)
    assert (chosen.common.bind, chosen.idle_timeout, chosen.idle_timeout_given) == (
        None,
        30.0,
        False,
    )


@pytest.mark.parametrize("parse", [parse_recv, lambda words: parse_send(["h", *words])])
def test_addresses_of_planes(parse):
    words = ["--plane-address", "2=fd00:2::1", "--plane-address", "1=fd00:1::1"]
    planes = parse(words).common.plane_addresses
    assert {n: str(a) for n, a in planes.items()} == {1: "fd00:1::1", 2: "fd00:2::1"}
    assert parse([]).common.plane_addresses == {}
    for wrong, why in (
        ("1", "is not PLANE=ADDRESS"),
        ("x=fd00::1", "is not PLANE=ADDRESS"),
        ("1=x", "'x' is not an IPv6 address"),
        ("32=fd00::1", "plane 32 is not in 1..31"),
        ("1=fe80::1", "link-local"),
        ("2=fd00::1", "a plane is given twice"),
    ):
        with pytest.raises(CliError, match=why) as caught:
            parse([*words, "--plane-address", wrong])
        assert caught.value.code == Exit.USAGE


def test_the_whole_contract_at_once(tmp_path):
    profile = tmp_path / "evs.toml"
    profile.write_text("")
    chosen = parse_send(
        f"[fe80::1%eth0] -p 1 -s 64k -n 10k -P 4 -e 128 --ev-profile {profile} --backend raw "
        "--mtu 2048 --depth 32 --cc fixed --window 1M --train 8 --imm --no-verify -i 0.5 "
        "--json-stream --seed 0x10".split()
    )
    assert chosen.host == "fe80::1%eth0"
    assert (chosen.size, chosen.messages, chosen.seconds) == (65536, 10_000, None)
    assert (chosen.train, chosen.window, chosen.seed) == (8, 1 << 20, 16)
    assert (chosen.verify, chosen.imm, chosen.common.output) == (False, True, "json-stream")
    received = parse_recv(
        f"-B [fd00::2] -p 2 -1 -o {tmp_path} --idle-timeout 5 -i 2 --json".split()
    )
    assert (received.common.bind, received.one_off) == ("fd00::2", True)
    assert (received.idle_timeout, received.common.output) == (5.0, "json")


@pytest.mark.parametrize(
    ("args", "size", "seconds"),
    [
        ("h --latency", 64, 10.0),
        ("h --sweep 64:4k", 4096, 1.0),
        ("h --sweep 1:2 -n 5", 2, None),
        ("h --train auto -t 500ms", 1 << 20, 0.5),
    ],
)
def test_derived_defaults(args, size, seconds):
    chosen = parse_send(args.split())
    assert (chosen.size, chosen.seconds) == (size, seconds)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("", "HOST"),
        ("h -s 0", "outside"),
        ("h -s 3G", "outside"),
        ("h -s x", "not a size"),
        ("h -n 0", "not a count"),
        ("h -t 0", "outside"),
        ("h -t 5 -n 5", "not allowed"),
        ("h -P 0", "outside"),
        ("h -e 5000", "outside"),
        ("h -p 0", "outside"),
        ("h -p x", "number"),
        ("h --mtu 1500", "invalid choice"),
        ("h --train 17", "'17' is not auto or 1..16"),
        ("h --train 0", "'0' is not auto or 1..16"),
        ("h --train x", "'x' is not auto or 1..16"),
        ("h -s 3G", "3G is outside 1..2G bytes"),
        ("h --window 1", "1 is outside 256..1T bytes"),
        ("h -t 0", r"0 is outside 0\.05..31536000 seconds"),
        ("h -e 5000", "5000 is outside 1..4096$"),
        ("h -n 99999999999999999999", "outside 1..9223372036854775808$"),
        ("h --cc bbr", "invalid choice"),
        ("h --cc none --window 1M", "--cc none"),
        ("h --window 1k", "--mtu"),
        ("h --sport-base 65530", "65535"),
        ("h --backend xdp", "choice"),
        ("h --verify --no-verify", "not allowed"),
        ("h --json --json-stream", "not allowed"),
        ("h --latency --bidir", "exclude"),
        ("h --sweep 8:4", "MIN"),
        ("h --sweep 8", "range"),
        ("h --sweep 1:4 -s 4", "-s"),
        ("h --sweep 1:3G", "at most"),
        ("h -i 0.001", "0.01"),
        ("h --file /nonexistent/x", "No such file"),
        ("h --file /dev/null", "is a character device, not a regular file"),
        ("h --file /etc", "is a directory, not a regular file"),
        ("h --file /etc/hostname -t 3", "whole files"),
        ("h --file /etc/hostname --no-verify", "always verified"),
        ("h --seed -1", "outside"),
        ("h --ev-profile /nonexistent.toml", "No such file"),
        ("h --ev-profile=", "--ev-profile: nothing is given"),
        ("h --bind=", "-B/--bind: nothing is given"),
        ("h --start-psn 0x1000000", "outside"),
        ("h -s 1G --depth 64", "limit"),
        ("h -t 1 --fail p1.t1.1@5s", "fail p1.t1.1@5s begins when the run is over, -t 1$"),
        ("h --heal @10s", "heal all@10s begins when the run is over, -t 10$"),
        ("h --frobnicate", "unrecognized"),
        ("h --idle 3", "unrec"),
        ("[::1]:18515", r"has a port with it: give it as ::1 -p 18515$"),
        ("h2:5000", r"HOST 'h2:5000' has a port with it: give it as h2 -p 5000$"),
        ("h2:", "give it as h2 -p PORT$"),
    ],
)
def test_what_the_sender_refuses(args, words):
    with pytest.raises(CliError, match=words) as caught:
        parse_send(args.split())
    assert caught.value.code == Exit.USAGE


@pytest.mark.parametrize(
    ("text", "host"),
    [("::1", "::1"), ("[::1]", "::1"), ("h2", "h2"), ("fe80::1%eth0", "fe80::1%eth0"),
     ("[fe80::1%eth0]", "fe80::1%eth0"), ("::", "::")],
)  # fmt: skip
def test_forms_of_a_host(text, host):
    assert parse_send([text]).host == host


@pytest.mark.parametrize("option", ["--file", "--ev-profile"])
def test_a_fifo_is_refused_and_not_waited_for(tmp_path, option):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(CliError, match=f"{option} {fifo}: is a FIFO") as caught:
        parse_send(["h", option, str(fifo)])
    assert caught.value.code == Exit.USAGE


def test_a_pipe_of_the_shell_may_be_an_ev_profile():
    """`--ev-profile <(command)` is a FIFO too, but one that has a writer, and no name."""
    near, far = os.pipe()
    with os.fdopen(near), os.fdopen(far):
        assert parse_send(["h", "--ev-profile", f"/dev/fd/{near}"]).common.ev_profile


def test_a_file_that_was_replaced_by_a_fifo_is_not_waited_for(tmp_path):
    """Between the command line and its turn; and a device is not opened at all."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(CliError, match="is a FIFO") as caught:
        files._open(str(fifo))
    assert caught.value.code == Exit.FAILED


def test_a_fault_may_be_late_where_messages_end_the_run():
    assert parse_send(["h", "-n", "5", "--fail", "p1.t1.1@60s"]).faults


@pytest.mark.parametrize(
    "args",
    [
        "-o /nonexistent",
        "-o /proc",
        "-p 65536",
        "extra",
        "--idle-timeout 0",
        "-t 10",
        "--idle-timeout x",
    ],
)
def test_what_the_receiver_refuses(args):
    with pytest.raises(CliError) as caught:
        parse_recv(args.split())
    assert caught.value.code == Exit.USAGE


def test_two_files_of_one_name_are_refused(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x").write_text(folder)
    with pytest.raises(CliError, match="same name"):
        parse_send(["h", "--file", f"{tmp_path}/a/x", "--file", f"{tmp_path}/b/x"])


@pytest.mark.parametrize("main", [send_main, recv_main])
@pytest.mark.parametrize("form", ["", "--json", "-J", "--json-stream"])
def test_usage_errors_keep_to_the_form_asked_for(main, form, capsys):
    assert main([*form.split(), "-i", "frobnicate"]) == Exit.USAGE
    out, err = capsys.readouterr()
    assert err.splitlines()[1].startswith("Try 'mrc-")
    if form in ("--json", "-J"):
        assert "frobnicate" in json.loads(out)["error"]
    elif form:
        assert json.loads(out)["event"] == "error"
    else:
        assert out == ""


@pytest.mark.parametrize("parser", [send_parser(), recv_parser()])
def test_help_names_exit_codes_examples_and_every_option(parser):
    text = parser.format_help()
    for word in ("exit codes:", "examples:", "environment:", "NO_COLOR", "130"):
        assert word in text
    for name in option_names(parser):
        assert name in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_the_seed_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("MRC_SEED", "0x1234")
    assert parse_send(["h"]).seed == 0x1234
    assert parse_send(["h", "--seed", "5"]).seed == 5
    monkeypatch.setenv("MRC_SEED", "soon")
    with pytest.raises(CliError, match="MRC_SEED='soon'"):
        parse_send(["h"])


def test_who_pumps_may_come_from_the_environment(monkeypatch):
    monkeypatch.delenv("MRC_PUMP", raising=False)
    assert parse_send(["h"]).common.pump == "loop"
    monkeypatch.setenv("MRC_PUMP", "thread")
    assert parse_send(["h"]).common.pump == "thread"
    assert parse_recv([]).common.pump == "thread"
    assert parse_send(["h", "--pump", "loop"]).common.pump == "loop"
    monkeypatch.setenv("MRC_PUMP", "both")
    with pytest.raises(CliError, match="MRC_PUMP='both' is not loop or thread"):
        parse_recv([])
    monkeypatch.setenv("MRC_PUMP", "")
    assert parse_recv([]).common.pump == "loop"


def test_version_is_printed():
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as caught:
        parse_send(["--version"])
    assert caught.value.code == 0
    assert out.getvalue() == f"mrc-send {version()}\n"


def test_dscp_classes():
    assert parse_send(["h"]).common.dscp is None
    for parse, argv in ((parse_send, ["h"]), (parse_recv, [])):
        dscp = parse([*argv, "--dscp", "trimmable=10,control=0"]).common.dscp
        assert dscp == DscpClasses(trimmable=10, control=0)
        with pytest.raises(CliError, match="CLASS=DSCP"):
            parse([*argv, "--dscp", "data=10"])
        with pytest.raises(CliError, match="control: 64 is not a number"):
            parse([*argv, "--dscp", "control=64"])


def test_a_profile_that_does_not_end_is_not_read_to_its_end():
    """Its content is looked at later, by a reader that has a limit."""
    assert parse_recv(["--ev-profile", "/dev/zero"]).common.ev_profile == "/dev/zero"
