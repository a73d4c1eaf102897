# SPDX-License-Identifier: BSD-2-Clause
"""Faults by the clock, and what iproute2 and the kernel are told. No namespace is touched."""

import struct
from dataclasses import replace

import pytest

from mrc.fabric import FabricError, FabricShape, LinkState, parse_script, parse_target
from mrc.lab.links import NEW, loss_change, plug_lines, rate_lines, unplug
from mrc.lab.plan import FabricSpec, paths_between, spec_of
from mrc.lab.player import Player
from mrc.lab.rtnl import Change, Verb, requests

SECOND = 10**9


class Stage:
    def __init__(self, shape: FabricShape | None = None):
        self.now_ns = 0
        self.states: list[dict[str, LinkState]] = []
        self.player = Player(shape or FabricShape(), self._apply, lambda: self.now_ns)

    def _apply(self, states):
        self.states.append({way.name: state for way, state in states.items()})

    def play(self, text: str, **more):
        numbers = self.player.add(parse_script(text), **more)
        self.player.advance()
        return numbers

    def at(self, seconds: float):
        self.now_ns = round(seconds * SECOND)
        return [(event.what, event.on) for event in self.player.advance()]

    @property
    def now(self) -> dict[str, LinkState]:
        return self.states[-1] if self.states else {}


def test_a_script_plays_from_the_moment_it_is_given():
    stage = Stage()
    stage.now_ns = 100 * SECOND
    stage.play("fail p1.t1.2@3s..5s")
    assert stage.now == {}
    assert stage.player.due() == 103 * SECOND
    assert stage.at(103) == [("fail p1.t1.2", True)]
    assert set(stage.now) == {
        f"p1.{a}->{b}" for x in ("t0.a", "t0.b") for a, b in ((x, "t1.2"), ("t1.2", x))
    }
    assert stage.at(105) == [("fail p1.t1.2", False)]
    assert stage.now == {}
    assert stage.player.due() is None
    assert list(stage.player) == []


def test_what_happens_at_one_moment_is_one_change():
    stage = Stage()
    stage.play("fail p1.t1.2@1s; loss p2.t1.1=5%@1s")
    assert len(stage.at(1)) == 2
    assert len(stage.states) == 1


def test_a_flap_goes_on_until_it_is_healed():
    stage = Stage()
    stage.play("flap h1.port2=1s")
    assert stage.now["h1.port2->"].down
    seen = [stage.at(0.5 * i) for i in range(1, 41)]
    assert [on for ((_, on),) in seen] == [bool(i % 2) for i in range(40)]
    assert stage.at(20.5) == [("flap h1.port2=1s", False)]  # in its good half
    healed = stage.player.heal(parse_target("plane2"))
    assert [(e.what, e.on) for e in healed.ended] == [("flap h1.port2=1s", False)]
    assert stage.now == {}
    assert stage.at(100) == []


def healed(stage: Stage, target: str):
    """What ended, what was dropped, what is still to come."""
    done = stage.player.heal(parse_target(target))
    return tuple([x.what for x in some] for some in (done.ended, done.dropped, done.waiting))


def test_heal_ends_what_lies_within_and_has_begun():
    stage = Stage()
    stage.play("loss p1.t0.a->t1.1=1%; fail plane2; down h1.port1@9s")
    stage.now_ns = SECOND
    assert healed(stage, "p2.t1.1") == ([], [], [])  # not all of plane 2
    assert healed(stage, "p1.t1.1") == (["loss p1.t0.a->t1.1=1%"], [], [])
    assert healed(stage, "h1") == ([], [], ["down h1.port1"])
    assert stage.player.due() == 9 * SECOND
    assert healed(stage, "all") == (["fail plane2"], ["down h1.port1"], [])
    assert stage.player.due() is None  # nor what was to come


def test_a_flap_that_is_to_come_is_named_when_it_is_dropped():
    stage = Stage()
    stage.play("flap h1.port2=1s@5s; flap h1.port1=1s silent")
    stage.at(0.7)  # the other is in its good half
    assert healed(stage, "all") == (["flap h1.port1=1s silent"], ["flap h1.port2=1s"], [])
    assert stage.at(60) == []


def test_faults_end_with_their_owner_and_no_others():
    stage = Stage()
    stage.play("loss plane1=1%")
    stage.play("fail p1.t1.1; fail p3.t1.3@5s", owner=7)
    stage.player.forget(7)
    assert {s.loss_ppm for s in stage.now.values()} == {10_000}
    assert not any(s.cut for s in stage.now.values())
    assert stage.at(10) == []


def test_a_path_is_counted_between_the_pair_that_was_meant():
    stage = Stage(FabricShape(hosts=4, planes=2, t1=2))
    stage.play("loss ev3=5%", pair=(2, 1))
    assert list(stage.now) == ["p2.t0.c->t1.2"]
    assert [p.what for p in stage.player] == ["loss ev3=5%"]
    with pytest.raises(FabricError, match="no host 7 for its pair: h1 to h4"):
        stage.play("loss ev3=5%", pair=(0, 6))


def test_nothing_of_a_script_is_played_when_a_target_is_missing():
    stage = Stage()
    with pytest.raises(FabricError, match=r"no spine 9 in plane 1: t1.1 to t1.4"):
        stage.play("fail p1.t1.1; fail p1.t1.9")
    assert list(stage.player) == []


# ---- what is told to whom ------------------------------------------------------------------------


def ways(text: str, spec: FabricSpec):
    return parse_target(text).gate(spec.shape)


def test_loss_is_decided_where_a_direction_ends():
    spec = FabricSpec()
    (way,) = ways("p1.t0.b->t1.3", spec)
    (change,) = loss_change(way, NEW, LinkState(loss_ppm=250_000))
    assert (change.ns, change.dev, change.verb) == ("p1t1-3", "t0-2", Verb.DROP)
    assert change.program[1][3] == 3 * 2**30
    assert loss_change(way, LinkState(loss_ppm=5), LinkState(loss_ppm=5, rate_bps=3)) == []
    (kept,) = loss_change(way, NEW, LinkState(delay_ns=3))
    assert len(kept.program) == 4  # all but what the relay has kept already
    (healed,) = loss_change(way, LinkState(cut=True), NEW)
    assert healed.program == ()


def test_a_cable_comes_back_with_its_own_routes_and_no_other_interface():
    spec = FabricSpec(hosts=4, t0=2)
    (way, _) = ways("h2.port1", spec)
    (down,) = unplug(way)
    assert (down.ns, down.dev) == ("p1t0-1", "host2")
    lines = plug_lines(spec, way)[("p1t0-1", "ip")]
    assert lines[0] == "link set host2 up"
    assert any(line.startswith("route replace fcbb:bbbb:3102::/48") for line in lines)
    assert not any("host1" in line or "spine" in line for line in lines)


def test_a_rate_ends_as_the_fabric_has_it():
    (way,) = ways("p1.t0.a->t1.1", FabricSpec())
    slow = LinkState(rate_bps=10**8)
    for spec, wanted in (
        (FabricSpec(), "qdisc del dev spine1 root"),
        (FabricSpec(rate_mbit=500, queue_bytes=200_000), "rate 500000000bit burst 131072 limit"),
    ):
        (line,) = rate_lines(spec, way, slow, NEW)[("p1t0-1", "tc")]
        assert wanted in line


def test_messages_to_the_kernel_are_of_the_length_they_state():
    for change, count in (
        (Change("n", "d", Verb.DOWN), 1),
        (Change("n", "d", Verb.SEGMENTS, 1), 1),
        (Change("n", "d", Verb.DROP, program=((6, 0, 0, 2),)), 2),
        (Change("n", "d", Verb.DROP), 1),
    ):
        made = requests(change, 5, 1)
        assert len(made) == count
        for _, _, body in made:
            assert struct.unpack_from("=i", body, 4)[0] == 5
            assert len(body) % 4 == 0


# ---- shapes --------------------------------------------------------------------------------------


def test_a_shape_and_its_fabric_agree_on_paths():
    shape = FabricShape(planes=3, t1=2, hosts=6, t0=2, rate_bps=10**8, ecn_lo=4_000, ecn_hi=16_000)
    spec = spec_of(shape)
    assert spec.shape == replace(shape, delay_ns=0)
    for src, dst in ((0, 1), (0, 5), (4, 2)):
        found = paths_between(spec, src, dst)
        assert len(found) == shape.path_count(src, dst)
        for path in found:
            same = shape.path(src, dst, path.index)
            assert (path.plane - 1, path.spine - 1 if path.spine else None) == (same.plane, same.t1)


def test_under_one_t0_the_carrier_names_it_once():
    path = paths_between(FabricSpec(hosts=4, t0=2, planes=2), 3, 2)[1]
    assert str(path.kernel_carrier) == "fcbb:bbbb:1202:3203::"
    assert str(path.srh_carrier) == "fcbb:bbbb:1202::"
    assert str(path.srh_raw_entry) == "fcbb:bbbb:4203::"
