# SPDX-License-Identifier: BSD-2-Clause
"""mrc-lab as people use it: labs live on between commands, do what is asked, leave nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

import pytest

from mrc.lab.bpf import OBJECT
from mrc.lab.remote import Remote, entering
from mrc.lab.state import Place

from .conftest import skip_or_fail
from .programs import installed
from .world import WAIT_S, running, wait_for

pytestmark = pytest.mark.netns

ROOT = FilePath(__file__).resolve().parents[2]
SMALL = ("--planes", "2", "--t1", "2")
RUN_S = 30.0


@dataclass
class User:
    """Somebody with a runtime directory, who types commands."""

    env: dict[str, str]
    command: tuple[str, ...]
    prefix: int = 0
    """Words of the command that make another user of this one."""

    def run(self, *argv: str, code: int = 0) -> str:
        done = subprocess.run(
            [*self.command, *argv],
            cwd=ROOT,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    def remote(self, name: str = "lab") -> Remote:
        return Remote(Place(FilePath(self.env["XDG_RUNTIME_DIR"]) / "mrc-lab" / name))

    def lab(self, name: str = "lab") -> dict[str, Any]:
        with self.remote(name) as remote:
            return remote.ask("status")

    def names(self) -> list[str]:
        return [x["name"] for x in json.loads(self.run("status", "--json"))["labs"]]

    def links(self) -> dict[str, dict[str, int]]:
        with self.remote() as remote:
            found: dict[str, dict[str, int]] = remote.ask("links")["links"]
            return found

    def pings(self, sport: int, count: int = 50) -> int:
        """How many of so many datagrams reach h2 by the path of that source port."""
        code = (
            "import socket,time\n"
            f"s=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM); s.bind(('::',{sport}))\n"
            f"[(s.sendto(b'x'*100,('fd00::2',4791)),time.sleep(0.0002)) for _ in range({count})]\n"
        )
        before = self.links()
        python = "/usr/bin/python3" if self.prefix else sys.executable
        argv = entering(self.lab(), "h1", [python, "-c", code])
        subprocess.run([*self.command[: self.prefix], *argv], check=True)
        after = self.links()
        return sum(
            after[f"->h2.port{p}"]["packets"] - before[f"->h2.port{p}"]["packets"] for p in (1, 2)
        )


def make_user(folder: FilePath, *command: str) -> User:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MRC_")}
    return User({**kept, "XDG_RUNTIME_DIR": str(folder)}, command)


@pytest.fixture
def user(netns, tmp_path):
    made = make_user(tmp_path, installed("mrc-lab"))
    yield made
    made.run("down", "--all")
    assert list((tmp_path / "mrc-lab").iterdir()) == []


@pytest.fixture
def lab(user):
    user.run("up", *SMALL)
    return user


@pytest.fixture(scope="module")
def kept(netns, tmp_path_factory):
    made = make_user(tmp_path_factory.mktemp("run"), installed("mrc-lab"))
    made.run("up", *SMALL)
    yield made
    made.run("down")


@pytest.fixture
def faulty(kept):
    """A lab in which nothing is wrong before and after the test."""
    yield kept
    kept.run("heal")


def test_a_lab_lives_on_and_goes_when_told(user, tmp_path):
    said = user.run("up", *SMALL, "--rate", "500mbit", "--queue", "200KB")
    assert "2 planes x 2 spines" in said
    lab = user.lab()
    assert running(lab["keeper"])
    assert running(lab["holder"])
    assert lab["hosts"] == {"h1": "fd00::1", "h2": "fd00::2"}
    assert lab["faults"] == []
    text = user.run("status")
    assert "500 Mbits/sec" in text
    assert "nothing is wrong" in text
    assert "is up: mrc-lab down" in user.run("up", *SMALL, code=1)
    user.run("down")
    assert not running(lab["holder"])
    wait_for(lambda: not running(lab["keeper"]), "the keeper ends")
    assert user.names() == []


def test_a_command_in_a_host_is_like_any_other(lab):
    assert "fd00::1" in lab.run("exec", "h1", "--", "ip", "-6", "addr", "show", "lo")
    lab.run("exec", "h2", "--", "sh", "-c", "exit 7", code=7)
    assert lab.run("exec", "h2", "sh", "-c", "echo $MRC_LAB_HOST") == "h2\n"
    assert "no host 'h3': h1 to h2" in lab.run("exec", "h3", "--", "true", code=1)


def test_a_transfer_crosses_the_lab_by_all_its_paths(served):
    assert "verified" in served.run("exec", "h1", "--", "mrc-send", "h2", "-n", "16")
    links = served.links()
    carried = {n: c["bytes"] for n, c in links.items() if n.startswith("p") and "t0.a->" in n}
    assert len(carried) == 4
    assert min(carried.values()) > 1 << 20


# ---- faults --------------------------------------------------------------------------------------


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


# ---- mrc-send and mrc-recv inside ----------------------------------------------------------------


@pytest.fixture
def served(lab, request):
    """mrc-recv runs in h2 as long as the test."""
    argv = [*lab.command, "exec", "h2", "--", "mrc-recv", *getattr(request, "param", ())]
    receiver = subprocess.Popen(argv, env=lab.env, stdout=subprocess.DEVNULL)
    wait = "until ss -Hltn 'sport = :18515' | grep -q .; do sleep 0.05; done"
    lab.run("exec", "h2", "--", "timeout", "10", "sh", "-c", wait)
    yield lab
    receiver.terminate()
    receiver.wait(WAIT_S)


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


def test_what_the_lab_does_not_have_is_said_before_anything_is_sent(lab):
    for argv, code, says in (
        (["h2", "--fail", "p1.t1.9"], 1, "there is no spine 9 in plane 1: t1.1 to t1.2"),
        (["h9"], 3, "there is no host h9 in this lab: h1 to h2"),
    ):
        assert says in lab.run("exec", "h1", "--", "mrc-send", *argv, code=code)
    assert "there is no host 'h3': h1 to h2" in lab.run("exec", "h3", "--", "true", code=1)


# ---- side by side, and after a crash -------------------------------------------------------------


def test_two_labs_side_by_side(user):
    for name in ("one", "two"):
        user.run("up", *SMALL, "--name", name)
    assert "several labs are up" in user.run("fail", "plane1", code=1)
    user.run("fail", "plane1", "--name", "one")
    assert [f["what"] for f in user.lab("one")["faults"]] == ["fail plane1"]
    assert user.lab("two")["faults"] == []
    user.run("down", "--name", "one")
    assert user.names() == ["two"]


def inhabitant(user: User) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([*user.command, "exec", "h1", "--", "sleep", "1000"], env=user.env)
    name = FilePath(f"/proc/{process.pid}/comm")
    wait_for(lambda: name.read_text().strip() == "sleep", "sleep runs in the host")
    return process


@pytest.mark.parametrize("victims", [("keeper",), ("holder",), ("keeper", "holder")])
@pytest.mark.parametrize("verb", ["status", "down", "up"])
def test_after_a_kill_the_next_command_finds_and_removes_what_is_left(lab, victims, verb):
    found = lab.lab()
    sleeper = inhabitant(lab)
    for victim in victims:
        os.kill(found[victim], signal.SIGKILL)
    said = lab.run(verb, *(SMALL if verb == "up" else ()))
    assert "crash" in said or victims == ("holder",)  # then the keeper may have cleaned up itself
    assert sleeper.wait(WAIT_S) in (-signal.SIGTERM, -signal.SIGKILL)
    wait_for(lambda: not running(found["holder"]), "the holder is gone")
    wait_for(lambda: not running(found["keeper"]), "the keeper is gone")


def test_down_stops_what_runs_in_the_hosts(lab):
    sleeper = inhabitant(lab)
    lab.run("down")
    assert sleeper.wait(WAIT_S) == -signal.SIGTERM


def test_an_interrupted_up_leaves_nothing(user, tmp_path):
    process = subprocess.Popen(
        [*user.command, "up", "--planes", "8", "--t1", "8"], env=user.env, start_new_session=True
    )
    folder = tmp_path / "mrc-lab" / "lab"
    wait_for((folder / "log").exists, "it has begun")
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(RUN_S) in (130, 0)  # 0: it was done in that moment
    if process.returncode == 130:
        assert user.names() == []
        assert "crash" not in user.run("status")


# ---- as an ordinary user -------------------------------------------------------------------------


def test_an_ordinary_user_has_labs_too_beside_those_of_root(user, tmp_path_factory):
    folder = FilePath(f"/tmp/mrc-lab-test-{os.getpid()}")
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)
    nobody = make_user(
        folder,
        *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
        *("/usr/bin/python3", "-B", "-m", "mrc.cli.lab"),
    )
    try:
        trial = [*nobody.command[:-2], "-c", "import mrc.cli.lab"]
        if subprocess.run(trial, cwd=ROOT, env=nobody.env, check=False).returncode:
            pytest.skip("the user nobody cannot run this checkout")
        nobody.prefix = 4
        user.run("up", *SMALL)
        argv = [*nobody.command, "up", *SMALL]
        tried = subprocess.run(
            argv, cwd=ROOT, env=nobody.env, capture_output=True, text=True, check=False
        )
        if tried.returncode == 4:
            skip_or_fail(tried.stderr)
        assert tried.returncode == 0, tried.stderr
        assert nobody.lab()["userns"]
        nobody.run("loss", "p1.t1.1", "100%")
        nobody.run("fail", "--visible", "h1.port2")
        assert nobody.pings(49152) == 0
        assert nobody.pings(49153) == 0
        assert user.pings(49152) == 50
        nobody.run("heal")
        assert nobody.pings(49152) + nobody.pings(49153) == 100
        os.kill(nobody.lab()["keeper"], signal.SIGKILL)
        assert "crash" in nobody.run("status")
        nobody.run("down")
        assert user.names() == ["lab"]
    finally:
        shutil.rmtree(folder)
