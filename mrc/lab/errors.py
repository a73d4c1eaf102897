# SPDX-License-Identifier: BSD-2-Clause
"""The two ways in which a fabric fails."""

from __future__ import annotations


class FabricError(Exception):
    """Something went wrong that should not have; the text names the step and what the tool said."""


def said_of(error: Exception) -> str:
    """An error in words; of the system with the file it is about."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


class FabricUnavailableError(FabricError):
    """The machine does not let us build a fabric. ``missing`` names the one thing that lacks."""

    def __init__(self, missing: str, hint: str = "") -> None:
        """``missing``: e.g. "user namespaces"; ``hint``: what the administrator can do."""
        super().__init__(f"{missing} ({hint})" if hint else missing)
        self.missing = missing
        self.hint = hint
