# SPDX-License-Identifier: BSD-2-Clause
"""A core that sends, and the model that judges each of its steps."""

from typing import Any

from mrc.model.cutting import Work
from mrc.model.ends import Memory
from mrc.model.evwatch import EvWatch
from mrc.model.losses import Now
from mrc.model.path import USABLE
from mrc.model.requestor import Requestor, Setup
from mrc.model.retry import Schedule
from mrc.model.wire import Op, Packet
from tests.oracle.engine_core import (
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

CLASSES = {DSCP_DATA << 2 | ECT0: False, DSCP_RETX << 2 | ECT0: True}


class Judged:
    """The requestor of a core engine beside the model's."""

    def __init__(self, options: Options, now: int, peer: int, target: tuple[int, int]) -> None:
        self.core = CoreEngine(options, now)
        self.core.connect(peer)
        self.source = self.core.register(1 << 14)
        self.core.fill(self.source, bytes(i * 31 % 253 for i in range(1 << 14)))
        self.memory = Memory()
        dynamic = bool(options.cap & self.core.lib.MRC_QP_CAP_DYNAMIC_MPR)
        setup = Setup(
            self.core.ends,
            options.sq_psn,
            options.mpr,
            options.mpr_max,
            options.max_wimm,
            Schedule(options.timeout, options.linear_cnt, options.exp_cnt),
            options.sack_threshold or 16384,
            dynamic,
            options.retx_class,
            options.timestamps,
        )
        self.model = Requestor(setup, now)
        self.target_start, self.target_key = target
        self.watch = EvWatch(self.core.ev_states())
        self.posted = 0
        self.out: list[Wired] = []  # left while time passed

    def here(self) -> Now:
        """This moment as the model wants it described."""
        core = self.core
        usable = {ev for ev, state in self.watch.states.items() if state in USABLE}
        return Now(
            core.now,
            core.o.window or None,
            core.lib.mrc_cc_base_rtt(core.cc),
            core.lib.mrc_cc_target_delay(core.cc),
            frozenset(usable),
        )

    def post(
        self, length: int, offset: int, imm: int | None, *, signaled: bool, solicited: bool
    ) -> bool:
        """Post a Write of bytes from the source region; False: the send queue is full."""
        lib, self.posted = self.core.lib, self.posted + 1
        work = Work(
            self.posted,
            bytes(self.source.data[offset : offset + length]),
            self.target_start + offset,
            self.target_key,
            imm,
            signaled,
            solicited,
        )
        flags = lib.MRC_SEND_SIGNALED * signaled | lib.MRC_SEND_SOLICITED * solicited
        plain, with_imm = lib.MRC_WR_RDMA_WRITE, lib.MRC_WR_RDMA_WRITE_WITH_IMM
        done = self.core.post_send(
            wr_id=work.wr_id,
            laddr=self.source.start + offset,
            raddr=work.raddr,
            length=length,
            lkey=self.source.key,
            rkey=work.rkey,
            imm=imm or 0,
            opcode=plain if imm is None else with_imm,
            flags=flags,
        )
        if done == 1:
            self.model.post(work)
        return done == 1

    def send(self) -> list[Wired]:
        """Everything that wants to leave does."""
        self._send()
        out, self.out = self.out, []
        return out

    def _send(self) -> None:
        while (w := self.core.tx_one()) is not None:
            self.judge(w)
            self.out.append(w)
        self.model.settle(self.here())

    def judge(self, w: Wired) -> None:
        """One packet that left."""
        here = self.here()
        if w.packet.peth is not None:
            assert w.tclass in {*CLASSES, DSCP_CONTROL << 2}
            self.watch.probed(w.packet.peth.probe_id, w.ev)
            self.model.probe(w.packet, w.ev, here)
        else:
            self.model.emit(w.packet, w.ev, again_class=CLASSES[w.tclass], here=here)
        self.watch.sent(self.core.ev_states())

    def blamed(self) -> set[int]:
        """EVs of packets that may be declared lost now."""
        losses, track = self.model.losses, self.model.track
        losses.look(self.here())
        self.model.flight.lost(losses.allowed)
        return {track.packets[n].ev for n in losses.allowed if n in track.packets}

    def hear(self, p: Packet, ev: int, *, tclass: int = DSCP_CONTROL << 2) -> None:
        """An answer arrives."""
        before = self.blamed()
        flying = {n: s.ev for n, s in self.model.track.packets.items()}
        counted = model_drops(self.core.rx(Wired(p, ev, tclass)))
        failed = self.core.failed
        taken = self.model.arrive(p, counted, self.here(), failed=failed)
        lost = self.model.losses.allowed
        blamed = before | self.blamed() | {flying[n] for n in lost if n in flying}
        self.watch.heard(p if taken else None, blamed, self.core.ev_states())
        self.check()

    def wait(self, now: int) -> None:
        """Time passes, timer by timer."""
        while (deadline := self.core.deadline) <= now:
            self._tick(deadline)
        self._tick(now)

    def _tick(self, now: int) -> None:
        self.core.tick(max(now, self.core.now))
        blamed = self.blamed()
        self.model.passed(self.here(), failed=self.core.failed)
        self.watch.passed(blamed, self.core.ev_states())
        self.check()
        self._send()

    def check(self) -> None:
        """Both say the same of what ended."""
        said: list[Any] = self.core.poll(recv=False)
        assert same_completions(said, self.model.completions), (said, self.model.completions)
        self.model.completions = []
        assert self.core.failed == (self.model.error is not None)
        assert bytes(self.source.data) == self.core.content(self.source)


def is_answer(w: Wired) -> bool:
    """Whether a packet is for a requestor."""
    return w.packet.bth.opcode in {Op.SACK, Op.NACK, Op.ACK}
