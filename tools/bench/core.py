# SPDX-License-Identifier: BSD-2-Clause
"""`make bench-core`: instructions per packet of the C core alone, counted by callgrind.

Noise-free: the same binary gives the same count whatever else the machine does. The traffic is
bulk as the pump makes it, or as a line says: tools/bench/core.c. The CRC over the bytes is left out
there; what the core does to prepare it, and the copy into memory, are shown apart. `wanted` are the
targets of the project.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

BINARY = Path("build/bench/core")
SENDER = ("core_sender_tx", "core_sender_rx", "core_sender_tick")
RECEIVER = ("core_receiver_rx", "core_receiver_tx", "core_receiver_tick")
ROW = re.compile(r"^\s*([\d,]+)\s+\(.*?\)\s+\S*?:(\w+)")
COST = re.compile(r"^\d+ (\d+)")
QPS = ("mpr=1", "bytes=65536", "messages=10000")  # the same load for any number of queue pairs
QPS_MOST, QPS_RATIO = 10_000, 1.3
EVS_MOST, EVS_RATIO = 4096, 1.15
QP_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Count:
    """One run: instructions of each function with all it calls; what moved."""

    inclusive: dict[str, int]
    moved: dict[str, int]

    @property
    def copy(self) -> int:
        """Copies of payload into memory. The wire of the bench makes each of them as well."""
        names = ("__memcpy", "__memmove")
        return sum(n for name, n in self.inclusive.items() if name.startswith(names)) // 2

    def per_packet(self, *doors: str) -> float:
        """Instructions per data packet, without the copy."""
        total = sum(self.inclusive.get(door, 0) for door in doors)
        copy = self.copy if "core_receiver_rx" in doors else 0
        return (total - copy) / self.moved["packets"]

    @property
    def all(self) -> float:
        """Both sides, timers and answers included."""
        return self.per_packet(*SENDER, *RECEIVER)


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


def callgrind(profile: Path, *arguments: str, door: str = "") -> dict[str, int]:
    """Run the bench under callgrind, counting inside of one function only if it is named."""
    toggle = (
        [f"--toggle-collect={door}", "--compress-strings=no", "--compress-pos=no"] if door else []
    )
    run = subprocess.run(
        [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={profile}",
            *toggle,
            str(BINARY),
            *arguments,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    moved: dict[str, int] = json.loads(run.stdout)
    return moved


def count(*arguments: str) -> Count:
    """One kind of traffic."""
    with tempfile.TemporaryDirectory() as tmp:
        profile = Path(tmp) / "callgrind.out"
        moved = callgrind(profile, *arguments)
        return Count(inclusive(profile), moved)


def icrc(door: str) -> float:
    """Instructions per data packet that prepare the iCRC: lines of mrc_icrc, inlined or not."""
    with tempfile.TemporaryDirectory() as tmp:
        profile = Path(tmp) / "callgrind.out"
        moved = callgrind(profile, door=door)
        total, ours, call = 0, False, False
        for line in profile.read_text().splitlines():
            if line.startswith(("fl=", "fi=", "fe=", "fn=")):
                ours = "mrc_icrc" in line or "core_no_crc" in line or (ours and line[:3] == "fn=")
            elif line.startswith("calls="):
                call = True
            elif match := COST.match(line):
                total += int(match[1]) if ours and not call else 0
                call = False
    return total / moved["packets"]


def row(value: float, name: str, wanted: float = 0) -> None:
    """One line of the table."""
    verdict = (
        f"   wanted <= {wanted:g}: {'met' if value <= wanted else 'NOT MET'}" if wanted else ""
    )
    print(f"{value:9.2f}  {name}{verdict}" if value < 10 else f"{value:9.1f}  {name}{verdict}")


def costs(name: str, c: Count) -> dict[str, float]:
    """What a packet costs with some traffic."""
    packets, sacks = c.moved["packets"], c.moved["sacks"]
    print(f"\n{name}: {packets} packets, {packets / sacks:.0f} a SACK")
    result = {
        "sender, per data packet": c.per_packet("core_sender_tx"),
        "sender, per packet acknowledged": c.per_packet("core_sender_rx"),
        "receiver, per data packet": c.per_packet("core_receiver_rx"),
        "receiver, per SACK or transport ACK": c.inclusive["core_receiver_tx"]
        / (sacks + c.moved["acks"]),
    }
    for key, value in result.items():
        row(value, key)
    return result


def bulk() -> dict[str, float]:
    """Messages of 1 MB, trains as the core chooses, nothing lost or late."""
    c = count()
    result = costs("bulk, 1 MB messages, 1 QP, 16 EVs, path MTU 4096", c)
    out, into = icrc("core_sender_tx"), icrc("core_receiver_rx")
    row(c.copy / c.moved["packets"], "copy into memory, not in these")
    row(out, "of the sender's: headers for the iCRC")
    row(into, "of the receiver's: headers for the iCRC")
    row(result["sender, per data packet"] - out, "sender without iCRC", 350)
    row(result["sender, per packet acknowledged"], "sender, per packet acknowledged", 40)
    row(result["receiver, per data packet"] - into, "receiver without iCRC and copy", 300)
    return {**result, "iCRC, sender": out, "iCRC, receiver": into}


def scaling() -> dict[str, float]:
    """The same load on more queue pairs, and over more paths."""
    result: dict[str, float] = {}
    print("\nboth sides, all doors, per data packet, without the copy")
    few = count(*QPS)
    row(few.all, "1 QP")
    for n in (100, QPS_MOST):
        c = count(*QPS, f"qps={n}")
        result[f"{n} QPs"] = c.all / few.all
        row(c.all, f"{n} QPs")
    row(result[f"{QPS_MOST} QPs"], f"1 to {QPS_MOST} QPs, ratio", QPS_RATIO)
    for train in (0, 1):
        few = count(f"train={train}")
        how = "trains as the core chooses" if train == 0 else "trains of 1"
        row(few.all, f"16 EVs, {how}")
        for n in (256, EVS_MOST):
            c = count(f"train={train}", f"evs={n}")
            result[f"{n} EVs, train {train}"] = c.all / few.all
            row(c.all, f"{n} EVs, {how}")
        row(result[f"{EVS_MOST} EVs, train {train}"], f"16 to {EVS_MOST} EVs, ratio", EVS_RATIO)
    return result


def memory() -> dict[str, float]:
    """Bytes of an idle queue pair with a send queue of 16, at the smallest window."""
    moved = count("mpr=1", "messages=1").moved
    fixed = moved["qp_bytes"] - moved["qp_window_bytes"] - moved["qp_ev_bytes"]
    print("\nbytes of a QP")
    row(fixed, "beside its window and its EVs", QP_BYTES)
    row(moved["qp_window_bytes"] / 128, "per PSN of that window: bitmaps")
    row(moved["qp_ev_bytes"] / 16, "per EV of its path table")
    return {"QP, bytes": fixed}


def main() -> int:
    """Count, print a table, and one JSON line for the diary."""
    if shutil.which("valgrind") is None:
        print("bench-core: no valgrind; Debian and Ubuntu: apt install valgrind", file=sys.stderr)
        return 4
    result = bulk()
    costs("the same, trains of 1", count("train=1"))
    costs("the same, odd paths later than even ones", count("skew=1"))
    costs("messages of 64 bytes", count("messages=20000", "bytes=64"))
    result |= scaling() | memory()
    print(json.dumps({"bench": "core", **{k: round(v, 2) for k, v in result.items()}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
