# SPDX-License-Identifier: BSD-2-Clause
"""Whether arguments, and fields of a record, hold what their annotations say.

Calls are made by hand and from scripts that no type checker saw: a string for a number is to be an
error that names the argument, not whatever breaks first. For what is called now and then: a check
takes microseconds.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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

__all__ = ["check_fields", "named", "typed", "wrong_type"]

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)
_SHOWN_NAMES = 12


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """MrcUsageError that names the first argument of another type than annotated.

    TypeError, as ever in Python, for arguments that it does not have; `misfit` words it.
    """
    signature = inspect.signature(function)
    many = {p.name for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL}
    rest = {p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD}

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        kinds = _hints(function)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise _misfit(function, signature, args, kwargs, error) from None
        for name, value in bound.arguments.items():
            if isinstance(value, dict):
                _require_known(function, signature, kinds.get(name), value)
            for one in value if name in many else (value,):
                if name in kinds and name not in rest and not _fits(one, kinds[name]):
                    raise MrcUsageError(f"{name} {_shown(one)} is not {_words(kinds[name])}")
        return function(*args, **kwargs)

    return checked


def named(cls: C) -> C:
    """For a dataclass that people make: a wrong argument is told as `typed` tells it."""
    init: Callable[..., None] = vars(cls)["__init__"]

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            init(self, *args, **kwargs)
        except TypeError as error:
            signature = inspect.signature(init)
            try:
                signature.bind(self, *args, **kwargs)
            except TypeError:
                raise _misfit(init, signature, (self, *args), kwargs, error) from None
            raise

    cls.__init__ = checked  # type: ignore[misc]
    return cls


def _public(function: Callable[..., Any]) -> str:
    """`mrc.connect()`, `mrc.EvProfile.udp()`, `mrc.Context()`."""
    name = function.__qualname__.removesuffix(".__init__")
    package = function.__module__.partition(".")[0]
    if function.__module__.startswith(f"{package}.controller"):
        package += ".controller"
    return f"{package}.{name}()"


def _misfit(
    function: Callable[..., Any],
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    error: TypeError,
) -> TypeError:
    """What is wrong with a call, in the words of who calls."""
    known = _names(signature)
    rest = next((p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD), None)
    fields = _fields(_hints(function).get(rest)) if rest else []
    for name in kwargs:
        if name not in (*known, *fields) and (fields or rest is None):
            return _no_such(function, name, [*known, *fields])
    given = [p for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    method = bool(given) and given[0].name in ("self", "cls")
    if len(args) > len(given) and not any(
        p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()
    ):
        most, came = len(given) - method, len(args) - method
        return TypeError(f"{_public(function)} takes {most} arguments by position, not {came}")
    by_place = {p.name for p in given[: len(args)]}
    for name in kwargs:
        if name in by_place:
            return TypeError(f"{_public(function)} is given {name} twice")
    missing = [
        name
        for name in known
        if name not in by_place | kwargs.keys()
        and signature.parameters[name].default is inspect.Parameter.empty
    ]
    if missing:
        return TypeError(f"{_public(function)} needs {' and '.join(missing)}")
    return TypeError(f"{_public(function)}: {error}")


def _names(signature: inspect.Signature) -> list[str]:
    """What can be given by name."""
    return [
        p.name
        for p in signature.parameters.values()
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in ("self", "cls")
    ]


def _require_known(
    function: Callable[..., Any], signature: inspect.Signature, kind: Any, given: Iterable[str]
) -> None:
    """TypeError for a name that a TypedDict, such as that of `**options`, does not have."""
    fields = _fields(kind)
    for name in given:
        if fields and name not in fields:
            raise _no_such(function, name, [*_names(signature), *fields])


def _fields(kind: Any) -> list[str]:
    """Of the TypedDict in an annotation; none: there is none in it."""
    return [
        name for one in (kind, *get_args(kind)) if is_typeddict(one) for name in one.__annotations__
    ]


def _no_such(function: Callable[..., Any], name: str, known: Sequence[str]) -> TypeError:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        more = f"did you mean {close[0]!r}?"
    else:
        rest = f" .. (help({_public(function)[:-2]}))" if len(known) > _SHOWN_NAMES else ""
        more = f"it has {', '.join(known[:_SHOWN_NAMES])}{rest}" if known else "it has none"
    return TypeError(f"{_public(function)} has no argument {name!r}: {more}")


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
