# SPDX-License-Identifier: BSD-2-Clause
"""A core that receives, and the model that judges each of its answers."""

from dataclasses import replace
from typing import Any

from mrc.model import wire
from mrc.model.ends import Arrival, Memory, Region
from mrc.model.path import State
from mrc.model.responder import Responder, Setup
from mrc.model.wire import NackReason, Packet
from tests.oracle import unit as unit_module
from tests.oracle.engine_core import (
    CE,
    DSCP_CONTROL,
    DSCP_DATA,
    DSCP_RETX,
    ECT0,
    CoreEngine,
    Options,
    Wired,
    model_drops,
    same_completions,
)
from tests.oracle.sending import TRIM_CLASSES


class Answerer:
    """The responder of a core engine beside the model's."""

    def __init__(self, options: Options, now: int, *, dynamic: bool = False) -> None:
        cap = unit_module.module().lib.MRC_QP_CAP_DYNAMIC_MPR if dynamic else 0
        self.core, self.dynamic, self.posted = (
            CoreEngine(replace(options, cap=cap), now),
            dynamic,
            0,
        )
        self.regions: list[Region] = []

    def connect(self, peer: int, *regions: Region) -> None:
        """Connect, and let the model know the regions."""
        self.core.connect(peer)
        self.regions = list(regions)
        o = self.core.o
        setup = Setup(
            self.core.ends,
            o.rq_psn,
            o.mpr,
            o.max_wimm_dest,
            o.sack_threshold or 16384,
            dynamic_mpr=self.dynamic,
            ooo_max=o.ooo_max,
            imm_max=o.imm_max,
        )
        self.model = Responder(setup, Memory({r.key: r for r in regions}))
        self.model.acking.penalty = o.penalty % 0xFF

    def receives(self, most: int) -> None:
        """Post receives up to the depth of the queue."""
        while len(self.model.recvs) < most and self.model.error is None:
            self.posted += 1
            assert self.core.post_recv(self.posted)
            self.model.post_recv(self.posted)

    def give(
        self,
        p: Packet,
        ev: int,
        *,
        ce: bool = False,
        trim: NackReason | None = None,
        keep: int | None = None,
    ) -> None:
        """One packet to both, and what both say at once. keep: bytes that a trim left of it."""
        dscp = (DSCP_RETX if p.bth.rtx else DSCP_DATA) if trim is None else TRIM_CLASSES[trim]
        w = Wired(p, ev, dscp << 2 | (CE if ce else ECT0))
        seen = p
        if trim is not None:
            seen = wire.decode((w.transport + bytes(4))[:keep], trimmed=True)
        counted = self.core.rx(w, keep=keep)
        self.model.arrive(Arrival(seen, ev, w.nominal, ce, trim), model_drops(counted))

    def drain(self) -> list[Wired]:
        """All answers leave."""
        out: list[Wired] = []
        while (w := self.core.tx_one()) is not None:
            assert w.tclass == DSCP_CONTROL << 2, "control class, Not-ECT (A.13.5)"
            states = self.core.ev_states()
            assert w.ev in states and states[w.ev] is not State.DENIED  # noqa: PT018
            self.model.acking.emit(w.packet)
            out.append(w)
        self.model.acking.settle()
        return out

    def check(self) -> None:
        """Memory, completions and state are the same."""
        for region in self.regions:
            assert self.core.content(region) == bytes(region.data)
        said: list[Any] = self.core.poll(recv=True)
        assert same_completions(said, self.model.completions), (said, self.model.completions)
        self.model.completions = []
        assert self.core.failed == (self.model.error is not None)
        assert not self.core.poll(recv=False)
