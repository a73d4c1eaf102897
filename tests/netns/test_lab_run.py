# SPDX-License-Identifier: BSD-2-Clause
"""mrc-lab run: a scenario in real namespaces, its record, and what is left of it: nothing."""

import os
import signal
import subprocess
from pathlib import Path as FilePath

import pytest

from mrc.fabric.record import load
from mrc.lab import why_unavailable
from mrc.lab.bpf import OBJECT
from tests.needs import skip_or_fail

from .programs import installed
from .users import ROOT, make_user
from .world import wait_for

pytestmark = pytest.mark.netns

SCENARIO = """\
name = "a spine dies and comes back"
[fabric]
planes = 2
t1 = 2
rate = "20mbit"
queue = "64KB"
[[work]]
kind = "bulk"
bytes = "64KB"
[[fault]]
do = "fail"
target = "p1.t1.2"
at = "1s"
until = "2s"
[run]
duration = "4s"
sample = "20ms"
[expect]
"it is used while it lives, and again" = "ev(2, 0.3, 1) > 0 and reuse_ms != never"
"the others go on" = "goodput(1.5, 2) > 0.5 * goodput(0.5, 1)"
"no QP fails" = "errors == 0"
"""
START_S = 30.0


@pytest.fixture
def user(netns, tmp_path):
    made = make_user(tmp_path, installed("mrc-lab"))
    yield made
    assert made.names() == []
    assert list((tmp_path / "mrc-lab").iterdir()) == []


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text(SCENARIO)
    return path


def in_hosts(holder: int) -> list[int]:
    """Processes that were started in the hosts of a lab."""
    found = []
    for entry in FilePath("/proc").iterdir():
        try:
            environ = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"MRC_NETLAB={holder}".encode() in environ:
            found.append(int(entry.name))
    return found


def test_a_spine_that_fails_and_heals(user, scenario, tmp_path):
    kept = tmp_path / "run.json"
    said = user.run("run", str(scenario), "--json", str(kept))
    assert "ok  it is used while it lives" in said
    assert "met: " in said
    record = load(kept.read_text())
    assert (record.on, record.run["seed"], record.run["failures"]) == ("lab", 1, [])
    assert [(m.what, m.on, m.paths) for m in record.faults] == [
        ("fail p1.t1.2", True, (2,)),
        ("end of fail p1.t1.2", False, (2,)),
    ]
    times = [mark.t_s for mark in record.faults]
    assert all(due <= t < due + 0.5 for due, t in zip((1.0, 2.0), times, strict=True))
    assert record.result["goodput_bps"] < record.run["capacity_bps"] * 1.05
    assert record.flows[0].bytes > 0
    assert any(event.after == "assumed_bad" and event.ev == 2 for event in record.events)


def test_an_expectation_that_is_not_met_has_its_code(user, scenario):
    text = SCENARIO.partition("[expect]")[0]
    scenario.write_text(text + '[expect]\n"fast" = "goodput_bps > 1e12"\n')
    said = user.run(
        "run", str(scenario), "--set", 'run.duration="500ms"', "--set", "fault=[]", code=2
    )
    assert "NOT fast" in said


ONE_PORT_LEFT = """\
name = "seven of eight ports are down, and are seen to be"
[fabric]
planes = 8
t1 = 1
rate = "20mbit"
queue = "100KB"
[transport]
window = "80KB"
[[work]]
kind = "bulk"
bytes = "64KB"
{faults}
[run]
duration = "1500ms"
sample = "20ms"
[expect]
"the last one carries all" = "goodput(0.8, 1.4) > 0.7 * 19.4e6"
"nothing is lost in the others" = "count('lost', 0.8, 1.4) == 0"
"""


def test_programs_follow_the_carriers_of_their_ports(user, tmp_path):
    """Of eight paths two stay in use however bad they are (D.3): not where the carrier is lost."""
    fault = '[[fault]]\ndo = "down"\ntarget = "h1.port{}"\nat = "500ms"\n'
    path = tmp_path / "x.toml"
    path.write_text(ONE_PORT_LEFT.format(faults="".join(fault.format(n) for n in range(1, 8))))
    assert "met: " in user.run("run", str(path))


MESSAGES = """\
name = "messages, some of them later"
[fabric]
planes = 2
t1 = 2
rate = "20mbit"
queue = "64KB"
[[work]]
kind = "pair"
name = "first"
both = true
bytes = "64KB"
count = 12
[[work]]
kind = "pair"
name = "later"
bytes = "32KB"
count = 6
start = "1500ms"
[run]
duration = "30s"
until = "done"
sample = "20ms"
"""


def test_messages_end_a_run_and_late_ones_are_late(user, tmp_path):
    """In a user namespace, with a figure: the run of an ordinary user."""
    if error := why_unavailable(userns=True):
        skip_or_fail(str(error))
    path, kept, figure = (tmp_path / name for name in ("m.toml", "m.json", "m.svg"))
    path.write_text(MESSAGES)
    argv = ["run", str(path), "--userns", "--json", str(kept), "--figure", str(figure)]
    user.run(*argv)
    record = load(kept.read_text())
    assert record.run["failures"] == []
    flows = {flow.flow: flow for flow in record.flows}
    assert {name: flow.bytes for name, flow in flows.items()} == {
        "h1>h2": 12 << 16,
        "h2>h1": 12 << 16,
        "later:h1>h2": 6 << 15,
    }
    assert flows["h1>h2"].start_s < 0.5
    assert 1.4 < flows["later:h1>h2"].start_s < 5
    last = record.samples[-1].t_s
    assert flows["later:h1>h2"].end_s <= record.run["finish_s"] + 1e-9 <= last + 2e-9
    assert last < 30
    assert "<svg" in figure.read_text()


def test_late_bulk_begins_when_it_is_due_and_stops(user, scenario, tmp_path):
    kept = tmp_path / "run.json"
    work = '[[work]]\nkind = "bulk"\nname = "guest"\nstart = "1s"\nstop = "2s"\nbytes = "16KB"\n'
    scenario.write_text(SCENARIO.partition("[[fault]]")[0] + work + '[run]\nduration = "3s"\n')
    user.run("run", str(scenario), "--json", str(kept))
    flow = next(flow for flow in load(kept.read_text()).flows if flow.work == "guest")
    assert 0.9 < flow.start_s < 2.5
    assert flow.end_s - flow.start_s <= 1.0 + 1e-6
    assert flow.bytes > 0


def test_go_back_n_on_one_path_beside_mrc(user, scenario, tmp_path):
    kept = tmp_path / "run.json"
    rc = '[[compare]]\nid = "rc"\nname = "rc"\ntransport.mode = "rc"\n'
    head = SCENARIO.partition("[[fault]]")[0]
    scenario.write_text(head + '[run]\nduration = "2s"\n' + rc)
    user.run("run", str(scenario), "--json", str(kept))
    record = load(kept.read_text())
    used = [
        [bool(count) for count in one.samples[-1].evs or ()] for one in (record, record.compare[0])
    ]
    assert used == [[True] * 4, [True]]
    assert all(one.result["errors"] == 0 for one in (record, record.compare[0]))


def test_a_queue_that_cuts_is_heard_of_by_the_senders(user, scenario, tmp_path):
    if not OBJECT.exists():
        skip_or_fail("no tc program for trims: no clang")
    kept = tmp_path / "run.json"
    text = SCENARIO.partition("[[work]]")[0].replace('"64KB"', '"32KB"\nhosts = 3\ntrim = true')
    work = '[[work]]\nkind = "incast"\ndst = "h3"\nbytes = "64KB"\noutstanding = 32\n'
    more = '[transport]\nwindow = "100KB"\ncc = "fixed"\n[run]\nduration = "2s"\n'
    scenario.write_text(text + work + more)
    user.run("run", str(scenario), "--json", str(kept))
    result = load(kept.read_text()).result
    assert result["errors"] == 0
    assert result["trimmed"] > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_leaves_nothing(user, scenario, number):
    command = [*user.command, "run", str(scenario), "--set", 'run.duration="60s"', "--name", "r"]
    with subprocess.Popen(
        command, cwd=ROOT, env=user.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as run:
        try:
            wait_for(lambda: user.names() == ["r"], "the lab is up")
            holder = user.lab("r")["holder"]
            wait_for(lambda: len(in_hosts(holder)) == 2, "its programs run")
            os.kill(run.pid, number)
            _, err = run.communicate(timeout=START_S)
        finally:
            run.kill()
    if number == signal.SIGINT:
        assert run.returncode == 130
        assert err.decode() == "mrc-lab: interrupted by SIGINT\n"
    wait_for(lambda: user.names() == [], "the lab is gone")
    wait_for(lambda: in_hosts(holder) == [], "its programs are gone")


def test_a_run_behind_a_script_does_not_mind_its_ctrl_c(user, scenario, tmp_path):
    """What a script starts with & has SIGINT ignored, and so has all that is started in turn."""
    kept = tmp_path / "run.json"
    behind = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]
    command = [*behind, *user.command, "run", str(scenario), "--json", str(kept), "--name", "r"]
    with subprocess.Popen(
        command, cwd=ROOT, env=user.env, stdout=subprocess.DEVNULL, start_new_session=True
    ) as run:
        try:
            wait_for(lambda: user.names() == ["r"], "the lab is up")
            holder = user.lab("r")["holder"]
            wait_for(lambda: len(in_hosts(holder)) == 2, "its programs run")
            os.killpg(run.pid, signal.SIGINT)
            run.wait(START_S)
        finally:
            run.kill()
    assert run.returncode == 0
    record = load(kept.read_text())
    assert record.run["failures"] == []
    assert record.result["errors"] == 0
    assert user.names() == []
    assert in_hosts(holder) == []
