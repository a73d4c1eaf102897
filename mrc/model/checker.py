# SPDX-License-Identifier: BSD-2-Clause
"""Reads the log of a simulated run and says of each thing in it: allowed, or forbidden, because.

    python -m mrc.model.checker LOG

The rules (rules.py) are written from the specification and know nothing of the implementation; what
the text leaves open is allowed. A run with a hostile host is not judged: what comes in there is not
in the log.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path as FilePath

from mrc.model.check_answer import Receiver
from mrc.model.check_path import PathWatch
from mrc.model.check_send import Sender
from mrc.model.check_turn import judge_turn
from mrc.model.rules import Verdict
from mrc.model.trace import (
    Done,
    Event,
    Flow,
    In,
    Note,
    Out,
    Path,
    Post,
    Record,
    Turn,
    World,
    read,
    there,
)
from mrc.model.wire import NackReason, Op

_SHOWN = 20


@dataclass(slots=True)
class _Live:
    """A flow while its QPs live."""

    flow: Flow
    sender: Sender
    receiver: Receiver


@dataclass(slots=True)
class Checker:
    """Takes the records of a run in order; `verdicts` is empty while all is allowed."""

    verdicts: list[Verdict] = field(default_factory=list)
    world: World | None = None
    profile: dict[int, dict[int, Path]] = field(default_factory=dict)
    tables: dict[tuple[int, int], PathWatch] = field(default_factory=dict)
    live: dict[int, _Live] = field(default_factory=dict)
    by_sender: dict[tuple[int, int], _Live] = field(default_factory=dict)  # peer, its QPN
    by_answer: dict[tuple[int, int], _Live] = field(default_factory=dict)  # host, its QPN
    asked: dict[tuple[int, int], int] = field(default_factory=dict)  # host, request id: EV
    requests: dict[int, set[tuple[int, int]]] = field(default_factory=dict)  # host: peer, id
    judged: bool = True

    def report(self, rule: str, now: int, details: str) -> None:
        """Add a verdict."""
        self.verdicts.append(Verdict(rule, now, details))

    def take(self, record: Record) -> None:
        """Judge the next record."""
        if not self.judged and not isinstance(record, World):
            return
        match record:
            case World() | Path() | Flow():
                self._setting(record)
            case Turn():
                self._turn(record)
            case In():
                self._in(record)
            case Out():
                self._out(record)
            case Post():
                self.live[record.flow].sender.posted(record)
            case Done():
                self._done(record)
            case Event():
                self._table(record.host, record.peer).changes(record)
            case Note():
                self._note(record)

    def _setting(self, record: World | Path | Flow) -> None:
        match record:
            case World():
                self._begin(record)
            case Path():
                self.profile.setdefault(record.host, {})[record.ev] = record
            case Flow():
                self._flow(record)

    def _begin(self, world: World) -> None:
        """Another run."""
        for kept in (self.profile, self.tables, self.live, self.by_sender, self.by_answer):
            kept.clear()
        self.asked.clear()
        self.requests.clear()
        self.judged = True
        self.world = world

    def finish(self, now: int) -> None:
        """The log ends: judge the last turns."""
        for live in self.live.values():
            judge_turn(live.receiver, now)

    def _table(self, host: int, peer: int) -> PathWatch:
        key = (host, peer)
        if key not in self.tables:
            least = there(self.world).min_active
            self.tables[key] = PathWatch(self.profile[host], least, self.report)
        return self.tables[key]

    def _flow(self, flow: Flow) -> None:
        receiver = Receiver(flow, there(self.world), self.report)
        receiver.muted = not self._table(flow.peer, flow.host).free
        live = _Live(flow, Sender(flow, self.report), receiver)
        self.live[flow.id] = live
        self.by_sender[flow.peer, flow.peer_qpn] = live
        self.by_answer[flow.host, flow.qpn] = live

    def _turn(self, turn: Turn) -> None:
        for live in self.live.values():
            if live.flow.peer == turn.host:
                judge_turn(live.receiver, turn.now)
        self.requests[turn.host] = set()

    # ---- packets ----

    def _in(self, got: In) -> None:
        out = got.out
        if out is None:
            return
        op, qpn = out.packet.bth.opcode, out.packet.bth.dqp
        if out.packet.meth is not None or op == Op.PROBE:
            live = self.by_sender.get((got.host, qpn))
            if live is not None and out.host == live.flow.host:
                live.receiver.gets(got)
        elif not got.intact:
            return
        elif op == Op.EP_REQ:
            self.requests.setdefault(got.host, set()).add((out.host, out.packet.bth.psn))
        elif op == Op.EP_RSP:
            ev = self.asked.get((got.host, out.packet.bth.psn))
            if ev is not None:
                self._table(got.host, out.host).answered.add(ev)
        else:
            live = self.by_answer.get((got.host, qpn))
            if live is not None and out.host == live.flow.peer:
                self._answered(got, live)

    def _answered(self, got: In, live: _Live) -> None:
        """Take what a SACK or NACK says of an EV (B.5.4, B.7)."""
        table = self._table(live.flow.host, live.flow.peer)
        packet = there(got.out).packet
        seth, neth = packet.seth, packet.neth
        if seth is not None:
            if seth.m == 1:
                table.skip(seth.entropy)
            if seth.m == 2:
                table.told_bad.add(seth.entropy)
            elif seth.pr:
                table.answered.add(seth.entropy)
        elif neth is not None and neth.nack_reason == NackReason.TRIMMED:
            table.skip(neth.entropy)
        live.sender.heard(got)

    def _out(self, out: Out) -> None:
        op, qpn = out.packet.bth.opcode, out.packet.bth.dqp
        if out.packet.meth is not None or op == Op.PROBE:
            live = self.by_sender.get((out.peer, qpn))
            if live is not None:
                self._asks(out, live)
            elif out.packet.meth is not None:  # to a QP that is no more
                self._table(out.host, out.peer).sends(out)
        elif op == Op.EP_REQ:
            self.asked[out.host, out.packet.bth.psn] = out.ev
        elif op == Op.EP_RSP:
            if (out.peer, out.packet.bth.psn) not in self.requests.get(out.host, set()):
                self.report("response-unasked", out.now, f"id {out.packet.bth.psn}")
        else:
            live = self.by_answer.get((out.peer, qpn))
            if live is not None:
                live.receiver.answers(out)

    def _asks(self, out: Out, live: _Live) -> None:
        table = self._table(out.host, out.peer)
        if out.packet.meth is None:
            if out.packet.bth.psn:
                self.report("probe-psn", out.now, f"{out.packet.bth.psn}")
            table.fresh.clear()  # a probe takes its turn in the rotation too
            return
        if out.tclass & 3 != 2:
            self.report("ecn-data", out.now, f"traffic class {out.tclass}")
        live.sender.sends(out, table.usable())
        table.sends(out)

    # ---- ends ----

    def _done(self, done: Done) -> None:
        live = self.live[done.flow]
        back = self.live[live.flow.reverse]
        if done.receive and done.status == 0:
            number = live.sender.immediate_psn(done.n)
            live.receiver.delivers(done.now, done.n, number)
        elif done.receive:
            live.receiver.open = False
            back.sender.failed = True
        else:
            live.sender.completes(done)
            if done.status:
                back.receiver.open = False

    def _end(self, flow: int) -> None:
        """The QP that sends this flow takes and sends nothing more."""
        live = self.live[flow]
        live.sender.failed = True
        self.live[live.flow.reverse].receiver.open = False

    def _forget(self, flow: int) -> None:
        """The QP that sends this flow is no more: what still comes for it finds nobody."""
        self._end(flow)
        own = (self.live[flow].flow.host, self.live[flow].flow.qpn)
        self.by_answer.pop(own, None)
        self.by_sender.pop(own, None)

    def _note(self, note: Note) -> None:
        args = note.args
        if note.what == "error":
            self._end(args[0])
        elif note.what == "destroy":
            self._forget(args[0])
        elif note.what == "reset":
            self._forget(args[0])
            self._forget(args[1])
        elif note.what == "mpr":
            self.live[args[0]].receiver.offers(args[1] * 128)
        elif note.what == "refused":
            self._table(args[0], args[1]).refused = True
            for live in self.live.values():
                live.sender.lane_failed()
        elif note.what == "paths":
            self._disturbed()
        elif note.what == "hostile":
            self.judged = False

    def _disturbed(self) -> None:
        """Ports go down, or a controller interferes: which EVs may be used is not in the log."""
        for host in self.profile:
            for peer in self.profile:
                if host != peer:
                    self._table(host, peer).free = False
        for live in self.live.values():
            live.receiver.muted = True


def check(lines: Iterable[str]) -> list[Verdict]:
    """Return what the log of runs has that is forbidden; empty: all was allowed."""
    checker = Checker()
    now = 0
    for record in read(lines):
        checker.take(record)
        now = getattr(record, "now", now)
    checker.finish(now)
    return checker.verdicts


def main(argv: list[str]) -> int:
    """Judge the logs named; 1 when something is forbidden."""
    bad = 0
    for name in argv:
        with FilePath(name).open(encoding="ascii") as log:
            verdicts = check(log)
        for verdict in verdicts[:_SHOWN]:
            sys.stdout.write(f"{name}: {verdict}\n")
        bad += len(verdicts)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
