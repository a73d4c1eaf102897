# SPDX-License-Identifier: BSD-2-Clause
"""Objects that are closed, and those that hang off another: held weakly, closed before it."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Awaitable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from .device import Context

__all__ = ["AsyncClosing", "Children", "Closing", "Owned", "warn_unclosed"]


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

    def __iter__(self) -> Iterator[Any]:
        return (child for ref in list(self._refs.values()) if (child := ref()) is not None)

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
    """For finalisers: say that close() or `with` was forgotten."""
    warnings.warn(f"unclosed {obj!r}", ResourceWarning, stacklevel=2, source=obj)


class Closing:
    """`with`: close() at its end, whatever came."""

    def close(self) -> None:
        """Twice is once."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClosing:
    """`async with`: close() at its end, awaited if there is something to await."""

    def close(self) -> Awaitable[None] | None:
        """Twice is once."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        over = self.close()
        if over is not None:
            await over


class Owned(Closing):
    """The life that all objects of a context share: closed once, by hand, `with`, or the owner.

    A finaliser frees nothing, for the owner does when it closes; it says that close() was missed.
    """

    ctx: Context
    _closed = True  # until the constructor has succeeded

    @property
    def closed(self) -> bool:
        """True after close()."""
        return self._closed

    def __del__(self) -> None:
        if not self._closed and not self.ctx.closed:
            warn_unclosed(self)
