# SPDX-License-Identifier: BSD-2-Clause
"""Row templates (D.9) in files: the [template] of a profile, and the rows of the node.

[template]                 # in the profile
rows = "rows.toml"         # the node's file, relative to the profile
ev_plane = [24, 8]         # bits of an EV that say its plane: the lowest, how many
ev_uplink = [16, 8]        # and its uplink

uplinks = [1, 16]          # beside it, without [[ev]] tables: the first uplink and the last;
planes = 4                 #   planes 1 to 4, in turn
count = 64                 #   how many EVs; default each plane and uplink once

block = 32                 # in the node's file: bits of the locator block
usid = 16                  #   and of a uSID
plane = [8, 4]             #   bits of a uSID that say the plane
number = [0, 8]            #   and the number

[[row]]
prefix = "fd00:15::/64"    # destinations
template = "fcbb:bbbb:1007:2000:1015:3000::"
uplink = 1                 # which uSID takes the EV's uplink, from 0; -1: none (one T0 group)
host = 3                   # which takes the destination's downlink number; default the last
downlink = [0, 8]          # bits of the destination address that are that number
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv6Network
from typing import Any

from .errors import MrcProfileError
from .ev import EvEntry
from .evgen import SPORT_BASE, scattered
from .evrows import Bits, EvLayout, Row, RowTable, UsidLayout
from .tomlplace import Place, parse_toml, shown
from .types import EV_MAX, PLANE_MAX

__all__ = ["rows_of", "template_entries"]

_LAYOUT_KEYS = {"block", "usid", "plane", "number", "row"}
_ROW_KEYS = {"prefix", "template", "uplink", "host", "downlink"}


def rows_of(place: Place, document: Mapping[str, Any]) -> RowTable:
    """The node's rows, as the [template] of a profile names them."""
    table = document["template"]
    here = place.within("[template]")
    if not isinstance(table, dict):
        place.fail("template", "must be a [template] table")
    here.known_keys(table, {"rows", "ev_plane", "ev_uplink"})
    evs = EvLayout(
        here.pair(table, "ev_plane", Bits(24, 8)), here.pair(table, "ev_uplink", Bits(16, 8))
    )
    if evs.problem() is not None:
        here.fail("", str(evs.problem()))
    path = here.file(table, "rows")
    text = here.text(path, "rows")
    try:
        rows = parse_toml(text)
    except MrcProfileError as exc:
        here.fail("rows", f"{path}: {exc}")
    return _parse_rows(Place(str(path), text=text), rows, evs)


def _parse_rows(place: Place, document: Mapping[str, Any], evs: EvLayout) -> RowTable:
    place.known_keys(document, _LAYOUT_KEYS)
    usids = UsidLayout(
        place.integer(document, "block", 32, 1, 127),
        place.integer(document, "usid", 16, 1, 127),
        place.pair(document, "plane", Bits(8, 4)),
        place.pair(document, "number", Bits(0, 8)),
    )
    if "row" not in document:
        place.fail("row", "has no [[row]] table")
    rows = [_row(here, table) for here, table in place.tables(document, "row")]
    try:
        return RowTable(tuple(rows), usids, evs)
    except MrcProfileError as exc:
        place.fail("", str(exc))


def _row(here: Place, table: Mapping[str, Any]) -> Row:
    here.known_keys(table, _ROW_KEYS)
    template = here.address(table, "template")
    if template is None:
        here.fail("template", "is missing")
    uplink = here.integer(table, "uplink", 1, -1, 127)
    return Row(
        _prefix(here, table),
        template,
        None if uplink < 0 else uplink,
        here.integer(table, "host", None, 0, 127) if "host" in table else None,
        here.pair(table, "downlink", Bits(0, 8)),
    )


def _prefix(here: Place, table: Mapping[str, Any]) -> IPv6Network:
    text = table.get("prefix")
    try:
        return IPv6Network(text if isinstance(text, str) else "")
    except ValueError:
        here.fail("prefix", f"{shown(text)} is not an IPv6 prefix, its host bits zero, in quotes")


def template_entries(place: Place, document: Mapping[str, Any], rows: RowTable) -> list[EvEntry]:
    """EVs for planes and uplinks: planes take turns, uplinks an even share, ports as free bits."""
    planes = place.integer(document, "planes", 1, 1, min(PLANE_MAX, rows.evs.plane.top))
    uplinks = document.get("uplinks", [0, 0])
    top = rows.evs.uplink.top
    if (
        not isinstance(uplinks, list)
        or len(uplinks) != 2
        or any(type(n) is not int for n in uplinks)
        or not 0 <= uplinks[0] <= uplinks[1] <= top
    ):
        place.fail("uplinks", f"{shown(uplinks)} is not [first, last] in 0..{top}")
    first, last = uplinks
    spans = [planes, last - first + 1]
    total = planes * (last - first + 1)
    count = place.integer(document, "count", min(total, EV_MAX), 1, EV_MAX)
    base = place.integer(document, "sport_base", SPORT_BASE, 1, 0xFFFF)
    if base + count > 0x10000:
        place.fail("sport_base", f"{base} + {count} EVs exceeds 65535")
    if rows.evs.plane.low < 16 or rows.evs.uplink.low < 16:
        place.fail(
            "template", "EVs are made up with the source port in the low 16 bits; give [[ev]]"
        )
    entries = []
    for i, number in enumerate(scattered(spans, count, 0)):
        plane = 1 + number // spans[1]
        ev = rows.evs.plane.put(base + i, plane)
        entries.append(EvEntry(rows.evs.uplink.put(ev, first + number % spans[1]), plane))
    return entries
