# SPDX-License-Identifier: BSD-2-Clause
"""The responder of a queue pair (MRC B.3, B.6 to B.8, B.13, B.14).

Twin for what arrives: what is placed, delivered, counted, refused. `acking` checks what leaves.
"""

from collections import deque
from dataclasses import dataclass, field, replace

from mrc.model import psn, wire
from mrc.model.acking import Acking, Taken
from mrc.model.ends import Arrival, Completion, Drop, Ends, Memory, Status, header_of
from mrc.model.path import forbid
from mrc.model.rxtrack import Receiver, Verdict
from mrc.model.wire import NackReason, Op, Packet, Syndrome

NOTHING: frozenset[Drop] = frozenset()


@dataclass(frozen=True, slots=True)
class Stash:
    """An immediate that waits for its turn (B.8)."""

    data: int
    dmalen: int
    solicited: bool
    rqmsn: int


@dataclass(frozen=True, slots=True)
class Setup:
    """What the two sides agreed on for this direction."""

    ends: Ends
    rq_psn: int
    mpr: int  # units of 128 PSNs
    max_wimm_dest: int
    sack_threshold: int = 16384  # H7
    trim_nacks: bool = True
    dynamic_mpr: bool = False
    ooo_max: int = 0  # packets above cack that can be tracked; 0: no limit but the window
    imm_max: int = 0  # immediates that can wait; 0: no limit but max_wimm_dest


@dataclass(slots=True)
class Responder:
    """One receive side."""

    setup: Setup
    memory: Memory
    track: Receiver = field(init=False)
    acking: Acking = field(init=False)
    error: Status | None = field(init=False, default=None)
    completions: list[Completion] = field(init=False, default_factory=list)
    recvs: deque[int] = field(init=False, default_factory=deque)
    stash: dict[int, Stash] = field(init=False, default_factory=dict)
    lengths: dict[int, tuple[bool, int]] = field(init=False, default_factory=dict)  # first, payload
    delivered: int = field(init=False, default=0)  # immediates
    newest: tuple[int, int] | None = field(init=False, default=None)  # delivered: PSN, RQMSN
    paused: bool = field(init=False, default=False)  # the application takes nothing

    def __post_init__(self) -> None:
        setup = self.setup
        self.track = Receiver(setup.rq_psn, 128 * setup.mpr)
        most = setup.mpr if setup.dynamic_mpr else 0
        self.acking = Acking(setup.ends, self.track, setup.sack_threshold, most)

    def post_recv(self, wr_id: int) -> None:
        """Post a receive work request; after an error it is flushed at once."""
        self.recvs.append(wr_id)
        if self.error is not None:
            self._flush()

    def arrive(self, a: Arrival, counted: frozenset[Drop] = NOTHING) -> None:
        """Take in a packet for a responder. counted: the drops that the other side counted."""
        if self.error is not None:
            forbid(counted != {Drop.QP_STATE}, f"failed before, yet counted {counted}")
            if a.trim is None:
                self.acking.repeat(a)
        elif a.trim is not None:
            self._trimmed(a, counted)
        elif a.packet.bth.opcode == Op.PROBE:
            forbid(counted - {Drop.PROBE_RATE}, f"a probe counted as {counted}")
            if not counted:
                self.acking.probe(a)
        else:
            self._write(a, counted)

    def _trimmed(self, a: Arrival, counted: frozenset[Drop]) -> None:
        """A.13.6, B.7: no bit, no bytes; NACKed unless it has arrived before."""
        if a.packet.bth.opcode not in wire.WRITES or not self.setup.trim_nacks:
            forbid(counted != {Drop.TRIM_OFF}, f"trimmed, to be dropped, but counted {counted}")
            return
        verdict = self.track.verdict(a.packet.bth.psn)
        if verdict is Verdict.STALE:
            forbid(counted != {Drop.PSN_STALE}, f"trimmed and far away, but counted {counted}")
        elif verdict is Verdict.DUPLICATE:
            forbid(counted, f"trimmed duplicate counted as {counted}")
            self.acking.duplicate(replace(a, ce=False))  # H33
        else:
            out = verdict is Verdict.OOR_WINDOW and Drop.PSN_WINDOW in counted
            forbid(counted and (not out or len(counted) > 1), f"trimmed, but counted {counted}")
            reason = header_of(a.trim)
            self.acking.refuse(a, NackReason.PSN_OOR_WINDOW if out else reason)

    def _write(self, a: Arrival, counted: frozenset[Drop]) -> None:
        verdict = self.track.verdict(a.packet.bth.psn)
        if self._malformed(a.packet) and (verdict is Verdict.NEW or Drop.PAYLOAD in counted):
            forbid(counted != {Drop.PAYLOAD}, f"impossible payload counted as {counted}")
        elif verdict is Verdict.STALE:
            forbid(counted != {Drop.PSN_STALE}, f"far away, but counted {counted}")
        elif verdict is Verdict.OOR_WINDOW:
            forbid(counted != {Drop.PSN_WINDOW}, f"beyond the window, but counted {counted}")
            self.acking.refuse(a, NackReason.PSN_OOR_WINDOW)
        elif verdict is Verdict.DUPLICATE:
            forbid(counted, f"duplicate counted as {counted}")
            self.acking.duplicate(a)
        elif not self._no_room(a, counted):
            self._accept(a, counted)

    def _no_room(self, a: Arrival, counted: frozenset[Drop]) -> bool:
        """B.3, last row: NACKed and forgotten.

        What comes next in order needs no tracking and no place to wait: were it refused for want
        of them, nothing could ever make room.
        """
        setup, track = self.setup, self.track
        early = psn.diff(a.packet.bth.psn, track.cack) > 1
        waiting = sum(n > track.cack for n in self.stash)
        bits = early and 0 < setup.ooo_max <= 2 * track.ooo_count  # half a pool is left to others
        places = early and a.packet.immdt is not None and 0 < setup.imm_max <= 2 * waiting
        short = {
            Drop.PAUSED: (self.paused, NackReason.NO_RESOURCE),
            Drop.NO_BITMAP: (bits, NackReason.NO_BITMAP),
            Drop.NO_BUFFER: (places, NackReason.NO_PKT_BUFFER),
        }
        true = {drop for drop, (is_short, _) in short.items() if is_short}
        said = counted & short.keys()
        forbid(not said <= true, f"room for it, but counted {said}")
        forbid(true and len(said) != 1, f"no room, {true}, but counted {counted}")
        for drop in said:
            self.acking.refuse(a, short[drop][1])
        return bool(said)

    def _malformed(self, p: Packet) -> bool:
        """A.1, B.2: all packets of a message but its last carry one path MTU."""
        mtu, length = self.setup.ends.mtu, len(p.payload)
        if p.bth.opcode in (Op.WRITE_FIRST, Op.WRITE_MIDDLE):
            return length != mtu
        if p.bth.opcode in (Op.WRITE_LAST, Op.WRITE_LAST_IMM):
            return not 1 <= length <= mtu
        return length > mtu

    def _accept(self, a: Arrival, counted: frozenset[Drop]) -> None:
        """B.3: check, track, place, stash, deliver, acknowledge.

        The text tracks before it checks the key; as a refused packet ends the queue pair, nobody
        can tell.
        """
        p = a.packet
        first = p.bth.opcode in (Op.WRITE_FIRST, Op.WRITE_ONLY, Op.WRITE_ONLY_IMM)
        last = p.bth.opcode not in (Op.WRITE_FIRST, Op.WRITE_MIDDLE)
        number = psn.unwrap(p.bth.psn, self.track.cack)
        if self._refused(p, counted):
            self._fail(number, Syndrome.NAK_REMOTE_ACCESS)
            return
        if counted == {Drop.RQMSN}:
            forbid(not self._misnumbered(p, number), "an immediate with the right number dropped")
            return
        reth = header_of(p.reth)
        if p.immdt is not None:
            number_of = header_of(p.meth).rqmsn
            item = Stash(p.immdt.data, reth.dmalen, p.bth.solicited, number_of)
            self.stash[number] = item
        if self._too_many(p, counted):
            self._fail(number, Syndrome.NAK_INVALID_REQUEST)
            return
        ooo, fresh = self.track.ooo_count, self.track.max_rcv < self.setup.rq_psn
        moved = self.track.accept(p.bth.psn, a.nominal, ar=bool(p.bth.a), last=last)
        if p.payload:
            self.memory.write(reth.r_key, reth.va, p.payload)
        self.lengths[number] = first, len(p.payload)
        self.acking.completed += moved.messages
        self._deliver(counted)
        self.acking.accepted(a, Taken(number, fresh, ooo, moved.ar_passed))

    def _misnumbered(self, p: Packet, number: int) -> bool:
        """A.5, B.8: immediates are numbered in the order of their PSNs, each by one."""
        if p.immdt is None:
            return False
        known = [(n, item.rqmsn) for n, item in self.stash.items()]
        known += [] if self.newest is None else [self.newest]
        mine = header_of(p.meth).rqmsn
        for other, rqmsn in known:
            steps = psn.diff(mine, rqmsn, 16) if number > other else psn.diff(rqmsn, mine, 16)
            if not 1 <= steps <= abs(number - other):
                return True
        return False

    def _refused(self, p: Packet, counted: frozenset[Drop]) -> bool:
        """Key, rights, range. A packet without bytes touches nothing: checked or not (H20)."""
        reth = header_of(p.reth)
        bad = not self.memory.allows(reth.r_key, reth.va, len(p.payload))
        forbid(bad and p.payload and counted != {Drop.ACCESS}, f"no access, but counted {counted}")
        forbid(not bad and Drop.ACCESS in counted, "refused what is allowed")
        return bad and counted == {Drop.ACCESS}

    def _too_many(self, p: Packet, counted: frozenset[Drop]) -> bool:
        """B.8, H14. Proven by immediates not delivered; RQMSN may tell earlier (H18: from 1)."""
        limit, said = self.setup.max_wimm_dest, Drop.WIMM_LIMIT in counted
        proven = p.immdt is not None and len(self.stash) > limit
        early = psn.diff(header_of(p.meth).rqmsn, self.delivered, 16) > limit
        forbid(proven and not said, f"{len(self.stash)} immediates at once, {limit} agreed")
        forbid(said and not proven and not (p.immdt and early), "fewer immediates than agreed")
        forbid(said and len(counted) > 1, f"too many immediates, but counted {counted}")
        return said

    def _deliver(self, counted: frozenset[Drop]) -> None:
        """B.8: in send order, after the data of all messages before."""
        for number in sorted(n for n in self.stash if n <= self.track.cack):
            if not self.recvs:
                forbid(counted != {Drop.NO_RECV}, f"no receive posted, but counted {counted}")
                self._fail(number, Syndrome.NAK_REMOTE_OPERATION)
                return
            item = self.stash.pop(number)
            sizes = frozenset({item.dmalen, self._length(number)})  # H21
            done = Completion(self.recvs.popleft(), recv=True, byte_len=sizes)
            self.completions.append(replace(done, imm=item.data, solicited=item.solicited))
            self.newest = number, item.rqmsn
            self.delivered += 1
        forbid(counted, f"accepted, but counted {counted}")

    def _length(self, number: int) -> int:
        """Return the bytes of the message that ends with this packet."""
        first, total = self.lengths[number]
        while not first and number - 1 in self.lengths:
            number -= 1
            first, length = self.lengths[number]
            total += length
        return total

    def _fail(self, number: int, syndrome: Syndrome) -> None:
        self.acking.fail((psn.wrap(number), syndrome))
        self.error = Status.LOC_QP_OP_ERR
        self._flush()

    def fail(self, cause: Status) -> None:
        """Enter the error state for a reason of the other role."""
        if self.error is None:
            self.acking.fail(None)
            self.error = cause
            self._flush()

    def _flush(self) -> None:
        """B.13: receives are flushed."""
        while self.recvs:
            wr_id = self.recvs.popleft()
            self.completions.append(Completion(wr_id, Status.WR_FLUSH_ERR, recv=True))
