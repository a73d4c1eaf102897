# SPDX-License-Identifier: BSD-2-Clause
"""What mrc-send and mrc-recv tell each other over the out-of-band connection.

    hello      session, stream, streams          -> program version
    start      one TestParams                    -> the receiver's ring is advertised
    file       index, name, size                 -> name it will have
    file-end   index, sha256                     -> sha256 of what arrived, name, stored
    finish     messages, bytes, interrupted      -> StreamResult and the whole test's figures
    abort      reason, code                      (receiver to sender)

A call that is refused answers {"refused": sentence, "code": exit code of the asker}. Immediates
carry the message number (31 bits); bit 31 says "credit": all messages before that number were
checked.
"""

import dataclasses
from typing import Any, ClassVar, Self

PROTOCOL = 1
CREDIT_BIT = 1 << 31
NUMBER_MASK = CREDIT_BIT - 1
DEPTH_MAX = 1024
SPARE_WRITES = 2  # beside `depth` messages: a credit in flight
IMM_QUEUE = 4 * DEPTH_MAX  # the library gives room back by halves: twice what can be unread
KINDS = ("bulk", "latency", "file")

_LIMITS = {
    "test": (0, 1 << 20),
    "size": (1, 1 << 31),
    "depth": (1, DEPTH_MAX),
    "seed": (0, (1 << 63) - 1),
    "messages": (0, 1 << 62),
}


@dataclasses.dataclass(frozen=True, slots=True)
class TestParams:
    """One test on one connection; both ends derive everything else from it."""

    __test__ = False  # not a test case, whatever pytest thinks of the name

    test: int
    """Number of the test in its session."""
    kind: str
    size: int
    """Bytes of a message, and of a slot of the ring."""
    depth: int
    """Slots of the ring = messages in flight."""
    verify: bool
    imm: bool
    bidir: bool
    seed: int
    messages: int
    """Messages each side sends; 0 = until told to finish."""

    @property
    def counted(self) -> bool:
        """Each message announces itself by an immediate."""
        return self.imm or self.verify or self.kind != "bulk"

    def as_json(self) -> dict[str, Any]:
        """As sent in `start`."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Raises ValueError naming the first field that is missing or out of range."""
        if not isinstance(data, dict):
            raise ValueError("parameters are not an object")  # noqa: TRY004 - a peer's fault
        values: dict[str, Any] = {}
        for field in dataclasses.fields(cls):
            value = data.get(field.name)
            if field.name in _LIMITS:
                low, high = _LIMITS[field.name]
                good = type(value) is int and low <= value <= high
            elif field.name == "kind":
                good = value in KINDS
            else:
                good = type(value) is bool
            if not good:
                raise ValueError(f"bad test parameter {field.name}: {value!r}")
            values[field.name] = value
        return cls(**values)


@dataclasses.dataclass(slots=True)
class StreamResult:
    """What one connection took in during one test."""

    bytes: int = 0
    messages: int = 0
    checked: int = 0
    """Messages compared byte for byte."""
    errors: list[str] = dataclasses.field(default_factory=list)
    """The first few differences, in words."""
    error_count: int = 0

    ERRORS_KEPT: ClassVar[int] = 8

    def add_error(self, text: str) -> None:
        """Count a difference; keep its text while there are few."""
        self.error_count += 1
        if len(self.errors) < self.ERRORS_KEPT:
            self.errors.append(text)

    def as_json(self) -> dict[str, Any]:
        """As sent in the answer to `finish`."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Raises ValueError when the peer's answer does not have this shape."""
        if not isinstance(data, dict):
            raise ValueError("result is not an object")  # noqa: TRY004 - a peer's fault
        counts = [data.get(name) for name in ("bytes", "messages", "checked", "error_count")]
        errors = data.get("errors")
        if not all(type(n) is int and n >= 0 for n in counts) or not isinstance(errors, list):
            raise ValueError("malformed result")
        return cls(
            counts[0] or 0, counts[1] or 0, counts[2] or 0, [str(e) for e in errors], counts[3] or 0
        )


def count_in(data: dict[str, Any], name: str) -> int | None:
    """A counter that the peer may have told; None: it has not, or not one."""
    value = data.get(name)
    return value if type(value) is int and 0 <= value < 1 << 64 else None
