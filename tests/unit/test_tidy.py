# SPDX-License-Identifier: BSD-2-Clause
"""Rules of the repository that no linter knows."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = 100
LINES = {".py": 400, ".pyi": 400, ".c": 600, ".h": 600}
FUNCTION_LINES = 70
GENERATED = {"csrc/ffi/_ffi.c", "csrc/ffi/_sim.c"}
# Absolute paths of somebody's machine tell a reader nothing.
PRIVATE_PATH = re.compile(r"(?<![\w.{}~-])/(?:work|home|root)/\w")


def ours(*suffixes: str) -> list[Path]:
    """The project's own files with one of these endings; generated ones are left out."""
    found = [p for p in ROOT.iterdir() if p.is_file()]
    for folder in ("mrc", "csrc", "tests", "tools", "docs"):
        found += (ROOT / folder).rglob("*")
    return sorted(
        p
        for p in found
        if p.suffix in suffixes and p.is_file() and str(p.relative_to(ROOT)) not in GENERATED
    )


def too_long(path: Path) -> list[str]:
    lines = path.read_text().splitlines()
    name = path.relative_to(ROOT)
    faults = [f"{name}:{i}: {len(t)} columns" for i, t in enumerate(lines, 1) if len(t) > COLUMNS]
    if len(lines) > LINES[path.suffix]:
        faults.append(f"{name}: {len(lines)} lines; split it by role")
    return faults


def long_c_functions(path: Path) -> list[str]:
    """Functions open and close with a brace in the first column."""
    faults = []
    start = 0
    for i, text in enumerate(path.read_text().splitlines(), 1):
        if text == "{":
            start = i
        elif text == "}" and start:
            if i - start - 1 > FUNCTION_LINES:
                faults.append(f"{path.relative_to(ROOT)}:{start}: {i - start - 1} lines")
            start = 0
    return faults


def long_python_functions(path: Path) -> list[str]:
    faults = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            length = node.end_lineno - node.body[0].lineno + 1
            if length > FUNCTION_LINES:
                name = path.relative_to(ROOT)
                faults.append(f"{name}:{node.lineno}: {node.name}, {length} lines")
    return faults


def test_files_and_lines_have_the_house_size():
    assert [f for p in ours(*LINES) for f in too_long(p)] == []


def test_functions_have_the_house_size():
    faults = [f for p in ours(".c", ".h") for f in long_c_functions(p)]
    faults += [f for p in ours(".py") for f in long_python_functions(p)]
    assert faults == []


SPDX = "SPDX-License-Identifier: BSD-2-Clause"


def test_every_source_begins_with_its_licence():
    bare = [
        str(p.relative_to(ROOT))
        for p in ours(*LINES, ".sh", ".cdef")
        if not any(SPDX in t for t in p.read_text().split("\n")[:2])
    ]
    assert bare == []


def test_no_path_of_a_private_machine():
    texts = ours(*LINES, ".md", ".toml", ".sh", ".json", ".cdef", ".yaml", ".txt")
    found = [
        f"{p.relative_to(ROOT)}:{i}"
        for p in texts
        for i, t in enumerate(p.read_text().splitlines(), 1)
        if PRIVATE_PATH.search(t)
    ]
    assert found == []


def imports_compiled_module(path: Path) -> bool:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [getattr(node, "module", None) or "", *(a.name for a in node.names)]
            if any(n.split(".")[-1] == "_ffi" for n in names):
                return True
    return False


def test_only_core_imports_the_compiled_module():
    sources = [p for p in ours(".py") if ROOT / "mrc" in p.parents]
    assert {p.name for p in sources if imports_compiled_module(p)} == {"_core.py"}
