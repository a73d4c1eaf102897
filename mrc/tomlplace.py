# SPDX-License-Identifier: BSD-2-Clause
"""Values out of a TOML document, or a message that names file, place and reason."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from ipaddress import AddressValueError, IPv6Address
from pathlib import Path
from typing import Any, NoReturn

from .errors import MrcProfileError
from .evrows import Bits

__all__ = ["Place", "parse_toml", "read_bytes", "shown"]

_FILE_MAX = 16 << 20  # bytes; a device that never ends is refused, too
_INT_SHOWN_BITS = (
    256  # a longer number is told by its length: its digits may be more than str() has
)


def read_bytes(path: Path) -> bytes:
    """What a file holds. OSError; MrcProfileError: no such name can be, or it does not end."""
    try:
        with path.open("rb") as file:
            raw = file.read(_FILE_MAX + 1)
    except ValueError as exc:  # a zero byte in the name
        raise MrcProfileError(f"{str(path)!r} is not a file name") from exc
    if len(raw) > _FILE_MAX:
        raise MrcProfileError(f"{path}: is longer than {_FILE_MAX} bytes")
    return raw


def parse_toml(text: str) -> dict[str, Any]:
    """The document. MrcProfileError: the reason, without a place."""
    try:
        return tomllib.loads(text)
    except RecursionError as exc:
        raise MrcProfileError("is nested too deeply") from exc
    except ValueError as exc:  # TOMLDecodeError is one; so is what an endless number raises
        raise MrcProfileError(f"is not TOML: {exc}") from exc


def shown(value: object) -> str:
    """A value as the file has it; what cannot be said on a line as what it is."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, int):
        bits = value.bit_length()
        return str(value) if bits <= _INT_SHOWN_BITS else f"a number of {bits} bits"
    return repr(value) if isinstance(value, str | float) else str(value)


def _line_of(text: str, table: str, key: str) -> int | None:
    """The line, from 1, of a key in `table` ("", "[name]", or "[[name]] 3"); else of the table.

    None: it is not found, as where a table is written on one line.
    """
    name, _, nth = table.partition(" ")
    left = int(nth or 1) if table else 0  # headers of that name until ours
    found = None
    ours = not table
    wanted = re.compile(rf"""\s*(["']?){re.escape(key)}\1\s*=""")
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("["):
            header = "".join(line.partition("#")[0].split())
            if not table and key and header.strip("[]") == key:
                return number
            left -= header == name
            ours = bool(table) and left == 0 and header == name
            found = number if ours else found
        elif ours and key and wanted.match(line):
            return number
    return found


class Place:
    """Where in a document we are, for messages: file, line, table and its index from 1.

    `text`: the document as it was read; without it messages name no line. Every method raises
    MrcProfileError with the place, the key and the reason.
    """

    def __init__(self, source: str, table: str = "", text: str = "") -> None:
        self.source = source
        self.table = table
        self._text = text

    def within(self, table: str) -> Place:
        """A table of this document."""
        return Place(self.source, table, self._text)

    def fail(self, key: str, reason: str) -> NoReturn:
        """The reason, at its place."""
        line = _line_of(self._text, self.table, key)
        where = "" if line is None else f"line {line}"
        parts = (self.source, where, self.table, key, reason)
        raise MrcProfileError(": ".join(p for p in parts if p))

    def file(self, table: Mapping[str, Any], key: str) -> Path:
        """A file named there, relative to the one we are in."""
        name = table.get(key)
        if not isinstance(name, str) or not name:
            self.fail(key, "is missing" if name is None else f"{shown(name)} is not a file name")
        return Path(self.source).parent / name

    def text(self, path: Path, key: str) -> str:
        """What that file holds."""
        try:
            return read_bytes(path).decode("utf-8")
        except UnicodeDecodeError:
            self.fail(key, f"{path}: is not UTF-8 text")
        except OSError as exc:
            self.fail(key, f"{path}: {exc.strerror}")
        except MrcProfileError as exc:
            self.fail(key, str(exc))

    def pair(self, table: Mapping[str, Any], key: str, default: Bits) -> Bits:
        """Bits: [lowest, how many]."""
        given = table.get(key)
        if given is None:
            return default
        if not isinstance(given, list) or len(given) != 2 or any(type(x) is not int for x in given):
            self.fail(key, f"{shown(given)} is not [lowest bit, number of bits]")
        return Bits(*given)

    def known_keys(self, table: Mapping[str, Any], known: set[str]) -> None:
        """No others are there."""
        for key in table:
            if key not in known:
                near = difflib.get_close_matches(key, sorted(known), 1)
                meant = f"; did you mean {near[0]}" if near else ""
                self.fail(key, f"unknown key{meant}; known here: {', '.join(sorted(known))}")

    def integer(
        self, table: Mapping[str, Any], key: str, default: int | None, low: int, high: int
    ) -> int:
        """An integer in low..high; default None: it must be there."""
        value = table.get(key, default)
        if value is None:
            self.fail(key, "is missing")
        if not isinstance(value, int) or isinstance(value, bool):
            self.fail(key, f"{shown(value)} is not an integer")
        if not low <= value <= high:
            self.fail(key, f"{shown(value)} is not in {low}..{high}")
        return value

    def address(self, table: Mapping[str, Any], key: str) -> IPv6Address | None:
        """An IPv6 address, or None."""
        if key not in table:
            return None
        text = table[key]
        if not isinstance(text, str):
            self.fail(key, f"{shown(text)} is not an IPv6 address in quotes")
        try:
            return IPv6Address(text)
        except AddressValueError:
            self.fail(key, f"{text!r} is not an IPv6 address")

    def tables(self, document: Mapping[str, Any], key: str) -> list[tuple[Place, dict[str, Any]]]:
        """The tables of that name, one at least."""
        found = document[key]
        if not isinstance(found, list) or not all(isinstance(t, dict) for t in found):
            self.fail(key, f"must be [[{key}]] tables")
        if not found:
            self.fail(key, f"has no [[{key}]] table")
        return [(self.within(f"[[{key}]] {i}"), t) for i, t in enumerate(found, 1)]
