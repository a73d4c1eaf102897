# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of a wrong type or size become MrcUsageError here, before they reach C."""

from __future__ import annotations

import math
import operator
from typing import SupportsIndex, cast

from .errors import MrcUsageError

__all__ = ["U32_MAX", "bytes_of", "nanoseconds", "real", "seconds", "whole"]

U32_MAX = (1 << 32) - 1


def whole(name: str, value: object, low: int, high: int) -> int:
    """The value, a whole number in low..high."""
    try:
        number = operator.index(cast("SupportsIndex", value))
    except TypeError:
        raise MrcUsageError(f"{name} {value!r} is not a whole number") from None
    if not low <= number <= high:
        raise MrcUsageError(f"{name} {number} is not in {low}..{high}")
    return number


def real(name: str, value: object, high: float) -> float:
    """The value, a number in 0..high; infinity and NaN are none."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise MrcUsageError(f"{name} {value!r:.60} is not a number")
    if not 0 <= value <= high:
        raise MrcUsageError(f"{name} {value!r:.60} is not in 0..{high:g}")
    return value


def bytes_of(name: str, value: object, size: int) -> bytes:
    """The value, so many bytes."""
    if not isinstance(value, bytes):
        raise MrcUsageError(f"{name} is {type(value).__name__}, not bytes")
    if len(value) != size:
        raise MrcUsageError(f"{name} is {len(value)} bytes, not {size}")
    return value


def seconds(value: object, name: str = "timeout") -> float | None:
    """A limit in seconds; None and infinity: none."""
    if value is None:
        return None
    if not isinstance(value, int | float) or math.isnan(value):
        raise MrcUsageError(f"{name} {value!r} is not a number of seconds")
    try:
        limit = float(value)
    except OverflowError:  # an integer beyond all floats
        return None
    return limit if math.isfinite(limit) or limit < 0 else None


def nanoseconds(value: object, name: str = "timeout") -> int:
    """Seconds that have an end, in nanoseconds; the range is the callee's."""
    limit = seconds(value, name)
    if limit is None or not math.isfinite(limit):
        raise MrcUsageError(f"{name} {value!r} is not a finite number of seconds")
    return round(limit * 1e9)
