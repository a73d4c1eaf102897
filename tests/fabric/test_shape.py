# SPDX-License-Identifier: BSD-2-Clause
"""Shapes: who hangs on whom, and which paths there are."""

from __future__ import annotations

from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc.fabric import FabricError, FabricShape, Link, Node, Path, Switch, Tier
from mrc.fabric.shape import t0_letters

from .strategies import shapes


def test_the_default_is_the_lab():
    shape = FabricShape()
    assert (shape.planes, shape.t0, shape.t1, shape.hosts) == (4, 2, 4, 2)
    assert shape.path_count(0, 1) == 16
    assert shape.t1_rate_bps == shape.rate_bps


def test_letters_go_on_behind_z():
    names = [t0_letters(n) for n in (0, 25, 26, 51, 52, 701, 702)]
    assert names == ["a", "z", "aa", "az", "ba", "zz", "aaa"]


def test_paths_take_planes_first():
    shape = FabricShape(planes=2, t1=2)
    assert [(p.plane, p.t1) for p in (shape.path(0, 1, i) for i in range(4))] == [
        (0, 0),
        (1, 0),
        (0, 1),
        (1, 1),
    ]


def test_a_path_under_one_t0_is_a_plane():
    shape = FabricShape(planes=3, t0=1, hosts=4)
    path = shape.path(0, 3, 2)
    assert (shape.path_count(0, 3), path) == (3, Path(2, 2, None))
    assert [link.name for link in shape.route(0, 3, path)] == ["h1.port3->", "->h4.port3"]


def test_a_route_is_up_across_down():
    shape = FabricShape(planes=2, t1=2, hosts=4, t0=2)
    names = [link.name for link in shape.route(1, 2, shape.path(1, 2, 3))]
    assert names == ["h2.port2->", "p2.t0.a->t1.2", "p2.t1.2->t0.b", "->h3.port2"]


@given(shapes(), st.data())
def test_every_route_uses_links_that_exist_and_paths_differ(shape, data):
    src = data.draw(st.integers(0, shape.hosts - 1))
    dst = data.draw(st.integers(0, shape.hosts - 1).filter(lambda h: h != src))
    routes = [
        shape.route(src, dst, shape.path(src, dst, i)) for i in range(shape.path_count(src, dst))
    ]
    assert len(set(routes)) == len(routes)
    for route in routes:
        assert set(route) <= set(shape.links)
        assert all(a.dst == b.src for a, b in pairwise(route))


@given(shapes())
def test_each_host_is_under_one_t0_and_each_t0_has_one(shape):
    under = [list(shape.under(n)) for n in range(shape.t0)]
    assert list(chain(*under)) == list(range(shape.hosts))
    assert all(under)
    assert all(shape.t0_of(h) == n for n, hosts in enumerate(under) for h in hosts)


@given(shapes())
def test_links_of_switches_are_the_links(shape):
    t0 = {x for p in range(shape.planes) for n in range(shape.t0)
          for x in shape.links_of(Switch(p, Node(Tier.T0, n)))}  # fmt: skip
    assert t0 == set(shape.links)
    assert len(shape.links) == 2 * shape.planes * (shape.hosts + shape.t0 * shape.t1)


def test_rates_differ_by_tier():
    shape = FabricShape(rate_bps=10**9, t1_rate_bps=10**8)
    assert {shape.rate_of(x) for x in shape.host_links(0)} == {10**9}
    assert {shape.rate_of(x) for x in shape.up_links(0)} == {10**8}
    up = Link(0, Node(Tier.T0, 0), Node(Tier.T1, 0))
    assert shape.rate_of(up.back) == 10**8


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"planes": 0}, "planes = 0: must be 1 to"),
        ({"hosts": 1}, "hosts = 1: must be 2 to"),
        ({"t1": 513}, "t1 = 513: must be 1 to 512"),
        ({"planes": True}, "planes = True"),
        ({"hosts": 4, "t0": 5}, "t0 = 5: 4 hosts"),
        ({"hosts": 5, "t0": 4}, "leave T0 switches without any"),
        ({"mtu": 100}, "mtu = 100"),
        ({"queue_bytes": 9000}, "queue_bytes = 9000: must be 9500"),
        ({"ecn_lo": 1}, "belong together"),
        ({"ecn_lo": 5, "ecn_hi": 5}, "ecn_hi = 5: must be 6"),
        ({"delay_ns": -1}, "delay_ns = -1"),
        ({"rate_bps": 1.5}, "rate_bps = 1.5"),
    ],
)
def test_what_is_no_fabric(wrong, reason):
    with pytest.raises(FabricError, match=reason):
        FabricShape(**wrong)


def test_a_path_that_is_not_there():
    with pytest.raises(FabricError, match="no path 16 from h1 to h2: 0 to 15"):
        FabricShape().path(0, 1, 16)
