# SPDX-License-Identifier: BSD-2-Clause
"""Hold the C layers: a file may include its own header and what lies below it in the drawing.

The drawing is LAYERS, lowest first; docs/explanation/architecture.md shows it. A module owns every
file whose name begins with its name (mrc_req_loss.c belongs to req). Modules of one layer do not
know each other; the layer above joins them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LAYERS: list[set[str]] = [
    {"base"},
    {"psn", "bits", "list", "heap", "rand", "trace", "icrc"},
    {"pool"},
    {"wire"},
    {"types"},
    {"txtrack", "rxtrack", "rxload", "rxev", "path", "cc", "mr", "cq", "tmpl", "async"},
    {"emit"},
    {"req", "resp"},
    {"qp", "ep"},
    {"engine"},
]
# Implementations of one interface count as the interface's module.
FAMILY = {"nscc": "cc", "ccfixed": "cc"}
CORE_SYSTEM = {"stdbool.h", "stddef.h", "stdint.h", "string.h"}
# One file may use what the compiler offers for carry-less multiplication.
INTRINSICS = {"immintrin.h", "wmmintrin.h", "smmintrin.h", "cpuid.h", "arm_neon.h"}
EXTRA_SYSTEM = {"mrc_icrc.c": INTRINSICS}
SIM_SYSTEM = CORE_SYSTEM | {"stdarg.h", "stdio.h", "stdlib.h"}  # memory, and words put together
# Backends know packets and the interface they fill; only the pump knows the engine.
BACKEND_CORE = {"base", "rand", "types", "wire"}

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"(?P<own>[^"]+)"|<(?P<system>[^>]+)>)', re.MULTILINE)


def module(name: str) -> str | None:
    """Module of a file name such as mrc_req_loss.c; None when the drawing has no place for it."""
    parts = Path(name).stem.removeprefix("mrc_").split("_")
    for length in range(len(parts), 0, -1):
        stem = "_".join(parts[:length])
        stem = FAMILY.get(stem, stem)
        if any(stem in layer for layer in LAYERS):
            return stem
    return None


def rank(mod: str) -> int:
    """Height of a module in the drawing; 0 is the lowest."""
    return next(i for i, layer in enumerate(LAYERS) if mod in layer)


def core_faults(src: Path, own: list[str], system: list[str]) -> list[str]:
    """What a file of csrc/core includes that it may not."""
    mod = module(src.name)
    if mod is None:
        return ["is not in the drawing; give it a place in LAYERS"]
    faults = [
        f"includes <{h}>; the core has {', '.join(sorted(CORE_SYSTEM))} only"
        for h in system
        if h not in CORE_SYSTEM | EXTRA_SYSTEM.get(src.name, set())
    ]
    for header in own:
        other = module(Path(header).name)
        if "/" in header or other is None:
            faults.append(f"includes {header}, which is not of the core")
        elif other != mod and rank(other) >= rank(mod):
            faults.append(f"includes {header}: {mod} may know only what lies below it")
    return faults


def io_faults(src: Path, own: list[str]) -> list[str]:
    """What a file of csrc/io includes that it may not."""
    faults = []
    for header in own:
        name = Path(header).name
        if not header.startswith("../core/"):
            if name.startswith("mrc_pump") and not src.name.startswith("mrc_pump"):
                faults.append(f"includes {header}: a backend does not know the pump")
        elif not src.name.startswith("mrc_pump") and module(name) not in BACKEND_CORE:
            faults.append(f"includes {header}: a backend knows packets, nothing else of the core")
    return faults


def sim_faults(src: Path, own: list[str], system: list[str]) -> list[str]:
    """What a file of csrc/sim includes that it may not: links and queues know no fabric."""
    faults = [f"includes <{h}>: the simulator does no I/O" for h in system if h not in SIM_SYSTEM]
    for header in own:
        if header.startswith("../") and not header.startswith("../core/"):
            faults.append(f"includes {header}: the simulator knows the core and itself")
        elif header.startswith("fab") and not src.name.startswith("fab"):
            faults.append(f"includes {header}: what lies below the fabric does not know it")
    return faults


def violations(root: Path) -> list[str]:
    """One sentence for each include the drawing forbids."""
    found = []
    for src in sorted(root.glob("csrc/*/*.[ch]")):
        if src.name.endswith("_all.c"):
            continue
        matches = list(INCLUDE.finditer(src.read_text()))
        own = [m["own"] for m in matches if m["own"]]
        system = [m["system"] for m in matches if m["system"]]
        folder = src.parent.name
        if folder == "core":
            faults = core_faults(src, own, system)
        elif folder == "io":
            faults = io_faults(src, own)
        elif folder == "sim":
            faults = sim_faults(src, own, system)
        else:
            faults = []
        found += [f"{src.relative_to(root)} {fault}" for fault in faults]
    return found


def main() -> int:
    """Exit code for make: 0 layers hold, 1 they do not."""
    found = violations(Path(__file__).resolve().parent.parent)
    for line in found:
        print(f"includes: {line}", file=sys.stderr)
    if not found:
        print("includes: the C layers hold")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
