# SPDX-License-Identifier: BSD-2-Clause
"""Whether the fields of a record hold what their annotations say.

The controller API is called by hand and from scripts that no type checker saw: a string for a
number is to be EINVAL with the name of the field, not whatever breaks first.
"""

from __future__ import annotations

from functools import lru_cache
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["wrong_type"]


def wrong_type(record: DataclassInstance) -> str | None:
    """The first field of the wrong type, in words; None: all are right."""
    for name, kind in _kinds(type(record)).items():
        value = getattr(record, name)
        if not _fits(value, kind):
            return f"{name} {value!r:.60} is not {_words(kind)}"
    return None


@lru_cache
def _kinds(record: type) -> dict[str, Any]:
    return get_type_hints(record)


def _fits(value: object, kind: Any) -> bool:
    if isinstance(kind, UnionType):
        return any(_fits(value, one) for one in get_args(kind))
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(_fits(v, get_args(kind)[0]) for v in value)
    return type(value) is int if kind is int else isinstance(value, kind)


def _words(kind: Any) -> str:
    if isinstance(kind, UnionType):
        return " or ".join(_words(one) for one in get_args(kind))
    if get_origin(kind) is tuple:
        return f"a tuple of {_words(get_args(kind)[0])}"
    return "None" if kind is type(None) else str(kind.__name__)
