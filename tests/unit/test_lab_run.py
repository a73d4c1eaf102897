# SPDX-License-Identifier: BSD-2-Clause
"""Scenarios in a lab: what is started, what is refused, what reports become. None is built."""

import json
import subprocess
import sys
import tomllib
from dataclasses import replace

import pytest

from mrc.cli.exits import Exit
from mrc.cli.lab import main
from mrc.fabric import FabricError, library
from mrc.fabric.record import Record
from mrc.fabric.scenario import Case, load_scenario, parse_scenario
from mrc.fabric.ways import Pair, path_numbers
from mrc.lab.crew import Crew, Programs
from mrc.lab.jobs import check_scenario, jobs_of, profile_text
from mrc.lab.load import Load, kept_up, load_now, used
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


def test_in_mode_rc_each_queue_pair_has_a_path_and_so_programs_of_its_own():
    one = case(BULK + 'qps = 3\nsrc = "h2"\ndst = "h1"\n[transport]\nmode = "rc"\n')
    jobs = jobs_of(one)
    assert [job.flows[0].name for job in jobs] == ["h2>h1#1", "h2>h1#2", "h2>h1#3"]
    assert {job.both for job in jobs} == {("--mode", "rc")}
    assert all("-P 1 " in " ".join(job.send) for job in jobs)
    spec = spec_of(one.shape)
    texts = [profile_text(one, spec, job) for job in jobs]
    drawn = [path_numbers(one, Pair(0, 1, one.works[0], k))[0] for k in range(3)]
    assert [f"value = {49152 + n}\n" in t for n, t in zip(drawn, texts, strict=True)] == [True] * 3
    assert all(text.count("[[ev]]") == 1 for text in texts)
    for job, text in zip(jobs, texts, strict=True):
        assert profile_text(one, spec, job, back=True) == text


@pytest.mark.parametrize("more", ["trim", "fault"])
def test_where_packets_may_be_cut_both_ends_are_raw(more):
    text = HEAD.replace('"50mbit"', '"50mbit"\ntrim = true') if more == "trim" else HEAD
    fault = '[[fault]]\ndo = "trim"\ntarget = "ev1"\nvalue = "1%"\n' if more == "fault" else ""
    one = parse_scenario(text + BULK + fault, "x.toml").main
    (job,) = jobs_of(one)
    assert job.both == ("--backend", "raw")
    profile = profile_text(one, spec_of(one.shape), job)
    assert 'format = "srv6"' in profile
    assert 'dst = "fcbb:bbbb:' in profile


def test_on_a_lab_a_scenario_may_be_otherwise():
    text = HEAD + BULK + '[lab.fabric]\nrate = "5mbit"\n[lab.expect]\n"x" = "errors == 0"\n'
    here, there = (parse_scenario(text, "x.toml", fabric=name) for name in ("lab", "sim"))
    assert (here.main.shape.rate_bps, there.main.shape.rate_bps) == (5_000_000, 50_000_000)
    assert (len(here.expect), len(there.expect)) == (1, 0)
    again = parse_scenario(text, "x.toml", {"fabric": {"rate": "9mbit"}}, "lab")
    assert again.main.shape.rate_bps == 9_000_000
    with pytest.raises(FabricError, match="lab: holds what is otherwise on a lab: fabric, tr"):
        parse_scenario(HEAD + BULK + "[lab.fabrik]\nplanes = 3\n", "x.toml")


def test_all_scenarios_of_the_package_can_be_read_for_each_fabric_and_run_where_they_say():
    for name in library.names():
        for fabric in ("sim", "lab"):
            scenario = load_scenario(library.find(name), fabric=fabric)
            if fabric == "lab" and "lab" in scenario.on:
                check_scenario(scenario)


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
        (BULK + '[transport]\ntimeout = "1ms"\n', "transport.timeout"),
        (BULK + "[transport]\nsteady = true\n", "transport.steady"),
        (BULK + "[transport]\nmin_active = 2\n", "transport.min_active"),
        (BULK + '[transport]\nloss_rule = "first"\n', "transport.loss_rule"),
        (BULK + "[transport]\nevs = 8\n", "8 EVs of 4 paths"),
        (BULK + "outstanding = 2000\n", "at most 1024"),
        (
            BULK + '[[compare]]\nid = "x"\nname = "x"\ntransport.steady = true\n',
            "the case x cannot be run in a lab: transport.steady",
        ),
        (BULK + 'both = true\n[[fault]]\ndo = "rate"\ntarget = "h1"\nvalue = "1kbit"\n', "8kbit"),
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
    bad.write_text(HEAD + BULK + "[transport]\nsteady = true\n")
    assert main(["run", str(good), str(bad)]) == Exit.USAGE
    assert "transport.steady" in capsys.readouterr().err
    assert main(["run", "ring-allreduce-loss"]) == Exit.USAGE
    assert "is for the emulated fabric (python -m mrc.sim) only" in capsys.readouterr().err
    assert main(["run", "--list"]) == Exit.OK
    assert "t1-switch-reboot" in capsys.readouterr().out


def test_a_profile_holds_the_paths_of_the_scenario_and_its_spares():
    one = case(BULK + "[transport]\nevs = 4\nbackups = 1\n")
    text = profile_text(one, spec_of(one.shape), jobs_of(one)[0])
    assert text.count("[[ev]]") == 4
    assert text.count("backup = true") == 1
    found = tomllib.loads(text)
    assert [ev.get("backup", False) for ev in found["ev"]] == [False, False, False, True]
    assert found["plane"] == [{"number": p, "interface": f"plane{p}"} for p in (1, 2)]
    none = case(BULK + '[transport]\ndeny = ["plane1"]\n')
    left = tomllib.loads(profile_text(none, spec_of(none.shape), jobs_of(none)[0]))
    assert {ev["port"] for ev in left["ev"]} == {2}
    assert [plane["number"] for plane in left["plane"]] == [2]


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


def test_of_a_program_that_failed_what_it_said_counts():
    send, recv = Said(), Said()
    for said, sends in ((send, True), (recv, False)):
        said.take(10**9, b'{"event": "start", "data": {}}')
        said.take(2 * 10**9, interval(1.0, 300, sends=sends))
    end = {"streams": [{"sender": {"socket": 1, "bytes": 900}}]}
    send.take(2 * 10**9, json.dumps({"event": "end", "data": end}).encode())
    one = case(BULK)
    told = Story(one, [Ends(jobs_of(one)[0], Track(send), Track(recv))], 10**9, 1.0)
    assert told.count("h1>h2", 1.0) == 300


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


# -- the machine -------------------------------------------------------------------------------


def ran(share: float | None, busy: float) -> Record:
    run = {"case": "main", "machine_busy": 1.0, "process_busy": busy}
    result = {"share_of_capacity": share}
    return Record(scenario="x", on="lab", run=run, flows=(), samples=(), result=result)


@pytest.mark.parametrize(
    ("share", "busy", "met"),
    [
        (0.05, 0.97, False),
        (0.95, 1.0, True),  # nothing was held back
        (0.3, 0.5, True),  # whatever it was, not the machine
        (None, 1.0, True),
    ],
)
def test_a_run_that_the_machine_held_back_is_not_met(share, busy, met):
    checks = kept_up([ran(share, busy)])
    assert (checks == ()) == met
    assert all(not check.met and "this machine kept up" in check.words for check in checks)


def test_how_busy_the_machine_was_is_read_from_the_kernel(tmp_path):
    tasks = tmp_path / "7" / "task"
    for thread in ("7", "9"):
        (tasks / thread).mkdir(parents=True)

    def counters(idle: int, ran_ms: int, waited_ms: int) -> Load:
        (tmp_path / "stat").write_text(f"cpu  1 2 3 {idle} 5 6\ncpu0 1\n")
        (tasks / "7" / "schedstat").write_text(f"{ran_ms}000000 {waited_ms}000000 3\n")
        (tasks / "9" / "schedstat").write_text("1 1 1\n")
        return load_now([7, 8], tmp_path)

    before, after = counters(100, 100, 20), counters(150, 500, 420)
    assert before.tasks[7, 7] == pytest.approx(0.12)
    after = replace(after, at_s=before.at_s + 1.0)
    assert used(before, after, 2) == {"machine_busy": 0.75, "process_busy": 0.8}
