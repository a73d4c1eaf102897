# SPDX-License-Identifier: BSD-2-Clause
"""What a requestor is told before it begins (MRC C.3, C.4)."""

from dataclasses import dataclass

from mrc.model.ends import Ends
from mrc.model.retry import Schedule


@dataclass(frozen=True, slots=True)
class Setup:
    """What the two sides agreed on for this direction."""

    ends: Ends
    sq_psn: int
    mpr: int  # units of 128 PSNs: min(own, peer's)
    mpr_max: int  # the device's
    max_wimm: int  # min(own, peer's)
    schedule: Schedule
    sack_threshold: int = 16384  # the peer's
    dynamic_mpr: bool = False
    two_classes: bool = True  # retransmissions have a class of their own
    timestamps: bool = False
