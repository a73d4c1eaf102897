# SPDX-License-Identifier: BSD-2-Clause
"""The test packets of MRC A.14: values of fields on one side, bytes on the other.

`wire-vectors.json` is a list of objects; `fields` is what a sender would be told, `hex` the whole
IP packet. Four are derived from others: three trimmed packets and one with a flipped bit.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Vector:
    """One test packet."""

    name: str
    fields: dict[str, Any]
    data: bytes
    transport: bytes  # BTH to the end of the iCRC, or to where it was cut
    icrc: bytes | None

    @property
    def derived(self) -> bool:
        """Whether another vector's bytes were damaged to make this one."""
        return "derived_from" in self.fields


def _load() -> dict[str, Vector]:
    path = Path(__file__).with_name("wire-vectors.json")
    return {
        v["name"]: Vector(
            v["name"],
            v["fields"],
            bytes.fromhex(v["hex"]),
            bytes.fromhex(v["udp_payload_hex"]),
            bytes.fromhex(v["icrc_hex"]) if v["icrc_hex"] else None,
        )
        for v in json.loads(path.read_text())
    }


VECTORS = _load()
WHOLE = [v for v in VECTORS.values() if not v.derived]
TRIMMED = [v for v in VECTORS.values() if "cut_to" in v.fields]
CORRUPT = [v for v in VECTORS.values() if "flipped_bit" in v.fields]


def damaged(vector: Vector) -> bytes:
    """Return the bytes of a derived vector, made from its origin as its fields say (A.13.6)."""
    origin, how = VECTORS[vector.fields["derived_from"]], vector.fields
    data = bytearray(origin.data)
    if "flipped_bit" in how:
        _, byte, _, bit = how["flipped_bit"].split()
        data[int(byte)] ^= 1 << int(bit)
        return bytes(data)
    del data[how["cut_to"] :]
    traffic_class = how["dscp"] << 2 | origin.fields["ip6"]["ecn"]
    data[0] = data[0] & 0xF0 | traffic_class >> 4
    data[1] = data[1] & 0x0F | traffic_class << 4 & 0xF0
    if how["lengths"] == "corrected":
        data[4:6] = data[44:46] = (len(data) - 40).to_bytes(2, "big")
    return bytes(data)
