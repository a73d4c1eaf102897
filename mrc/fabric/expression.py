# SPDX-License-Identifier: BSD-2-Clause
"""Expressions over a record, in files of others: `gap_ms <= 20`, `jain > 0.9 and rc.jain < 0.5`.

Names, members, numbers, words, comparisons, arithmetic, and/or/not, and calls of the functions that
are given: nothing else of Python, so that a scenario file can do no harm. None (something never
happened) fulfils no comparison but `is`-like equality with None, written `x == never`. Whether an
expression can be evaluated is known before there is a record: `mrc.fabric.grammar`.
"""

from __future__ import annotations

import ast
import operator
import re
import string
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from .errors import FabricError, near

__all__ = ["evaluate", "fill", "names_in", "parsed"]

_LENGTH_MAX = 500
_COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_BUILTIN: dict[str, Any] = {"min": min, "max": max, "abs": abs, "never": None}


def parsed(text: str) -> ast.expr:
    """What an expression is made of. FabricError: it is none."""
    if len(text) > _LENGTH_MAX:
        raise FabricError(f"an expression of {len(text)} characters; {_LENGTH_MAX} at most")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python, about what it will not take one day
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise FabricError(
            f"{text!r} is no expression, such as gap_ms <= 20 and errors == 0 "
            "(comparisons are < <= > >= == !=)"
        ) from None


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression. FabricError: it is none, or a name in it is not known."""
    try:
        return _value(parsed(text), names, text)
    except ZeroDivisionError:
        return None
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        if isinstance(error, FabricError):
            raise
        raise FabricError(f"{text!r}: {error}") from None


def _value(node: ast.expr, names: Mapping[str, Any], text: str) -> Any:
    def of(part: ast.expr) -> Any:
        return _value(part, names, text)

    match node:
        case ast.Constant(value=bool() | int() | float() | str()):
            return node.value
        case ast.Name():
            return _member({**_BUILTIN, **names}, node.id, text)
        case ast.Attribute():
            return _member(of(node.value), node.attr, text)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            value = of(node.operand)
            return not value if isinstance(node.op, ast.Not) else _joined(operator.sub, 0, value)
        case ast.BinOp() if type(node.op) in _ARITHMETIC:
            return _joined(_ARITHMETIC[type(node.op)], of(node.left), of(node.right))
        case ast.BoolOp():
            values = (of(part) for part in node.values)
            return all(values) if isinstance(node.op, ast.And) else any(values)
        case ast.Compare():
            return _compared(node, [of(part) for part in (node.left, *node.comparators)], text)
        case ast.Call(keywords=[]):
            return _called(of(node.func), [of(part) for part in node.args], text)
        case _:
            raise FabricError(f"{text!r}: {ast.unparse(node)} is not possible here")


def _called(function: Any, arguments: list[Any], text: str) -> Any:
    if not callable(function):
        raise FabricError(f"{text!r}: calls what is no function")
    # What never happened stays so, whatever is asked of it.
    return None if None in arguments else function(*arguments)


def _joined(how: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """What never happened stays so, whatever is done with it."""
    return None if a is None or b is None else how(a, b)


def _compared(node: ast.Compare, values: list[Any], text: str) -> bool:
    for op, a, b in zip(node.ops, values, values[1:], strict=False):
        if isinstance(op, ast.Eq):
            good = a == b
        elif isinstance(op, ast.NotEq):
            good = a != b
        elif type(op) in _COMPARE:
            good = a is not None and b is not None and _COMPARE[type(op)](a, b)
        else:
            raise FabricError(f"{text!r}: such a comparison is not possible here")
        if not good:
            return False
    return True


def _member(owner: Any, name: str, text: str) -> Any:
    if not isinstance(owner, Mapping):
        raise FabricError(f"{text!r}: what {name} is asked of has no members")
    if name not in owner:
        raise FabricError(f"{text!r}: {name} is not known; {near(name, owner)}")
    return owner[name]


def names_in(text: str) -> set[str]:
    """The names an expression begins with: `rc` of `rc.gap_ms`. FabricError: it is none."""
    return {node.id for node in ast.walk(parsed(text)) if isinstance(node, ast.Name)}


class _Filler(string.Formatter):
    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def get_field(self, field_name: str, _args: Any, _kwargs: Any) -> tuple[Any, str]:
        return evaluate(field_name, self._names), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            return "never"
        if format_spec.endswith("d") and isinstance(value, float):
            value = round(value)
        return str(super().format_field(value, format_spec))


def fill(template: str, names: Mapping[str, Any]) -> str:
    """A sentence with expressions in braces: `a gap of {gap_ms:.0f} ms`. FabricError: a bad one.

    A value that is None is written `never`, without ms or s. An expression holds neither `:`
    nor `!`.
    """
    try:
        return re.sub(r"\bnever (?:ms|s)\b", "never", _Filler(names).vformat(template, (), {}))
    except FabricError:
        raise
    except (ValueError, TypeError, ArithmeticError) as error:
        raise FabricError(f"{template!r}: {error}") from None
