# SPDX-License-Identifier: BSD-2-Clause
"""C sources cut into their top-level pieces: functions, tests, types, tables, macros.

No parser: the house format (clang-format) is enough for one, and comments are taken out first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')
_DEFINE = re.compile(r"#[ \t]*define[ \t]+(\w+)(?:\\\n|[^\n])*")
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_FUNCTION = re.compile(r"(\w+)\s*\(")
_TAG = re.compile(r"\b(?:struct|enum|union)\s+(\w+)\s*\{")
_VARIABLE = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=|;)")


@dataclass(frozen=True, slots=True)
class Piece:
    """One definition or declaration."""

    names: frozenset[str]  # what it defines
    text: str  # without comments
    start: int  # where it begins in the file, where it ends
    end: int


def without_comments(text: str) -> str:
    """The text with comments blanked out, so that every place keeps its offset."""

    def blank(m: re.Match[str]) -> str:
        return m[0] if m[0][0] in "\"'" else re.sub(r"[^\n]", " ", m[0])

    return _TOKEN.sub(blank, text)


def _names(text: str) -> frozenset[str]:
    """What a piece at file level defines."""
    if m := _DEFINE.match(text):
        return frozenset([m[1]])
    head = text.partition("{")[0]
    if m := re.match(r"TEST\((\w+)\)", head):
        return frozenset([m[1]])
    if "{" not in text and "(" in head:  # a prototype; the definition stands elsewhere
        return frozenset(_FUNCTION.findall(head)[:1])
    if "(" in head and "=" not in head:
        return frozenset(_FUNCTION.findall(head.replace("__attribute__", ""))[:1])
    names = set(_TAG.findall(text))
    if re.match(r"(?:typedef\s+)?enum\b", head):
        body = re.sub(r"=[^,}]*", "", text.partition("{")[2].rpartition("}")[0])
        names.update(_WORD.findall(body))
    elif "=" in head or not names:
        names.update(_VARIABLE.findall(head + ("=" if "{" in text else ""))[:1])
    return frozenset(names)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each top-level piece of a text without comments and directives begins and ends."""
    depth = 0
    start = -1
    for m in re.finditer(r"[(){}\[\];]|[^\s(){}\[\];]+", text):
        if start < 0:
            if m[0] == ";":
                continue
            start = m.start()
        if m[0] in "({[":
            depth += 1
        elif m[0] in ")}]":
            depth -= 1
        ends = m[0] == ";" or (m[0] == "}" and "=" not in text[start : m.end()].partition("{")[0])
        if depth == 0 and ends:
            kind = text[start : m.end()].partition("{")[0]
            if m[0] == "}" and "(" not in kind:
                continue  # a type or a table ends with its semicolon
            yield start, m.end()
            start = -1


@lru_cache(maxsize=256)
def _cut(text: str) -> tuple[Piece, ...]:
    bare = without_comments(text)
    found = [Piece(_names(m[0]), m[0], m.start(), m.end()) for m in _DEFINE.finditer(bare)]

    def blank(m: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", m[0])

    def hide(m: re.Match[str]) -> str:  # braces in strings open nothing
        return '"' + "_" * (len(m[0]) - 2) + '"'

    code = _DIRECTIVE.sub(blank, bare)
    for start, end in _spans(_LITERAL.sub(hide, code)):
        found.append(Piece(_names(code[start:end]), code[start:end], start, end))
    return tuple(sorted(found, key=lambda p: p.start))


def pieces(path: Path) -> tuple[Piece, ...]:
    """The pieces of a file, in their order."""
    return _cut(path.read_text())


def around(path: Path, offset: int) -> str:
    """The piece an offset of the file lies in, or the whole file where it lies in none."""
    inside = [p for p in pieces(path) if p.start <= offset < p.end]
    return inside[0].text if inside else without_comments(path.read_text())


def defines(path: Path, symbol: str) -> bool:
    """Whether the file defines or declares the symbol; "struct x" and "enum x" may be said."""
    name = symbol.removeprefix("struct ").removeprefix("enum ")
    return any(name in p.names for p in pieces(path))


def tests(path: Path) -> dict[str, Piece]:
    """The tests of a file by name."""
    found = {}
    for p in pieces(path):
        if m := re.match(r"TEST\((\w+)\)", p.text):
            found[m[1]] = p
    return found


def _helpers(path: Path) -> list[Path]:
    """The file, the headers beside it that it includes, and what implements those."""
    found = [path]
    for file in found:
        for name in _INCLUDE.findall(file.read_text()):
            header = path.parent / name
            beside = [header, *sorted(path.parent.glob(f"{header.stem}*.c"))]
            found += [b for b in beside if b.is_file() and b not in found]
    return [f for f in found if f == path or not f.name.startswith("test_")]


def test_text(path: Path, name: str) -> list[str]:
    """A test and every helper of the test folder it reaches, each without comments."""
    known: dict[str, list[Piece]] = {}
    for file in _helpers(path):
        for p in pieces(file):
            for n in p.names:
                known.setdefault(n, []).append(p)
    first = tests(path)[name]
    reached = [first]
    for piece in reached:
        for word in dict.fromkeys(_WORD.findall(piece.text)):
            reached += [p for p in known.get(word, []) if p not in reached and p is not first]
    return [reached[0].text, *sorted(p.text for p in reached[1:])]
