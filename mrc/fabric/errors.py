# SPDX-License-Identifier: BSD-2-Clause
"""The one exception of this package, and the sentence that ends many of its messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from mrc.errors import MrcUsageError

__all__ = ["FabricError", "PlacedError", "near"]


class FabricError(MrcUsageError, ValueError):
    """A shape, name, fault, scenario or record that makes no sense; the message is for its author.

    A ValueError, too, so that a parser of command lines shows the message as its own.
    """


class PlacedError(FabricError):
    """One whose message begins with where the mistake is."""


def near(word: str, known: Iterable[str]) -> str:
    """`did you mean X?` where X is close to `word`; else what is known, in order."""
    words = list(known)
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(words)}"
