# SPDX-License-Identifier: BSD-2-Clause
"""The objects that hang off another: held weakly, closed before it, newest first."""

from __future__ import annotations

import warnings
import weakref
from typing import Any, Protocol

__all__ = ["Children", "warn_unclosed"]


class Closable(Protocol):
    """What can hang off a parent."""

    def close(self) -> None: ...


class Children:
    """Weak references in order of creation. An object that was collected has left by itself."""

    __slots__ = ("_refs",)

    def __init__(self) -> None:
        self._refs: dict[int, weakref.ref[Any]] = {}

    def add(self, child: Closable) -> None:
        key = id(child)
        refs = self._refs
        refs[key] = weakref.ref(child, lambda _: refs.pop(key, None))

    def discard(self, child: Closable) -> None:
        self._refs.pop(id(child), None)

    def __len__(self) -> int:
        return len(self._refs)

    def close_all(self) -> None:
        """Close every child, newest first. The first error is raised after all were tried."""
        first: Exception | None = None
        for ref in reversed(list(self._refs.values())):
            child = ref()
            if child is None:
                continue
            try:
                child.close()
            except Exception as exc:  # noqa: BLE001 - every child must get its turn
                first = first or exc
        if first is not None:
            raise first


def warn_unclosed(obj: object) -> None:
    """For finalisers: say that close() or `with` was forgotten.

    Nothing is freed here: the owner frees it when it closes.
    """
    warnings.warn(f"unclosed {obj!r}", ResourceWarning, stacklevel=2, source=obj)
