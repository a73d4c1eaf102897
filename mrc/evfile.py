# SPDX-License-Identifier: BSD-2-Clause
"""EV profiles as TOML files: an explicit list, or fields to generate from (D.3, D.4).

format = "srv6"            # udp | stev | srv6 | srv6-srh
min_active = 4             # optional

[[ev]]                     # explicit: one table a path
value = 0xC001             # 32-bit EV on the wire; low half is the UDP source port
port = 1                   # plane, 1..31; default 1
dst = "fcbb:0:a00:b00::"   # srv6 and srv6-srh: outer destination
srh = "fcbb:0:c00::"       # srv6-srh: the segment
backup = false

[[plane]]                  # optional: which interface carries a plane; down without its carrier
number = 1
interface = "eth0"

count = 16                 # generated: how many EVs, spread evenly over all combinations;
planes = 4                 #   default all. Planes take turns, or
plane_field = 1            #   the value of this field (from 0) decides: min is plane 1
sport_base = 49152         #   srv6: source port of EV 0
widths = [32, 16, 16]      #   format field widths; default 16 | 16,16 | 32 + 6 x 16 ...
[[field]]
width = 16
init = 0x4000
min = 0
max = 15
mask = 0x000F
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from ipaddress import AddressValueError, IPv6Address
from pathlib import Path
from typing import Any, NoReturn

from .errors import MrcProfileError
from .ev import DEFAULT_WIDTHS, VALUE_BITS, EvEntry, EvField, EvProfile, expand
from .types import EV_MAX, PLANE_MAX, EvFormat

__all__ = ["load_profile", "parse_profile"]

_COMMON_KEYS = {"format", "min_active", "name", "plane"}
_EXPLICIT_KEYS = _COMMON_KEYS | {"ev"}
_GENERATED_KEYS = _COMMON_KEYS | {
    *("field", "count", "planes", "plane_field", "sport_base", "widths"),
}
_EV_KEYS = {"value", "port", "dst", "srh", "backup"}
_FIELD_KEYS = {"width", "init", "min", "max", "mask"}


def load_profile(path: Path) -> EvProfile:
    """The profile in a file. OSError, or MrcProfileError that names file, place and reason."""
    raw = path.read_bytes()
    try:
        document = tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        raise MrcProfileError(f"{path}: line {line}: is not UTF-8 text") from exc
    except tomllib.TOMLDecodeError as exc:
        raise MrcProfileError(f"{path}: is not TOML: {exc}") from exc
    return parse_profile(document, str(path))


def parse_profile(document: Mapping[str, Any], source: str) -> EvProfile:
    """The profile in a parsed document; `source` begins every message."""
    place = _Place(source)
    fmt = _format(place, document)
    if ("ev" in document) == ("field" in document):
        place.fail("", "give either [[ev]] tables or [[field]] tables")
    generated = "field" in document
    place.known_keys(document, _GENERATED_KEYS if generated else _EXPLICIT_KEYS)
    min_active = place.integer(document, "min_active", 0, 0, EV_MAX)
    if "min_active" in document and min_active == 0:
        place.fail("min_active", "0 is not in 1..the number of active EVs")
    entries = _generated(place, fmt, document) if generated else _explicit(place, document)
    interfaces = _interfaces(place, document) if "plane" in document else ()
    return EvProfile(fmt, tuple(entries), min_active, source, interfaces)


class _Place:
    """Where in a document we are, for messages: file, table and its index from 1."""

    def __init__(self, source: str, table: str = "") -> None:
        self.source = source
        self.table = table

    def fail(self, key: str, reason: str) -> NoReturn:
        raise MrcProfileError(": ".join(p for p in (self.source, self.table, key, reason) if p))

    def known_keys(self, table: Mapping[str, Any], known: set[str]) -> None:
        for key in table:
            if key not in known:
                self.fail(key, f"unknown key; known here: {', '.join(sorted(known))}")

    def integer(
        self, table: Mapping[str, Any], key: str, default: int | None, low: int, high: int
    ) -> int:
        value = table.get(key, default)
        if value is None:
            self.fail(key, "is missing")
        if not isinstance(value, int) or isinstance(value, bool):
            self.fail(key, f"{_shown(value)} is not an integer")
        if not low <= value <= high:
            self.fail(key, f"{value} is not in {low}..{high}")
        return value

    def address(self, table: Mapping[str, Any], key: str) -> IPv6Address | None:
        if key not in table:
            return None
        text = table[key]
        if not isinstance(text, str):
            self.fail(key, f"{_shown(text)} is not an IPv6 address in quotes")
        try:
            return IPv6Address(text)
        except AddressValueError:
            self.fail(key, f"{text!r} is not an IPv6 address")

    def tables(self, document: Mapping[str, Any], key: str) -> list[tuple[_Place, dict[str, Any]]]:
        found = document[key]
        if not isinstance(found, list) or not all(isinstance(t, dict) for t in found):
            self.fail(key, f"must be [[{key}]] tables")
        if not found:
            self.fail(key, f"has no [[{key}]] table")
        return [(_Place(self.source, f"[[{key}]] {i}"), t) for i, t in enumerate(found, 1)]


def _shown(value: object) -> str:
    """A value as the file has it; what cannot be said on a line as what it is."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return "a table"
    return repr(value) if isinstance(value, str | int | float) else str(value)


def _format(place: _Place, document: Mapping[str, Any]) -> EvFormat:
    known = [f.value for f in EvFormat]
    text = document.get("format")
    if text not in known:
        reason = "is missing" if text is None else f"{_shown(text)} is not known"
        place.fail("format", f"{reason}; one of {', '.join(known)}")
    return EvFormat(text)


def _explicit(place: _Place, document: Mapping[str, Any]) -> list[EvEntry]:
    entries = []
    for here, table in place.tables(document, "ev"):
        here.known_keys(table, _EV_KEYS)
        backup = table.get("backup", False)
        if not isinstance(backup, bool):
            here.fail("backup", f"{_shown(backup)} is not true or false")
        entries.append(
            EvEntry(
                value=here.integer(table, "value", None, 0, 0xFFFFFFFF),
                plane=here.integer(table, "port", 1, 1, PLANE_MAX),
                dst=here.address(table, "dst"),
                srh=here.address(table, "srh"),
                backup=backup,
            )
        )
    return entries


def _interfaces(place: _Place, document: Mapping[str, Any]) -> tuple[tuple[int, str], ...]:
    found = []
    for here, table in place.tables(document, "plane"):
        here.known_keys(table, {"number", "interface"})
        interface = table.get("interface")
        if not isinstance(interface, str):
            here.fail("interface", f"{interface!r} is not an interface name in quotes")
        found.append((here.integer(table, "number", None, 1, PLANE_MAX), interface))
    return tuple(found)


def _fields(
    place: _Place, fmt: EvFormat, document: Mapping[str, Any]
) -> tuple[list[EvField], Sequence[int]]:
    widths = document.get("widths", DEFAULT_WIDTHS[fmt])
    if not isinstance(widths, list | tuple) or not all(
        isinstance(w, int) and not isinstance(w, bool) and 1 <= w <= 32 for w in widths
    ):
        place.fail("widths", f"{_shown(widths)} is not a list of widths of 1..32 bits")
    if sum(widths) > VALUE_BITS[fmt]:
        place.fail("widths", f"{sum(widths)} bits, format {fmt.value} has {VALUE_BITS[fmt]}")
    tables = place.tables(document, "field")
    if len(tables) > len(widths):
        place.fail("field", f"{len(tables)} fields, the format has {len(widths)}")
    fields = []
    for (here, table), width in zip(tables, widths, strict=False):
        here.known_keys(table, _FIELD_KEYS)
        values = {k: here.integer(table, k, 0, 0, 0xFFFFFFFF) for k in _FIELD_KEYS - {"width"}}
        field = EvField(width=here.integer(table, "width", width, 1, 32), **values)
        problem = field.check()
        if problem is not None:
            here.fail(*problem)
        if field.width > width:
            here.fail("width", f"{field.width} is more than the format field's {width}")
        fields.append(field)
    return fields, widths


def _generated(place: _Place, fmt: EvFormat, document: Mapping[str, Any]) -> list[EvEntry]:
    fields, widths = _fields(place, fmt, document)
    spans = [f.top - f.min + 1 if f.mask else 1 for f in fields]
    total = math.prod(spans)
    count = place.integer(document, "count", min(total, EV_MAX), 1, EV_MAX)
    if count > total:
        place.fail("count", f"{count} EVs, but the fields have only {total} combinations")
    planes = place.integer(document, "planes", 1, 1, PLANE_MAX)
    plane_field = document.get("plane_field")
    if plane_field is not None:
        place.integer(document, "plane_field", None, 0, len(fields) - 1)
        if "planes" in document:
            place.fail("plane_field", "cannot be given together with planes")
    base = place.integer(document, "sport_base", 49152, 1, 0xFFFF)
    if fmt in (EvFormat.SRV6, EvFormat.SRV6_SRH) and base + count > 0x10000:
        place.fail("sport_base", f"{base} + {count} EVs exceeds 65535")
    entries = []
    for i in range(count):
        offsets = _combination(i, spans, plane_field)
        plane = 1 + (i % planes if plane_field is None else offsets[plane_field])
        if plane > PLANE_MAX:
            place.fail("plane_field", f"gives plane {plane}, which is not in 1..{PLANE_MAX}")
        values = [f.min + o if f.mask else 0 for f, o in zip(fields, offsets, strict=True)]
        path = expand(fields, widths, values, VALUE_BITS[fmt])
        entries.append(_entry(fmt, path, base + i, plane))
    return entries


def _combination(i: int, spans: Sequence[int], plane_field: int | None) -> list[int]:
    """Offsets of the fields in EV i (D.1, H25).

    Planes take turns; the rest is walked in a stride coprime to its number, so that any count
    takes an even, fixed, scattered share of all combinations.
    """
    rest = [1 if k == plane_field else span for k, span in enumerate(spans)]
    planes = 1 if plane_field is None else spans[plane_field]
    total = math.prod(rest)
    stride = max(1, int(total * 0.618))
    while math.gcd(stride, total) != 1:
        stride += 1
    offsets = _digits(i // planes * stride % total, rest)
    if plane_field is not None:
        offsets[plane_field] = i % planes
    return offsets


def _digits(number: int, spans: Sequence[int]) -> list[int]:
    """`number` in mixed radix: the last field is the fastest (H25)."""
    digits = []
    for span in reversed(spans):
        number, digit = divmod(number, span)
        digits.append(digit)
    return digits[::-1]


def _entry(fmt: EvFormat, path: int, source_port: int, plane: int) -> EvEntry:
    """UDP and STEV carry the path value itself; SRv6 needs a 32-bit EV for the echo (H23)."""
    if fmt in (EvFormat.UDP, EvFormat.STEV):
        return EvEntry(path, plane)
    if fmt is EvFormat.SRV6:
        return EvEntry(source_port, plane, IPv6Address(path))
    segment = IPv6Address(path & (1 << 128) - 1)
    return EvEntry(source_port, plane, IPv6Address(path >> 128), segment)
