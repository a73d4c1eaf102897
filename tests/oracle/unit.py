# SPDX-License-Identifier: BSD-2-Clause
"""The internals of the C core as a compiled module, for tests only.

Built from `csrc/core` and `csrc/ffi/unit.cdef` into `build/unit/<hash of both>`; unchanged sources
are not built again.
"""

import hashlib
import importlib.util
import re
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "csrc" / "core"
CDEF = ROOT / "csrc" / "ffi" / "unit.cdef"
NAME = "_mrc_unit"
FLAGS = ["-std=gnu11", "-O1", "-g", "-ffp-contract=off"]

PREAMBLE = """
#include <stdio.h>
#include <stdlib.h>
#include "mrc_core_all.c"
#include "mrc_psn.h"

_Noreturn void mrc_panic(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: impossible: %s\\n", file, line, what);
    abort();
}
"""


def _digest() -> str:
    digest = hashlib.sha256(repr((FLAGS, PREAMBLE, sys.version)).encode())
    for path in [CDEF, *sorted(CORE.glob("*.[ch]"))]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _compile(place: Path) -> None:
    """Build in a directory of our own, then move it: another process may be at the same thing."""
    from cffi import FFI

    ffi = FFI()
    ffi.cdef(re.sub(r"/\*.*?\*/", "", CDEF.read_text(), flags=re.DOTALL))
    ffi.set_source(NAME, PREAMBLE, include_dirs=[str(CORE)], extra_compile_args=FLAGS)
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="making-") as making:
        made = Path(ffi.compile(tmpdir=making))
        place.mkdir(exist_ok=True)
        made.replace(place / made.name)
    for old in place.parent.iterdir():
        if old.is_dir() and old != place and not old.name.startswith("making-"):
            shutil.rmtree(old, ignore_errors=True)


@cache
def module() -> Any:
    """Return the module; it has `ffi` and `lib`."""
    place = ROOT / "build" / "unit" / _digest()
    if not list(place.glob(f"{NAME}*.so")):
        _compile(place)
    (library,) = place.glob(f"{NAME}*.so")
    spec = importlib.util.spec_from_file_location(NAME, library)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded
