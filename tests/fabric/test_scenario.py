# SPDX-License-Identifier: BSD-2-Clause
"""Scenario files: what they can say, and how their mistakes are named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc.fabric import FabricError, FabricShape
from mrc.fabric.scenario import MAIN, load_scenario, parse_scenario

WHOLE = """\
name = "one of four paths silently black-holed"
claim = "G.4 figures 12, 13: line rate kept"
verdict = "the gap was {gap_ms:.0f} ms"
scaling = "1/100"
on = ["sim"]

[fabric]
planes = 4
t1 = 4
rate = "1gbit"
queue = "100KB"
ecn = true

[transport]
evs = 16
backups = 8
timeout = "20ms"

[[work]]
kind = "bulk"
both = true

[[work]]
kind = "pair"
name = "late"
src = "h2"
dst = "h1"
bytes = "64KB"
count = 7
start = "1s"

[[fault]]
do = "fail"
target = "p1.t1.2"
at = "3s"
until = "5s"

[[fault]]
do = "loss"
target = "ev7"
value = "5%"

[run]
duration = "8s"
seed = 5

[[compare]]
id = "rc"
name = "rc, one path"
transport.mode = "rc"

[[compare]]
name = "no faults"
fault = []

[expect]
"no gap above 20 ms" = "gap_ms <= 20"

[figure]
show = "planes"
"""


def parsed(text=WHOLE, **changes):
    return parse_scenario(text, "x.toml", changes)


def test_a_whole_file():
    scenario = parsed()
    main = scenario.main
    assert (scenario.name, scenario.on) == ("one of four paths silently black-holed", ("sim",))
    assert (main.id, main.run.seed, main.run.duration_ns) == (MAIN, 5, 8 * 10**9)
    shape = main.shape
    assert (shape.rate_bps, shape.queue_bytes, shape.ecn_lo, shape.ecn_hi) == (
        10**9, 102400, 20480, 81920,
    )  # fmt: skip
    assert (main.transport.evs, main.transport.timeout_ns) == (16, 20_000_000)
    assert [work.name for work in main.works] == ["bulk", "late"]
    late = main.works[1]
    assert (late.src, late.dst, late.bytes, late.count, late.start_ns) == (1, 0, 65536, 7, 10**9)
    assert [str(fault) for fault in main.faults] == ["fail p1.t1.2@3s..5s", "loss ev7=5%"]
    assert scenario.expect[0].expression == "gap_ms <= 20"


def test_comparisons_are_laid_over_the_file():
    rc, calm = parsed().compare
    assert (rc.id, rc.name, rc.transport.mode, rc.transport.evs) == ("rc", "rc, one path", "rc", 16)
    assert rc.faults == parsed().main.faults
    assert (calm.id, calm.faults, calm.transport.mode) == ("no_faults", (), "mrc")


def test_changes_are_laid_over_all_of_it():
    scenario = parsed(fabric={"planes": 2}, run={"seed": 9}, work={"1": {"count": 3}})
    assert {case.shape.planes for case in scenario.cases} == {2}
    assert {case.run.seed for case in scenario.cases} == {9}
    assert [work.count for work in scenario.main.works] == [1, 3]


def test_the_shortest_file():
    scenario = parse_scenario('name = "x"\n[[work]]\nkind = "bulk"\n', "x.toml")
    assert scenario.main.shape == FabricShape()
    assert (scenario.compare, scenario.expect, scenario.on) == ((), (), ("sim", "lab"))


def test_hosts_may_be_ranges():
    text = 'name="x"\nfabric={hosts=9}\n[[work]]\nkind="incast"\nhosts=["h1..h3","h9"]\ndst="h9"\n'
    work = parse_scenario(text, "x.toml").main.works[0]
    assert (work.hosts, work.dst) == ((0, 1, 2), 8)


def line_of(words):
    return 1 + next(i for i, line in enumerate(WHOLE.splitlines()) if line.startswith(words))


@pytest.mark.parametrize(
    ("old", "new", "where", "reason"),
    [
        ("planes = 4", "planez = 4", "planes =",
         "[fabric] planez: unknown key; did you mean planes"),
        ("planes = 4", "planes = 0", "planes =", "[fabric] planes: 0 must be a whole number, 1 to"),
        ("planes = 4", "planes = true", "planes =", "[fabric] planes: True must be a whole"),
        ('"1gbit"', '"fast"', "rate =", "[fabric] rate: 'fast' is not a rate"),
        ('"1gbit"', "1000", "rate =", "[fabric] rate: 1000 must be a rate such as"),
        ('"100KB"', '"10"', "[fabric]", "[fabric]: queue_bytes = 10"),
        ("ecn = true", "ecn = 1", "ecn", "[fabric] ecn: 1 must be true or false"),
        ("evs = 16", "evs = 8", "backups", "[transport] backups: 8 of 8 EVs"),
        ("backups = 8", 'mode = "rd"', "backups",
         "[transport] mode: 'rd' is not known; known: mrc, rc"),
        ("backups = 8", "path_mtu = 1500", "backups", "[transport] path_mtu: 1500 is not one of"),
        ("ecn = true", "mtu = 4223", None,
         "[transport] path_mtu: 4096 makes packets of 4224, but mtu is 4223"),
        ("backups = 8", 'cc = "fixed"', "backups", "[transport] cc: a fixed window needs its size"),
        ("backups = 8", 'deny = ["p1.t1.9"]', "backups", "no spine 9 in plane 1"),
        ('kind = "pair"', 'kind = "pear"', 'kind = "pair"', "[work] kind: 'pear' is not known"),
        ('src = "h2"', 'src = "h3"', "src", "[work] src: h3: there is no host 3: h1 to h2"),
        ('src = "h2"', 'src = "h1"', "dst", "[work] dst: h1 would send to itself"),
        ('src = "h2"', 'src = "two"', "src", "[work] src: 'two' is no host"),
        ('name = "late"', 'name = "bulk"', 'name = "late"', "two pieces of work are called 'bulk'"),
        ("count = 7", "count = 0", "count", "[work] count: 0 must be"),
        ("count = 7", "shift = 1", "count", "[work] shift: unknown key"),
        ('start = "1s"', 'start = "9s"', "start", "[work] start: begins when the run is over"),
        ('bytes = "64KB"', "bytes = 0", "bytes", "[work] bytes: 0: a message has 1 byte"),
        ('do = "fail"', 'do = "fial"', "[[fault]]",
         "[fault]: 'fial' is no fault; did you mean fail"),
        ("p1.t1.2", "p1.t1.9", "[[fault]]", "[fault]: p1.t1.9: there is no spine 9"),
        ('at = "3s"', 'at = "soon"', "at", "[fault] at: 'soon' is not a time"),
        ('at = "3s"', 'at = "7s"', "[[fault]]", "ends before it begins"),
        ('at = "3s"\nuntil = "5s"', 'at = "9s"', "at",
         "[fault] at: 9s is not before the end of the run, 8s"),
        ('at = "3s"', 'att = "3s"', "at", "[fault] att: unknown key; did you mean at"),
        ('duration = "8s"', 'duration = "8s"\nsample = "9s"', None, "[run] sample: must be 1us"),
        ('duration = "8s"', 'duration = "8s"\nsample = "10us"', None, "more than 100000 samples"),
        ('id = "rc"', 'id = "main"', "id", "[compare] id: 'main'"),
        ('id = "rc"', 'id = "no_faults"', "[[compare]]", "two comparisons have the id no_faults"),
        ('transport.mode = "rc"', 'transport.mod = "rc"', "transport.mode",
         "mod: unknown key; did"),
        ('transport.mode = "rc"', 'trans.mode = "rc"', "transport.mode",
         "[compare] trans: unknown"),
        ('"gap_ms <= 20"', '"gap_ms <="', '"no gap', "is no expression"),
        ('"gap_ms <= 20"', '"gapms <= 20"', '"no gap', "gapms is not known; did you mean gap_ms?"),
        ('"gap_ms <= 20"', '"gap_ms"', '"no gap', "'gap_ms' is a number, no comparison"),
        ('"gap_ms <= 20"', '"rcs.gap_ms <= 20"', '"no gap', "rcs is not known; did you mean rc?"),
        ("{gap_ms:.0f}", "{gapms:.0f}", "verdict", "gapms is not known; did you mean gap_ms?"),
        ("{gap_ms:.0f}", "{gap_ms:.0q}", "verdict", "{gap_ms:.0q}: a number is not written so"),
        ('show = "planes"', 'show = "bars"\nbars = ["jane"]', None,
         "[figure] bars: 'jane': jane is not known; did you mean jain?"),
        ('show = "planes"', 'show = "bars"\nbars = ["rc.jain"]', None, "rc is not known"),
        ('show = "planes"', 'show = "bars"\nbars = ["ev(9, 0, 1)"]', None,
         "there is no EV 9: 0 to 0 (in the comparison rc)"),
        ('transport.mode = "rc"', "work.7.bytes = 1", "transport.mode",
         "there is no work.7: work.0 to work.1 (in the comparison rc)"),
        ('transport.mode = "rc"', 'transport.mode = "rd"', "transport.mode",
         "[transport] mode: 'rd' is not known; known: mrc, rc (in the comparison rc)"),
        ("fault = []", 'fault = [{ do = "fial" }]', "fault = []", "did you mean fail"),
        ('show = "planes"', 'show = "plains"', "show", "[figure] show: 'plains'"),
        ('show = "planes"', 'show = "bars"', "[figure]", "[figure] bars: belong to"),
        ('on = ["sim"]', 'on = ["moon"]', "on", "on: 'moon' is neither sim nor lab"),
        ("[[fault]]", "[[foult]]", "[[fault]]", "foult: unknown key; did you mean fault"),
    ],
)  # fmt: skip
def test_mistakes_have_a_line(old, new, where, reason):
    with pytest.raises(FabricError) as caught:
        parsed(WHOLE.replace(old, new, 1))
    assert reason in str(caught.value)
    if where is not None:
        assert str(caught.value).startswith(f"x.toml:{line_of(where)}: ")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "there is no [[work]]"),
        ("name = 'x'", "there is no [[work]]"),
        ("[[work]]\nkind='bulk'", "name is missing"),
        ("name = 3\n[[work]]\nkind='bulk'", "3 must be words"),
        ("name = ", "is not TOML"),
        ("name = 'x'\nwork = 3", "must be tables [[work]]"),
        ("name = 'x'\nfabric = 3\n[[work]]\nkind='bulk'", "must be a table [fabric]"),
        ("a = " + "[" * 2000, "is nested too deeply"),
    ],
)
def test_what_is_no_scenario(text, reason):
    with pytest.raises(FabricError) as caught:
        parse_scenario(text, "x.toml")
    assert reason in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_is_refused_with_a_sentence(text):
    with pytest.raises(FabricError):
        parse_scenario(text, "x.toml")


@given(st.integers(0, len(WHOLE) - 1), st.characters())
def test_any_one_character_is_read_or_refused(place, character):
    try:
        parsed(WHOLE[:place] + character + WHOLE[place + 1 :])
    except FabricError as error:
        assert str(error).startswith("x.toml")  # noqa: PT017 - either is right


def test_lines_inside_of_values_are_no_keys():
    text = (
        'name = """\nplanes = 3\n[fabric]\n"""\nverdict = [\n"[work]",\n]\n[[work]]\nkind="bulk"\n'
    )
    with pytest.raises(FabricError, match=r"x\.toml:5: verdict"):
        parse_scenario(text, "x.toml")


def test_files(tmp_path: Path):
    path = tmp_path / "one.toml"
    path.write_text(WHOLE)
    assert load_scenario(path).name == parsed().name
    path.write_bytes(b"name = '\xff'")
    with pytest.raises(FabricError, match="is not UTF-8"):
        load_scenario(path)
    path.write_bytes(b"#" * (1 << 21))
    with pytest.raises(FabricError, match="longer than"):
        load_scenario(path)
    with pytest.raises(FileNotFoundError):
        load_scenario(tmp_path / "none.toml")


def test_a_change_of_what_is_not_there():
    with pytest.raises(FabricError, match=r"x\.toml:1: there is no work\.9: work\.0 to work\.1"):
        parsed(work={"9": {"count": 3}})


def test_what_is_otherwise_on_a_lab_is_checked_and_has_its_own_line():
    text = WHOLE.replace('["sim"]', '["sim", "lab"]') + (
        '[lab.expect]\n"no gap above 20 ms" = "gapms <= 50"\n[lab.run]\nduration = "x"\n'
    )
    parse_scenario(text, "x.toml")
    with pytest.raises(FabricError) as caught:
        parse_scenario(text, "x.toml", fabric="lab")
    line = 1 + text.splitlines().index('duration = "x"')
    assert str(caught.value).startswith(f"x.toml:{line}: [run] duration: 'x' is not a time")
    with pytest.raises(FabricError) as caught:
        parse_scenario(text.replace('"x"', '"9s"'), "x.toml", fabric="lab")
    line = 1 + text.splitlines().index('"no gap above 20 ms" = "gapms <= 50"')
    assert str(caught.value).startswith(f"x.toml:{line}: [expect] no gap above 20 ms: 'gapms <= 50")
