# SPDX-License-Identifier: BSD-2-Clause
"""Names of the parts of a fabric."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc.fabric import FabricError, FabricShape, Link, Switch, TargetKind, parse_target
from mrc.fabric.target import EXAMPLES

from .strategies import shapes, targets

SHAPE = FabricShape(planes=2, t0=2, t1=3, hosts=4)


def names(parts):
    return [part.name for part in parts]


@given(targets())
def test_every_name_is_read_back(target):
    assert parse_target(str(target)) == target


@given(st.text(max_size=30))
def test_any_text_is_a_name_or_an_error(text):
    try:
        assert parse_target(str(parse_target(text))) == parse_target(text)
    except FabricError as error:
        assert str(error)  # noqa: PT017 - either is right


@pytest.mark.parametrize("name", [n.strip() for n in EXAMPLES.split(",")])
def test_the_examples_are_names(name):
    assert str(parse_target(name)) == name


def test_a_cable_may_be_written_from_either_end():
    assert parse_target("p1.t1.2--t0.b") == parse_target("p1.t0.b--t1.2")
    assert parse_target("p1.t1.2->t0.b") != parse_target("p1.t0.b->t1.2")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("p1.t1.2", ["p1.t1.2"]),
        ("p2.t0.b", ["p2.t0.b"]),
        ("p1.t0.b--t1.3", ["p1.t0.b->t1.3", "p1.t1.3->t0.b"]),
        ("p1.t0.b->t1.3", ["p1.t0.b->t1.3"]),
        ("p1.t1.3->t0.b", ["p1.t1.3->t0.b"]),
        ("h3.port2", ["h3.port2->", "->h3.port2"]),
        ("h3.port2->", ["h3.port2->"]),
        ("->h3.port2", ["->h3.port2"]),
        ("h1", ["h1.port1->", "->h1.port1", "h1.port2->", "->h1.port2"]),
    ],
)
def test_parts(name, parts):
    assert names(parse_target(name).parts(SHAPE)) == parts


def test_a_plane_is_its_links_and_switches():
    parts = parse_target("plane2").parts(SHAPE)
    assert {p.plane for p in parts} == {1}
    assert sum(isinstance(p, Link) for p in parts) == 2 * (4 + 2 * 3)
    assert sum(isinstance(p, Switch) for p in parts) == 5
    assert len(parse_target("all").parts(SHAPE)) == 2 * len(parts)


def test_an_ev_is_the_link_no_other_path_shares():
    target = parse_target("ev3")
    assert names(target.gate(SHAPE, (0, 3))) == ["p2.t0.a->t1.2"]
    assert names(target.gate(SHAPE, (2, 0))) == ["p2.t0.b->t1.2"]
    assert names(parse_target("ev1").gate(SHAPE, (0, 1))) == ["->h2.port2"]


@given(shapes(), targets(), st.data())
def test_a_gate_is_taken_once_by_whoever_goes_through(shape, target, data):
    src = data.draw(st.integers(0, shape.hosts - 1))
    dst = data.draw(st.integers(0, shape.hosts - 1).filter(lambda h: h != src))
    try:
        gate, parts = target.gate(shape, (src, dst)), target.parts(shape, (src, dst))
    except FabricError:
        return
    for index in range(shape.path_count(src, dst)):
        route = shape.route(src, dst, shape.path(src, dst, index))
        nodes = {(link.plane, link.dst) for link in route}
        through = any(
            part in route if isinstance(part, Link) else (part.plane, part.node) in nodes
            for part in parts
        )
        crossed = sum(link in gate for link in route)
        both_ends = target.kind is TargetKind.HOST and crossed == 1
        assert crossed == (1 if through else 0) or both_ends


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("p1.t1.9", "there is no spine 9 in plane 1: t1.1 to t1.3"),
        ("plane3", "there is no plane 3: plane1 to plane2"),
        ("p7.t1.1", "there is no plane 7"),
        ("p1.t0.c", "there is no T0 switch c: t0.a to t0.b"),
        ("h5", "there is no host 5: h1 to h4"),
        ("h5.port1", "there is no host 5"),
        ("h1.port3", "there is no plane 3"),
        ("p1.t0.a--t1.4", "there is no spine 4"),
        ("ev2", "there are 2 paths from h1 to h2: ev0 to ev1"),
    ],
)
def test_what_that_fabric_does_not_have(name, reason):
    for look in (parse_target(name).parts, parse_target(name).gate):
        with pytest.raises(FabricError, match=reason):
            look(SHAPE)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "names are like all, plane1"),
        ("spine2", "names nothing"),
        ("p1.t0.A", "names nothing"),
        ("plane0", "counted from 1"),
        ("p0.t1.1", "counted from 1"),
        ("h1.port0", "counted from 1"),
        ("p1.t0.a--t0.b", "one end at a T0 and one at a T1"),
        ("->h1.port1->", "not both"),
        ("ev9999999999", "names nothing"),
    ],
)
def test_what_is_no_name(text, reason):
    with pytest.raises(FabricError, match=reason):
        parse_target(text)
