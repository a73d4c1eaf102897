# SPDX-License-Identifier: BSD-2-Clause
"""A queue pair: a requestor and a responder that fail together (MRC 0.2, B.13, B.14)."""

from dataclasses import dataclass

from mrc.model.ends import Arrival, Drop
from mrc.model.losses import Now
from mrc.model.requestor import Requestor
from mrc.model.responder import Responder
from mrc.model.wire import Op, Packet

FOR_REQUESTOR = frozenset({Op.SACK, Op.NACK, Op.ACK})


@dataclass(slots=True)
class QueuePair:
    """Both roles. Packets and time go through it, so that an error of one is one of the other."""

    requestor: Requestor
    responder: Responder

    @property
    def failed(self) -> bool:
        """Whether it is in the error state."""
        return self.requestor.error is not None

    def arrive(self, a: Arrival, counted: frozenset[Drop], here: Now, *, failed: bool) -> bool:
        """Take in a packet; return whether it is an answer not to be ignored.

        counted, failed: what the other side counted, and whether it is in the error state now.
        """
        taken = False
        if a.packet.bth.opcode in FOR_REQUESTOR and a.trim is None:
            taken = self.requestor.arrive(a.packet, counted, here, failed=failed)
        else:
            self.responder.arrive(a, counted)
        self._join()
        return taken

    def emit(self, p: Packet, ev: int, *, again_class: bool, here: Now) -> None:
        """Check a packet that leaves."""
        if p.bth.opcode in FOR_REQUESTOR:  # of the peer
            self.responder.acking.emit(p)
        elif p.peth is not None:
            self.requestor.probe(p, ev, here)
        else:
            self.requestor.emit(p, ev, again_class=again_class, here=here)

    def settle(self, here: Now) -> None:
        """Nothing more leaves: check that nothing is owed, and nothing could have left."""
        self.responder.acking.settle()
        self.requestor.settle(here)

    def passed(self, here: Now, *, failed: bool) -> None:
        """Time has passed."""
        self.requestor.passed(here, failed=failed)
        self._join()

    def _join(self) -> None:
        if self.responder.error is not None:
            self.requestor.fail(self.responder.error)
        if self.requestor.error is not None:
            self.responder.fail(self.requestor.error)
