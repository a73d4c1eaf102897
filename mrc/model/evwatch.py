# SPDX-License-Identifier: BSD-2-Clause
"""Changes of EV states judged from outside, by what a requestor was told (MRC D.5, D.6, B.7)."""

from dataclasses import dataclass, field

from mrc.model.path import USABLE, State, forbid
from mrc.model.wire import NackReason, Packet

States = dict[int, State]


@dataclass(slots=True)
class EvWatch:
    """Of one path table with one queue pair. EVs are wire values."""

    states: States
    probes: dict[int, int] = field(default_factory=dict)  # id: EV
    held: set[int] = field(default_factory=set)  # blamed, but kept: perhaps by the floor (D.3)

    def probed(self, probe_id: int, ev: int) -> None:
        """A probe left."""
        self.probes[probe_id] = ev

    def heard(self, p: Packet | None, blamed: set[int], now: States) -> None:
        """An answer came, or (None) one that is ignored.

        blamed: EVs on which a packet may be declared lost now (B.10).
        """
        congested, avoided, healed = self._says(p)
        for ev, after in now.items():
            before = self.states[ev]
            must_skip = ev in congested and before is State.GOOD and ev not in blamed | avoided
            forbid(must_skip and after is not State.SKIP, f"EV {ev:#x}: congested, yet {after}")
            if before is after:
                continue
            change = f"EV {ev:#x}: {before} to {after}"
            if after is State.SKIP and before is State.GOOD:
                forbid(ev not in congested, f"{change} without a mark or trim")
            elif after is State.ASSUMED_BAD:
                forbid(before not in USABLE, change)
                late = ev in self.held and bool(healed)  # others are back: it can be spared now
                forbid(ev not in blamed | avoided and not late, f"{change} without a loss")
            elif before is State.ASSUMED_BAD:
                forbid(ev not in healed, f"{change} without an answered probe")
            else:
                forbid(True, f"{change} by an answer")
        self._keep(blamed | avoided, now)

    def _says(self, p: Packet | None) -> tuple[set[int], set[int], set[int]]:
        """Return the EVs it calls congested, bad, and alive."""
        if p is not None and p.seth is not None:
            ev = {p.seth.entropy}
            alive = {self.probes.get(p.seth.probe_id, -1)} if p.seth.pr else set()
            return (ev if p.seth.m == 1 else set(), ev if p.seth.m == 2 else set(), alive)
        if p is not None and p.neth is not None and p.neth.nack_reason == NackReason.TRIMMED:
            return {p.neth.entropy}, set(), set()
        return set(), set(), set()

    def passed(self, blamed: set[int], now: States) -> None:
        """Time passed: only losses condemn, nothing heals."""
        for ev, after in now.items():
            before = self.states[ev]
            if before is not after:
                change = f"EV {ev:#x}: {before} to {after} in time"
                forbid(after is not State.ASSUMED_BAD or before not in USABLE, change)
                forbid(ev not in blamed, f"{change} without a loss")
        self._keep(blamed, now)

    def _keep(self, blamed: set[int], now: States) -> None:
        self.states = now
        self.held = {ev for ev in self.held | blamed if ev in now and now[ev] in USABLE}

    def sent(self, now: States) -> None:
        """A packet left: at most one SKIP entry came back (D.6)."""
        changed = [ev for ev, after in now.items() if after is not self.states[ev]]
        forbid(len(changed) > 1, "restored more than one SKIP entry")
        for ev in changed:
            change = (self.states[ev], now[ev])
            forbid(change != (State.SKIP, State.GOOD), f"EV {ev:#x}: {change} by sending")
        self.states = now
