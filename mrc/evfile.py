# SPDX-License-Identifier: BSD-2-Clause
"""EV profiles as TOML files: an explicit list, fields to generate from, or a number (D.3, D.4).

format = "srv6"            # udp | stev | srv6 | srv6-srh
min_active = 4             # optional

[[ev]]                     # explicit: one table a path
value = 0xC001             # 32-bit EV on the wire; low half is the UDP source port
port = 1                   # plane, 1..31; default 1
dst = "fcbb:0:a00:b00::"   # srv6 and srv6-srh: outer destination
srh = "fcbb:0:c00::"       # srv6-srh: the segment
backup = false

[template]                 # srv6: destinations from row templates (D.9) instead of dst;
rows = "rows.toml"         #   see evrowfile.py

reverse = "own"            # optional: reflect | own | own-random (D.8)
deny = [0xC003]            # optional: EVs that are DENIED from the start
deny_file = "bad.txt"      # optional: the same, one a line; others than ours are ignored
events = ["good"]          # optional: new states that raise an event; default all
loss = "first"             # optional: compared | first (D.5)
skip = "turn"              # optional: compared | turn (D.6)

[[plane]]                  # optional: of a plane, one of these or both
number = 1
interface = "eth0"         # carries it; the plane is down without its carrier
source = "fd00:1::1"       # own address there

count = 16                 # automatic, if alone, or with planes and seed; generated: how many
                           #   EVs, spread evenly over all combinations;
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

import secrets
from collections.abc import Mapping, Sequence
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any, TypeVar

from .errors import MrcProfileError
from .ev import (
    DEFAULT_WIDTHS,
    VALUE_BITS,
    EventMask,
    EvEntry,
    EvField,
    EvProfile,
    LossRule,
    ReverseRule,
    SkipRule,
)
from .evgen import SPORT_BASE, automatic, combinations, generate
from .evrowfile import rows_of, template_entries
from .evrows import RowTable
from .planes import PlaneAddresses, address_problem
from .tomlplace import Place as _Place
from .tomlplace import parse_toml, read_bytes
from .tomlplace import shown as _shown
from .types import EV_MAX, PLANE_MAX, EvFormat

__all__ = ["load_profile", "parse_profile"]

_COMMON_KEYS = {
    *("format", "min_active", "name", "plane", "reverse", "deny", "deny_file", "events"),
    *("loss", "skip"),
}
_EXPLICIT_KEYS = _COMMON_KEYS | {"ev"}
_GENERATED_KEYS = _COMMON_KEYS | {
    *("field", "count", "planes", "plane_field", "sport_base", "widths"),
}
_TEMPLATE_KEYS = _COMMON_KEYS | {"template", "ev", "count", "planes", "uplinks", "sport_base"}
_AUTO_KEYS = _COMMON_KEYS | {"count", "planes", "seed"}
_REVERSE = {rule.name.lower().replace("_", "-"): rule for rule in ReverseRule}
_LOSS = {rule.name.lower(): rule for rule in LossRule}
_SKIP = {rule.name.lower(): rule for rule in SkipRule}
_Rule = TypeVar("_Rule")
_EVENTS = {
    "good": EventMask.GOOD,
    "assumed-bad": EventMask.ASSUMED_BAD,
    "denied": EventMask.DENIED,
}
_EV_KEYS = {"value", "port", "dst", "srh", "backup"}
_FIELD_KEYS = {"width", "init", "min", "max", "mask"}


def load_profile(path: Path) -> EvProfile:
    """The profile in a file. OSError, or MrcProfileError that names file, place and reason."""
    raw = read_bytes(path)
    try:
        text = raw.decode("utf-8")
        document = parse_toml(text)
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        raise MrcProfileError(f"{path}: line {line}: is not UTF-8 text") from exc
    except MrcProfileError as exc:
        raise MrcProfileError(f"{path}: {exc}") from exc
    return parse_profile(document, str(path), text)


def parse_profile(document: Mapping[str, Any], source: str, text: str = "") -> EvProfile:
    """The profile in a document and its text, for lines; `source` begins every message."""
    place = _Place(source, text=text)
    fmt = _format(place, document)
    templated = "template" in document
    alone = not {"template", "ev", "field"} & document.keys() and "count" in document
    if not templated and not alone and ("ev" in document) == ("field" in document):
        place.fail("", "give either [[ev]] tables or [[field]] tables, or a [template]")
    generated = "field" in document
    known = _TEMPLATE_KEYS if templated else _GENERATED_KEYS if generated else _EXPLICIT_KEYS
    place.known_keys(document, _AUTO_KEYS if alone else known)
    min_active = place.integer(document, "min_active", 0, 0, EV_MAX)
    if "min_active" in document and min_active == 0:
        place.fail("min_active", "0 is not in 1..the number of active EVs")
    rows = rows_of(place, document) if templated else None
    if rows is not None and "ev" not in document:
        entries = template_entries(place, document, rows)
    elif alone:
        entries = _automatic(place, fmt, document)
    elif generated:
        entries = _generated(place, fmt, document)
    else:
        entries = _explicit(place, document, rows)
    profile = EvProfile(
        fmt,
        tuple(entries),
        min_active,
        source,
        _interfaces(place, document) if "plane" in document else (),
        sources=_sources(place, document) if "plane" in document else (),
        reverse=_reverse(place, document),
        events=_events(place, document),
        rows=rows,
        loss=_rule(place, document, "loss", _LOSS),
        skip=_rule(place, document, "skip", _SKIP),
    )
    return _denied(place, document, profile)


def _automatic(place: _Place, fmt: EvFormat, document: Mapping[str, Any]) -> list[EvEntry]:
    """AUTO (D.3): how many is all that is said."""
    count = place.integer(document, "count", None, 1, EV_MAX)
    planes = place.integer(document, "planes", 1, 1, PLANE_MAX)
    seed = place.integer(document, "seed", secrets.randbits(32), 0, (1 << 64) - 1)
    try:
        return automatic(fmt, count, ports=range(1, planes + 1), seed=seed)
    except MrcProfileError as exc:
        place.fail("format", str(exc))


def _reverse(place: _Place, document: Mapping[str, Any]) -> ReverseRule | None:
    if "reverse" not in document:
        return None
    text = document["reverse"]
    if not isinstance(text, str) or text not in _REVERSE:
        place.fail("reverse", f"{_shown(text)} is not known; one of {', '.join(_REVERSE)}")
    return _REVERSE[text]


def _rule(
    place: _Place, document: Mapping[str, Any], key: str, rules: Mapping[str, _Rule]
) -> _Rule:
    """The first of the rules is the default."""
    text = document.get(key, next(iter(rules)))
    if not isinstance(text, str) or text not in rules:
        place.fail(key, f"{_shown(text)} is not known; one of {', '.join(rules)}")
    return rules[text]


def _events(place: _Place, document: Mapping[str, Any]) -> EventMask:
    if "events" not in document:
        return EventMask.ALL
    names = document["events"]
    known = ", ".join(_EVENTS)
    if not isinstance(names, list):
        place.fail("events", f"{_shown(names)} is not a list of {known}")
    mask = EventMask.NONE
    for name in names:
        if not isinstance(name, str) or name not in _EVENTS:
            place.fail("events", f"{_shown(name)} is not known; any of {known}")
        mask |= _EVENTS[name]
    return mask


def _denied(place: _Place, document: Mapping[str, Any], profile: EvProfile) -> EvProfile:
    """The denylist: EVs of the profile itself, and of a file that several profiles may share."""
    listed = document.get("deny", [])
    if not isinstance(listed, list) or not all(type(ev) is int for ev in listed):
        place.fail("deny", f"{_shown(listed)} is not a list of EVs")
    profile = profile.denying(listed)
    if "deny_file" in document:
        profile = profile.denying(_deny_file(place, document), strict=False)
    return profile


def _deny_file(place: _Place, document: Mapping[str, Any]) -> list[int]:
    path = place.file(document, "deny_file")
    found: list[int] = []
    for number, line in enumerate(place.text(path, "deny_file").splitlines(), 1):
        word = line.partition("#")[0].strip()
        try:
            found += [int(word, 0)] if word else []
        except ValueError:
            place.fail("deny_file", f"{path}: line {number}: {word!r:.60} is not an EV")
    return found


def _format(place: _Place, document: Mapping[str, Any]) -> EvFormat:
    known = [f.value for f in EvFormat]
    text = document.get("format")
    if text not in known:
        reason = "is missing" if text is None else f"{_shown(text)} is not known"
        place.fail("format", f"{reason}; one of {', '.join(known)}")
    return EvFormat(text)


def _explicit(place: _Place, document: Mapping[str, Any], rows: RowTable | None) -> list[EvEntry]:
    entries = []
    for here, table in place.tables(document, "ev"):
        here.known_keys(table, _EV_KEYS)
        backup = table.get("backup", False)
        if not isinstance(backup, bool):
            here.fail("backup", f"{_shown(backup)} is not true or false")
        value = here.integer(table, "value", None, 0, 0xFFFFFFFF)
        port = 1 if rows is None else rows.evs.plane.get(value)
        entries.append(
            EvEntry(
                value=value,
                plane=here.integer(table, "port", port, 1, PLANE_MAX),
                dst=here.address(table, "dst"),
                srh=here.address(table, "srh"),
                backup=backup,
            )
        )
    return entries


def _interfaces(place: _Place, document: Mapping[str, Any]) -> tuple[tuple[int, str], ...]:
    found = []
    for here, table in place.tables(document, "plane"):
        here.known_keys(table, {"number", "interface", "source"})
        plane = here.integer(table, "number", None, 1, PLANE_MAX)
        interface = table.get("interface")
        if interface is None and "source" in table:
            continue
        if not isinstance(interface, str):
            here.fail("interface", f"{interface!r} is not an interface name in quotes")
        found.append((plane, interface))
    return tuple(found)


def _sources(place: _Place, document: Mapping[str, Any]) -> PlaneAddresses:
    found: dict[int, IPv6Address] = {}
    for here, table in place.tables(document, "plane"):
        address = here.address(table, "source")
        if address is None:
            continue
        problem = address_problem(address)
        if problem is not None:
            here.fail("source", problem)
        if found.setdefault(table["number"], address) != address:
            here.fail("source", f"plane {table['number']} has {found[table['number']]} already")
    return tuple(sorted(found.items()))


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
    total = combinations(fields)
    count = place.integer(document, "count", min(total, EV_MAX), 1, EV_MAX)
    if count > total:
        place.fail("count", f"{count} EVs, but the fields have only {total} combinations")
    planes = place.integer(document, "planes", 1, 1, PLANE_MAX)
    plane_field = document.get("plane_field")
    if plane_field is not None:
        place.integer(document, "plane_field", None, 0, len(fields) - 1)
        if "planes" in document:
            place.fail("plane_field", "cannot be given together with planes")
    base = place.integer(document, "sport_base", SPORT_BASE, 1, 0xFFFF)
    if fmt in (EvFormat.SRV6, EvFormat.SRV6_SRH) and base + count > 0x10000:
        place.fail("sport_base", f"{base} + {count} EVs exceeds 65535")
    try:
        return generate(
            fmt,
            fields,
            widths,
            count,
            ports=range(1, planes + 1),
            plane_field=plane_field,
            sport_base=base,
        )
    except MrcProfileError as exc:
        place.fail("", str(exc))
