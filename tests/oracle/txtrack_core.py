# SPDX-License-Identifier: BSD-2-Clause
"""The C send tracker behind Python calls; packets are named by unbounded numbers."""

from mrc.model import psn
from mrc.model.sack import Told
from tests.oracle import unit as unit_module

NIL = 0xFFFF
OWN = 1 << 16  # slots of its own: more than any window has


class CoreSender:
    """One tracker, with slots of its own for all of its window."""

    def __init__(self, first: int, window: int, evs: int) -> None:
        unit = unit_module.module()
        self.ffi, self.lib = unit.ffi, unit.lib
        size = self.lib.mrc_txtrack_bytes(window, OWN, evs)
        self.memory = self.ffi.new("uint64_t[]", size // 8 + 1)
        self.tracker = self.ffi.new("struct mrc_txtrack *")
        self.lib.mrc_txtrack_init(self.tracker, self.memory, window, OWN, evs)
        self.lib.mrc_txtrack_start(self.tracker, self.psn(first))
        self.evs = evs

    @staticmethod
    def psn(number: int) -> dict[str, int]:
        """Return a PSN for the border."""
        return {"v": psn.wrap(number)}

    def sent(self, number: int, ev: int, cls: int, now: int) -> None:
        """Count a transmission."""
        slot = self.lib.mrc_txtrack_sent(
            self.tracker, self.psn(number), number % 1000, ev, cls, 1064, now
        )
        assert slot.psn == psn.wrap(number)

    def sack(self, told: Told, echoed: int | None) -> set[int]:
        """Do what the requestor does with a SACK; return what was news."""
        first = psn.unwrap(self.tracker.unack.v, told.cack) + 1
        known = sorted({*range(first, told.cack + 1), *told.also})
        ack = self.lib.mrc_txtrack_ack
        news = {n for n in known if ack(self.tracker, self.psn(n), n == echoed)}
        self.lib.mrc_txtrack_advance(self.tracker, self.psn(told.cack))
        return news

    def lose(self, number: int) -> None:
        """Declare a packet lost."""
        slot = self.lib.mrc_txtrack_find(self.tracker, self.psn(number))
        self.lib.mrc_txtrack_lose(self.tracker, slot)

    def next_lost(self) -> int | None:
        """Return the lowest PSN to send again, as on the wire."""
        found = self.ffi.new("struct mrc_psn *")
        return found.v if self.lib.mrc_txtrack_next_lost(self.tracker, found) else None

    def in_flight(self) -> list[int]:
        """Return PSNs in send order, by the list through the slots."""
        return self._walk(self.tracker.head, "next")

    def in_flight_on(self, ev: int, cls: int) -> list[int]:
        """Return PSNs of one EV and class in send order."""
        return self._walk(self.tracker.ev[ev].head[cls], "ev_next")

    def _walk(self, slot: int, link: str) -> list[int]:
        found: list[int] = []
        while slot != NIL:
            found.append(self.tracker.slot[slot].psn)
            slot = getattr(self.tracker.slot[slot], link)
        return found
