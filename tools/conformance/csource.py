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
    beside = {f.name: f for f in sorted(path.parent.glob("*.[ch]"))}
    found = [path]
    for file in found:
        for name in _INCLUDE.findall(file.read_text()):
            stem = name.removesuffix(".h")
            for other, place in beside.items():
                ours = other in (name, f"{stem}.c") or other.startswith(f"{stem}_")
                if name in beside and ours and place not in found:
                    found.append(place)
    return found


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_WORD.findall(text)))


@lru_cache(maxsize=4096)
def _reached(texts: tuple[str, ...], name: str) -> tuple[str, ...]:
    """The test of the first text, and the pieces of all that it reaches."""
    known: dict[str, list[str]] = {}
    first = ""
    for number, text in enumerate(texts):
        for p in _cut(text):
            if number == 0 and p.text.startswith(f"TEST({name})"):
                first = p.text
            for n in p.names:
                known.setdefault(n, []).append(p.text)
    reached = {first: None}
    queue = [first]
    for text in queue:
        for word in _words(text):
            for other in known.pop(word, ()):
                if other not in reached:
                    reached[other] = None
                    queue.append(other)
    return first, *sorted(t for t in reached if t != first)


def test_text(path: Path, name: str) -> tuple[str, ...]:
    """A test and every helper of the test folder it reaches, each without comments."""
    return _reached(tuple(f.read_text() for f in _helpers(path)), name)
