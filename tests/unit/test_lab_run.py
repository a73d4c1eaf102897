# SPDX-License-Identifier: BSD-2-Clause
"""Scenarios in a lab: what is started, what is refused, what reports become. None is built."""

import json
import subprocess
import sys

import pytest

from mrc.cli.exits import Exit
from mrc.cli.lab import main
from mrc.fabric import FabricError
from mrc.fabric.scenario import Case, parse_scenario
from mrc.lab.crew import Crew, Programs
from mrc.lab.jobs import check_scenario, jobs_of, profile_text
from mrc.lab.plan import spec_of
from mrc.lab.reports import Ends, Said, Story, Track, events_of, samples_of, sums_of

HEAD = """\
name = "x"
[fabric]
planes = 2
t1 = 2
hosts = 4
rate = "50mbit"
[run]
duration = "1s"
"""
BULK = '[[work]]\nkind = "bulk"\nbytes = "64KB"\n'


def case(text: str) -> Case:
    return parse_scenario(HEAD + text, "x.toml").main


def test_a_bulk_is_one_pair_of_programs():
    (job,) = jobs_of(case(BULK + 'outstanding = 32\nstop = "400ms"\nstart = "100ms"\n'))
    assert (job.src, job.dst, job.port) == (0, 1, 18515)
    words = " ".join(job.send)
    assert "-s 65536 -P 1" in words
    assert "--depth 32" in words
    assert "-t 0.300000" in words
    assert [flow.name for flow in job.flows] == ["h1>h2"]


def test_flows_of_both_directions_and_several_queue_pairs_have_the_names_of_the_emulation():
    (job,) = jobs_of(case(BULK + "both = true\nqps = 2\n"))
    assert [flow.name for flow in job.flows] == ["h1>h2#1", "h1>h2#2", "h2>h1#1", "h2>h1#2"]
    assert [flow.forward for flow in job.flows] == [True, True, False, False]
    assert "--bidir" in job.send


def test_an_incast_and_a_permutation_are_several_jobs_with_a_port_each():
    text = '[[work]]\nkind = "incast"\ndst = "h4"\n'
    text += '[[work]]\nkind = "permutation"\nname = "p"\nshift = 1\n'
    jobs = jobs_of(case(text))
    assert [(job.src, job.dst) for job in jobs[:3]] == [(0, 3), (1, 3), (2, 3)]
    assert [(job.src, job.dst) for job in jobs[3:]] == [(0, 1), (1, 2), (2, 3), (3, 0)]
    assert len({job.port for job in jobs}) == len(jobs)
    assert jobs[5].flows[0].name == "p:h3>h4"


def test_messages_of_a_pair_are_counted():
    (job,) = jobs_of(case('[[work]]\nkind = "pair"\ncount = 10\nqps = 4\n'))
    assert "-n 3" in " ".join(job.send)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[work]]\nkind = "ring-allreduce"\n', "ring-allreduce: its messages wait for each"),
        ('[[work]]\nkind = "all-to-all"\n', "all-to-all: its messages wait for each"),
        (BULK + '[transport]\nmode = "rc"\n', "mrc-send speaks MRC only"),
        (BULK + '[transport]\ntimeout = "1ms"\n', "transport.timeout"),
        (BULK + "[transport]\nsteady = true\n", "transport.steady"),
        (BULK + "[transport]\nmin_active = 2\n", "transport.min_active"),
        (BULK + '[transport]\nloss_rule = "first"\n', "transport.loss_rule"),
        (BULK + "[transport]\nevs = 8\n", "8 EVs of 4 paths"),
        (BULK + "outstanding = 2000\n", "at most 1024"),
        (BULK + '[[compare]]\nid = "rc"\nname = "rc"\ntransport.mode = "rc"\n', "the case rc "),
    ],
)
def test_what_a_lab_cannot_do_is_refused_by_name(text, says):
    with pytest.raises(FabricError, match=says):
        check_scenario(parse_scenario(HEAD + text, "x.toml"))


def test_the_command_refuses_before_anything_starts(tmp_path, monkeypatch, capsys):
    def build(*_: object, **__: object) -> None:
        raise AssertionError("a lab is built")

    monkeypatch.setattr("mrc.lab.run.launch", build)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text(HEAD + BULK)
    bad.write_text(HEAD + BULK + '[transport]\nmode = "rc"\n')
    assert main(["run", str(good), str(bad)]) == Exit.USAGE
    assert "speaks MRC only" in capsys.readouterr().err
    assert main(["run", "ring-allreduce-loss"]) == Exit.USAGE
    assert "is not for a lab" in capsys.readouterr().err
    assert main(["run", "--list"]) == Exit.OK
    assert "t1-switch-reboot" in capsys.readouterr().out


def test_a_profile_holds_the_paths_of_the_scenario_and_its_spares():
    one = case(BULK + "[transport]\nevs = 4\nbackups = 1\n")
    text = profile_text(one, spec_of(one.shape), jobs_of(one)[0].pair)
    assert text.count("[[ev]]") == 4
    assert text.count("backup = true") == 1
    assert text.rstrip().endswith("backup = true")
    none = case(BULK + '[transport]\ndeny = ["plane1"]\n')
    assert "port = 1" not in profile_text(none, spec_of(none.shape), jobs_of(none)[0].pair)


# -- reports -----------------------------------------------------------------------------------


def interval(end: float, got: int, *, sends: bool, lost: int = 0) -> bytes:
    stream = {"socket": 1, "sender": sends, "bytes": got, "snd_cwnd": 5000}
    path = {
        "ev": 49152, "plane": 2, "state": "ASSUMED_BAD" if lost else "GOOD", "backup": False,
        "bytes_sent": got, "packets_lost": lost, "ecn_marks": 0, "trims": 0,
    }  # fmt: skip
    event = {"t": end, "ev": 49152, "plane": 2, "from": "GOOD", "to": "SKIP", "reason": "ecn"}
    data = {
        "streams": [stream],
        "sum": {"end": end},
        "paths": [path],
        "mrc": {
            "packets_sent": 1, "packets_retransmitted": lost, "timeouts": 0,
            "duplicates_received": 0, "ev_events": [event] if lost else [],
        },
    }  # fmt: skip
    return json.dumps({"event": "interval", "data": data}).encode()


def story(one: Case) -> Story:
    """Second 0 of the run is 10 s; the programs' own is 10.1 s; the second line came late."""
    send, recv = Said(), Said()
    for said, sends in ((send, True), (recv, False)):
        said.take(10_000_000_000, b'{"event": "start", "data": {}}')
        said.take(10_200_000_000, interval(0.1, 100, sends=sends))
        said.take(10_350_000_000, interval(0.2, 300, sends=sends, lost=3 if sends else 0))
    ends = Ends(jobs_of(one)[0], Track(send), Track(recv))
    return Story(one, [ends], 10_000_000_000, 0.4)


def test_what_was_reported_becomes_samples_on_one_clock():
    told = story(case(BULK))
    samples = samples_of(told, 0.1)
    total = [s for s in samples if s.flow == "total"]
    assert [round(s.t_s, 6) for s in total] == [0, 0.1, 0.2, 0.3, 0.4]
    assert [s.delivered_bytes for s in total] == [0, 0, 100, 400, 400]
    assert [s.lost for s in total] == [0, 0, 0, 3, 3]
    assert total[-1].planes == (0, 400)
    one = [s for s in samples if s.flow == "h1>h2"]
    assert [s.ev_states for s in one] == ["", "", "g", "b", "b"]
    assert one[-1].cwnd_bytes == 5000


def test_sums_and_events_are_in_time_of_the_run():
    told = story(case(BULK))
    (flow,) = sums_of(told, {0: "mrc-send in h1: lost its peer"})
    assert (flow.bytes, flow.errors, flow.end_s) == (400, 1, 0.4)
    assert flow.start_s == pytest.approx(0.1)
    (event,), more = events_of(told)
    assert (event.ev, event.host, event.peer, event.after, more) == (0, 1, 2, "skip", 0)
    assert event.t_s == pytest.approx(0.3)


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'{"event": 1}', b'"x"', b"\xff"])
def test_a_line_that_is_no_report_is_nothing(line):
    said = Said()
    said.take(1, line)
    assert (said.lines, said.ready, said.failed) == ([], False, "")


def test_a_program_that_ends_too_early_is_said_by_name(tmp_path, monkeypatch):
    """A lab of one process and no namespace: the programs are this machine's own."""
    monkeypatch.setattr("mrc.lab.crew.entering", lambda _said, _ns, argv: list(argv))
    fails = (sys.executable, "-c", "import sys; sys.exit('no such thing')")
    waits = (sys.executable, "-c", "import time; time.sleep(60)")
    (job,) = jobs_of(case(BULK))
    with Crew({"holder": 1}, tmp_path, Programs(send=fails, recv=waits)) as crew:
        crew.receive(job, [])
        crew.prepare(job, [])
        with pytest.raises(Exception, match="mrc-send in h1: no such thing"):
            crew.wait_until("all were ready", crew.ready)
        process = crew.receivers[0].process
        assert process.poll() is None
    assert isinstance(process, subprocess.Popen)
    assert process.poll() is not None
