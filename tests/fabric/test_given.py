# SPDX-License-Identifier: BSD-2-Clause
"""Mistakes of the command line are not blamed on lines of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc.fabric import FabricError
from mrc.fabric.given import Given

TEXT = """\
name = "x"
[[work]]
kind = "bulk"
[[fault]]
do = "fail"
target = "p1.t1.2"
at = "3s"
[run]
duration = "5s"
[[compare]]
id = "rc"
name = "one path"
transport.mode = "rc"
[lab.fabric]
planes = 2
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.toml"
    path.write_text(TEXT)
    return path


def loaded(path, *changes, seed=None, on="sim"):
    return Given(changes, seed).loaded(path, on)


def test_values_are_as_in_a_file_and_what_is_none_there_is_words(file):
    made = loaded(file, "fabric.rate=1gbit", "work.0.bytes=64KB", "fabric.ecn=true", seed=7)
    shape = made.main.shape
    assert (shape.rate_bps, shape.ecn_lo is not None, made.main.run.seed) == (10**9, True, 7)
    assert made.main.works[0].bytes == 65536
    assert loaded(file, "run.seed=3", seed=7).main.run.seed == 7
    assert loaded(file, "fabric.planes=3", on="lab").main.shape.planes == 3


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("fabric.planez=2", "--set fabric.planez=2: [fabric] planez: unknown key; did you mean"),
        ("fabric.planes=0", "--set fabric.planes=0: [fabric] planes: 0 must be a whole number"),
        ("fabric=5", "--set fabric=5: fabric: must be a table"),
        ("run.duration=1x", "--set run.duration=1x: [run] duration: '1x' is not a time"),
        ("work.0.kind=bulc", "--set work.0.kind=bulc: [work] kind: 'bulc' is not known; did you"),
        ("work.7.bytes=3", "--set work.7.bytes=3: there is no work.7: only work.0"),
        ("work.x.bytes=3", "--set work.x.bytes=3: there is no work.x: only work.0"),
        ("expect.a=gapms < 3", "--set expect.a=gapms < 3: [expect] a: 'gapms < 3': gapms is not"),
        ("verdict={jane}", "--set verdict={jane}: verdict: 'jane': jane is not known; did you"),
        ("foo=1", "--set foo=1: foo: unknown key"),
        ("compare.0.transport.mode=r", "--set compare.0.transport.mode=r: [transport] mode: 'r'"),
        ("lab.fabric.planes=3", "--set lab.fabric.planes=3: what is set is for this run"),
        ("nothing", "--set nothing: KEY=VALUE, such as"),
        ("=3", "--set =3: KEY=VALUE, such as"),
    ],
)
def test_a_value_that_cannot_be(file, change, says):
    with pytest.raises(FabricError) as caught:
        loaded(file, change)
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("run.duration=1s", "x.toml:7: [fault] at: 3s is not before the end of the run, 1s"),
        ("fabric.t1=1", "x.toml:4: [fault]: p1.t1.2: there is no spine 2 in plane 1: only t1.1"),
        ("transport.path_mtu=4095", ""),
    ],
)
def test_a_value_that_does_not_go_with_the_file(file, change, says):
    with pytest.raises(FabricError) as caught:
        loaded(file, "fabric.planes=2", change, seed=3)
    assert says in str(caught.value)
    assert f"--set {change}" in str(caught.value)
    assert "fabric.planes" not in str(caught.value)


def test_several_that_do_not_go_together_are_all_named(file):
    with pytest.raises(FabricError) as caught:
        loaded(file, "fabric.t1=1", "run.duration=2s")
    assert str(caught.value).endswith("(with --set fabric.t1=1 --set run.duration=2s)")


def test_seeds(file):
    with pytest.raises(FabricError, match=r"^--seed -1: \[run\] seed: -1 must be"):
        loaded(file, seed=-1)
    with pytest.raises(FabricError, match=r"^--seed 3: run has a value already"):
        loaded(file, "run=5", seed=3)
    with pytest.raises(FabricError, match=r"^--set fabric.planes.x=3: planes has a value already"):
        loaded(file, "fabric.planes=2", "fabric.planes.x=3")


def test_mistakes_of_the_file_stay_its_own(file):
    file.write_text(TEXT.replace('"3s"', '"soon"'))
    with pytest.raises(FabricError) as caught:
        loaded(file, "fabric.planes=2", seed=3)
    assert str(caught.value) == (
        f"{file}:7: [fault] at: 'soon' is not a time (such as 500us, 20ms, 3s)"
    )
