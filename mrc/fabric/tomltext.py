# SPDX-License-Identifier: BSD-2-Clause
"""TOML read strictly: every value of a kind that is asked for, errors with line and near match.

A Table hands out values; `done` refuses the keys that nobody asked for. So what is known of a file
is written once, where it is read.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

from mrc.units import parse_bps, parse_ns, parse_ppm, parse_size

from .errors import FabricError, PlacedError, near

__all__ = ["Place", "Table", "Where", "read_toml"]

Place = tuple[str | int, ...]
Where = int | str
"""The number of a line; or, in words, what else has set a value: `--set run.duration=1s`."""
T = TypeVar("T")

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]#]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"\s*((?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*[A-Za-z0-9_-]+)*)\s*=")
_STRING = re.compile(r"\"(?:\\.|[^\"\\])*\"|'[^']*'")


def _lines_of(text: str) -> dict[Place, int]:
    """The line of each table and key; what stands within another value has that one's line."""
    found: dict[Place, int] = {(): 1}
    counts: dict[Place, int] = {}
    here: Place = ()
    depth, quote = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        inside = bool(depth or quote)
        header = None if inside else _HEADER.match(line)
        key = None if inside or header else _KEY.match(line)
        if header is not None:
            here = _place_of(header[2])
            if header[1] == "[[":
                counts[here] = counts.get(here, -1) + 1
                here = (*here, counts[here])
            elif here[:1] and here[:1] in counts:  # [work.x] belongs to the last [[work]]
                here = (here[0], counts[here[:1]], *here[1:])
            found.setdefault(here, number)
        elif key is not None:
            found.setdefault((*here, *_place_of(key[1])), number)
        depth, quote = _after(line, depth, quote)
    return found


def _place_of(dotted: str) -> Place:
    return tuple(
        word.strip().strip("\"'") for word in re.split(r"\.(?=[^\"']*(?:$|[\"']))", dotted)
    )


def _after(line: str, depth: int, quote: str) -> tuple[int, str]:
    """Open brackets and the open multi-line quote at the end of a line."""
    rest = line
    while True:
        if quote:
            _, end, rest = rest.partition(quote)
            if not end:
                return depth, quote
            quote = ""
        opening = min(
            (i for i in (rest.find('"""'), rest.find("'''")) if i >= 0), default=len(rest)
        )
        plain = _STRING.sub("", rest[:opening]).partition("#")[0]
        if "=" in plain and not depth:
            plain = plain.partition("=")[2]
        elif not depth and _HEADER.match(plain):
            plain = ""
        depth += sum(plain.count(c) for c in "[{") - sum(plain.count(c) for c in "]}")
        if opening == len(rest):
            return max(depth, 0), ""
        quote, rest = rest[opening : opening + 3], rest[opening + 3 :]


class Table:
    """One table of a document. Every method but `done` asks for a key, and so makes it known."""

    def __init__(
        self,
        values: Mapping[str, Any],
        source: str,
        lines: Mapping[Place, Where],
        place: Place = (),
    ) -> None:
        self._values = values
        self.source = source
        self._lines = lines
        self.place = place
        self._known: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._values

    @property
    def keys(self) -> list[str]:
        """What stands there, in order."""
        return list(self._values)

    def fail(self, key: str, reason: str) -> NoReturn:
        """PlacedError: source and line, or what has set it; table, key and reason."""
        place: Place = (*self.place, key) if key else self.place
        line = self._line(place)
        at = line if isinstance(line, str) else f"{self.source}:{line}"
        words = [w for w in self.place if isinstance(w, str)]
        where = f"[{'.'.join(words)}] " if words else ""
        what = f"{where}{key}".strip()
        raise PlacedError(f"{at}: {what}: {reason}".replace(": : ", ": "))

    def _line(self, place: Place) -> Where:
        """Of the place, of the first thing in it, or of what it stands in."""
        while True:
            within = [n for p, n in self._lines.items() if p[: len(place)] == place]
            numbers = [n for n in within if isinstance(n, int)]
            if place in self._lines:
                return self._lines[place]
            if within:
                return min(numbers) if numbers else within[0]
            place = place[:-1]

    def _take(self, key: str) -> Any:
        if key not in self._known:
            self._known.append(key)
        return self._values.get(key)

    def done(self) -> None:
        """FabricError: a key is there that means nothing here."""
        for key in self._values:
            if key not in self._known:
                self.fail(key, f"unknown key; {near(key, self._known)}")

    def text(self, key: str, default: str | None = None) -> str:
        """Words in quotes; default None: they must be there."""
        value = self._take(key)
        if value is None:
            value = default
        if value is None:
            self.fail("", f"{key} is missing")
        if not isinstance(value, str):
            self.fail(key, f"{value!r} must be words in quotes")
        return value

    def choice(self, key: str, known: Iterable[str], default: str | None = None) -> str:
        """One of these words."""
        words = list(known)
        value = self.text(key, default)
        if value not in words:
            self.fail(key, f"{value!r} is not known; {near(value, words)}")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value = self._take(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.fail(key, f"{value!r} must be true or false")
        return value

    def integer(self, key: str, default: int | None, low: int, high: int) -> int:
        """A whole number in low..high; default None: it must be there."""
        value = self._take(key)
        if value is None:
            value = default
        if value is None:
            self.fail("", f"{key} is missing")
        if type(value) is not int or not low <= value <= high:
            self.fail(key, f"{value!r} must be a whole number, {low} to {high}")
        return value

    def _number(
        self, key: str, default: T, parse: Callable[[str], int], unit: int, tip: str
    ) -> int | T:
        """Words that `parse` reads, or a number of `unit`s; unit 0: no bare numbers."""
        value = self._take(key)
        if value is None:
            return default
        found = -1
        if isinstance(value, str):
            try:
                found = parse(value)
            except ValueError as error:
                self.fail(key, str(error))
        elif unit and type(value) in (int, float) and 0 <= value * unit < 1 << 62:
            found = round(value * unit)
        if found < 0:
            self.fail(key, f"{value!r} must be {tip}")
        return found

    def time_ns(self, key: str, default: T) -> int | T:
        """Nanoseconds from "20ms", or from a number of seconds."""
        return self._number(key, default, parse_ns, 10**9, 'a time such as "20ms"')

    def bps(self, key: str, default: T) -> int | T:
        """Bit/s from "500mbit"."""
        return self._number(key, default, parse_bps, 0, 'a rate such as "500mbit"')

    def size(self, key: str, default: T) -> int | T:
        """Bytes from "200KB", or from a number."""
        return self._number(key, default, parse_size, 1, 'a size such as "200KB"')

    def ppm(self, key: str, default: T) -> int | T:
        """Millionths from "5%"."""
        return self._number(key, default, parse_ppm, 0, 'a share such as "5%"')

    def words(self, key: str) -> list[str]:
        """A list of words; empty when it is not there."""
        value = self._take(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(w, str) for w in value):
            self.fail(key, f"{value!r} must be a list of words in quotes")
        return value

    def integers(self, key: str, low: int, high: int) -> list[int]:
        """A list of whole numbers; empty when it is not there."""
        value = self._take(key)
        if value is None:
            return []
        good = isinstance(value, list) and all(type(n) is int and low <= n <= high for n in value)
        if not good:
            self.fail(key, f"{value!r} must be a list of whole numbers, {low} to {high}")
        return list(value)

    def pairs(self) -> list[tuple[str, str]]:
        """All keys and their words, for a table whose keys are free."""
        return [(key, self.text(key)) for key in self.keys]

    def table(self, key: str) -> Table:
        """A table [key]; an empty one when it is not there."""
        value = self._take(key)
        if value is not None and not isinstance(value, dict):
            self.fail(key, f"must be a table [{key}]")
        return Table(value or {}, self.source, self._lines, (*self.place, key))

    def tables(self, key: str) -> list[Table]:
        """Tables [[key]], none at all when they are not there."""
        value = self._take(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(t, dict) for t in value):
            self.fail(key, f"must be tables [[{key}]]")
        return [
            Table(t, self.source, self._lines, (*self.place, key, i)) for i, t in enumerate(value)
        ]

    def raw(self, key: str) -> Any:
        """The value as it is, for whoever reads it elsewhere."""
        return self._take(key)

    def within(self, *place: str | int) -> dict[Place, Where]:
        """Where what stands in a part of this table was written, by its place in that part."""
        whole, count = (*self.place, *place), len(self.place) + len(place)
        return {p[count:]: where for p, where in self._lines.items() if p[:count] == whole}

    def merged(self, changes: Mapping[str, Any], places: Mapping[Place, Where]) -> Table:
        """The same document with other values: tables are merged, anything else is replaced.

        places: where the changes were written, each by its own place.
        """
        made = _Merge(self._lines, self.source, {_counted(p): w for p, w in places.items()})
        values = made.tables(self._values, changes, ())
        return Table(values, self.source, {**made.lines, **made.places}, self.place)


def _counted(place: Place) -> Place:
    """With numbers of elements as numbers: as a word they are keys of a table."""
    return tuple(int(w) if isinstance(w, str) and w.isdecimal() else w for w in place)


class _Merge:
    """Values laid over others; `lines` loses those of what was replaced."""

    def __init__(
        self, lines: Mapping[Place, Where], source: str, places: Mapping[Place, Where]
    ) -> None:
        self.lines = dict(lines)
        self.places = places
        self._source = source

    def tables(self, old: Mapping[str, Any], new: Mapping[str, Any], at: Place) -> dict[str, Any]:
        merged = dict(old)
        for key, value in new.items():
            merged[key] = self._one(merged.get(key), value, (*at, key))
        return merged

    def _one(self, old: Any, new: Any, at: Place) -> Any:
        if isinstance(new, dict) and isinstance(old, dict):
            return self.tables(old, new, at)
        if isinstance(new, dict) and isinstance(old, list):
            return self._elements(old, new, at)
        self.lines = {p: n for p, n in self.lines.items() if p[: len(at)] != at}
        return new

    def _elements(self, old: list[Any], new: Mapping[str, Any], at: Place) -> list[Any]:
        """By their number from 0, as `--set work.0.bytes=..` names them."""
        merged = list(old)
        for word, value in new.items():
            if not word.isdecimal() or int(word) >= len(old):
                raise self._no_element(at, word, len(old))
            merged[int(word)] = self._one(merged[int(word)], value, (*at, int(word)))
        return merged

    def _no_element(self, at: Place, word: str, count: int) -> PlacedError:
        said = [w for p, w in self.places.items() if p[: len(at)] == at]
        where = said[0] if said else 1
        where = where if isinstance(where, str) else f"{self._source}:{where}"
        name = ".".join(map(str, at))
        known = f"{name}.0 to {name}.{count - 1}" if count > 1 else f"only {name}.0"
        return PlacedError(f"{where}: there is no {name}.{word}: {known if count else 'none'}")


def read_toml(text: str, source: str) -> Table:
    """The document. FabricError: it is no TOML."""
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise FabricError(f"{source}: is nested too deeply") from None
    except ValueError as error:
        raise FabricError(f"{source}: is not TOML: {error}") from None
    return Table(values, source, _lines_of(text))
