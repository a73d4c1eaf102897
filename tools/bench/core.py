# SPDX-License-Identifier: BSD-2-Clause
"""`make bench-core`: instructions per packet of the C core alone, counted by callgrind.

Noise-free: the same binary gives the same count whatever else the machine does. The CRC is left out
(tools/bench/core.c says how) and the copy into memory is shown apart.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BINARY = Path("build/bench/core")
MESSAGES = 40
DOORS = {
    "core_sender_tx": ("sender, per data packet", "packets"),
    "core_sender_rx": ("sender, per packet acknowledged", "packets"),
    "core_receiver_rx": ("receiver, per data packet", "packets"),
    "core_receiver_tx": ("receiver, per SACK or transport ACK made", "replies"),
}
ROW = re.compile(r"^\s*([\d,]+)\s+\(.*?\)\s+\S*?:(\w+)")


def inclusive(profile: Path) -> dict[str, int]:
    """Instructions of each function with all it calls."""
    out = subprocess.run(
        ["callgrind_annotate", "--inclusive=yes", "--threshold=100", str(profile)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    counts: dict[str, int] = {}
    for line in out.splitlines():
        if match := ROW.match(line):
            value = int(match[1].replace(",", ""))
            counts[match[2]] = max(value, counts.get(match[2], 0))
    return counts


def main() -> int:
    """Count, print a table, and one JSON line for the diary."""
    if shutil.which("valgrind") is None:
        print("bench-core: no valgrind; Debian and Ubuntu: apt install valgrind", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory() as tmp:
        profile = Path(tmp) / "callgrind.out"
        run = subprocess.run(
            [
                "valgrind",
                "--tool=callgrind",
                f"--callgrind-out-file={profile}",
                str(BINARY),
                str(MESSAGES),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        counts = inclusive(profile)
    moved = json.loads(run.stdout)
    moved["replies"] = moved["sacks"] + moved["acks"]
    copy = sum(n for name, n in counts.items() if name.startswith(("__memcpy", "__memmove")))
    result = {DOORS[d][0]: counts[d] / moved[DOORS[d][1]] for d in DOORS}
    print(f"{moved['packets']} packets, {moved['sacks']} SACKs, {moved['acks']} transport ACKs")
    for name, value in result.items():
        print(f"{value:8.1f}  {name}")
    # The wire of the bench copies each packet as well; half of all copies are the receiver's.
    print(f"{copy / 2 / moved['packets']:8.1f}  of the receiver's: the copy into memory")
    print(json.dumps({"bench": "core", **moved, **{k: round(v, 1) for k, v in result.items()}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
