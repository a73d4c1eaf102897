# SPDX-License-Identifier: BSD-2-Clause
"""Records as JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc.fabric import FabricError
from mrc.fabric.record import (
    SCHEMA,
    TOTAL,
    Check,
    EvChange,
    FaultMark,
    FlowSum,
    Record,
    Sample,
    dump,
    load,
)

from .records import mark, record

FLOAT = st.floats(0, 1e12)
COUNT = st.integers(0, 2**63)
WORD = st.text(max_size=8)
BARE = st.none() | COUNT | WORD

SAMPLES = st.builds(
    Sample,
    t_s=FLOAT,
    flow=WORD,
    delivered_bytes=COUNT,
    lost=st.none() | COUNT,
    planes=st.none() | st.lists(COUNT, max_size=3).map(tuple),
    ev_states=st.none() | WORD,
)
RECORDS = st.builds(
    Record,
    scenario=WORD,
    on=st.sampled_from(["sim", "lab"]),
    run=st.dictionaries(WORD, COUNT | WORD, max_size=3),
    flows=st.lists(
        st.builds(FlowSum, WORD, WORD, COUNT, COUNT, COUNT, FLOAT, FLOAT, FLOAT, COUNT, COUNT),
        max_size=2,
    ).map(tuple),
    samples=st.lists(SAMPLES, max_size=3).map(tuple),
    faults=st.lists(
        st.builds(FaultMark, FLOAT, WORD, st.booleans(), FLOAT, st.lists(COUNT).map(tuple)),
        max_size=2,
    ).map(tuple),
    events=st.lists(
        st.builds(EvChange, FLOAT, COUNT, COUNT, COUNT, COUNT, WORD, WORD, WORD), max_size=2
    ).map(tuple),
    expect=st.lists(st.builds(Check, WORD, WORD, st.booleans()), max_size=2).map(tuple),
    verdict=WORD,
)


@given(RECORDS, st.lists(RECORDS, max_size=2))
def test_every_record_is_read_back(one, others):
    whole = Record(**{f: getattr(one, f) for f in ("scenario", "on", "run")}, compare=tuple(others))
    for given_record in (one, whole):
        assert load(dump(given_record)) == given_record
        assert dump(load(dump(given_record))) == dump(given_record)


def test_what_a_fabric_does_not_have_is_left_out_and_never_is_null():
    text = dump(record([(1, 1e9)]))
    value = json.loads(text)
    assert "cwnd_bytes" not in value["samples"][0]
    assert value["result"]["reuse_ms"] is None
    assert value["schema"] == SCHEMA


def changed(**values):
    return json.dumps({**json.loads(dump(record([(0.1, 1e9)], [mark(0.05, on=True)]))), **values})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "no record of schema 1"),
        ("{}", "no record of schema 1"),
        ('{"schema": 2}', "no record of schema 1"),
        ('{"schema": 1}', "missing"),
        (changed(verdikt=""), "unknown key verdikt; did you mean verdict"),
        (changed(on="moon"), "'moon' is none of sim, lab"),
        (changed(scenario=3), "3 is not of type str"),
        (changed(samples={}), "record.samples: must be a list"),
        (changed(samples=[{"t_s": 1, "flow": "total"}]), r"record.samples\[0\]: missing"),
        (changed(faults=[3]), r"record.faults\[0\]: must be an object"),
        (changed(result=[]), "record.result: must be an object"),
        (changed(faults=[{"t_s": True, "what": "", "on": True, "capacity_bps": 1}]), "t_s"),
        ('{"schema": 1, "scenario": "x", "on": "sim", "run": {}, "verdict": NaN}', "nan"),
    ],
)
def test_what_is_no_record(text, reason):
    with pytest.raises(FabricError, match=reason):
        load(text)


@given(st.recursive(BARE, lambda v: st.lists(v) | st.dictionaries(WORD, v), max_leaves=10))
def test_any_json_is_read_or_refused(value):
    for text in (json.dumps(value), changed(samples=value), changed(run=value)):
        try:
            load(text)
        except FabricError as error:
            assert str(error)  # noqa: PT017 - either is right


def test_numbers_that_json_has_not_are_refused():
    with pytest.raises(FabricError, match="cannot hold"):
        dump(Record("x", "sim", {"a": float("nan")}))


def test_series():
    made = record([(0.1, 8e8)])
    assert made.series().at(0.1) == pytest.approx(1e7)
    assert made.series("bulk") == made.series(TOTAL)
    assert made.series("h1>h2#1").at(0.1) == pytest.approx(1e7)
    assert made.plane_series(1).at(0.1) == pytest.approx(5e6)
    assert made.ev_series("h1>h2#1", 0).at(0.1) == pytest.approx(5e6)
    with pytest.raises(FabricError, match=r"'bulks'; known: total, h1>h2#1"):
        made.series("bulks")
    with pytest.raises(FabricError):
        made.plane_series(2)
    with pytest.raises(FabricError):
        made.counter("lost")
