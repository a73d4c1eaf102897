# SPDX-License-Identifier: BSD-2-Clause
"""What happens to the fabric, and when: the same script for every peer. Pure.

Scripts are written as `mrc.fabric.fault` has them. Loss and its like act where a packet reaches a
host (`->h2.port1`): trains have to be cut up there, and single packets cost every hop behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mrc.fabric import FabricShape, Fault, FaultKind, link_states, parse_script
from mrc.fabric.timeline import settle, steps

PLANES = 4
VICTIM = 1
"""The plane that suffers; protocols with one path have it there."""
MENDABLE = (FaultKind.FAIL, FaultKind.DOWN, FaultKind.LOSS)


@dataclass(frozen=True, slots=True)
class Case:
    """A script. What ``before`` lists is in force before anybody sends."""

    key: str
    title: str
    seconds: float
    """Measured time; ``warm_s`` of traffic come before it and do not count."""
    script: str = ""
    """Times count from the beginning of the measured time."""
    before: str = ""
    warm_s: float = 1.5
    hurry: tuple[float, str] = (1.5, "")
    """Measured time and script of a quick run."""

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The script, understood."""
        return parse_script(self.script)

    @property
    def fault(self) -> Fault | None:
        """The fault to recover from, if there is one and it comes once."""
        return next((f for f in self.faults if f.kind in MENDABLE), None)

    @property
    def delays(self) -> bool:
        """Its packets are kept by a relay in user space, one by one."""
        return any(fault.kind is FaultKind.DELAY for fault in parse_script(self.before))

    def capacity(self, shape: FabricShape, planes: frozenset[int]) -> list[tuple[float, int]]:
        """(from when in s, how many of these planes can carry), in order, beginning at 0.

        A plane that loses a few packets counts: what that costs is the question.
        """
        settled = settle(self.faults, shape)
        active: dict[int, Fault] = {}
        found = [(0.0, len(planes))]
        for step in steps(settled, round(self.seconds * 1e9)):
            if step.on:
                active[step.index] = step.fault
            else:
                active.pop(step.index, None)
            states = link_states(active.values(), shape)
            gone = {link.plane + 1 for link, state in states.items() if state.cut or state.down}
            found.append((step.at_ns / 1e9, len(planes - gone)))
        return found

    def mean_planes(self, shape: FabricShape, planes: frozenset[int]) -> float:
        """Planes that can carry, averaged over the measured time."""
        found = [*self.capacity(shape, planes), (self.seconds, 0)]
        total = sum(n * (found[i + 1][0] - t) for i, (t, n) in enumerate(found[:-1]))
        return total / self.seconds


def _lose(share: str, planes: range, at: str = "") -> str:
    """Both directions of these planes lose that share of their packets."""
    ports = [f"->h{host}.port{plane}" for plane in planes for host in (1, 2)]
    return "; ".join(f"loss {port}={share}{at}" for port in ports)


def _delay(*delays_us: int) -> str:
    """So much longer on the way to the receiver, plane by plane."""
    ways = [f"->h2.port{plane}" for plane, _ in enumerate(delays_us, 1)]
    return "; ".join(
        f"delay {way}={delay_us}us" for way, delay_us in zip(ways, delays_us, strict=True)
    )


ALL, ONE = range(1, PLANES + 1), range(VICTIM, VICTIM + 1)
SPINE = f"p{VICTIM}.t1.1"
OWN_PORT, PEER_PORT = f"h1.port{VICTIM}", f"h2.port{VICTIM}"
"""Of the sender, who sees its carrier go; of the receiver, who has to tell the sender."""

CASES = (
    Case("clean", "clean", 3.0),
    # All that loss costs the fabric, but for the loss: what the next row is to be compared with.
    Case("single", "clean, trains cut up", 3.0, before=_lose("1ppm", ALL)),
    Case("loss", "1 % loss on every path", 3.0, before=_lose("1%", ALL)),
    Case(
        "loss-one",
        "5 % loss on one path",
        5.0,
        _lose("5%", ONE, "@500ms"),
        hurry=(2.0, _lose("5%", ONE, "@500ms")),
    ),
    Case(
        "hole",
        "one path silently black-holed",
        5.5,
        f"fail {SPINE}@500ms..2500ms",
        hurry=(2.4, f"fail {SPINE}@500ms..1250ms"),
    ),
    Case(
        "port",
        "one port of the receiver visibly down",
        5.5,
        f"down {PEER_PORT}@500ms..2500ms",
        hurry=(2.4, f"down {PEER_PORT}@500ms..1250ms"),
    ),
    Case(
        "flap",
        "one port of the sender flaps every second",
        60.0,
        f"flap {OWN_PORT}=1s@250ms..60s",
        hurry=(3.0, f"flap {OWN_PORT}=1s@250ms..3s"),
    ),
    # Delay costs the fabric a relay in user space, whoever sends: compared with equal delays.
    Case("equal", "delays of 500 us on every path", 3.0, before=_delay(500, 500, 500, 500)),
    Case("reorder", "delays 1:2:4:8, from 250 us", 3.0, before=_delay(250, 500, 1000, 2000)),
)


def quick(case: Case) -> Case:
    """The same in little time: to see that it runs, not how fast."""
    seconds, script = case.hurry
    return replace(case, seconds=seconds, script=script, warm_s=0.7)
