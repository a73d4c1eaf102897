# SPDX-License-Identifier: BSD-2-Clause
"""Prove by the linker's own view that the core knows no system.

Compiles every file of csrc/core alone and reads the symbol tables: what the objects together leave
undefined must be one of six names, and none may hold writable data (no globals).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ALLOWED = {"memcpy", "memmove", "memset", "memcmp", "mrc_panic", "__stack_chk_fail"}
# Position-dependent code, so that constant tables of pointers are read-only data in the object.
FLAGS = ["-std=c11", "-O2", "-ffp-contract=off", "-fno-pic", "-fno-pie", "-c"]
WRITABLE = set("bBdDC")


def symbols(obj: Path) -> list[tuple[str, str]]:
    """(type letter, name) of each symbol in an object file."""
    out = subprocess.run(["nm", "-P", str(obj)], check=True, capture_output=True, text=True).stdout
    fields = (line.split() for line in out.splitlines())
    return [(f[1], f[0]) for f in fields]


def violations(core: Path, cc: str) -> list[str]:
    """One sentence for each symbol the rule forbids."""
    found: list[str] = []
    undefined: dict[str, set[str]] = {}
    defined: set[str] = set()
    with tempfile.TemporaryDirectory() as tmp:
        for src in sorted(core.glob("*.c")):
            if src.name.endswith("_all.c"):
                continue
            obj = Path(tmp) / f"{src.stem}.o"
            subprocess.run([cc, *FLAGS, str(src), "-o", str(obj)], check=True)
            for kind, name in symbols(obj):
                if kind in "Uw":
                    undefined.setdefault(name, set()).add(src.name)
                elif kind in WRITABLE:
                    found.append(f"{src.name}: {name} is writable data; the core has no globals")
                else:
                    defined.add(name)
    for name, users in sorted(undefined.items()):
        if name not in ALLOWED | defined:
            found.append(f"{', '.join(sorted(users))}: uses {name}, which is outside the core")
    return found


def main() -> int:
    """Exit code for make: 0 pure, 1 not."""
    core = Path(__file__).resolve().parent.parent / "csrc" / "core"
    found = violations(core, os.environ.get("CC", "gcc"))
    for line in found:
        print(f"purity: {line}", file=sys.stderr)
    if not found:
        print(f"purity: {len(list(core.glob('*.c')))} core files use nothing outside the core")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
