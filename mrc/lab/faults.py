# SPDX-License-Identifier: BSD-2-Clause
"""What can go wrong in a fabric, on request.

Two ways to say it: by spine, for tests and tools that cut and heal a few of them; and by link,
`apply`, which takes what `mrc.fabric.link_states` makes of a whole script. Either way every
direction of every cable has a LinkState here, and only differences are carried out (links.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mrc.fabric.fault import Fault, FaultKind
from mrc.fabric.shape import Link as Way
from mrc.fabric.shape import Node, Switch, Tier
from mrc.fabric.timeline import LinkState

from . import config, links
from .counters import settle
from .delays import Delays
from .marks import Marks
from .plan import FabricSpec, Path
from .rtnl import Change, Kernel

if TYPE_CHECKING:
    from .client import HolderClient

Spine = tuple[int, int]
"""(plane, spine), both 1-based."""


class Faults:
    """The faults of one fabric. Calls return when the fault is in force."""

    def __init__(self, client: HolderClient, spec: FabricSpec) -> None:
        """Made by Fabric.up only."""
        self._client = client
        self._spec = spec
        self._states: dict[Way, LinkState] = {}
        self._made: dict[Way, LinkState] = {}
        """What has been carried out, the fabric's own delay included."""
        self._delays = Delays(client, spec)
        self._cut_up: set[Way] = set()
        self._trains: set[Way] = set()
        self._singles = False
        self._kernel = Kernel(client, links.LOSS_PREF)
        self._marks = Marks(spec, self._kernel)

    def require(self, script: Iterable[Fault]) -> None:
        """FabricUnavailableError: this fabric cannot do one of these; it says what is missing.

        ValueError: no lab can.
        """
        for fault in script:
            links.check_value(fault)
            if fault.kind in (FaultKind.CORRUPT, FaultKind.TRIM):
                self._marks.require()
            if fault.kind is FaultKind.DELAY:
                self._delays.require()

    def begin(self) -> None:
        """Bring the fabric into the state that its spec asks for where nothing is wrong."""
        self._marks.begin()
        self.single_packets(on=False)
        if self._spec.delay_ns:
            self._delays.require()
            self._change(dict.fromkeys(self._spec.shape.links, links.NEW))

    # -- by link -----------------------------------------------------------------------------

    def state(self, way: Way) -> LinkState:
        """What is wrong with one direction of a cable now."""
        return self._states.get(way, links.NEW)

    def apply(self, states: Mapping[Way, LinkState]) -> None:
        """Bring every link into the state given; links not named are as new."""
        self._change({**dict.fromkeys(self._states, links.NEW), **states})

    def marks(self) -> dict[Way, dict[str, int]]:
        """Packets marked, trimmed and corrupted in each direction that may."""
        return self._marks.counts()

    @property
    def relay_pid(self) -> int | None:
        """The process that keeps packets for a time, while one runs."""
        return self._delays.pid

    def close(self) -> None:
        """Give back what this holds; the fabric goes down."""
        self._kernel.close()
        self._delays.close()
        self._marks.close()

    def _change(self, wanted: Mapping[Way, LinkState]) -> None:
        made = {w: (self._made.get(w, links.NEW), self._full(w, s)) for w, s in wanted.items()}
        changed = {w: pair for w, pair in made.items() if pair[0] != pair[1]}
        quick: list[Change] = []
        slow: list[links.Lines] = []
        for way, (before, after) in changed.items():
            quick += self._train_change(way, after)
            quick += links.loss_change(way, before, after)
            slow.append(links.rate_lines(self._spec, way, before, after))
            self._marks.change(way, before, after)
            if after.delay_ns:
                self._delays.set(way, after.delay_ns)
        for way, up in self._carriers(changed):
            if up:
                slow.append(links.plug_lines(self._spec, way))
            else:
                quick += links.unplug(way)
        self._kernel.carry_out(quick)
        self._client.batches(links.joined(slow))
        for way, (_, after) in changed.items():
            if not after.delay_ns:
                self._delays.set(way, 0)
            self._made[way] = after
        self._states.update(wanted)
        self._states = {w: s for w, s in self._states.items() if s != links.NEW}

    def _full(self, way: Way, state: LinkState) -> LinkState:
        """With what the fabric itself adds."""
        if self._spec.delay_ns and Tier.HOST not in (way.src.tier, way.dst.tier):
            return replace(state, delay_ns=state.delay_ns + self._spec.delay_ns)
        return state

    def _carriers(
        self, changed: Mapping[Way, tuple[LinkState, LinkState]]
    ) -> Iterator[tuple[Way, bool]]:
        """Cables to unplug (False) or plug in: one is down while one of its directions is."""
        for cable in dict.fromkeys(links.cable(w) for w in changed):
            was, is_ = False, False
            for way in (cable, cable.back):
                same = self._made.get(way, links.NEW)
                before, after = changed.get(way, (same, same))
                was, is_ = was or before.down, is_ or after.down
            if was != is_:
                yield cable, not is_

    def _train_change(self, way: Way, state: LinkState) -> list[Change]:
        from_host = way.src.tier is Tier.HOST
        cut_up = way not in self._trains and (
            links.needs_single_packets(state) or (self._singles and from_host)
        )
        if cut_up == (way in self._cut_up):
            return []
        (self._cut_up.add if cut_up else self._cut_up.discard)(way)
        return links.train_change(way, whole=not cut_up)

    # -- by spine ----------------------------------------------------------------------------

    def cut(self, *spines: Spine) -> None:
        """From now on every packet through these spines vanishes, silently, links staying up."""
        self._alter(self._into(spines), lambda state: replace(state, cut=True))

    def heal(self, *spines: Spine) -> None:
        """Undo ``cut``; without arguments, every cut. Loss set before is in force again."""
        ways = self._into(spines) if spines else tuple(self._states)
        self._alter(ways, lambda state: replace(state, cut=False))

    def loss(
        self, probability: float, spines: Iterable[Spine] | None = None, *, trains: bool = False
    ) -> None:
        """Random loss per packet on these spines, or on all; 0 ends it.

        A GSO train would cross a spine as one packet and be lost as one. Unless ``trains`` is set,
        the links into the spine therefore cut trains up first, as a wire would.
        """
        if not 0.0 <= probability <= 1.0:
            raise ValueError(f"probability must be 0 to 1, not {probability}")
        ways = self._into(self._all() if spines is None else tuple(spines))
        (self._trains.update if trains else self._trains.difference_update)(ways)
        ppm = round(probability * 1e6)
        self._alter(ways, lambda state: replace(state, loss_ppm=ppm))

    def single_packets(self, *, on: bool = True) -> None:
        """Cut trains (GSO) up at the hosts' ports: every packet crosses the fabric by itself."""
        self._singles = on or self._spec.trim  # which cuts packets, not trains
        ports = [w for p in range(self._spec.planes) for w in self._spec.shape.host_links(p)]
        self._kernel.carry_out(
            c for w in ports for c in self._train_change(w, self._full(w, self.state(w)))
        )

    def clear(self) -> None:
        """End all cuts and losses, let trains pass. Links that are down stay down, rates stay."""
        self.single_packets(on=False)
        kept = {
            way: LinkState(down=state.down, rate_bps=state.rate_bps)
            for way, state in self._states.items()
        }
        self.apply(kept)
        self._trains.clear()

    def rate(self, rate_mbit: float) -> None:
        """Change the rate of every fabric link."""
        lines = config.tbf_lines(self._spec, rate_mbit)
        self._client.batches({(ns, "tc"): text for ns, text in lines.items()})

    def link_down(self, plane: int, host: int, spine: int | None = None) -> None:
        """A failure everybody sees: a host's port (no ``spine``) or a T0-T1 link loses carrier."""
        self._set_carrier(self._cable(plane, host, spine), up=False)

    def link_up(self, plane: int, host: int, spine: int | None = None) -> None:
        """Plug the cable back in."""
        self._set_carrier(self._cable(plane, host, spine), up=True)
        settle(self._client, self._spec)

    def _set_carrier(self, way: Way, *, up: bool) -> None:
        self._alter((way, way.back), lambda state: replace(state, down=not up))

    def _alter(self, ways: Iterable[Way], change: Callable[[LinkState], LinkState]) -> None:
        self._change({way: change(self.state(way)) for way in ways})

    def _all(self) -> tuple[Spine, ...]:
        spec = self._spec
        return tuple((p, s) for p in range(1, spec.planes + 1) for s in range(1, spec.spines + 1))

    def _into(self, spines: Sequence[Spine]) -> tuple[Way, ...]:
        """The directions that end in these spines."""
        shape = self._spec.shape
        found: list[Way] = []
        for plane, spine in spines:
            self._check(plane, spine)
            node = Node(Tier.T1, spine - 1)
            found += [w for w in shape.links_of(Switch(plane - 1, node)) if w.dst == node]
        return tuple(found)

    def _check(self, plane: int, spine: int) -> None:
        if not (1 <= plane <= self._spec.planes and 1 <= spine <= self._spec.spines):
            raise ValueError(f"there is no spine {spine} in plane {plane}")

    def _cable(self, plane: int, host: int, spine: int | None) -> Way:
        self._check(plane, 1 if spine is None else spine)
        if not 0 <= host < self._spec.hosts:
            raise ValueError(f"there is no host {host}")
        t0 = Node(Tier.T0, self._spec.shape.t0_of(host))
        other = Node(Tier.HOST, host) if spine is None else Node(Tier.T1, spine - 1)
        return Way(plane - 1, t0, other)


def spine_of(path: Path) -> Spine:
    """The spine a path crosses."""
    return path.plane, path.spine
