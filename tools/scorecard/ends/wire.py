# SPDX-License-Identifier: BSD-2-Clause
"""What the interfaces of a host have sent: bytes of each, every 2 ms.

    wire.py DEVICE ...

The columns are tx_DEVICE ... in the order given. A train of packets counts its
headers once here; what went over the wire exactly is in the counters of its queue.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tools.scorecard.ends.common import Samples, Stop, ready, report

STEP_S = 0.002
TX_BYTES = 8


def main(devices: list[str]) -> int:
    """Sample until stopped."""
    stop = Stop()
    samples = Samples(*(f"tx_{device}" for device in devices))
    with Path("/proc/self/net/dev").open(encoding="ascii") as table:

        def read() -> list[int]:
            table.seek(0)
            rows = {name.strip(): rest.split() for name, _, rest in _lines(table.read())}
            return [int(rows[device][TX_BYTES]) for device in devices]

        ready()
        while not stop.set:
            samples.take(read)
            time.sleep(STEP_S)
    report(samples)
    return 0


def _lines(text: str) -> list[tuple[str, str, str]]:
    return [line.partition(":") for line in text.splitlines()[2:]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
