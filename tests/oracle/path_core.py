# SPDX-License-Identifier: BSD-2-Clause
"""The C PathTable behind Python calls; entries are numbers, None is MRC_EV_NONE."""

from collections.abc import Sequence
from typing import Any

from mrc.model.path import Entry, Limits, State
from tests.oracle import unit as unit_module

NONE = 0xFFFF


class CorePath:
    """One table and two cursors for data, as two QPs would have."""

    def __init__(self, entries: Sequence[Entry], limits: Limits, **settings: int) -> None:
        unit = unit_module.module()
        self.ffi, self.lib = unit.ffi, unit.lib
        self.numbers = {s: getattr(self.lib, f"MRC_EV_{s.name}") for s in State}
        self.by_number = {number: s for s, number in self.numbers.items()}
        cfg = self.ffi.new(
            "struct mrc_path_cfg *",
            {
                "count": len(entries),
                "min_active": limits.min_active,
                "probe_successes": limits.probe_successes,
                "probe_interval_ns": limits.probe_interval_ns,
                "probe_interval_max_ns": limits.probe_interval_max_ns,
            }
            | settings,
        )
        each = self.ffi.new(
            "struct mrc_path_entry_cfg[]",
            [
                {"ev": self.wire_value(i), "plane": e.plane, "backup": e.backup}
                for i, e in enumerate(entries)
            ],
        )
        self.memory = self.ffi.new("uint64_t[]", self.lib.mrc_path_size(cfg) // 8 + 1)
        self.table = self.lib.mrc_path_init(self.memory, cfg, each, 0)
        assert self.table != self.ffi.NULL
        self.cursors = self.ffi.new("struct mrc_path_cursor[3]")
        for number in range(3):
            self.lib.mrc_path_cursor_init(self.cursors + number, number)
        self.count = len(entries)

    @staticmethod
    def wire_value(i: int) -> int:
        """The EV of entry i."""
        return 0x10000 * (i % 7) + 49152 + i

    def roles(self) -> list[tuple[State, bool]]:
        """Return state and backup flag of each entry."""
        stats, found = self.ffi.new("struct mrc_path_stats *"), []
        for i in range(self.count):
            self.lib.mrc_path_stats(self.table, i, stats)
            found.append((self.by_number[stats.state], bool(stats.backup)))
        return found

    def state_of(self) -> list[State]:
        """Return the state of each entry."""
        state = self.lib.mrc_path_state
        return [self.by_number[state(self.table, i)] for i in range(self.count)]

    def select(self, cursor: int, mask: int, avoid: int | None, now: int) -> int | None:
        """Select for data with one of the two cursors."""
        without = NONE if avoid is None else avoid
        return none(self.lib.mrc_path_select(self.table, self.cursors + cursor, mask, without, now))

    def select_control(self, plane: int) -> int | None:
        """Select for control with the third cursor."""
        return none(self.lib.mrc_path_select_control(self.table, self.cursors + 2, plane))

    def reverse(self, request: int | None) -> int | None:
        """Choose for an answer, with the third cursor; None: the EV is not in the table."""
        ev = 0xBEEF if request is None else self.wire_value(request)
        return none(self.lib.mrc_path_reverse(self.table, self.cursors + 2, ev))

    def events(self) -> list[tuple[int, State, State, int]]:
        """Return all queued events: wire value, from, to, drop count."""
        event, found = self.ffi.new("struct mrc_ev_event *"), []
        while self.lib.mrc_path_event_poll(self.table, event):
            before, after = (self.by_number[getattr(event, name)] for name in ("from", "to"))
            found.append((event.ev, before, after, event.drop_count))
        return found

    def probe_due(self, now: int) -> tuple[int, int] | None:
        """Return entry and id of a probe to send now."""
        probe_id = self.ffi.new("uint16_t *")
        entry = none(self.lib.mrc_path_probe_due(self.table, probe_id, now))
        return None if entry is None else (entry, probe_id[0])

    def __getattr__(self, name: str) -> Any:
        """`core.on_loss(...)` is mrc_path_on_loss(table, ...)."""
        call = getattr(self.lib, f"mrc_path_{name}")
        return lambda *args: call(self.table, *args)


def none(entry: int) -> int | None:
    """Return None for MRC_EV_NONE."""
    return None if entry == NONE else entry
