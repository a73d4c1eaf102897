# SPDX-License-Identifier: BSD-2-Clause
"""Arithmetic of the wrapping numbers of MRC B.1.

The model keeps sequence numbers as plain unbounded integers and wraps them only where they meet the
wire, so that its own comparisons are ordinary ones.
"""

PSN_BITS = 24
MSN_BITS = 16
TIMESTAMP_BITS = 16
TIMESTAMP_UNIT_NS = 128


def wrap(value: int, bits: int = PSN_BITS) -> int:
    """Return value modulo 2^bits, as it goes on the wire."""
    return value % (1 << bits)


def diff(a: int, b: int, bits: int = PSN_BITS) -> int:
    """Return a - b modulo 2^bits, read as signed: in [-2^(bits-1), 2^(bits-1)). MRC B.1, diff24."""
    half = 1 << (bits - 1)
    return (a - b + half) % (1 << bits) - half


def after(a: int, b: int) -> bool:
    """Return whether PSN a comes after PSN b (B.1)."""
    return diff(a, b) > 0


def unwrap(value: int, near: int, bits: int = PSN_BITS) -> int:
    """Return the unbounded number that wraps to value and lies nearest to near."""
    return near + diff(value, near, bits)


def timestamp_ns(now: int, reflected: int) -> int:
    """Return the age in nanoseconds of a reflected 16-bit timestamp; both in 128 ns units (B.1)."""
    return wrap(now - reflected, TIMESTAMP_BITS) * TIMESTAMP_UNIT_NS
