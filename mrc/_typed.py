# SPDX-License-Identifier: BSD-2-Clause
"""Whether arguments, and fields of a record, hold what their annotations say.

Calls are made by hand and from scripts that no type checker saw: a string for a number is to be an
error that names the argument, not whatever breaks first. For what is called now and then: a check
takes microseconds.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Collection
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from .errors import MrcUsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["check_fields", "typed", "wrong_type"]

P = ParamSpec("P")
R = TypeVar("R")


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """MrcUsageError that names the first argument of another type than annotated."""
    signature = inspect.signature(function)
    many = {p.name for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL}
    rest = {p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD}

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        kinds = _hints(function)
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            for one in value if name in many else (value,):
                if name in kinds and name not in rest and not _fits(one, kinds[name]):
                    raise MrcUsageError(f"{name} {_shown(one)} is not {_words(kinds[name])}")
        return function(*args, **kwargs)

    return checked


def wrong_type(record: DataclassInstance) -> str | None:
    """The first field of the wrong type, in words; None: all are right."""
    for name, kind in _hints(type(record)).items():
        value = getattr(record, name)
        if not _fits(value, kind):
            return f"{name} {_shown(value)} is not {_words(kind)}"
    return None


def check_fields(record: DataclassInstance) -> None:
    """For __post_init__: MrcUsageError that names the first field of the wrong type."""
    problem = wrong_type(record)
    if problem is not None:
        raise MrcUsageError(f"{type(record).__name__}: {problem}")


class _Names(dict[str, Any]):
    """Names that a module imports for its type checker only are those of the package."""

    def __init__(self, module: str) -> None:
        super().__init__(vars(sys.modules[module]))

    def __missing__(self, name: str) -> Any:
        try:
            return getattr(sys.modules[__package__], name)
        except AttributeError:
            raise KeyError(name) from None


@functools.lru_cache(None)
def _hints(thing: Any) -> dict[str, Any]:
    hints = get_type_hints(thing, localns=_Names(thing.__module__))
    hints.pop("return", None)
    return hints


def _fits(value: object, kind: Any) -> bool:
    if kind is Any or isinstance(kind, TypeVar):
        return True
    if isinstance(kind, UnionType):
        return any(_fits(value, one) for one in get_args(kind))
    origin = get_origin(kind)
    if origin is None:
        return _is(value, kind)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in get_args(kind))
    if not isinstance(origin, type):
        return True
    if not isinstance(value, origin) or isinstance(value, str | bytes):
        return False
    items = get_args(kind)
    if isinstance(value, tuple) and origin is tuple and items[1:] != (Ellipsis,):
        return len(value) == len(items) and all(map(_fits, value, items))
    if isinstance(value, tuple | list) and items:
        return all(_fits(one, items[0]) for one in value)
    return True


def _is(value: object, kind: Any) -> bool:
    if kind is int:  # numbers of other libraries included
        return hasattr(type(value), "__index__") and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if is_typeddict(kind):
        return isinstance(value, dict)
    return not inspect.isclass(kind) or isinstance(value, kind)


def _shown(value: object) -> str:
    """At most 60 characters, however long the value is or its text takes to make."""
    if isinstance(value, Collection) and not isinstance(value, str | bytes) and len(value) > 8:
        return f"{type(value).__name__} of {len(value)}"
    return f"{value!r:.60}"


def _words(kind: Any) -> str:
    if isinstance(kind, UnionType):
        return " or ".join(_words(one) for one in get_args(kind))
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    if get_origin(kind) is tuple and get_args(kind)[1:] == (Ellipsis,):
        return f"a tuple of {_words(get_args(kind)[0])}"
    return "None" if kind is type(None) else str(getattr(kind, "__name__", kind))
