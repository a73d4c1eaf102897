# SPDX-License-Identifier: BSD-2-Clause
"""Python sources by name: what a file defines, and what a test reaches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@lru_cache(maxsize=256)
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


def _assigned(node: ast.stmt) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    for target in targets:
        yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))


def _members(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """What a module or a class defines, by name."""
    found: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, Definition):
            found[node.name] = node
        elif isinstance(node, ast.If | ast.Try | ast.With):
            found.update(_members(node.body))
        else:
            found.update(dict.fromkeys(_assigned(node), node))
    return found


def find(path: Path, dotted: str) -> ast.stmt | None:
    """The definition of "name" or "Class.name" in a file."""
    body = _parse(path.read_text()).body
    node: ast.stmt | None = None
    for name in dotted.split("."):
        node = _members(body).get(name)
        if node is None:
            return None
        body = node.body if isinstance(node, ast.ClassDef) else []
    return node


def around(path: Path, offset: int) -> str:
    """The innermost function an offset of the file lies in, else the statement at file level."""
    text = path.read_text()
    line = text.count("\n", 0, offset) + 1
    inside: list[ast.stmt] = []
    for node in ast.walk(_parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first <= line <= (node.end_lineno or 0):
                inside.append(node)
    top = [n for n in _parse(text).body if n.lineno <= line <= (n.end_lineno or 0)]
    chosen = inside[-1:] or top[:1]
    return ast.unparse(chosen[0]) if chosen else text


def _module(root: Path, path: Path, node: ast.ImportFrom) -> Path | None:
    """The file of tests that "from x import y" names."""
    parts = (node.module or "").split(".") if node.module else []
    base = root if node.level == 0 else path.parents[node.level - 1]
    file = base.joinpath(*parts)
    for candidate in (file.with_suffix(".py"), file / "__init__.py"):
        if candidate.is_file() and root / "tests" in candidate.parents:
            return candidate
    return None


def _scope(root: Path, path: Path) -> list[Path]:
    """Files whose names a test may use: its own, conftest files above it, what those import."""
    found = [path]
    for folder in path.parents:
        if folder == root:
            break
        if (folder / "conftest.py").is_file():
            found.append(folder / "conftest.py")
    for file in found:
        for node in ast.walk(_parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                other = _module(root, file, node)
                if other is not None and other not in found:
                    found.append(other)
                for alias in node.names:  # from tests.netns import packets
                    below = (other or file).parent / f"{alias.name}.py"
                    if other and below.is_file() and below not in found:
                        found.append(below)
    return found


def _words(node: ast.AST) -> Iterator[str]:
    for n in ast.walk(node):
        if isinstance(n, ast.Name):
            yield n.id
        elif isinstance(n, ast.Attribute):
            yield n.attr
        elif isinstance(n, ast.arg):  # a fixture
            yield n.arg


def test_text(root: Path, path: Path, dotted: str) -> list[str]:
    """A test and every helper and fixture of tests/ it reaches, each without comments."""
    known: dict[str, list[ast.stmt]] = {}
    for file in _scope(root, path):
        for name, node in _members(_parse(file.read_text()).body).items():
            known.setdefault(name, []).append(node)
    first = find(path, dotted)
    if first is None:
        raise LookupError(f"{path.name} has no {dotted}")
    reached = [first]
    for node in reached:
        for word in dict.fromkeys(_words(node)):
            reached += [n for n in known.pop(word, []) if n is not first]
    return [ast.unparse(first), *sorted({ast.unparse(n) for n in reached[1:]})]
