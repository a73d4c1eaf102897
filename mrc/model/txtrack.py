# SPDX-License-Identifier: BSD-2-Clause
"""Which packets of a requestor are out, and which must leave again (MRC B.2, B.5, B.10)."""

from dataclasses import dataclass, field
from enum import Enum

from mrc.model.sack import Told


class State(Enum):
    """What is known of a packet that was sent."""

    INFLIGHT = "in flight"
    LOST = "lost"  # to be sent again
    ACKED = "received"


@dataclass(slots=True)
class Sent:
    """The last transmission of one packet."""

    order: int  # running number of the transmission
    time_ns: int
    ev: int
    cls: int  # 0 first transmissions, 1 retransmissions: they may be queued apart
    rtx: int = 0  # times sent again
    state: State = State.INFLIGHT


@dataclass(slots=True)
class Sender:
    """The send side of one QP. Numbers are unbounded; what is received in order is forgotten."""

    first: int
    window: int  # MPR x 128
    unack: int = field(init=False)  # it and all before are known received
    max_sent: int = field(init=False)
    packets: dict[int, Sent] = field(init=False, default_factory=dict)
    order: int = field(init=False, default=0)
    arrived: list[Sent] = field(init=False, default_factory=list)  # transmissions known to arrive

    def __post_init__(self) -> None:
        self.unack = self.max_sent = self.first - 1

    def may_send_new(self) -> bool:
        """Return whether the PSN window has room for the next packet (B.2, B.12)."""
        return self.max_sent + 1 - self.unack <= self.window

    def on_sent(self, number: int, ev: int, cls: int, now_ns: int) -> None:
        """Count a transmission: the next new packet, or one that was lost."""
        self.order += 1
        before = self.packets.get(number)
        rtx = before.rtx + 1 if before else 0
        self.packets[number] = Sent(self.order, now_ns, ev, cls, rtx)
        self.max_sent = max(self.max_sent, number)

    def on_ack(self, number: int, *, echoed: bool) -> bool:
        """Take note that a packet is known received; return whether that is news.

        echoed: the answer has rtx set, so a retransmission arrived. Of a packet sent again, only
        that tells which copy arrived, and only if there was one retransmission (E.7); otherwise
        the EV of the last one is not proven to work.
        """
        sent = self.packets.get(number)
        if sent is None or sent.state is State.ACKED:
            return False
        if sent.state is State.INFLIGHT and (sent.rtx == 0 or (sent.rtx == 1 and echoed)):
            self.arrived.append(sent)
        sent.state = State.ACKED
        return True

    def on_sack(self, told: Told, echoed: int | None) -> set[int]:
        """Read a SACK (B.5): return the packets newly known received, forget what is in order.

        echoed: the packet it answers, if rtx is set in it. Nothing is ever un-received.
        """
        known = {n for n in self.packets if n <= told.cack} | told.also
        news = {n for n in sorted(known) if self.on_ack(n, echoed=n == echoed)}
        while self.unack < told.cack:
            self.unack += 1
            del self.packets[self.unack]
        return news

    def on_lost(self, number: int) -> None:
        """Declare a packet in flight lost."""
        self.packets[number].state = State.LOST

    def in_state(self, state: State) -> list[int]:
        """Return packets in send order."""
        found = [n for n, sent in self.packets.items() if sent.state is state]
        return sorted(found, key=lambda n: self.packets[n].order)

    def next_lost(self) -> int | None:
        """Return what leaves first: retransmissions before new data, lowest PSN first (B.2)."""
        return min(self.in_state(State.LOST), default=None)

    def overtaken(self) -> set[int]:
        """Return packets in flight that are proven lost (B.10, per-path rule).

        Packets of one EV and class stay in order: a later one arrived, this one did not.
        """
        newest: dict[tuple[int, int], int] = {}
        for sent in self.arrived:
            newest[sent.ev, sent.cls] = max(newest.get((sent.ev, sent.cls), 0), sent.order)
        flying = {n: self.packets[n] for n in self.in_state(State.INFLIGHT)}
        return {n for n, s in flying.items() if newest.get((s.ev, s.cls), 0) > s.order}
