# SPDX-License-Identifier: BSD-2-Clause
"""Numbers as people type and read them: sizes, times, rates, shares.

`parse_*` raise ValueError with a sentence for the user. `*_text` write the shortest form that
parses to the same number; `format_*` round for reports.
"""

import math
import re
from decimal import Decimal

__all__ = [
    "MILLION",
    "SECOND",
    "format_bytes",
    "format_rate",
    "format_seconds",
    "parse_bps",
    "parse_count",
    "parse_ns",
    "parse_ppm",
    "parse_seconds",
    "parse_size",
    "parse_size_range",
    "powers_of_two",
    "ppm_text",
    "rate",
    "rate_text",
    "size_text",
    "time_text",
]

SECOND = 1_000_000_000
"""Nanoseconds."""
MILLION = 1_000_000
_LIMIT = 1 << 63

_NUMBER = r"(\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})\s*"
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b?)", re.IGNORECASE)
_FACTOR = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_TIME = re.compile(_NUMBER + r"(ns|us|ms|s|min|m|h)?", re.IGNORECASE)
_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND}
_RATE = re.compile(_NUMBER + r"([kmgt]?)(?:bit(?:/s)?|bps)", re.IGNORECASE)
_SHARE = re.compile(_NUMBER + r"(%|ppm)", re.IGNORECASE)


def parse_size(text: str) -> int:
    """Bytes from `4096`, `64k`, `1.5G`, `2MiB`; letters are powers of 1024, as in iperf3."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size (such as 4096, 64k, 1M or 2G)")
    value = float(match[1]) * 1024 ** _FACTOR[match[2].lower()]
    if value != int(value):
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(value)


def size_text(count: int) -> str:
    """`200KB`, `1MB`, `4096` for what is no whole number of them."""
    step = 0
    while count and count % 1024 == 0 and step < 4:
        count, step = count // 1024, step + 1
    return f"{count}{('', 'KB', 'MB', 'GB', 'TB')[step]}"


def _exact(text: str, number: str, factor: int, unit: str) -> int:
    value = Decimal(number) * factor
    if value != int(value):
        raise ValueError(f"{text!r} is not a whole number of {unit}")
    if value >= _LIMIT:
        raise ValueError(f"{text!r} is too large")
    return int(value)


def parse_ns(text: str) -> int:
    """Nanoseconds from `500us`, `20ms`, `3s`, `1.5s`, `2min`; a bare number is seconds."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a time (such as 500us, 20ms, 3s)")
    unit = (match[2] or "s").lower()
    return _exact(text, match[1], _NS["m" if unit == "min" else unit], "nanoseconds")


def time_text(ns: int) -> str:
    """`500us`, `20ms`, `1500ms`, `3s`: the largest unit up to seconds in which it is whole."""
    unit = next(u for u in ("s", "ms", "us", "ns") if ns % _NS[u] == 0)
    return f"{ns // _NS[unit]}{unit}"


def parse_seconds(text: str) -> float:
    """Seconds from `10`, `0.5`, `500ms`, `2m`, `1h`; finite and not negative."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|h)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise ValueError(f"{text!r} is not a time (such as 10, 0.5, 500ms, 2m)")
    return float(match[1]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[(match[2] or "s").lower()]


def parse_bps(text: str) -> int:
    """Bits per second from `500mbit`, `1.5Gbit/s`, `800bit`; the letters are powers of 1000."""
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a rate (such as 500mbit or 1.5gbit)")
    return _exact(text, match[1], int(1000 ** _FACTOR[match[2].lower()]), "bits per second")


def rate_text(bps: int) -> str:
    """`500mbit`, `1500mbit`, `2gbit`."""
    step = 0
    while bps and bps % 1000 == 0 and step < 4:
        bps, step = bps // 1000, step + 1
    return f"{bps}{('', 'k', 'm', 'g', 't')[step]}bit"


def parse_ppm(text: str) -> int:
    """Millionths from `5%`, `0.1%`, `500ppm`; 0 to 100 %."""
    match = _SHARE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a share (such as 5%, 0.1% or 500ppm)")
    ppm = _exact(text, match[1], 10_000 if match[2] == "%" else 1, "millionths")
    if ppm > MILLION:
        raise ValueError(f"{text!r} is more than 100%")
    return ppm


def ppm_text(ppm: int) -> str:
    """`5%`, `0.1%`, `1.25%`; `50ppm` below a tenth of a percent."""
    return f"{ppm}ppm" if 0 < ppm < 1000 else f"{ppm / 10_000:.4f}".rstrip("0").rstrip(".") + "%"


def parse_count(text: str) -> int:
    """A whole number >= 1; k, M, G are powers of 1000: messages are counted, not stored."""
    match = re.fullmatch(r"(\d+)([kmg]?)", text.strip(), re.IGNORECASE)
    if match is None or int(match[1]) == 0:
        raise ValueError(f"{text!r} is not a count (a whole number from 1, such as 1000, 10k, 2M)")
    return int(match[1]) * int(1000 ** _FACTOR[match[2].lower()])


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
