# SPDX-License-Identifier: BSD-2-Clause
"""States of the entropy values towards one peer, and which may be used next (MRC D.5, D.6, D.7, F.2).

Twin for changes of state, where the text leaves no choice; checker for choices: it is told what the
other side chose and raises ForbiddenError, saying why, when the text does not allow it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum


class State(Enum):
    """EV states, D.5."""

    GOOD = "good"
    SKIP = "skip"
    ASSUMED_BAD = "assumed bad"
    DENIED = "denied"


USABLE = frozenset({State.GOOD, State.SKIP})
ALL_PLANES = (1 << 32) - 1


class ForbiddenError(Exception):
    """What was done is not allowed; the message says why."""


def forbid(wrong: object, because: str) -> None:
    """Raise ForbiddenError when wrong."""
    if wrong:
        raise ForbiddenError(because)


@dataclass(slots=True)
class Entry:
    """One EV."""

    plane: int
    backup: bool = False  # reserve, used only after promotion (D.7)
    state: State = State.GOOD
    healed_ns: int = -1  # last return from ASSUMED_BAD
    successes: int = 0  # probes answered in a row (F.2)


@dataclass(slots=True)
class Probe:
    """A probe that is out."""

    entry: int
    sent_ns: int


@dataclass(frozen=True, slots=True)
class Change:
    """A change of state, as events report it (D.10)."""

    entry: int
    before: State
    after: State


class PathTable:
    """The EVs towards one peer. Time is in nanoseconds, planes are bits of a mask (bit N = plane N)."""

    def __init__(
        self, entries: Iterable[Entry], *, min_active: int, probe_successes: int = 3
    ) -> None:
        self.entries = list(entries)
        self.min_active = min_active
        self.probe_successes = probe_successes
        self.local_up = self.remote_up = ALL_PLANES
        self.probes: dict[int, Probe] = {}
        self.changes: list[Change] = []

    # ---- what is usable -----------------------------------------------------------------------

    def up(self, i: int) -> bool:
        """Return whether the plane of an entry works at both ends (D.7)."""
        return bool(self.local_up & self.remote_up & 1 << self.entries[i].plane)

    def active(self) -> list[int]:
        """Return the entries that traffic may use now: GOOD or SKIP, no backup, plane up."""
        return [
            i
            for i, e in enumerate(self.entries)
            if e.state in USABLE and not e.backup and self.up(i)
        ]

    def reserve(self, plane: int) -> list[int]:
        """Return the healthy backups of a plane (D.7)."""
        return [
            i
            for i, e in enumerate(self.entries)
            if e.plane == plane and e.backup and e.state is State.GOOD
        ]

    def _set(self, i: int, state: State) -> None:
        entry = self.entries[i]
        if entry.state is not state:
            self.changes.append(Change(i, entry.state, state))
            entry.state, entry.successes = state, 0

    # ---- feedback: the twin (D.5) --------------------------------------------------------------

    def on_congestion(self, i: int) -> None:
        """SACK m=1 or NACK TRIMMED: GOOD -> SKIP. Late feedback changes nothing."""
        if self.entries[i].state is State.GOOD:
            self._set(i, State.SKIP)

    def on_always_skip(self, i: int, promoted: int | None) -> None:
        """SACK m=2."""
        self._condemn(i, promoted)

    def on_loss(self, i: int, sent_ns: int, promoted: int | None) -> None:
        """Timeout or inferred loss of a packet sent then; one sent before the entry healed is old news."""
        if sent_ns < self.entries[i].healed_ns:
            forbid(promoted is not None, "promoted a backup for a loss from before the healing")
            return
        self._condemn(i, promoted)

    def _condemn(self, i: int, promoted: int | None) -> None:
        """GOOD, SKIP -> ASSUMED_BAD, unless too few active entries would be left (D.3).

        promoted: the backup that took its place. Which one is free, but it is of the same plane; the
        condemned one goes to the reserve in exchange (D.7).
        """
        entry = self.entries[i]
        reserve = [b for b in self.reserve(entry.plane) if b != i]
        needs = entry.state in USABLE and not entry.backup
        left = len(set(self.active()) - {i}) + bool(needs and reserve and self.up(i))
        if entry.state not in USABLE or (i in self.active() and left < self.min_active):
            forbid(promoted is not None, "promoted a backup, though nothing was condemned")
            return
        self._set(i, State.ASSUMED_BAD)
        if needs and reserve:
            forbid(promoted not in reserve, "promoted none, or none of the plane's healthy backups")
            assert promoted is not None
            self.entries[promoted].backup, entry.backup = False, True
        else:
            forbid(promoted is not None, "promoted a backup where none was needed or at hand")

    def set_state(self, i: int, state: State) -> None:
        """Control: GOOD or DENIED only (C.5)."""
        forbid(state not in (State.GOOD, State.DENIED), "control sets GOOD or DENIED only")
        self._set(i, state)

    # ---- probes (F.2) --------------------------------------------------------------------------

    def probe_limit(self) -> int:
        """Return how many entries may be under probe at a time: 5 %, at least one."""
        return max(1, len(self.entries) * 5 // 100)

    def on_probe_sent(self, i: int, probe_id: int, now_ns: int) -> None:
        """Check the choice of a probe to send."""
        forbid(self.entries[i].state is not State.ASSUMED_BAD, "probed what is not assumed bad")
        forbid(not self.up(i), "probed a plane that is down")
        forbid(probe_id in self.probes, "probe id is in use")
        forbid(any(p.entry == i for p in self.probes.values()), "two probes of one entry")
        forbid(len(self.probes) >= self.probe_limit(), "too many probes at a time")
        self.probes[probe_id] = Probe(i, now_ns)

    def on_probe_answer(self, probe_id: int, *, congested: bool, now_ns: int) -> int | None:
        """Count an answer; enough in a row heal: GOOD, or SKIP when the answer was marked (H12)."""
        probe = self.probes.pop(probe_id, None)
        if probe is None or self.entries[probe.entry].state is not State.ASSUMED_BAD:
            return None
        entry = self.entries[probe.entry]
        entry.successes += 1
        if entry.successes >= self.probe_successes:
            self._set(probe.entry, State.SKIP if congested else State.GOOD)
            entry.healed_ns = now_ns
        return probe.entry

    def expire_probes(self, now_ns: int, timeout_ns: int) -> None:
        """An unanswered probe is a failure: successes are counted in a row."""
        for probe_id, probe in list(self.probes.items()):
            if now_ns - probe.sent_ns >= timeout_ns:
                self.entries[probe.entry].successes = 0
                del self.probes[probe_id]

    # ---- selection: the checker (D.6) ----------------------------------------------------------

    def on_select(
        self, chosen: int | None, restored: Sequence[int], *, mask: int, avoid: int | None
    ) -> None:
        """Check one selection.

        restored: entries that went from SKIP to GOOD in it. mask: planes this packet may use.
        avoid: entry it should not use, if there is another (B.7, H34).
        """
        usable = {i for i in self.active() if mask & 1 << self.entries[i].plane}
        good = {i for i in usable if self.entries[i].state is State.GOOD}
        forbid(len(restored) > 1, "restored more than one SKIP entry")
        forbid(
            any(self.entries[i].state is not State.SKIP for i in restored), "restored no SKIP entry"
        )
        if chosen is None:
            forbid(usable, "chose nothing, though an entry was usable")
            return
        forbid(chosen not in usable, self._unusable(chosen, mask))
        if chosen in good:
            forbid(chosen == avoid and usable != {avoid}, "used the EV to avoid, with others left")
        else:
            forbid(good - {avoid}, "used a SKIP entry, though a GOOD one was left")
            forbid(chosen not in restored, "used a SKIP entry without restoring it")
        for i in restored:
            self._set(i, State.GOOD)

    def _unusable(self, i: int, mask: int) -> str:
        entry = self.entries[i]
        if entry.state not in USABLE:
            return f"used an entry that is {entry.state.value}"
        if entry.backup:
            return "used a backup that was not promoted"
        return "used a plane that is down" if not self.up(i) else f"plane not in mask {mask:#x}"

    def check_even(self, chosen: Sequence[int], mask: int) -> None:
        """Check a run of selections by one cursor, all entries GOOD throughout (D.6, D.7).

        Planes carry equal load. In a plane the order is a permutation drawn anew each time round, so
        a run meets each entry once a round, save in the rounds it begins and ends in.
        """
        usable = [i for i in self.active() if mask & 1 << self.entries[i].plane]
        used = Counter(chosen)
        by_plane = Counter({self.entries[i].plane: 0 for i in usable})
        for i, times in used.items():
            by_plane[self.entries[i].plane] += times
        uneven = max(by_plane.values()) - min(by_plane.values())
        forbid(uneven > 1, f"planes carry unequal load: {dict(by_plane)}")
        for plane in by_plane:
            times = [used[i] for i in usable if self.entries[i].plane == plane]
            forbid(max(times) - min(times) > 2, f"plane {plane}: entries used {sorted(times)} times")

    def check_floor(self, before: int) -> None:
        """Check that feedback did not take the active entries below the floor (D.3)."""
        forbid(len(self.active()) < min(self.min_active, before), "fewer active than ev_min_active")
