# SPDX-License-Identifier: BSD-2-Clause
"""Work as tables: who sends what to whom, and what waits for what."""

from __future__ import annotations

import struct

import pytest

from mrc.fabric.scenario import parse_scenario
from mrc.sim._tables import NONE
from mrc.sim.traffic import make_traffic

MESSAGE = struct.Struct("=IIIIQ")


def traffic(work, **changes):
    text = f'name = "x"\n[fabric]\nhosts = 8\nt0 = 2\n[[work]]\n{work}\n'
    return make_traffic(parse_scenario(text, "x", changes).main)


def messages(made):
    return [MESSAGE.unpack_from(made.messages.packed(), i * 24) for i in range(len(made.messages))]


def ways(made):
    return [(flow.src, flow.dst) for flow in made.flows.values()]


def test_bulk():
    made = traffic('kind="bulk"\nsrc="h3"\ndst="h1"\nbytes=5\nstart="1s"\nstop="2s"\noutstanding=3')
    (bulk,) = made.bulks
    assert (bulk.flow, bulk.bytes, bulk.outstanding) == (1, 5, 3)
    assert (bulk.start_ns, bulk.stop_ns) == (10**9, 2 * 10**9)
    assert (made.pairs[0].a, made.pairs[0].b, ways(made)) == (0, 2, [(2, 0)])


def test_bulk_both_ways_over_several_queue_pairs():
    made = traffic('kind="bulk"\nboth=true\nqps=2')
    assert [bulk.flow for bulk in made.bulks] == [0, 2, 1, 3]
    assert [f.name for f in made.flows.values()] == ["h1>h2#1", "h1>h2#2", "h2>h1#1", "h2>h1#2"]
    assert len(made.pairs) == 2


def test_pair_takes_queue_pairs_in_turn():
    made = traffic('kind="pair"\ncount=3\nbytes=7\nqps=2\nstart="1ms"')
    assert messages(made) == [(f, 7, NONE, NONE, 10**6) for f in (0, 2, 0)]
    assert made.message_flow == [0, 2, 0]


def test_incast_leaves_the_target_out():
    made = traffic('kind="incast"\ndst="h5"')
    assert ways(made) == [(h, 4) for h in (0, 1, 2, 3, 5, 6, 7)]


def test_permutations():
    assert ways(traffic('kind="permutation"\nshift=3')) == [(h, (h + 3) % 8) for h in range(8)]
    drawn = ways(traffic('kind="permutation"'))
    assert sorted(a for a, _ in drawn) == sorted(b for _, b in drawn) == list(range(8))
    assert all(a != b for a, b in drawn)
    assert drawn == ways(traffic('kind="permutation"'))
    assert any(drawn != ways(traffic('kind="permutation"', run={"seed": n})) for n in (2, 3, 4))


def test_a_ring_moves_each_chunk_all_the_way():
    """Of n chunks each host ends with all: what arrived may be passed on, nothing else."""
    made = traffic('kind="ring-allreduce"\nbytes=800')
    table = messages(made)
    assert len(table) == 8 * 2 * 7
    assert {size for _, size, *_ in table} == {100}
    # Play it: message i carries what its sender's dependency carried, or the sender's own chunk.
    flows = {flow.index: (flow.src, flow.dst) for flow in made.flows.values()}
    have = {host: {host} for host in range(8)}
    carried: list[tuple[int, int]] = []
    for flow, _, after, _, _ in table:
        src, dst = flows[flow]
        assert dst == (src + 1) % 8
        chunk = src if after == NONE else carried[after][1]
        assert after == NONE or carried[after][0] == src
        carried.append((dst, chunk))
        have[dst].add(chunk)
    assert all(chunks == set(range(8)) for chunks in have.values())


def test_channels_of_a_ring_do_not_wait_for_each_other():
    made = traffic('kind="ring-allreduce"\nbytes=800\nqps=2')
    table = messages(made)
    assert len(table) == 2 * 8 * 2 * 7
    for i, (flow, size, after, _, _) in enumerate(table):
        assert size == 50
        assert after == NONE or after < i
        if after != NONE:
            assert flow // 2 % 2 == table[after][0] // 2 % 2


def test_all_to_all_is_each_to_each_other():
    made = traffic('kind="all-to-all"\nbytes=70\ncount=2')
    table = messages(made)
    flows = {flow.index: (flow.src, flow.dst) for flow in made.flows.values()}
    assert len(set(flows.values())) == 56
    assert len(table) == 2 * 56
    assert {size for _, size, *_ in table} == {10}
    for i, (flow, _, after, _, _) in enumerate(table):
        assert (after == NONE) == (i < 56)
        if i >= 56:  # a host goes on when the other's part has come
            assert flows[table[after][0]] == flows[flow][::-1]


def test_names_of_flows_differ():
    text = 'kind="bulk"\nname="a"\n[[work]]\nkind="bulk"\nname="b"'
    assert [f.name for f in traffic(text).flows.values()] == ["h1>h2", "b:h1>h2"]


@pytest.mark.parametrize("kind", ["ring-allreduce", "all-to-all"])
def test_a_part_is_never_empty(kind):
    assert {m[1] for m in messages(traffic(f'kind="{kind}"\nbytes=1'))} == {1}
