# SPDX-License-Identifier: BSD-2-Clause
"""The scenarios that come with the package, found by name."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from .errors import FabricError, near

__all__ = ["find", "folder", "names"]


def folder() -> Path:
    """Where they lie. They are files: the package is not run from an archive."""
    return Path(str(resources.files("mrc"))) / "scenarios"


def names() -> list[str]:
    """All of them, in order."""
    return sorted(path.stem for path in folder().glob("*.toml"))


def find(word: str) -> Path:
    """A file by its path, or one of ours by its name. FabricError: neither."""
    path = Path(word)
    if path.suffix == ".toml" or "/" in word:
        if not path.exists():
            raise FabricError(f"{word}: there is no such file")
        if path.is_dir():
            raise FabricError(f"{word}: is a folder, no scenario file")
        return path
    if word not in names():
        hint = f"; did you mean {word}.toml?" if Path(f"{word}.toml").exists() else ""
        raise FabricError(f"there is no scenario {word!r}; {near(word, names())}{hint}")
    return folder() / f"{word}.toml"
