# SPDX-License-Identifier: BSD-2-Clause
"""Traffic classes: what goes into the DSCP field (A.13.5)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Self

from ._typed import named, typed
from .errors import MrcUsageError

__all__ = ["DscpClasses"]


@named
@dataclass(frozen=True, slots=True)
class DscpClasses:
    """DSCP of each class of A.13.5, 0..63; MrcUsageError when made from others.

    Data goes out as `trimmable`, again as `trimmable_retx`, and as `no_trim` to a peer that does
    not answer trimmed packets (B.7). `trimmed`, `trimmed_lasthop`: what switches make of a packet
    they cut; none of the other classes may have that number, and 0 is none. `trimmed` 0 says that
    no fabric here trims: nothing is taken for a trimmed packet, and all data is `no_trim` (H43).
    """

    no_trim: int = 0
    trimmable: int = 4
    trimmable_retx: int = 8
    trimmed: int = 12
    trimmed_lasthop: int = 16
    control: int = 46

    def __post_init__(self) -> None:
        classes = asdict(self)
        for name, value in classes.items():
            if not isinstance(value, int) or not 0 <= value < 64:
                raise MrcUsageError(f"DSCP class {name}: {value!r} is not a number in 0..63")
        for name, value in classes.items():
            if value in self.cut and not name.startswith("trimmed"):
                raise MrcUsageError(f"DSCP class {name}: {value} means that a packet was trimmed")

    @classmethod
    @typed
    def parse(cls, text: str) -> Self:
        """Classes out of "name=number,...", names with - or _; the others keep their defaults."""
        given: dict[str, int] = {}
        for item in text.split(","):
            name, _, number = item.partition("=")
            name = name.strip().replace("-", "_")
            if name not in cls.__slots__ or name in given or not number.strip().isdecimal():
                names = ", ".join(n.replace("_", "-") for n in cls.__slots__)
                raise MrcUsageError(f"{item!r} is not CLASS=DSCP, each class once; CLASS: {names}")
            given[name] = int(number)
        return cls(**given)

    @property
    def cut(self) -> frozenset[int]:
        """What says that a packet was trimmed; scapy_layers.MrcBTH.trimmed_dscp takes it, too."""
        return frozenset({self.trimmed, self.trimmed_lasthop} - {0})

    @property
    def trims(self) -> bool:
        """Whether there is a fabric that trims."""
        return self.trimmed != 0
