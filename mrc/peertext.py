# SPDX-License-Identifier: BSD-2-Clause
"""Text that a peer chose, before it reaches a terminal, a log or an exception."""

from __future__ import annotations

__all__ = ["printable"]


def printable(value: object, most: int = 500) -> str:
    r"""str(value) on one line: at most so many characters of it, control characters escaped.

    Escapes, line ends, characters that reorder others, and halves of surrogate pairs become
    \x1b, \n, \u202e, \ud800 and the like, so nothing moves the cursor or fakes a line.
    """
    text = str(value)[:most]
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
