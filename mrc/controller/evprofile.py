# SPDX-License-Identifier: BSD-2-Clause
"""EV profiles as the controller manages them: attributes, the array of EVs, operations on it (C.5).

`profile` is what connect(), listen() and PathTable take while it is ONLINE. Path tables made from
it follow it: states set here are set there, replaced EVs are replaced there.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from mrc._typed import wrong_type
from mrc.errors import MrcControlError, MrcProfileError
from mrc.ev import EventMask, EvEntry, EvField, EvProfile, LossRule, SkipRule
from mrc.path import PathTable
from mrc.types import EvState

from .attrs import UNPOPULATED, EvId, EvMode, OptAttr, ProfileState, VisibleState
from .evarray import EvArray, EvSlot
from .evattr import EvAttr, EvReplace, EvSetState
from .managed import Managed
from .steps import Step, all_or_none

__all__ = ["EvAttr", "EvReplace", "EvSetState", "EvSlot", "ManagedEvProfile"]


class ManagedEvProfile(Managed[EvAttr]):
    """One EV profile."""

    what = "EV profile"
    offline_needs = ("mode", "format", "count", "fields")
    online_needs = ("min_active", "events")
    online_may = ("events", "fields")

    _array: EvArray | None = None
    _made: EvProfile | None = None

    # -- use -----------------------------------------------------------------------------------

    @property
    def profile(self) -> EvProfile:
        """For connect(ev_profile=...). EINVAL: it is not ONLINE."""
        self.node.require_open()
        if self._made is None:
            self.refuse(errno.EINVAL, f"is {self.state.name}; take it ONLINE to use it")
        return self._made

    def tables(self) -> list[PathTable]:
        """Path tables that use it now."""
        return [t for t in self.node.ctx.paths if t.profile.origin is self]

    @property
    def size(self) -> int:
        """EVs it takes of the device's."""
        return 0 if self._array is None else len(self._array.slots)

    def slot_of(self, wire: int) -> EvSlot | None:
        """The entry that is this EV on the wire, or None: it was replaced."""
        return self._array.by_wire(wire) if self._array is not None else None

    # -- attributes ----------------------------------------------------------------------------

    def modify(
        self,
        attr: EvAttr | None = None,
        *,
        state: ProfileState | None = None,
        ops: Sequence[EvReplace | EvSetState] = (),
    ) -> None:
        """As Managed.modify; or operations on EVs, of one kind, which exclude all else.

        They are carried out in order until one is refused; the error's `done` says how many were,
        query_array() shows the outcome. One operation is done in all path tables or in none.
        ENOENT: no such EV. E2BIG: more than ev_op_max_entries. EIO: the system refused a path.
        """
        if not ops:
            super().modify(attr, state=state)
            return
        if attr is not None or state is not None:
            self.refuse(
                errno.EINVAL, "operations on EVs come alone; set attributes in another call"
            )
        self._check_ops(ops)
        if len({type(op) for op in ops}) > 1:
            self.refuse(errno.EINVAL, "operations of several kinds; make one call for each kind")
        most = self.node.limits.ev_op_max_entries
        if most and len(ops) > most:
            self.refuse(
                errno.E2BIG, f"{len(ops)} operations, where {most} are possible; split them"
            )
        self._operate(ops)

    def _check_ops(self, ops: Sequence[EvReplace | EvSetState]) -> None:
        for op in ops:
            if not isinstance(op, EvReplace | EvSetState):
                self.refuse(errno.EINVAL, f"{op!r:.60} is no operation on an EV")
            problem = wrong_type(op)
            if problem is not None:
                self.refuse(errno.EINVAL, problem)

    def _check(self, attr: EvAttr) -> None:
        fmt = self.node.format(attr.format or 0)
        limits = self.node.limits
        if attr.mode not in tuple(EvMode):
            self.refuse(errno.EINVAL, f"mode {attr.mode!r} is not one of AUTO, EXPLICIT, GENERATED")
        count = attr.count or 0
        if not 1 <= count <= limits.ev_max_count_profile:
            self.refuse(errno.EINVAL, f"count {count} is not in 1..{limits.ev_max_count_profile}")
        if count % limits.ev_count_align:
            self.refuse(errno.EINVAL, f"count {count} is no multiple of {limits.ev_count_align}")
        own = 0 if self._array is None else len(self._array.slots)
        free = self.node.attributes().ev_free_count + own
        if count > free:
            self.refuse(errno.E2BIG, f"{count} EVs, where {free} are free; take profiles to INIT")
        backups = attr.backups or 0
        if not 0 <= backups < count:
            self.refuse(errno.EINVAL, f"backups {backups} is not in 0..{count - 1}")
        if attr.min_active is not None and not 0 < attr.min_active <= count - backups:
            self.refuse(
                errno.EINVAL, f"min_active {attr.min_active} is not in 1..{count - backups}"
            )
        self._check_events(attr.events)
        self._check_fields(attr.fields or (), fmt.attr.widths or ())

    def _check_events(self, events: EventMask | None) -> None:
        if events is None or not events:
            return
        if events & ~(EventMask.GOOD | EventMask.ASSUMED_BAD):
            self.refuse(errno.EINVAL, f"events {events!r}: only GOOD and ASSUMED_BAD may be asked")
        if OptAttr.EV_EVENTS not in self.node.limits.opt_attr:
            self.refuse(errno.EPERM, "this device has no EV events; ask for none")

    def _check_fields(self, fields: tuple[EvField, ...], widths: tuple[int, ...]) -> None:
        """D.3. A format that has no widths yet is checked when the profile goes ONLINE."""
        for index, field in enumerate(fields, 1):
            problem = field.check()
            if problem is not None:
                self.refuse(errno.EINVAL, f"field {index}: {problem[0]}: {problem[1]}")
        bits, most = sum(f.bits for f in fields), self.node.attributes().ev_max_width
        if bits > most:
            self.refuse(errno.EINVAL, f"{bits} bits of EV, where {most} are possible")
        if not widths:
            return
        if len(fields) > len(widths):
            self.refuse(errno.EINVAL, f"{len(fields)} fields, the format has {len(widths)}")
        if sum(f.width for f in fields) > sum(widths):
            self.refuse(errno.EINVAL, f"fields are wider than the format's {sum(widths)} bits")
        for index, (field, width) in enumerate(zip(fields, widths, strict=False), 1):
            if field.width > width:
                self.refuse(errno.EINVAL, f"field {index}: {field.width} bits, it has {width}")

    def _may_change_online(self) -> bool:
        return OptAttr.EV_ONLINE in self.node.limits.opt_attr

    def _users(self) -> str:
        found = self.tables()
        return f"{len(found)} path tables of queue pairs" if found else ""

    # -- transitions ---------------------------------------------------------------------------

    def _enter(self, attr: EvAttr, to: ProfileState) -> None:
        if to is ProfileState.INIT:
            self._array = self._made = None
            return
        array = self._array_for(attr)
        made = None
        if to is ProfileState.ONLINE:
            made = self._make(attr, array)
            if self.state is ProfileState.ONLINE:
                self._follow(array, attr)
        self._array, self._made = array, made

    def _array_for(self, attr: EvAttr) -> EvArray:
        """The present array where it still holds, a new one where the attributes make another."""
        fmt = self.node.format(attr.format or 0)
        key = (attr.mode, attr.format, attr.count, attr.fields, fmt.attr)
        if self._array is not None and self._array.key == key:
            return self._array
        array = EvArray(key, self.node.ports(), self.node.ctx.seed ^ self.id, after=self._array)
        try:
            array.fill(attr.mode or EvMode.AUTO, attr.count or 0, attr.fields or (), fmt)
        except MrcProfileError as exc:
            self.refuse(errno.EINVAL, str(exc))
        if self._array is not None and attr.mode is EvMode.EXPLICIT:
            array.keep(self._array)
        return array

    def _make(self, attr: EvAttr, array: EvArray) -> EvProfile:
        """What queue pairs take. EINVAL: the array or the format is not ready, or D.3 is broken."""
        fmt = self.node.format(attr.format or 0)
        if fmt.state is not ProfileState.ONLINE:
            self.refuse(errno.EINVAL, f"is of format {fmt.id}, which is {fmt.state.name}")
        try:
            entries = array.entries(fmt, attr.fields or ())
            if OptAttr.EV_RANGE in self.node.limits.opt_attr and attr.mode is EvMode.EXPLICIT:
                array.check_range(attr.fields or ())
            backups = attr.backups or 0
            entries = [
                replace(e, backup=i >= len(entries) - backups) for i, e in enumerate(entries)
            ]
            made = EvProfile(
                fmt.format,
                tuple(entries),
                attr.min_active or 0,
                f"{self.what} {self.id}",
                reverse=attr.reverse,
                loss=attr.loss or LossRule.COMPARED,
                skip=attr.skip or SkipRule.COMPARED,
                events=attr.events or EventMask.NONE,
                origin=self,
            )
        except MrcProfileError as exc:
            raise MrcControlError(errno.EINVAL, str(exc)) from exc
        return made.denying(s.wire for s in array.slots if s.denied)

    def _follow(self, array: EvArray, attr: EvAttr) -> None:
        """Tables in use take over events and paths. EBUSY: an EV would change its port (D.7)."""
        old = self._array
        assert old is not None  # noqa: S101 - it is ONLINE
        steps: list[Step] = []
        if array is not old and self.tables():
            if any(a.id.port != b.id.port for a, b in zip(array.slots, old.slots, strict=True)):
                self.refuse(errno.EBUSY, "an EV would change its port, and queue pairs use it")
            if {s.wire for s in array.slots} & {s.wire for s in old.slots}:
                self.refuse(errno.EBUSY, "EVs would change places, and queue pairs use them")
            for before, slot in zip(old.slots, array.slots, strict=True):
                steps += self._moves(
                    self._entry(before, old, self.attr),
                    before,
                    self._entry(slot, array, attr),
                    slot,
                )
        asked, former = attr.events or EventMask.NONE, self.attr.events or EventMask.NONE
        for table in self.tables():
            steps.append(Step(partial(table.set_events, asked), partial(table.set_events, former)))
        all_or_none(f"{self.what} {self.id}", steps)

    # -- operations on EVs ---------------------------------------------------------------------

    def _operate(self, ops: Sequence[EvReplace | EvSetState]) -> None:
        self._require_exists()
        if self._array is None:
            self.refuse(errno.EINVAL, "has no EVs yet; take it OFFLINE first")
        for done, op in enumerate(ops):
            try:
                if isinstance(op, EvReplace):
                    self._replace(op)
                else:
                    self._set_state(op)
            except MrcControlError as exc:
                exc.done = done
                raise
            finally:
                self._remake()

    def _remake(self) -> None:
        if self._made is not None and self._array is not None:
            self._made = self._make(self.attr, self._array)

    def _occurrences(self, ev: EvId, all_copies: bool) -> list[EvSlot]:
        assert self._array is not None  # noqa: S101 - checked by the caller
        found = [s for s in self._array.slots if s.id == ev]
        if not found:
            self.refuse(errno.ENOENT, f"no EV is {ev}; read the array with query_array()")
        return found if all_copies else found[:1]

    def _set_state(self, op: EvSetState) -> None:
        self._check_settable(op.state)
        if op.ev == UNPOPULATED:
            self.refuse(errno.EINVAL, "an unpopulated entry has no state; replace it")
        slots = self._occurrences(op.ev, op.all_copies)
        denied = op.state is VisibleState.DENIED
        steps = [
            Step(partial(_deny, t, s.wire, denied), partial(_deny, t, s.wire, s.denied))
            for s in slots
            for t in self.tables()
        ]
        all_or_none(f"{self.what} {self.id}", steps)
        for slot in slots:
            slot.denied = denied

    def _replace(self, op: EvReplace) -> None:
        attr, array = self.attr, self._array
        assert array is not None  # noqa: S101 - checked by the caller
        slots = self._replaceable(op, attr, array)
        used = self.state is ProfileState.ONLINE and bool(self.tables())
        former = [(replace(s), self._entry(s, array, attr) if used else None) for s in slots]
        try:
            for slot in slots:
                array.put(slot, op.new, denied=op.state is VisibleState.DENIED)
            self._remake()
            steps: list[Step] = []
            for (before, entry), slot in zip(former, slots, strict=True):
                if entry is not None:
                    steps += self._moves(entry, before, self._entry(slot, array, attr), slot)
            all_or_none(f"{self.what} {self.id}", steps)
        except MrcControlError:
            for (before, _), slot in zip(former, slots, strict=True):
                array.restore(slot, before)
            raise

    def _replaceable(self, op: EvReplace, attr: EvAttr, array: EvArray) -> list[EvSlot]:
        """The entries an operation is about, once nothing speaks against it."""
        self._check_settable(op.state)
        if attr.mode is not EvMode.EXPLICIT:
            self.refuse(errno.EINVAL, "EVs are replaced in explicit mode only")
        online = self.state is ProfileState.ONLINE
        if online and not self._may_change_online():
            self.refuse(errno.EPERM, "is ONLINE, where this device replaces no EV")
        slots = self._occurrences(op.ev, op.all_copies)
        if not self.node.attributes().phy_port_mask >> op.new.port & 1:
            self.refuse(errno.EINVAL, f"{op.new}: the device has no such port")
        if online and op.new.port != op.ev.port and self.tables():
            self.refuse(errno.EBUSY, f"{op.new}: queue pairs use it; keep to port {op.ev.port}")
        try:
            array.check(op.new, self.node.format(attr.format or 0), attr.fields or ())
        except MrcProfileError as exc:
            self.refuse(errno.EINVAL, f"{op.new}: {exc}")
        return slots

    def _entry(self, slot: EvSlot, array: EvArray, attr: EvAttr) -> EvEntry:
        return array.entry(slot, self.node.format(attr.format or 0), attr.fields or ())

    def _moves(self, old: EvEntry, before: EvSlot, new: EvEntry, slot: EvSlot) -> Iterator[Step]:
        """One EV takes the place of another in each path table."""
        for t in self.tables():
            yield Step(
                partial(t.replace, old.value, new, deny=slot.denied),
                partial(t.replace, new.value, old, deny=before.denied),
            )

    def _check_settable(self, state: VisibleState) -> None:
        if state not in (VisibleState.GOOD, VisibleState.DENIED):
            self.refuse(errno.EINVAL, f"{state.name} cannot be set; GOOD and DENIED can")

    # -- queries -------------------------------------------------------------------------------

    def query_state(self, evs: Sequence[EvId]) -> list[VisibleState]:
        """The state of each. Of an EV of several peers the worst. ENOENT: no such EV."""
        self._require_exists()
        array = self._array
        if array is None:
            self.refuse(errno.EINVAL, "has no EVs yet; take it OFFLINE first")
        bad = self._bad()
        return [self._visible(self._occurrences(ev, all_copies=False)[0], bad) for ev in evs]

    def query_array(self, size: int) -> list[tuple[EvId, VisibleState]]:
        """All EVs with their states. E2BIG: there are more than `size`; `needed` says how many."""
        self._require_exists()
        if type(size) is not int:
            self.refuse(errno.EINVAL, f"size {size!r:.60} is not a number")
        slots = self._array.slots if self._array is not None else []
        if len(slots) > size:
            raise MrcControlError(
                errno.E2BIG,
                f"{self.what} {self.id}: has {len(slots)} EVs, the array room for {size}",
                needed=len(slots),
            )
        bad = self._bad()
        return [(s.id, self._visible(s, bad)) for s in slots]

    def _bad(self) -> set[int]:
        """EVs that are ASSUMED_BAD towards any peer."""
        return {s.ev for t in self.tables() for s in t.stats() if s.state is EvState.ASSUMED_BAD}

    @staticmethod
    def _visible(slot: EvSlot, bad: set[int]) -> VisibleState:
        if slot.id == UNPOPULATED:
            return VisibleState.UNKNOWN
        if slot.denied:
            return VisibleState.DENIED
        return VisibleState.ASSUMED_BAD if slot.wire in bad else VisibleState.GOOD


def _deny(table: PathTable, ev: int, denied: bool) -> None:
    if denied:
        table.deny(ev)
    else:
        table.allow(ev)
