# SPDX-License-Identifier: BSD-2-Clause
"""The C receive tracker behind Python calls."""

from mrc.model.rxtrack import Advance, Verdict
from mrc.model.sack import SackMap
from tests.oracle import unit as unit_module


class CoreReceiver:
    """One tracker."""

    def __init__(self, first: int, window: int, window_max: int) -> None:
        unit = unit_module.module()
        self.ffi, self.lib = unit.ffi, unit.lib
        self.verdicts = {getattr(self.lib, f"MRC_RX_{v.name}"): v for v in Verdict}
        self.memory = self.ffi.new("uint64_t[]", self.lib.mrc_rxtrack_bytes(window_max) // 8 + 1)
        self.tracker = self.ffi.new("struct mrc_rxtrack *")
        self.lib.mrc_rxtrack_init(self.tracker, self.memory, window_max)
        self.restart(first, window)

    def restart(self, first: int, window: int) -> None:
        """Begin anew in the same memory."""
        self.lib.mrc_rxtrack_start(self.tracker, self.psn(first), window)

    def psn(self, number: int) -> dict[str, int]:
        """Return a PSN for the border."""
        return {"v": number % (1 << 24)}

    def verdict(self, number: int) -> Verdict:
        """Judge a PSN."""
        return self.verdicts[self.lib.mrc_rxtrack_classify(self.tracker, self.psn(number))]

    def accept(self, number: int, nominal: int, *, ar: bool, last: bool) -> Advance:
        """Take in a new packet."""
        moved = self.lib.mrc_rxtrack_accept(self.tracker, self.psn(number), nominal, ar, last)
        return Advance(moved.psns, moved.messages, moved.ar_passed)

    def sack(self) -> tuple[SackMap, bool]:
        """Return the content of a SACK that leaves now, and whether more is to be told."""
        said = self.lib.mrc_rxtrack_sack(self.tracker)
        return SackMap(said.offset, said.bitmap), said.more

    @property
    def counters(self) -> tuple[int, int, int, int]:
        """Return cack, max_rcv, ooo_count, rcvd_bytes on the wire."""
        t = self.tracker
        return t.cack.v, t.max_rcv.v, t.ooo_count, self.lib.mrc_rxtrack_rcvd_units(t)
