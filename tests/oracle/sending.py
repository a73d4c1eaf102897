# SPDX-License-Identifier: BSD-2-Clause
"""A core, and the model that judges each of its steps."""

from dataclasses import replace

from mrc.model import wire
from mrc.model.agreed import Setup
from mrc.model.cutting import Work
from mrc.model.ends import Arrival, Memory
from mrc.model.evwatch import EvWatch
from mrc.model.losses import Now
from mrc.model.path import USABLE
from mrc.model.qp import FOR_REQUESTOR, QueuePair
from mrc.model.requestor import Requestor
from mrc.model.responder import Responder
from mrc.model.responder import Setup as Receiving
from mrc.model.retry import Schedule
from mrc.model.wire import NackReason
from tests.oracle.engine_core import (
    CE,
    DSCP_CONTROL,
    DSCP_DATA,
    DSCP_RETX,
    DSCP_TRIMMED,
    DSCP_TRIMMED_LASTHOP,
    ECT0,
    CoreEngine,
    Options,
    Wired,
    model_drops,
    same_completions,
)

TRIM_CLASSES = {
    NackReason.TRIMMED: DSCP_TRIMMED,
    NackReason.TRIMMED_LASTHOP: DSCP_TRIMMED_LASTHOP,
}
CLASSES = {DSCP_DATA << 2 | ECT0: False, DSCP_RETX << 2 | ECT0: True}


class Judged:
    """The queue pair of a core engine beside the model's."""

    def __init__(self, options: Options, now: int) -> None:
        self.core = CoreEngine(options, now)
        self.source = self.core.register(1 << 14)
        self.core.fill(self.source, bytes(i * 31 % 253 for i in range(1 << 14)))
        self.inbox = self.core.register(1 << 14)  # for the peer to write to
        self.watch = EvWatch(self.core.ev_states())
        self.posted = self.posted_recv = 0
        self.out: list[Wired] = []  # left while time passed

    def connect(self, peer: int, target: tuple[int, int]) -> None:
        """Connect to a QPN, to write to an address by a key."""
        self.core.connect(peer)
        self.target_start, self.target_key = target
        o, ends = self.core.o, self.core.ends
        dynamic = bool(o.cap & self.core.lib.MRC_QP_CAP_DYNAMIC_MPR)
        threshold = o.sack_threshold or 16384
        schedule = Schedule(o.timeout, o.linear_cnt, o.exp_cnt)
        sending = Setup(ends, o.sq_psn, o.mpr, o.mpr_max, o.max_wimm, schedule, threshold)
        sending = replace(sending, dynamic_mpr=dynamic, two_classes=o.retx_class)
        sending = replace(sending, timestamps=o.timestamps)
        receiving = Receiving(ends, o.rq_psn, o.mpr, o.max_wimm_dest, threshold)
        receiving = replace(receiving, ooo_max=o.ooo_max, imm_max=o.imm_max, dynamic_mpr=dynamic)
        responder = Responder(receiving, Memory({self.inbox.key: self.inbox}))
        self.model = Requestor(sending, self.core.now)
        self.pair = QueuePair(self.model, responder)

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
        self.pair.settle(self.here())

    def judge(self, w: Wired) -> None:
        """One packet that left."""
        here, control = self.here(), w.tclass == DSCP_CONTROL << 2
        if w.packet.peth is not None:
            assert control or w.tclass in CLASSES
            self.watch.probed(w.packet.peth.probe_id, w.ev)
        else:
            assert control == is_answer(w), "class of control packets, and of no others (A.13.5)"
        again = CLASSES.get(w.tclass, False)
        self.pair.emit(w.packet, w.ev, again_class=again, here=here)
        if not is_answer(w):
            self.watch.sent(self.core.ev_states())

    def blamed(self) -> set[int]:
        """EVs of packets that may be declared lost now."""
        losses, track = self.model.losses, self.model.track
        losses.look(self.here())
        self.model.flight.lost(losses.allowed)
        return {track.packets[n].ev for n in losses.allowed if n in track.packets}

    def hear(
        self, w: Wired, *, ce: bool = False, trim: NackReason | None = None, keep: int | None = None
    ) -> None:
        """A packet arrives. keep: bytes that a trim left of it."""
        before = self.blamed()
        flying = {n: s.ev for n, s in self.model.track.packets.items()}
        tclass = w.tclass | CE * ce if trim is None else TRIM_CLASSES[trim] << 2 | ECT0
        counted = model_drops(self.core.rx(Wired(w.packet, w.ev, tclass), keep=keep))
        seen = w.packet
        if trim is not None:
            seen = wire.decode((w.transport + bytes(4))[:keep], trimmed=True)
        arrival = Arrival(seen, w.ev, w.nominal, ce, trim)
        taken = self.pair.arrive(arrival, counted, self.here(), failed=self.core.failed)
        lost = self.model.losses.allowed
        blamed = before | self.blamed() | {flying[n] for n in lost if n in flying}
        self.watch.heard(seen if taken else None, blamed, self.core.ev_states())
        self.check()

    def receives(self, most: int) -> None:
        """Post receives up to the depth of the queue."""
        while len(self.pair.responder.recvs) < most and not self.pair.failed:
            self.posted_recv += 1
            assert self.core.post_recv(self.posted_recv)
            self.pair.responder.post_recv(self.posted_recv)

    def wait(self, now: int) -> None:
        """Time passes, timer by timer."""
        while (deadline := self.core.deadline) <= now:
            self._tick(deadline)
        self._tick(now)

    def _tick(self, now: int) -> None:
        self.core.tick(max(now, self.core.now))
        blamed = self.blamed()
        self.pair.passed(self.here(), failed=self.core.failed)
        self.watch.passed(blamed, self.core.ev_states())
        self.check()
        self._send()

    def check(self) -> None:
        """Both say the same of what ended, and of memory."""
        responder = self.pair.responder
        for recv, model in ((False, self.model.completions), (True, responder.completions)):
            said = self.core.poll(recv=recv)
            assert same_completions(said, model), (said, model)
            model.clear()
        assert self.core.failed == self.pair.failed
        for region in (self.source, self.inbox):
            assert bytes(region.data) == self.core.content(region)


def is_answer(w: Wired) -> bool:
    """Whether a packet is for a requestor."""
    return w.packet.bth.opcode in FOR_REQUESTOR
