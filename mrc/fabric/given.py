# SPDX-License-Identifier: BSD-2-Clause
"""What the command line changes in a scenario: `--set KEY=VALUE`, `--seed N`, and its mistakes."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .errors import FabricError
from .scenario import Scenario, load_scenario
from .tomltext import Place

__all__ = ["Given"]


class Given:
    """The options of one command, in order. FabricError: one of them cannot be, for any file."""

    def __init__(self, changes: Sequence[str], seed: int | None = None) -> None:
        options = [(f"--set {text}", *_parted(text)) for text in changes]
        if seed is not None:
            options.append((f"--seed {seed}", ("run", "seed"), seed))
        self._options = options
        self._laid(options)

    def loaded(self, path: Path, on: str) -> Scenario:
        """The scenario in a file with the changes. FabricError names the option it is due to."""
        try:
            return self._load(path, on, self._options)
        except FabricError as error:
            if str(error).startswith(("--set ", "--seed ")) or not self._options:
                raise
            raise FabricError(f"{error}{self._blamed(path, on)}") from None

    def _blamed(self, path: Path, on: str) -> str:
        """The option without which the file would be good; none if the file itself is not."""

        def good(options: Sequence[tuple[str, Place, Any]]) -> bool:
            try:
                self._load(path, on, options)
            except FabricError:
                return False
            return True

        for option in self._options:
            if good([other for other in self._options if other is not option]):
                return f" (with {option[0]})"
        if len(self._options) > 1 and good([]):
            return f" (with {' '.join(said for said, _, _ in self._options)})"
        return ""

    def _load(self, path: Path, on: str, options: Sequence[tuple[str, Place, Any]]) -> Scenario:
        places = {place: said for said, place, _ in options}
        return load_scenario(path, self._laid(options), on, places)

    @staticmethod
    def _laid(options: Sequence[tuple[str, Place, Any]]) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        for said, place, value in options:
            here = changes
            for word in place[:-1]:
                here = here.setdefault(str(word), {})
                if not isinstance(here, dict):
                    raise FabricError(f"{said}: {word} has a value already, by another option")
            here[str(place[-1])] = value
        return changes


def _parted(text: str) -> tuple[Place, Any]:
    key, equals, value = text.partition("=")
    words = tuple(key.split("."))
    if not equals or not all(words):
        raise FabricError(f"--set {text}: KEY=VALUE, such as fabric.planes=2")
    if words[0] == "lab":
        raise FabricError(f"--set {text}: what is set is for this run; leave lab. out")
    return words, _value(value)


def _value(text: str) -> Any:
    """As in a scenario file; what is no value there is words."""
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text
