# SPDX-License-Identifier: BSD-2-Clause
"""Numbers as people type and read them: sizes, durations, ranges, rates."""

import math
import re

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b?)", re.IGNORECASE)
_FACTOR = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_size(text: str) -> int:
    """Bytes from `4096`, `64k`, `1M`, `1.5G`, `2MiB`; the letters are powers of 1024, as in iperf3.

    Raises ValueError with a sentence for the user.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size (such as 4096, 64k, 1M or 2G)")
    value = float(match[1]) * 1024 ** _FACTOR[match[2].lower()]
    if value != int(value):
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(value)


def parse_count(text: str) -> int:
    """A whole number >= 1; k, M, G are powers of 1000: messages are counted, not stored."""
    match = re.fullmatch(r"(\d+)([kmg]?)", text.strip(), re.IGNORECASE)
    if match is None or int(match[1]) == 0:
        raise ValueError(f"{text!r} is not a count (a whole number from 1, such as 1000, 10k, 2M)")
    return int(match[1]) * int(1000 ** _FACTOR[match[2].lower()])


def parse_seconds(text: str) -> float:
    """Seconds from `10`, `0.5`, `500ms`, `2m`, `1h`; finite and not negative."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|h)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise ValueError(f"{text!r} is not a time (such as 10, 0.5, 500ms, 2m)")
    return float(match[1]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[(match[2] or "s").lower()]


def format_seconds(seconds: float) -> str:
    """`1 second`, `0.3 seconds`, `30 seconds`."""
    return f"{seconds:g} second{'' if seconds == 1 else 's'}"


def parse_size_range(text: str) -> tuple[int, int]:
    """`MIN:MAX`, both sizes, MIN <= MAX and at least one byte."""
    low, colon, high = text.partition(":")
    if not colon:
        raise ValueError(f"{text!r} is not a range MIN:MAX (such as 64:1M)")
    sizes = parse_size(low), parse_size(high)
    if not 1 <= sizes[0] <= sizes[1]:
        raise ValueError(f"{text!r}: MIN must be at least 1 and not above MAX")
    return sizes


def powers_of_two(low: int, high: int) -> list[int]:
    """The powers of two from low to high; low and high themselves are always in."""
    sizes = {low, high}
    sizes.update(1 << e for e in range(low.bit_length() - 1, high.bit_length()))
    return sorted(size for size in sizes if low <= size <= high)


def _scaled(value: float, base: int, units: tuple[str, ...]) -> str:
    if value <= 0:
        return f"0.00 {units[0]}"
    step = min(len(units) - 1, max(0, int(math.log(value, base) + 1e-9)))
    number = value / base**step
    digits = 2 if number < 9.995 else 1 if number < 99.95 else 0
    return f"{number:.{digits}f} {units[step]}"


def format_bytes(count: float) -> str:
    """`1.15 GBytes`: powers of 1024, three significant digits, as iperf3 prints them."""
    return _scaled(count, 1024, ("Bytes", "KBytes", "MBytes", "GBytes", "TBytes"))


def format_rate(bits_per_second: float) -> str:
    """`9.87 Gbits/sec`: powers of 1000, three significant digits."""
    return _scaled(
        bits_per_second, 1000, ("bits/sec", "Kbits/sec", "Mbits/sec", "Gbits/sec", "Tbits/sec")
    )


def rate(byte_count: float, seconds: float) -> float:
    """Bits per second; 0 where no time has passed, so that no output ever holds an infinity."""
    return byte_count * 8 / seconds if seconds > 0 else 0.0
