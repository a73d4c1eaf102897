# SPDX-License-Identifier: BSD-2-Clause
"""EV format profiles: the mode, and the widths of the fields a path value is made of (C.5, D.3)."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from mrc._typed import named
from mrc.types import EvFormat

from .attrs import EV_WIDTH_MAX, FmtMode, ProfileState
from .managed import Managed

__all__ = ["FormatAttr", "ManagedFormat"]

_WIDTH_MAX = {FmtMode.UDP: 16, FmtMode.STEV: 32, FmtMode.SRV6: EV_WIDTH_MAX}
_USID_BITS = 128  # of SRv6; what is wider has its second half in an SRH (D.2)


@named
@dataclass(frozen=True, slots=True)
class FormatAttr:
    """None: leave. widths: bits of the format's fields, the first at the top."""

    mode: FmtMode | None = None
    widths: tuple[int, ...] | None = None


class ManagedFormat(Managed[FormatAttr]):
    """One EV format profile."""

    what = "EV format profile"
    offline_needs = ("mode",)
    online_needs = ("widths",)
    online_may = ()

    @property
    def format(self) -> EvFormat:
        """What it is on the wire (D.2). EINVAL: not configured."""
        mode, widths = self.attr.mode, self.attr.widths
        if mode is None or widths is None:
            self.refuse(errno.EINVAL, "is not configured yet; give it mode and widths")
        if mode is FmtMode.UDP:
            return EvFormat.UDP
        if mode is FmtMode.STEV:
            return EvFormat.STEV
        return EvFormat.SRV6 if sum(widths or ()) <= _USID_BITS else EvFormat.SRV6_SRH

    def _check(self, attr: FormatAttr) -> None:
        if attr.mode not in _WIDTH_MAX:
            self.refuse(errno.EINVAL, f"mode {attr.mode!r} is not one of STEV, SRV6, UDP")
        if attr.widths is None:
            return
        if not attr.widths or any(type(w) is not int or not 1 <= w <= 32 for w in attr.widths):
            self.refuse(errno.EINVAL, f"widths {attr.widths} are not each in 1..32 bits")
        total, most = sum(attr.widths), _WIDTH_MAX[FmtMode(attr.mode or 0)]
        if total > most:
            self.refuse(errno.EINVAL, f"{total} bits of fields; mode {attr.mode!r} has {most}")

    def _users(self) -> str:
        found = [
            p.id
            for p in self.node.ev_profiles
            if p.attr.format == self.id and p.state is ProfileState.ONLINE
        ]
        return f"EV profile {', '.join(map(str, found))}, which is ONLINE" if found else ""
