# SPDX-License-Identifier: BSD-2-Clause
"""The conformance tool: what it refuses, what it proves, and when a proof goes stale."""

import json
import shutil
from pathlib import Path

import pytest

from tools.conformance import csource, digest
from tools.conformance.__main__ import main
from tools.conformance.rows import PAGE, RowError, load

ROOT = Path(__file__).resolve().parents[2]

CODE = """
/* Saturating. { */
#define LIMIT 9
enum kind { KIND_ONE, KIND_TWO = 4 };
struct box { int in; };
static const char *const words[] = {"{", "b"};
static int helper(int x)
{
    return x > LIMIT ? LIMIT : x; /* here */
}
int add(int a, int b)
{
    return helper(a) + b;
}
"""
HEADER = "int add(int a, int b);\n"
C_TEST = """
#include "t.h"
#include "../core/mrc_x.h"
static void check(int a)
{
    CHECK_EQ(add(a, 1), a + 1);
}
TEST(add__adds)
{
    check(2);
}
TEST(add__other) { CHECK(true); }
TEST(add__adds_more) { CHECK_EQ(add(40, 2), 11); }
"""
PY = "def double(x: int) -> int:\n    return 2 * x\n"
PY_TEST = """
import pytest
from prog import double

WANT = 8

@pytest.fixture
def four():
    return 4

def test_doubles(four):
    assert double(four) == WANT

def test_skips():
    pytest.skip("not here")
"""
MAKEFILE = """
build/prove/test_x: csrc/tests/test_x.c csrc/core/mrc_x.c
\t@mkdir -p build/prove; gcc -Icsrc/tests $^ -o $@
"""


def row(number: int, *, tests: list[str], mutant: tuple[str, str, str] | None = None) -> str:
    text = f"""
[[row]]
id = "B.1-{number}"
section = "B.1"
statement = "Sums | are exact."
where = ["csrc/core/mrc_x.c: add"]
tests = {json.dumps(tests)}
"""
    if mutant:
        file, find, replace = map(json.dumps, mutant)
        text += f"[[row.mutant]]\nfile = {file}\nfind = {find}\nreplace = {replace}\n"
    return text


ADDS = "csrc/tests/test_x.c: add__adds"
C_MUTANT = ("csrc/core/mrc_x.c", "helper(a) + b", "helper(a)")


@pytest.fixture
def tree(tmp_path):
    files = {
        "Makefile": MAKEFILE,
        "csrc/core/mrc_x.c": CODE,
        "csrc/core/mrc_x.h": HEADER,
        "csrc/tests/test_x.c": C_TEST,
        "prog.py": PY,
        "tests/test_p.py": PY_TEST,
        "docs/reference/README": "",
        "tests/conformance/README": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copy(ROOT / "csrc/tests/t.h", tmp_path / "csrc/tests")
    return tmp_path


def write_rows(tree, *texts, name="b"):
    (tree / f"tests/conformance/{name}.toml").write_text("".join(texts))


def run(tree, *args):
    return main(["--root", str(tree), *args])


def page(tree):
    return (tree / PAGE).read_text()


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("mrc_x.c: add", "mrc_y.c: add", "no file csrc/core/mrc_y.c"),
        ("mrc_x.c: add", "mrc_x.c: sub", "does not define sub"),
        ("test_x.c: add__adds", "test_x.c: add__gone", "no TEST(add__gone)"),
        ("helper(a) + b", "x", "'x' is"),
        ("helper(a) + b", "no such text", "'no such text' is 0 times"),
        ("B.1-1", "B.1-2", "also in"),
        ("B.1-1", "B.1-9", "stands too early"),
        ('section = "B.1"', 'section = "B.2"', "is not the section"),
        ('where = ["csrc/core/mrc_x.c: add"]', "where = []", "where is empty"),
        ('where = ["csrc/core/mrc_x.c: add"]', "wear = []", "unknown key wear"),
        ("statement", "[broken", "b.toml"),
    ],
)
def test_what_is_not_there_is_an_error(tree, capsys, old, new, said):
    first = row(1, tests=[ADDS], mutant=C_MUTANT)
    assert old in first
    write_rows(tree, first.replace(old, new, 1), row(2, tests=[]))
    assert run(tree, "write") == 1
    assert said in capsys.readouterr().err


def test_python_test_that_is_gone_is_an_error(tree, capsys):
    write_rows(tree, row(1, tests=["tests/test_p.py::test_halves"]))
    assert run(tree, "check") == 1
    assert "no test test_halves" in capsys.readouterr().err


def test_page_must_be_what_the_rows_say(tree, capsys):
    write_rows(tree, row(1, tests=[]), row(2, tests=[ADDS]))
    assert run(tree, "check") == 1
    assert run(tree, "write") == 0
    assert run(tree, "check") == 0
    assert "1 tested, not proved, 1 not covered" in capsys.readouterr().out
    assert "| B.1-1 | Sums \\| are exact. |" in page(tree)
    change(tree / PAGE, "exact", "rough")
    assert run(tree, "check") == 1


def test_mutant_noticed_is_proved_and_goes_stale(tree):
    write_rows(tree, row(1, tests=[ADDS], mutant=C_MUTANT))
    assert run(tree, "prove", "--jobs", "2") == 0
    assert "| proved |" in page(tree)
    assert run(tree, "check") == 0
    assert (tree / "csrc/core/mrc_x.c").read_text() == CODE

    # What the proof does not depend on: comments, other functions, other tests.
    change(tree / "csrc/core/mrc_x.c", "/* here */", "/* still here */")
    change(tree / "csrc/core/mrc_x.c", "LIMIT 9", "LIMIT 10")
    change(tree / "csrc/tests/test_x.c", "CHECK(true)", "CHECK(1)")
    assert run(tree, "check") == 0

    for file, old, new in [
        ("csrc/core/mrc_x.c", "helper(a) + b", "b + helper(a) + b - b"),
        ("csrc/tests/test_x.c", "check(2)", "check(3)"),
        ("csrc/tests/test_x.c", "a + 1);", "a + 1 + 0);"),  # a helper of the test
        ("tests/conformance/b.toml", "exact", "right"),
    ]:
        path = tree / file
        before = path.read_text()
        change(path, old, new)
        if file.endswith("mrc_x.c"):
            change(tree / "tests/conformance/b.toml", "helper(a) + b", "b + helper(a) + b - b")
        assert run(tree, "write") == 0
        assert "tested, not proved (proof is stale)" in page(tree)
        path.write_text(before)
        if file.endswith("mrc_x.c"):
            change(tree / "tests/conformance/b.toml", "b + helper(a) + b - b", "helper(a) + b")
    assert run(tree, "write") == 0
    assert "| proved |" in page(tree)


def test_surviving_mutant_is_a_defect_and_ends_a_proof(tree, capsys):
    write_rows(tree, row(1, tests=[ADDS], mutant=C_MUTANT))
    assert run(tree, "prove") == 0
    # The test of the same beginning would notice; it is not the one named.
    change(tree / "csrc/tests/test_x.c", "    check(2);", "    CHECK(true);")
    assert run(tree, "prove") == 1
    assert "mutant 1 of 1 SURVIVED" in capsys.readouterr().out
    assert json.loads((tree / "tests/conformance/proved/b.json").read_text()) == {}
    assert "(mutant not tried)" in page(tree)


@pytest.mark.parametrize(
    ("replace", "code", "said"),
    [
        ("helper(", 1, "does not compile"),
        ("helper(*(volatile int *)0)", 0, "add__adds crashes"),
    ],
)
def test_what_else_a_mutant_may_do(tree, capsys, replace, code, said):
    write_rows(tree, row(1, tests=[ADDS], mutant=(*C_MUTANT[:2], replace)))
    assert run(tree, "prove", "B.1") == code
    assert said in capsys.readouterr().out


def test_failing_test_proves_nothing(tree, capsys):
    write_rows(tree, row(1, tests=["csrc/tests/test_x.c: add__adds_more"], mutant=C_MUTANT))
    assert run(tree, "prove") == 0  # LIMIT 9: 9 + 2
    change(tree / "csrc/tests/test_x.c", "40, 2), 11", "40, 2), 42")
    assert run(tree, "prove") == 1
    assert "add__adds_more fails without a mutant" in capsys.readouterr().out


def test_python_mutants(tree, capsys):
    test = "tests/test_p.py::test_doubles"
    good = row(1, tests=[test], mutant=("prog.py", "2 * x", "x"))
    equal = row(2, tests=[test], mutant=("prog.py", "2 * x", "x * 2"))
    broken = row(3, tests=[test], mutant=("prog.py", "return 2", "return )"))
    absent = row(4, tests=["tests/test_p.py::test_skips"], mutant=("prog.py", "2 * x", "x"))
    write_rows(tree, good, equal, broken, absent)
    assert run(tree, "prove") == 1
    out = capsys.readouterr().out
    assert "B.1-1: proved" in out
    assert "B.1-2: mutant 1 of 1 SURVIVED" in out
    assert "B.1-3: mutant 1 of 1 does not load" in out
    assert "B.1-4: not tried: tests/test_p.py::test_skips is skipped here" in out
    assert "1 proved, 2 not, 1 not tried" in out
    assert run(tree, "prove", "B.1-1", "--dry") == 0
    change(tree / "tests/test_p.py", "return 4", "return 2 + 2")  # a fixture of the test
    assert run(tree, "write") == 0
    assert "B.1-1 |" in page(tree)
    assert page(tree).count("(proof is stale)") == 1


def test_unknown_name_is_an_error(tree, capsys):
    write_rows(tree, row(1, tests=[]))
    assert run(tree, "prove", "B.2") == 1
    assert "no row, section or part B.2" in capsys.readouterr().err


def test_out_of_time_is_said(tree, capsys):
    write_rows(tree, row(1, tests=[ADDS], mutant=C_MUTANT))
    assert run(tree, "prove", "--seconds", "0.000001") == 0
    assert "0 proved, 0 not, 1 not tried" in capsys.readouterr().out


def test_pieces_of_c(tree):
    path = tree / "csrc/core/mrc_x.c"
    for name in ("LIMIT", "KIND_TWO", "enum kind", "struct box", "words", "helper", "add"):
        assert csource.defines(path, name), name
    for name in ("in", "x", "here", "Saturating", "b"):
        assert not csource.defines(path, name), name
    assert csource.around(path, CODE.index("x > LIMIT")).startswith("static int helper")


def test_every_function_of_the_core_is_found():
    """The cutting of C files holds for our own: a function is found where its file defines it."""
    for path in (ROOT / "csrc/core").glob("mrc_*.c"):
        for line in path.read_text().splitlines():
            if line.startswith("TEST(") or not line[:1].isalpha() or "(" not in line:
                continue
            name = line.partition("(")[0].split()[-1].lstrip("*")
            assert csource.defines(path, name), f"{path.name}: {name}"


def test_own_rows_hold():
    rows = load(ROOT)
    assert rows
    for r in rows:
        assert digest.of(ROOT, r)


def test_row_of_wrong_form_names_itself(tree):
    write_rows(tree, '[[row]]\nid = "B.1-1"\nsection = "B.1"\nstatement = ""\n')
    with pytest.raises(RowError, match=r"b\.toml: B\.1-1: statement is missing"):
        load(tree)
