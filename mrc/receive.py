# SPDX-License-Identifier: BSD-2-Clause
"""What a context tells its senders besides what has arrived."""

from __future__ import annotations

from dataclasses import dataclass

from ._typed import check_fields, named

__all__ = ["ReceivePolicy"]


@named
@dataclass(frozen=True, slots=True)
class ReceivePolicy:
    """All off by default.

    penalty_percent: 1..99, from so much of the scarcest receive budget in use on, senders are
    slowed (E.6); budgets are ContextLimits.ooo_max and imm_max, the completion queue of the queue
    pair, its posted receives, and turns that left packets waiting. QpAttr.rx_penalty sets the
    penalty of one queue pair, or switches it off.

    icrc_skip_percent: 1..99, a peer whose packets on one EV come broken more often than that is
    told to leave the EV (H29; 5 is a good value).

    service_time: timestamps are reflected later by the time we had the packet, so that round trips
    are the network's (H11). Say so to the peer: ConnectionInfo.service_time.
    """

    penalty_percent: int = 0
    icrc_skip_percent: int = 0
    service_time: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
