# SPDX-License-Identifier: BSD-2-Clause
"""The bench runs, and says what it measured. How fast is nobody's business here."""

import json
import subprocess
import sys

import pytest

from tools.bench.bare import BARE
from tools.bench.method import Unit
from tools.scorecard.stage import ROOT

pytestmark = pytest.mark.netns

CASES = {
    "spray": ("mrc-single,bare-single", Unit.GBPS),
    "raw": ("mrc-raw,bare-raw", Unit.GBPS),
    "bulk256": ("mrc,bare-gso15", Unit.GBPS),
    "ways": ("mrc-verify,mrc-no-cc", Unit.GBPS),
    "mtu1500": ("mrc-1024,bare-gso16", Unit.GBPS),
    "latency": ("bare-ping,mrc-c,mrc-uvloop", Unit.P50),
    "small": ("mrc-c,mrc-python", Unit.MWRITES),
}
EXPERIMENTS = {
    "kernel": ("bare-gso15,single-tunsrc,uring-zc15,uring-recv,zerocopy15,headers-only", Unit.GBPS),
    "steps": ("bare-gso15,steps-window-1m", Unit.GBPS),
    "steps1": ("bare-single,steps1-answers", Unit.GBPS),
    "steps64": ("bare-gso16,steps64-window-1m", Unit.GBPS),
    "srv6": ("bare-raw,srv6-single,srv6-gso15", Unit.GBPS),
    "rings": ("bare-single,packet-single,packet-ring,packet-gso15,ring-gso15,xdp", Unit.GBPS),
    "wake": ("bare-ping,ping-uring,ping-futex,ping-spin-eventfd,ping-spin-both,hand-eventfd",
             Unit.P50),
}  # fmt: skip


def bench(out, *options):
    command = [sys.executable, "-m", "tools.bench", "--quick", "--json", str(out), *options]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=150, check=False
    )


@pytest.mark.slow
def test_a_quick_run_gives_rows_and_ratios(netns, tmp_path):
    assert BARE.exists(), "make build/bench/bare"
    out = tmp_path / "out.json"
    rows = sorted({name for names, _ in CASES.values() for name in names.split(",")})
    done = bench(out, "--only", ",".join(CASES), "--rows", ",".join(rows))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "about" in done.stderr  # how long, before it begins
    document = json.loads(out.read_text())
    assert set(document["groups"]) == set(CASES)
    for name, (names, unit) in CASES.items():
        found = document["groups"][name]
        assert found["wrong"] == {}
        assert set(names.split(",")) <= set(found["rows"])
        for row in names.split(","):
            assert found["rows"][row]["figures"][unit]["median"] > 0, (name, row)
    judged = {t["what"] for g in document["groups"].values() for t in g["targets"]}
    assert "raw uSID / bare raw loop" in judged
    again = bench(tmp_path / "again.json", "--join", str(out))
    assert again.stdout == done.stdout


@pytest.mark.slow
def test_each_experiment_gives_a_ratio_or_is_named(netns, tmp_path):
    out = tmp_path / "out.json"
    rows = sorted({name for names, _ in EXPERIMENTS.values() for name in names.split(",")})
    done = bench(out, "--only", ",".join(EXPERIMENTS), "--rows", ",".join(rows))
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(out.read_text())
    for name, (names, unit) in EXPERIMENTS.items():
        found = document["groups"][name]
        assert found["wrong"] == {}
        base, *others = names.split(",")
        assert found["rows"][base]["ratios"][base]["median"] == 1.0
        for row in others:
            if row in found["missing"]:
                assert found["missing"][row]  # says why
                assert row in done.stdout
                continue
            assert found["rows"][row]["figures"][unit]["median"] > 0, (name, row)
            assert found["rows"][row]["ratios"][base]["median"] > 0, (name, row)


def test_without_a_network_it_runs_as_well(tmp_path):
    out = tmp_path / "out.json"
    done = bench(out, "--only", "mem,alone,evscale", "--rows",
                 "mem-c,mem-python,idle-qp,icrc,import,evs-16-64,evs-4096-64")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(out.read_text())
    targets = {t["what"]: t for g in document["groups"].values() for t in g["targets"]}
    assert targets["4,096 entropy values / 16, writes of 64"]["measured"]["median"] > 0
    assert targets["import mrc brings scapy"]["met"]
    assert not (tmp_path / "out.json").read_text().count("NaN")


def test_what_is_no_result_is_refused(tmp_path):
    (tmp_path / "old.json").write_text('{"schema": 1}')
    done = bench(tmp_path / "out.json", "--join", str(tmp_path / "old.json"))
    assert done.returncode == 4
    assert "no result" in done.stderr
