# SPDX-License-Identifier: BSD-2-Clause
"""Records of bit fields: a header is one big-endian number, its fields in the order of the tables.

A header is a frozen dataclass whose fields say how many bits they have; reserved runs of bits are
fields too (names beginning with an underscore), sent as zero and ignored on receive (MRC A).
"""

from dataclasses import Field, field, fields
from typing import Any, TypeVar

H = TypeVar("H")


def bits(width: int, default: int = 0, *, signed: bool = False) -> Any:
    """Declare a field of width bits; signed fields are two's complement."""
    return field(default=default, metadata={"width": width, "signed": signed})


def reserved(width: int) -> Any:
    """Declare reserved bits."""
    return field(init=False, default=0, repr=False, metadata={"width": width, "signed": False})


def _layout(header: Any) -> list[Field[Any]]:
    return [f for f in fields(header) if "width" in f.metadata]


def size(header: Any) -> int:
    """Return the length in bytes of a header class or object."""
    return int(sum(f.metadata["width"] for f in _layout(header))) // 8


def pack(header: Any) -> bytes:
    """Return the bytes of a header. ValueError when a value does not fit its field."""
    number = 0
    for f in _layout(header):
        width, value = f.metadata["width"], getattr(header, f.name)
        low, high = (-(1 << width - 1), 1 << width - 1) if f.metadata["signed"] else (0, 1 << width)
        if not low <= value < high:
            raise ValueError(f"{type(header).__name__}.{f.name}: {value} is no {width}-bit value")
        number = number << width | value % (1 << width)
    return number.to_bytes(size(header), "big")


def unpack(cls: type[H], data: bytes) -> H:
    """Return the header in the first bytes of data. ValueError when data is too short."""
    length = size(cls)
    if len(data) < length:
        raise ValueError(f"{cls.__name__} needs {length} bytes, got {len(data)}")
    number, left, values = int.from_bytes(data[:length], "big"), 8 * length, {}
    for f in _layout(cls):
        width = f.metadata["width"]
        left -= width
        value = number >> left & ((1 << width) - 1)
        if f.metadata["signed"] and value >> (width - 1):
            value -= 1 << width
        if f.init:
            values[f.name] = value
    return cls(**values)
