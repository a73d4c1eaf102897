# SPDX-License-Identifier: BSD-2-Clause
"""States of the entropy values towards a peer, and which may be used next (MRC D.5-D.7, F.2).

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
    healed_ns: int = -1  # last return from ASSUMED_BAD or DENIED
    successes: int = 0  # probes answered in a row (F.2)
    failures: int = 0  # probes unanswered in a row
    probed_ns: int | None = None  # last probe since the verdict


@dataclass(slots=True)
class Probe:
    """A probe that is out; once overdue it is not waiting any more, but may still be answered."""

    entry: int
    sent_ns: int
    waiting: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """A change of state; before == after is a verdict held back by the floor."""

    entry: int
    before: State
    after: State

    @property
    def reported(self) -> bool:
        """Whether it raises an event: SKIP is too short-lived to show (C.6, D.10)."""
        return self.before is self.after or not {self.before, self.after} <= USABLE


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings of a table."""

    min_active: int
    probe_successes: int = 3
    probe_interval_ns: int = 1_000_000
    probe_interval_max_ns: int = 50_000_000
    probes_waiting: int = 16  # at a time; more when 5 % of the entries are more


class PathTable:
    """The EVs towards one peer. Times in nanoseconds; bit N of a mask of planes is plane N."""

    def __init__(self, entries: Iterable[Entry], limits: Limits) -> None:
        self.entries = list(entries)
        self.limits = limits
        self.local_up = self.remote_up = ALL_PLANES
        self.probes: dict[int, Probe] = {}
        self.suspects: list[int] = []  # verdicts the floor held back, oldest first
        self.changes: list[Change] = []
        self.reached: dict[int, int] = {}  # by plane: the entry of the reverse set (D.8)

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
            if e.plane == plane and e.backup and e.state in USABLE
        ]

    def _set(self, i: int, state: State, now_ns: int) -> None:
        entry = self.entries[i]
        if entry.state is state:
            return
        self.changes.append(Change(i, entry.state, state))
        if entry.state not in USABLE and state in USABLE:
            entry.healed_ns = now_ns
        entry.state = state
        self._forget_probes(i)

    def _forget_probes(self, i: int) -> None:
        entry = self.entries[i]
        entry.successes, entry.failures, entry.probed_ns = 0, 0, None
        self.probes = {n: probe for n, probe in self.probes.items() if probe.entry != i}

    def _absolve(self, i: int) -> None:
        self.suspects = [s for s in self.suspects if s != i]

    # ---- feedback: the twin (D.5) --------------------------------------------------------------

    def on_congestion(self, i: int, now_ns: int) -> None:
        """SACK m=1 or NACK TRIMMED: GOOD -> SKIP. Late feedback changes nothing."""
        if self.entries[i].state is State.GOOD:
            self._set(i, State.SKIP, now_ns)

    def on_delivered(self, i: int) -> None:
        """A sample from this entry: a verdict that was held back is void; it is a way back."""
        self._absolve(i)
        self.on_reached(i)

    def on_loss(self, i: int, sent_ns: int, promoted: int | None, now_ns: int) -> None:
        """Timeout or inferred loss; a packet sent before the entry healed is old news."""
        if sent_ns < self.entries[i].healed_ns:
            forbid(promoted is not None, "promoted a backup for a loss from before the healing")
            return
        self.on_verdict(i, promoted, now_ns)

    def on_verdict(self, i: int, promoted: int | None, now_ns: int) -> None:
        """GOOD, SKIP -> ASSUMED_BAD: loss, or SACK m=2. Held back by the floor (D.3).

        promoted: the backup that took its place. Which one is free, but it is of the same plane;
        the condemned one goes to the reserve in exchange (D.7).
        """
        entry = self.entries[i]
        if entry.state not in USABLE:
            forbid(promoted is not None, "promoted a backup, though nothing was condemned")
            return
        reserve = [] if entry.backup else self.reserve(entry.plane)
        if i in self.active() and not reserve and len(self.active()) <= self.limits.min_active:
            forbid(promoted is not None, "promoted a backup from nowhere")
            if i not in self.suspects:
                self.suspects.append(i)
                self.changes.append(Change(i, entry.state, entry.state))
            return
        self._absolve(i)
        self._set(i, State.ASSUMED_BAD, now_ns)
        if promoted is None:
            forbid(reserve, "promoted none, though the plane had a healthy backup")
            return
        forbid(promoted not in reserve, "promoted what is no healthy backup of the plane")
        self.entries[promoted].backup, entry.backup = False, True

    def on_deferred_verdict(self, i: int, promoted: int | None, now_ns: int) -> None:
        """Check that a verdict held back is carried out now: newest first, oldest stays (D.3)."""
        forbid(i not in self.suspects, "condemned an entry without a verdict")
        forbid(i != self.suspects[-1], "carried out an older verdict before a newer one")
        self.on_verdict(i, promoted, now_ns)
        forbid(self.entries[i].state is not State.ASSUMED_BAD, "fewer active than ev_min_active")

    def set_state(self, i: int, state: State, now_ns: int) -> None:
        """Control: GOOD or DENIED only (C.5)."""
        forbid(state not in (State.GOOD, State.DENIED), "control sets GOOD or DENIED only")
        self._absolve(i)
        self._set(i, state, now_ns)

    def set_planes(self, local_up: int, remote_up: int) -> None:
        """Ports went or came, here or there; entries keep their states (D.7, H39)."""
        before = [self.up(i) for i in range(len(self.entries))]
        self.local_up, self.remote_up = local_up, remote_up
        for i, was_up in enumerate(before):
            if was_up != self.up(i):
                self._forget_probes(i)

    # ---- probes (F.2) --------------------------------------------------------------------------

    def on_probe_sent(self, i: int, probe_id: int, now_ns: int) -> None:
        """Check the choice of a probe to send."""
        entry, limits = self.entries[i], self.limits
        forbid(entry.state is not State.ASSUMED_BAD, "probed what is not assumed bad")
        forbid(not self.up(i), "probed a plane that is down")
        waiting = {n: p.entry for n, p in self.probes.items() if p.waiting}
        forbid(probe_id in waiting, "probe id is in use")
        forbid(i in waiting.values(), "probed an entry whose last probe may still be answered")
        most = max(limits.probes_waiting, len(self.entries) * 5 // 100)
        forbid(len(waiting) >= most, "too many probes at a time")
        if entry.probed_ns is not None:
            pause = limits.probe_interval_ns << entry.failures
            pause = min(pause, limits.probe_interval_max_ns)
            forbid(now_ns - entry.probed_ns < pause, "probed again too soon")
        entry.probed_ns = now_ns
        self.probes[probe_id] = Probe(i, now_ns)

    def on_probe_answer(self, probe_id: int, mark: int, now_ns: int) -> int | None:
        """Take an answer. Enough in a row heal: GOOD, or SKIP when the last was marked (H12).

        m=2 in it asks us to stay away: as good as no answer. So is m=3, which is reserved.
        """
        probe = self.probes.pop(probe_id, None)
        if probe is None:
            return None
        entry = self.entries[probe.entry]
        if mark >= 2:
            self._probe_failed(probe.entry)
            return probe.entry
        entry.successes, entry.failures = entry.successes + 1, 0
        if entry.successes >= self.limits.probe_successes:
            self._set(probe.entry, State.SKIP if mark == 1 else State.GOOD, now_ns)
        return probe.entry

    def _probe_failed(self, i: int) -> None:
        self.entries[i].successes = 0
        self.entries[i].failures += 1

    def expire_probes(self, now_ns: int, timeout_ns: int) -> None:
        """An unanswered probe is a failure: successes are counted in a row."""
        for probe in self.probes.values():
            if probe.waiting and now_ns - probe.sent_ns >= timeout_ns:
                probe.waiting = False
                self._probe_failed(probe.entry)

    # ---- selection: the checker (D.6) ----------------------------------------------------------

    def on_select(
        self,
        chosen: int | None,
        restored: Sequence[int],
        *,
        mask: int,
        avoid: int | None,
        now_ns: int,
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
        else:  # planes keep their share, so it is the plane that counts (D.7)
            plane = self.entries[chosen].plane
            left = {i for i in good - {avoid} if self.entries[i].plane == plane}
            forbid(left, "used a SKIP entry, though a GOOD one of its plane was left")
            forbid(chosen not in restored, "used a SKIP entry without restoring it")
        for i in restored:
            self._set(i, State.GOOD, now_ns)

    def _unusable(self, i: int, mask: int) -> str:
        entry = self.entries[i]
        if entry.state not in USABLE:
            return f"used an entry that is {entry.state.value}"
        if entry.backup:
            return "used a backup that was not promoted"
        return "used a plane that is down" if not self.up(i) else f"plane not in mask {mask:#x}"

    def check_even(self, chosen: Sequence[int], mask: int) -> None:
        """Check a run of selections by one cursor, all entries GOOD throughout (D.6, D.7).

        Planes carry equal load. In a plane the order is a permutation drawn anew each time round,
        so a run meets each entry once a round, save in the rounds it begins and ends in.
        """
        usable = [i for i in self.active() if mask & 1 << self.entries[i].plane]
        used = Counter(chosen)
        by_plane = Counter({self.entries[i].plane: 0 for i in usable})
        for i, times in used.items():
            by_plane[self.entries[i].plane] += times
        uneven = max(by_plane.values()) - min(by_plane.values())
        forbid(uneven > 1, f"planes carry unequal load: {dict(by_plane)}")
        for plane in by_plane:
            each = sorted(used[i] for i in usable if self.entries[i].plane == plane)
            forbid(each[-1] - each[0] > 2, f"plane {plane}: entries used {each} times")

    # ---- the way back (D.8) --------------------------------------------------------------------

    def on_reached(self, i: int) -> None:
        """Data on it was reported received, or an EV probe was answered: its plane's in the set."""
        if self.entries[i].state in USABLE and not self.entries[i].backup:
            self.reached[self.entries[i].plane] = i

    def on_answer(self, chosen: int | None, request: int | None, *, reflect: bool) -> None:
        """Check the entry that carries an answer.

        request: the entry whose EV the request came on, None: it is not ours. reflect: the rule is
        to answer there if that is good. Else it is the set's of the request's plane, or of any
        plane that is up.
        """
        usable = set(self.active())
        if reflect and request is not None and self.up(request):
            state = self.entries[request].state
            if state in USABLE or (not usable and state is not State.DENIED):
                forbid(chosen != request, "left the EV of the request, which was good")
                return
        if not usable:
            self._last_resort(chosen)
            return
        if chosen is None or chosen not in usable:
            raise ForbiddenError("answered on what is not usable, with usable ones left")
        plane = self.entries[chosen].plane
        if request is not None:
            wish = self.entries[request].plane
            there = any(self.entries[i].plane == wish for i in usable)
            forbid(there and plane != wish, "left the plane of the request without need")
        known = self.reached.get(plane)
        forbid(known in usable and chosen != known, "not the entry known to reach the peer")
        self.reached[plane] = chosen

    def _last_resort(self, chosen: int | None) -> None:
        """Nothing is usable: any entry that nobody here has switched off."""
        left = {
            i
            for i, e in enumerate(self.entries)
            if e.state is not State.DENIED and self.local_up & 1 << e.plane
        }
        forbid(chosen is None and left, "kept silent, though something may carry an answer")
        forbid(chosen is not None and chosen not in left, "answered on what is switched off here")

    def on_select_control(self, chosen: int | None, plane: int) -> None:
        """Check an entry for a control packet: it restores nothing, plane is but a wish (D.8)."""
        usable = set(self.active())
        forbid(chosen is None and usable, "chose nothing, though an entry was usable")
        if chosen is None:
            return
        forbid(chosen not in usable, self._unusable(chosen, ALL_PLANES))
        there = {i for i in usable if self.entries[i].plane == plane}
        forbid(there and chosen not in there, "left the plane asked for without need")
        state = self.entries[chosen].state
        good = {i for i in there or usable if self.entries[i].state is State.GOOD}
        good = {i for i in good if self.entries[i].plane == self.entries[chosen].plane}
        forbid(state is State.SKIP and good, "used a SKIP entry, though a GOOD one was left")
