# SPDX-License-Identifier: BSD-2-Clause
"""CC profiles: the algorithm and its configuration (C.5)."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Any

from mrc._typed import named
from mrc.cc import CcProfile, NsccConfig
from mrc.errors import MrcUsageError
from mrc.types import CcKind

from .attrs import ALGORITHMS, ALIASES, FIXED, NSCC, ProfileState
from .managed import UNSET, Managed, Unset

__all__ = ["CcAttr", "ManagedCcProfile"]

_KIND = {NSCC: CcKind.NSCC, FIXED: CcKind.FIXED, None: CcKind.NONE}


@named
@dataclass(frozen=True, slots=True)
class CcAttr:
    """algorithm: one of the device's, None for no congestion control; UNSET: leave.

    config: of NSCC (E.4); max_cwnd is the window of mrc-fixed. None: leave.
    """

    algorithm: str | Unset | None = UNSET
    config: NsccConfig | None = None


class ManagedCcProfile(Managed[CcAttr]):
    """One CC profile; `profile` is what connections take."""

    what = "CC profile"
    offline_needs = ("algorithm",)
    online_needs = ("config",)
    online_may = ("config",)

    @property
    def profile(self) -> CcProfile:
        """For connect(cc=...). EINVAL: it is not ONLINE."""
        self.node.require_open()
        if self.state is not ProfileState.ONLINE:
            self.refuse(errno.EINVAL, f"is {self.state.name}; take it ONLINE to use it")
        return self._made(self.attr)

    def _made(self, attr: CcAttr) -> CcProfile:
        config = attr.config or NsccConfig()
        kind = _KIND[self._name(attr)]
        return CcProfile(kind, window=config.max_cwnd, nscc=config, origin=self)

    @staticmethod
    def _name(attr: CcAttr) -> str | None:
        name = attr.algorithm
        return None if name is None or isinstance(name, Unset) else ALIASES.get(name, name)

    def _check_values(self, given: dict[str, Any]) -> None:
        if isinstance(config := given.get("config"), NsccConfig):
            try:
                config.check()
            except MrcUsageError as exc:
                self.refuse(errno.EINVAL, str(exc))

    def _check(self, attr: CcAttr) -> None:
        name = self._name(attr)
        if name not in _KIND:
            known = ", ".join(ALGORITHMS)
            self.refuse(errno.EINVAL, f"algorithm {name!r} is not known; one of {known}, or None")
        if attr.config is None:
            return
        try:
            self._made(attr)
        except MrcUsageError as exc:
            self.refuse(errno.EINVAL, str(exc))

    def _online_needs(self, attr: CcAttr) -> tuple[str, ...]:
        return self.online_needs if self._name(attr) is not None else ()  # nothing to configure

    def _users(self) -> str:
        found = [c for c in self.node.ctx.controllers if c.profile.origin is self]
        return f"{len(found)} congestion controllers of queue pairs" if found else ""
