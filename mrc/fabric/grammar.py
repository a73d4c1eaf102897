# SPDX-License-Identifier: BSD-2-Clause
"""Whether expressions and sentences of a scenario can be evaluated, before anything has run.

Each part of an expression has a kind: a number, a truth, a word. What names stand for is given by
`mrc.fabric.vocabulary`: a kind, a function, or a group of names of its own (`rc.gap_ms`).
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from .errors import FabricError, near
from .expression import parsed

__all__ = ["Function", "Kind", "Known", "check_expectation", "check_figure", "check_sentence"]


class Kind(Enum):
    """What a part of an expression comes to."""

    NUMBER = "a number"
    TRUTH = "true or false"
    WORD = "a word in quotes"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Function:
    """What can be called."""

    takes: tuple[tuple[str, Kind], ...]
    """Its arguments: names for people, and kinds. Words must be written out."""
    needs: int
    """So many of them must be given."""
    more: bool = False
    """It takes any number besides, of the last kind."""
    wrong: Callable[[Sequence[Any]], str] = lambda _: ""
    """What is wrong with arguments that are written out (others are None): a sentence, or ""."""

    def __str__(self) -> str:
        names = [name for name, _ in self.takes]
        optional = [f"[, {name}]" for name in names[self.needs :]]
        return f"({', '.join(names[: self.needs])}{''.join(optional)}{', ..' * self.more})"


Known: TypeAlias = "Mapping[str, Kind | Function | Known]"

_TWO = (("a", Kind.NUMBER), ("b", Kind.NUMBER))
_BUILTIN: dict[str, Kind | Function] = {
    "min": Function(_TWO, 2, more=True),
    "max": Function(_TWO, 2, more=True),
    "abs": Function(_TWO[:1], 1),
    "never": Kind.NEVER,
}
_CONSTANTS = {str: Kind.WORD, bool: Kind.TRUTH, int: Kind.NUMBER, float: Kind.NUMBER}
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_EQUAL = (ast.Eq, ast.NotEq)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)


def check_expectation(text: str, known: Known) -> None:
    """FabricError: it cannot be evaluated, or says neither yes nor no."""
    found = _kind_of(text, known)
    if found is not Kind.TRUTH:
        raise FabricError(f"{text!r} is {found.value}, no comparison such as gap_ms <= 20")


def check_figure(text: str, known: Known) -> None:
    """FabricError: it cannot be evaluated, or is no number."""
    found = _kind_of(text, known)
    if found is not Kind.NUMBER:
        raise FabricError(f"{text!r} is {found.value}, no number")


def check_sentence(template: str, known: Known) -> None:
    """FabricError: something in braces cannot be evaluated, or not be written so."""
    try:
        fields = [part[1:] for part in string.Formatter().parse(template) if part[1] is not None]
    except ValueError as error:
        raise FabricError(f"{template!r}: {error}; {{{{ and }}}} are braces themselves") from None
    for text, spec, conversion in fields:
        found = _kind_of(text or "", known)
        if conversion or "{" in (spec or "") or not _can_be_written(found, spec or ""):
            mark = f"!{conversion}" if conversion else f":{spec}"
            raise FabricError(
                f"{{{text}{mark}}}: {found.value} is not written so; try :.1f or :.1%"
            )


_SPEC = re.compile(r"[<>=^]?[+ -]?0?\d{0,2},?(\.\d{1,2})?[defgs%]?")
"""How a value may be written: no width or precision that fills the memory."""


def _can_be_written(kind: Kind, spec: str) -> bool:
    if not _SPEC.fullmatch(spec):
        return False
    for value in ("word",) if kind is Kind.WORD else (1.5, 1):
        try:
            format(value, spec)
        except ValueError:
            continue
        return True
    return False


def _kind_of(text: str, known: Known) -> Kind:
    try:
        return _Checker(text, {**_BUILTIN, **known}).kind(parsed(text))
    except RecursionError:
        raise FabricError(f"{text!r} is nested too deeply") from None


class _Checker:
    """One expression."""

    def __init__(self, text: str, known: Known) -> None:
        self._text = text
        self._known = known

    def _fail(self, reason: str) -> FabricError:
        return FabricError(f"{self._text!r}: {reason}")

    def kind(self, node: ast.expr) -> Kind:
        """What it comes to. FabricError: it cannot be evaluated."""
        found = self._found(node)
        if isinstance(found, Kind):
            return found
        name = ast.unparse(node)
        if isinstance(found, Function):
            raise self._fail(f"{name} is a function: {name}{found}")
        first = next((member for member, kind in found.items() if isinstance(kind, Kind)), "")
        raise self._fail(f"{name} has many figures, such as {name}.{first}")

    def _found(self, node: ast.expr) -> Kind | Function | Known:
        match node:
            case ast.Name():
                return self._member(self._known, node.id)
            case ast.Attribute():
                owner = self._found(node.value)
                if not isinstance(owner, Mapping):
                    raise self._fail(f"{ast.unparse(node.value)} has no members")
                return self._member(owner, node.attr)
            case ast.Compare():
                return self._compared(node)
            case ast.Call(keywords=[]):
                return self._called(node)
            case ast.Constant(value=value) if type(value) in _CONSTANTS:
                return _CONSTANTS[type(value)]
        return self._computed(node)

    def _computed(self, node: ast.expr) -> Kind:
        match node:
            case ast.UnaryOp(op=ast.Not()):
                return self._joined([node.operand], Kind.TRUTH)
            case ast.UnaryOp(op=ast.USub()):
                return self._joined([node.operand], Kind.NUMBER)
            case ast.BinOp(op=op) if isinstance(op, _ARITHMETIC):
                return self._joined([node.left, node.right], Kind.NUMBER)
            case ast.BoolOp():
                return self._joined(node.values, Kind.TRUTH)
        raise self._fail(f"{ast.unparse(node)} is not possible here")

    def _member(self, owner: Known, name: str) -> Kind | Function | Known:
        if name not in owner:
            raise self._fail(f"{name} is not known; {near(name, owner)}")
        return owner[name]

    def _joined(self, parts: Sequence[ast.expr], result: Kind) -> Kind:
        for part in parts:
            if self.kind(part) is Kind.WORD:
                raise self._fail(f"{ast.unparse(part)} is a word, no number")
        return result

    def _compared(self, node: ast.Compare) -> Kind:
        parts = [node.left, *node.comparators]
        kinds = [self.kind(part) for part in parts]
        for k, op in enumerate(node.ops):
            both = kinds[k : k + 2]
            if isinstance(op, _EQUAL):
                good = both.count(Kind.WORD) in (0, 2)
            elif isinstance(op, _ORDER):
                good = both == [Kind.NUMBER, Kind.NUMBER]
            else:
                raise self._fail("comparisons are < <= > >= == !=")
            if not good:
                left, right = (ast.unparse(part) for part in parts[k : k + 2])
                raise self._fail(
                    f"{left} is {both[0].value}, {right} is {both[1].value}: not to be compared so"
                )
        return Kind.TRUTH

    def _called(self, node: ast.Call) -> Kind:
        name, function = ast.unparse(node.func), self._found(node.func)
        if not isinstance(function, Function):
            raise self._fail(f"{name} is no function, and not called")
        count = len(node.args)
        if count < function.needs or (count > len(function.takes) and not function.more):
            raise self._fail(f"{name}{function} is given {count} arguments")
        for k, part in enumerate(node.args):
            what, wanted = function.takes[min(k, len(function.takes) - 1)]
            found = self.kind(part)
            written = wanted is not Kind.WORD or isinstance(part, ast.Constant)
            if (found is Kind.WORD) != (wanted is Kind.WORD) or not written:
                raise self._fail(f"{what} of {name}{function} is {wanted.value}")
        if problem := function.wrong([_literal(part) for part in node.args]):
            raise self._fail(f"{ast.unparse(node)}: {problem}")
        return Kind.NUMBER


def _literal(node: ast.expr) -> Any:
    """What is written out; None for what is computed."""
    match node:
        case ast.Constant():
            return node.value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
    return None
