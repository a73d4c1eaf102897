# SPDX-License-Identifier: BSD-2-Clause
"""What a device says of itself, and the numbers of the controller API (C.5)."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from enum import Enum, IntEnum, IntFlag
from typing import NoReturn

from mrc._typed import named, wrong_type
from mrc.errors import MrcControlError
from mrc.types import EV_MAX, PLANE_MAX

__all__ = [
    "NSCC",
    "DeviceAttr",
    "EvId",
    "EvMode",
    "FmtMode",
    "NodeLimits",
    "OptAttr",
    "ProfileState",
    "VisibleState",
]

NSCC = "uet-1.0-nscc"
FIXED = "mrc-fixed"  # a window that does not move, for benchmarks
ALGORITHMS = (NSCC, FIXED)
ALIASES = {"mrc-smtrk-1.00": NSCC}  # the name in older drafts
EV_BYTES = 32
EV_WIDTH_MAX = 256


class ProfileState(Enum):
    """INIT: exists. OFFLINE: configured, may be changed. ONLINE: queue pairs may use it."""

    INIT = "INIT"
    OFFLINE = "OFFLINE"
    ONLINE = "ONLINE"


class FmtMode(IntFlag):
    """Modes of an EV format: where switches look (D.2). UDP: the source port only."""

    STEV = 1
    SRV6 = 2
    UDP = 4


class EvMode(IntFlag):
    """Who chooses the EVs (D.3): the device, the controller one by one, or fields."""

    AUTO = 1
    EXPLICIT = 2
    GENERATED = 4


class OptAttr(IntFlag):
    """What a device may be able to do beyond the obligatory."""

    EV_ONLINE = 1  # EV profiles may be changed ONLINE
    CC_ONLINE = 2  # the same for CC profiles
    EV_EVENTS = 4
    EV_RANGE = 8  # explicit EVs only as base to base + count - 1
    EXACT_DROPS = 16  # drop_count of events is exact, not 0 or 1
    EV_PROBES = 32


SUPPORTED = (
    OptAttr.EV_ONLINE
    | OptAttr.EV_EVENTS
    | OptAttr.EV_RANGE
    | OptAttr.EXACT_DROPS
    | OptAttr.EV_PROBES
)


class VisibleState(IntEnum):
    """EV states as the API shows them; SKIP is too short-lived and counts as GOOD."""

    GOOD = 1
    ASSUMED_BAD = 2
    DENIED = 4
    UNKNOWN = 1 << 31


@named
@dataclass(frozen=True, slots=True)
class EvId:
    """An EV entry: up to 32 bytes, first field in the first byte (H24), and a 1-based port.

    UDP uses the first 2 bytes, STEV 4, SRv6 16, the SRH segment the next 16, as far as the fields
    have bits. Shorter values are padded with zeros at the end. Port 0, all zero: unpopulated.
    """

    value: bytes
    port: int = 1

    def __post_init__(self) -> None:
        problem = wrong_type(self)
        if problem is not None:
            refuse(errno.EINVAL, problem)
        if not 0 <= self.port <= PLANE_MAX:
            refuse(errno.EINVAL, f"port {self.port} is not in 0..{PLANE_MAX}")
        if len(self.value) > EV_BYTES:
            refuse(errno.EINVAL, f"an EV has at most {EV_BYTES} bytes, not {len(self.value)}")
        object.__setattr__(self, "value", self.value.ljust(EV_BYTES, b"\0"))

    def __str__(self) -> str:
        """The bytes up to the last that is not zero, two at least: c770, never c77."""
        return f"{self.value.rstrip(bytes(1)).ljust(2, bytes(1)).hex()} on port {self.port}"


UNPOPULATED = EvId(b"", 0)


@named
@dataclass(frozen=True, slots=True)
class NodeLimits:
    """What this node offers; opt_attr: a part of what the library can do."""

    ev_max_fmt_profiles: int = 64
    ev_max_profiles: int = 64
    ev_max_count: int = 65536
    ev_max_count_profile: int = EV_MAX
    ev_count_align: int = 1
    ev_op_max_entries: int = 0
    cc_max_profiles: int = 64
    event_ring: int = 4096
    opt_attr: OptAttr = SUPPORTED & ~OptAttr.EV_RANGE

    def __post_init__(self) -> None:
        problem = wrong_type(self)
        if problem is not None:
            refuse(errno.EINVAL, problem)
        for name, low, high in (
            ("ev_max_fmt_profiles", 1, 1 << 16),
            ("ev_max_profiles", 1, 1 << 16),
            ("ev_max_count", 1, 1 << 28),
            ("ev_max_count_profile", 1, EV_MAX),
            ("ev_count_align", 1, EV_MAX),
            ("ev_op_max_entries", 0, 1 << 28),
            ("cc_max_profiles", 1, 1 << 16),
            ("event_ring", 1, 1 << 24),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                refuse(errno.EINVAL, f"{name} {value} is not in {low}..{high}")
        if self.opt_attr & ~SUPPORTED:
            refuse(errno.EINVAL, f"{self.opt_attr & ~SUPPORTED!r} is not to be had here")


@dataclass(frozen=True, slots=True)
class DeviceAttr:
    """The device attributes of C.5. Masks by the enums above; bit N of phy_port_mask is port N."""

    ev_max_fmt_profiles: int
    ev_max_profiles: int
    ev_max_count: int
    ev_free_count: int
    ev_max_count_profile: int
    ev_count_align: int
    ev_max_width: int
    ev_fmt_mode_mask: FmtMode
    ev_mode_mask: EvMode
    ev_op_max_entries: int
    cc_max_profiles: int
    algorithms: tuple[str, ...]
    phy_port_mask: int
    opt_attr: OptAttr

    def __str__(self) -> str:
        return "\n".join(f"{name:<22}: {getattr(self, name)}" for name in self.__slots__)


def refuse(number: int, reason: str) -> NoReturn:
    """Raise MrcControlError."""
    raise MrcControlError(number, reason)


def port_mask(ports: int) -> int:
    """Ports 1 to `ports`. EINVAL: none, or more than there can be."""
    if type(ports) is not int or not 1 <= ports <= PLANE_MAX:
        refuse(errno.EINVAL, f"the number of ports {ports} is not in 1..{PLANE_MAX}")
    return (1 << ports + 1) - 2
