# SPDX-License-Identifier: BSD-2-Clause
"""What is said of an EV profile: its attributes, and the operations on its EVs (C.5)."""

from __future__ import annotations

from dataclasses import dataclass

from mrc._typed import named
from mrc.ev import EventMask, EvField, LossRule, ReverseRule, SkipRule

from .attrs import EvId, EvMode, VisibleState

__all__ = ["EvAttr", "EvReplace", "EvSetState"]


@named
@dataclass(frozen=True, slots=True)
class EvAttr:
    """None: leave.

    format: id of a format profile. count: EVs in the profile. fields: how an EV becomes a path
    value (D.4). events: GOOD and ASSUMED_BAD may be asked. backups: how many of them, the last
    ones, are in reserve (D.7). reverse: the way of answers (D.8).
    loss: what one lost packet says of its path (D.5). skip: how long a mark keeps it out (D.6).
    """

    mode: EvMode | None = None
    format: int | None = None
    count: int | None = None
    fields: tuple[EvField, ...] | None = None
    min_active: int | None = None
    events: EventMask | None = None
    backups: int | None = None
    reverse: ReverseRule | None = None
    loss: LossRule | None = None
    skip: SkipRule | None = None


@named
@dataclass(frozen=True, slots=True)
class EvReplace:
    """One occurrence of `ev`, or all, becomes `new`, GOOD or DENIED. Explicit mode only."""

    ev: EvId
    new: EvId
    state: VisibleState = VisibleState.GOOD
    all_copies: bool = False


@named
@dataclass(frozen=True, slots=True)
class EvSetState:
    """One occurrence of `ev`, or all, becomes GOOD or DENIED. DENIED lasts until it is lifted."""

    ev: EvId
    state: VisibleState
    all_copies: bool = False
