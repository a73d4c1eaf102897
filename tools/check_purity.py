# SPDX-License-Identifier: BSD-2-Clause
"""Prove by the linker's own view that the core and the simulator know no system.

Compiles every file of csrc/core alone and reads the symbol tables: what the objects together leave
undefined must be one of six names, and none may hold writable data (no globals). The simulator,
csrc/sim, is made of the core; it may take memory, when a fabric is made, and put words together.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

ALLOWED = {"memcpy", "memmove", "memset", "memcmp", "mrc_panic", "__stack_chk_fail"}
SIM_ALLOWED = ALLOWED | {"calloc", "realloc", "free", "snprintf", "vsnprintf"}
# Position-dependent code, so that constant tables of pointers are read-only data in the object.
FLAGS = ["-std=c11", "-O2", "-ffp-contract=off", "-fno-pic", "-fno-pie", "-c"]
FLAGS += ["-U_FORTIFY_SOURCE"]  # which renames functions
WRITABLE = set("bBdDC")


def symbols(obj: Path) -> list[tuple[str, str]]:
    """(type letter, name) of each symbol in an object file."""
    out = subprocess.run(["nm", "-P", str(obj)], check=True, capture_output=True, text=True).stdout
    fields = (line.split() for line in out.splitlines())
    return [(f[1], f[0]) for f in fields]


def objects(folder: Path, cc: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """(file name, symbols) of each file of a folder, compiled alone."""
    with tempfile.TemporaryDirectory() as tmp:
        for src in sorted(folder.glob("*.c")):
            if src.name.endswith("_all.c"):
                continue
            obj = Path(tmp) / f"{src.stem}.o"
            subprocess.run([cc, *FLAGS, str(src), "-o", str(obj)], check=True)
            yield src.name, symbols(obj)


def violations(
    folder: Path, cc: str, allowed: Collection[str] = frozenset(ALLOWED), what: str = "the core"
) -> list[str]:
    """One sentence for each symbol the rule forbids."""
    found: list[str] = []
    undefined: dict[str, set[str]] = {}
    defined: set[str] = set()
    for file, names in objects(folder, cc):
        for kind, name in names:
            if kind in "Uw":
                undefined.setdefault(name, set()).add(file)
            elif kind in WRITABLE:
                found.append(f"{file}: {name} is writable data; {what} has no globals")
            else:
                defined.add(name)
    for name, users in sorted(undefined.items()):
        if name not in defined and name not in allowed:
            found.append(f"{', '.join(sorted(users))}: uses {name}, which is outside {what}")
    return found


def exported(folder: Path, cc: str) -> set[str]:
    """What the files of a folder define for others."""
    every = (pair for _, names in objects(folder, cc) for pair in names)
    return {name for kind, name in every if kind.isupper() and kind != "U"}


def main() -> int:
    """Exit code for make: 0 pure, 1 not."""
    csrc = Path(__file__).resolve().parent.parent / "csrc"
    cc = os.environ.get("CC", "gcc")
    found = violations(csrc / "core", cc)
    own = exported(csrc / "core", cc)
    found += violations(csrc / "sim", cc, SIM_ALLOWED | own, "the core and the simulator")
    for line in found:
        print(f"purity: {line}", file=sys.stderr)
    if not found:
        count = len(list(csrc.glob("core/*.c"))), len(list(csrc.glob("sim/*.c")))
        print(f"purity: {count[0]} core and {count[1]} sim files use nothing outside them")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
