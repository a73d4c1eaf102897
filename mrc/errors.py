# SPDX-License-Identifier: BSD-2-Clause
"""What this package raises. A bad packet is never one of these: it is a counter.

MrcError
    MrcUsageError        the caller erred: bad argument, bad state, object busy
        MrcProfileError  an EV profile that breaks a rule of D.3; names file, place and reason
        MrcForkError     the object belongs to the parent process
        MrcControlError  the controller API refused; an OSError too, with its errno (C.5, C.7)
    MrcResourceError     a ring, a pool or a limit is full; try again after completions
    MrcPeerLost          the peer closed, vanished, or its queue pair failed (a ConnectionError)
        MrcHandshakeError  the peer refused or did not understand the out-of-band exchange
    MrcWorkError         a work request ended with a status other than success; carries it
    MrcRemoteError       the peer's handler of a call raised

What the operating system refuses is an OSError with the reason in words.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .types import WorkCompletion

__all__ = [
    "MrcControlError",
    "MrcError",
    "MrcForkError",
    "MrcHandshakeError",
    "MrcPeerLost",
    "MrcProfileError",
    "MrcRemoteError",
    "MrcResourceError",
    "MrcUsageError",
    "MrcWorkError",
]


class MrcError(Exception):
    """Base of all errors of this package."""


class MrcUsageError(MrcError):
    """A bad argument, a call in the wrong state, or an object still in use."""


class MrcProfileError(MrcUsageError):
    """An EV profile that cannot be used; the message names file, place and reason (D.3)."""


class MrcForkError(MrcUsageError):
    """A child process used an object of its parent: make a Context of its own instead."""


class MrcControlError(MrcUsageError, OSError):
    """What a call of the controller API returns as -1 with errno; the sentence says what to do.

    `done`: how many operations of a batch were carried out before it (C.5). `needed`: the array
    size that would have done, with E2BIG.
    """

    def __init__(self, number: int, reason: str, *, done: int = 0, needed: int = 0) -> None:
        super().__init__(number, reason)
        self.done = done
        self.needed = needed

    def __str__(self) -> str:
        return f"{errno.errorcode.get(self.errno or 0, 'error')}: {self.strerror}"


class MrcResourceError(MrcError):
    """A ring or pool has no room; nothing happened; retry after completions."""


class MrcPeerLost(MrcError, ConnectionError):  # noqa: N818 - named for what happened
    """The peer closed the connection, vanished, or its queue pair failed."""


class MrcHandshakeError(MrcPeerLost):
    """The out-of-band exchange failed: refused, other version, or not our protocol."""


class MrcWorkError(MrcError):
    """A work request did not succeed; `wc` is its completion."""

    def __init__(self, wc: WorkCompletion, what: str = "work request") -> None:
        super().__init__(f"{what} {wc.wr_id} on QP {wc.qpn} failed: {wc.status.text}")
        self.wc = wc


class MrcRemoteError(MrcError):
    """The peer's handler of a call raised, or the peer cannot serve the call."""
