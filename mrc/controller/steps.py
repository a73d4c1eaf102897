# SPDX-License-Identifier: BSD-2-Clause
"""Changes of several path tables that are made in all of them or in none."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mrc.errors import MrcControlError, MrcUsageError

__all__ = ["Step", "all_or_none"]


@dataclass(frozen=True, slots=True)
class Step:
    """One change, and the one that takes it back."""

    do: Callable[[], None]
    undo: Callable[[], None]


def all_or_none(what: str, steps: Iterable[Step]) -> None:
    """Take the steps; when one is refused, take back those before it, the last one first.

    MrcControlError: EIO where the system refused, else EINVAL; `what` begins its sentence. It says
    so if something could not be taken back.
    """
    taken: list[Step] = []
    try:
        for step in steps:
            step.do()
            taken.append(step)
    except (OSError, MrcUsageError) as exc:
        number = errno.EINVAL if isinstance(exc, MrcUsageError) else errno.EIO
        raise MrcControlError(number, f"{what}: {exc}{_take_back(taken)}") from exc


def _take_back(taken: list[Step]) -> str:
    left: list[str] = []
    for step in reversed(taken):
        try:
            step.undo()
        except (OSError, MrcUsageError) as exc:
            left.append(str(exc))
    if not left:
        return ""
    return f"; {len(left)} changes could not be taken back ({left[0]}), so that path tables differ"
