# SPDX-License-Identifier: BSD-2-Clause
"""Eighty EV expansions (D.4), computed by the model; ev_cases.json keeps them.

Run as a program it writes the file anew. Widths, masks, formats and edges: fields without bits,
one-bit masks, full masks, masks with holes, fields narrower than the format's, all EV bits used.
"""

import json
from pathlib import Path
from random import Random
from typing import Any

from mrc.model.ev import EvField, expand

FILE = Path(__file__).with_name("ev_cases.json")
COUNT = 80
USID = [32, 16, 16, 16, 16, 16, 16]
LAYOUTS = {
    "udp": [[16], [8, 8], [4, 4, 8], [1, 15]],
    "stev": [[16, 16], [10, 8, 4, 10], [8, 4, 4, 16], [3, 8, 4, 4, 13], [32]],
    "srv6": [USID, [32, 16, 16, 16, 16], [32, 32, 32, 32], [16] * 8],
    "srv6-srh": [USID + USID, [*USID, 32, 16, 16], [32] * 8, [16] * 16],
}
BITS = {"udp": 16, "stev": 32, "srv6": 128, "srv6-srh": 256}


def masks(rng: Random, width: int) -> int:
    """A mask of one of the kinds."""
    full = (1 << width) - 1
    return rng.choice(
        [0, full, 1, 1 << width - 1, rng.getrandbits(width), full & 0x55555555, full & ~1]
    )


def case(rng: Random, number: int) -> dict[str, Any]:
    """One profile, one EV, its expansion."""
    fmt = list(LAYOUTS)[number % len(LAYOUTS)]
    layout = rng.choice(LAYOUTS[fmt])
    fields = []
    for place in layout[: rng.randint(1, len(layout))]:
        width = rng.choice([place, place, rng.randint(1, place)])
        fields.append(EvField(width, rng.getrandbits(width), masks(rng, width)))
    bits = sum(f.bits for f in fields)
    ev = rng.choice([0, (1 << bits) - 1, rng.getrandbits(bits) if bits else 0])
    room = 32 if number % 3 else -(-bits // 8) or 1
    value = (ev << room * 8 - bits).to_bytes(room, "big")
    total = BITS[fmt]
    # The model pads to the shortest size there is; UDP has 16 bits, and no SRH is left out.
    out = expand(fields, layout, value)
    room = total - len(out) * 8
    found = int.from_bytes(out, "big")
    path = found << room if room > 0 else found >> -room
    return {
        "format": fmt,
        "widths": layout,
        "fields": [[f.width, f.init, f.mask] for f in fields],
        "ev": value.hex(),
        "path": f"{path:0{total // 4}x}",
    }


def cases() -> list[dict[str, Any]]:
    """All of them, the same each time."""
    rng = Random(0xD4)
    return [case(rng, number) for number in range(COUNT)]


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(c) for c in cases())
    FILE.write_text(f"[\n{lines}\n]\n", encoding="ascii")
