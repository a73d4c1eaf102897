# SPDX-License-Identifier: BSD-2-Clause
"""What a connection can be asked to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path
from types import UnionType
from typing import Literal, TypedDict

from ._check import whole
from .cc import CcProfile, NsccConfig
from .dscp import DscpClasses
from .errors import MrcUsageError
from .ev import EvProfile
from .planes import PlaneAddresses, plane_addresses
from .types import MPR_MAX, PATH_MTUS, TRAIN_MAX, Backend, CcKind, EvFormat, Recovery

__all__ = ["ConnectionOptions", "OptionArgs"]


_ANY = 1 << 64  # the range is checked where it is known
_MAY_BE_NONE = ("udp_port", "also_udp_port", "start_psn", "window", "seed")
_TYPES: dict[str, type | UnionType] = {
    "ev_profile": EvProfile | str | Path | None,
    "backend": str,
    "cc": str | CcProfile,
    "dscp": DscpClasses | None,
    "dynamic_mpr": bool,
    "timestamps": bool,
    "service_time": bool,
    "recovery": str,
    "mode": str,
    "pump": str | None,
}


class OptionArgs(TypedDict, total=False):
    """The keyword arguments of connect(), listen() and mem_pair(); ConnectionOptions explains."""

    evs: int
    sport_base: int
    ev_profile: EvProfile | str | Path | None
    backend: Literal["auto", "udp", "raw", "mem"]
    udp_port: int | None
    mtu: int
    depth: int
    cc: Literal["nscc", "fixed", "none"] | CcProfile
    window: int | None
    train: int | Literal["auto"]
    mpr: int
    max_wimm: int
    imm_queue: int
    ack_timeout: int
    retry_linear: int
    retry_exp: int
    sack_threshold: int
    seed: int | None
    start_psn: int | None
    dscp: DscpClasses | None
    also_udp_port: int | None
    dynamic_mpr: bool
    mpr_max: int
    timestamps: bool
    service_time: bool
    recovery: Literal["guarded", "off", "plain"]
    plane_addresses: Mapping[int, str | IPv6Address] | None
    mode: Literal["mrc", "rc"]
    pump: Literal["loop", "thread"] | None


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """Checked when made: MrcUsageError, or MrcProfileError for the EV profile.

    evs, sport_base: EV i is UDP source port sport_base + i; ignored with ev_profile (an EvProfile
    or a TOML file). A listener without ev_profile answers over as many EVs as its peer has, at most
    256.
    backend: "auto" is raw for SRv6 profiles, else udp; only raw takes those. udp_port: where we
    receive, exactly there; None: 4791, or the next free one. mtu: payload bytes of a packet, at
    most; the route and the peer may lower it. depth: writes in flight. cc, window: controller and
    its bytes in flight (of fixed exactly, of nscc at most). train: packets sent back to back on one
    path, and at most so
    many in one message to the kernel. mpr: window of PSNs, units of 128 (B.12). max_wimm:
    immediates in flight (B.8). imm_queue: immediates a receiver may leave unread before its sender
    waits. ack_timeout: 1.024 us x 2^n; retry_linear, retry_exp: how often it is repeated, then
    doubled (B.9); by default 67 ms, above any pause of a busy host, and 8.7 s until a silent peer
    is given up. sack_threshold: bytes, 0 the default (H7). seed: of the engine, for a context made
    here. start_psn: 24 bits, default random. dscp: classes of a context made here (A.13.5).
    also_udp_port: a second UDP port whose packets are taken as well (H1).
    dynamic_mpr: the receiver may change the window while running when both sides say so; it falls
    and recovers with the receiver's budgets, and may grow to mpr_max where that is above mpr
    (B.12). timestamps: TSETH in our data packets (A.5). service_time: of a context made here, its
    receivers take their own dwell time out of the peer's round trips (H11). recovery: what we do
    about a gap that has grown too wide (B.10, ADR 70). plane_addresses: this host's IPv6 address in
    a plane, where it has one for each, over those that the EV profile names (C.4); without an EV
    profile EVs take turns on these planes. mode: "rc" is what MRC is compared with, and for that
    only (ADR 95): one path, go-back-N; evs is then ignored. Both sides say the same. pump: who
    moves the packets of a context made here, the event loop or a thread, as Context has it.
    """

    evs: int = 16
    sport_base: int = 49152
    ev_profile: EvProfile | str | Path | None = None
    backend: Literal["auto", "udp", "raw", "mem"] = "auto"
    udp_port: int | None = None
    mtu: int = 4096
    depth: int = 16
    cc: Literal["nscc", "fixed", "none"] | CcProfile = "nscc"
    window: int | None = None
    train: int | Literal["auto"] = "auto"
    mpr: int = 16
    max_wimm: int = 128
    imm_queue: int = 1024
    ack_timeout: int = 16
    retry_linear: int = 3
    retry_exp: int = 6
    sack_threshold: int = 0
    seed: int | None = None
    start_psn: int | None = None
    dscp: DscpClasses | None = None
    also_udp_port: int | None = None
    dynamic_mpr: bool = True
    mpr_max: int = 0
    timestamps: bool = False
    service_time: bool = False
    recovery: Literal["guarded", "off", "plain"] = "guarded"
    plane_addresses: Mapping[int, str | IPv6Address] | None = None
    mode: Literal["mrc", "rc"] = "mrc"
    pump: Literal["loop", "thread"] | None = None

    def __post_init__(self) -> None:
        for name, low, high in (
            ("depth", 1, 1 << 16),
            ("mpr", 1, MPR_MAX),
            ("mpr_max", 0, MPR_MAX),
            ("max_wimm", 1, 0xFFFF),
            ("imm_queue", 1, 1 << 16),
            ("ack_timeout", 0, 24),
            ("retry_linear", 0, 7),
            ("retry_exp", 0, 25),
            ("udp_port", 1, 0xFFFF),
            ("sack_threshold", 0, 1 << 30),
            ("also_udp_port", 1, 0xFFFF),
            ("start_psn", 0, 0xFFFFFF),
            ("evs", -_ANY, _ANY),
            ("sport_base", -_ANY, _ANY),
            ("mtu", -_ANY, _ANY),
            ("window", -_ANY, _ANY),
            ("seed", -_ANY, _ANY),
        ):
            if (value := getattr(self, name)) is not None or name not in _MAY_BE_NONE:
                whole(name, value, low, high)
        self._check_types()
        if self.mtu not in PATH_MTUS:
            raise MrcUsageError(f"mtu {self.mtu} is not one of {', '.join(map(str, PATH_MTUS))}")
        if self.train != "auto":
            whole("train", self.train, 1, TRAIN_MAX)
        if isinstance(self.ev_profile, str | Path):
            object.__setattr__(self, "ev_profile", EvProfile.load(self.ev_profile))
        given = plane_addresses(self.plane_addresses or {})
        object.__setattr__(self, "plane_addresses", dict(given))
        self._check_planes(self.profile(self.evs, self.sport_base))  # which refuses what cannot be
        self._check_names()
        if not isinstance(self.cc, CcProfile):
            object.__setattr__(self, "cc", _cc_profile(self.cc, self.window))

    def _check_types(self) -> None:
        """Of what is no number."""
        for name, kind in _TYPES.items():
            if not isinstance(value := getattr(self, name), kind):
                raise MrcUsageError(f"{name} {value!r} is of a type that it cannot be")

    def _check_names(self) -> None:
        """Unknown names are refused, and paths that the backend would ignore."""
        if self.backend not in ("auto", "udp", "raw", "mem"):
            raise MrcUsageError(f"backend {self.backend!r} is not auto, udp, raw or mem")
        if self.recovery.upper() not in Recovery.__members__:
            raise MrcUsageError(f"recovery {self.recovery!r} is not guarded, off or plain")
        if self.pump not in (None, "loop", "thread"):
            raise MrcUsageError(f"pump {self.pump!r} is not loop or thread")
        if self.mode not in ("mrc", "rc"):
            raise MrcUsageError(f"mode {self.mode!r} is not mrc or rc")
        own = self.ev_profile
        if self.mode == "rc" and isinstance(own, EvProfile) and len(own) != 1:
            raise MrcUsageError(f"mode rc has one path, the EV profile {len(own)} EVs")
        if isinstance(own, EvProfile) and _is_srv6(own) and self.backend not in ("auto", "raw"):
            raise MrcUsageError(
                f"{own.name or 'the EV profile'}: format {own.format.value} needs the raw backend; "
                f"{self.backend} would ignore its paths"
            )

    def _check_planes(self, profile: EvProfile) -> None:
        """An address of a plane without EVs would be told to the peer, and never used."""
        known = {e.plane for e in profile}
        for plane, _ in self.sources:
            if plane not in known:
                raise MrcUsageError(f"plane {plane} has an address, but no EV")

    @property
    def sources(self) -> PlaneAddresses:
        """Own addresses of planes, of the EV profile and of plane_addresses."""
        named = self.ev_profile.sources if isinstance(self.ev_profile, EvProfile) else ()
        return plane_addresses({**dict(named), **(self.plane_addresses or {})})

    @property
    def window_max(self) -> int:
        """How far the window may grow, units of MPR."""
        return max(self.mpr, self.mpr_max) if self.dynamic_mpr else self.mpr

    @property
    def cc_profile(self) -> CcProfile:
        """The controller as a profile."""
        assert isinstance(self.cc, CcProfile)  # noqa: S101 - made so above
        return self.cc

    def profile(self, evs: int, sport_base: int) -> EvProfile:
        """The EV profile given, or plain source ports."""
        if isinstance(self.ev_profile, EvProfile):
            return self.ev_profile
        evs = 1 if self.mode == "rc" else evs
        return EvProfile.udp(evs, sport_base, [plane for plane, _ in self.sources] or 1)

    def backend_kind(self) -> Backend:
        """The backend, "auto" resolved."""
        if self.backend != "auto":
            return Backend[self.backend.upper()]
        return Backend.RAW if _is_srv6(self.ev_profile) else Backend.UDP


def _is_srv6(profile: object) -> bool:
    """Its paths are outer headers, which only the raw backend writes (D.2)."""
    return isinstance(profile, EvProfile) and profile.format in (EvFormat.SRV6, EvFormat.SRV6_SRH)


def _cc_profile(name: str, window: int | None) -> CcProfile:
    try:
        kind = CcKind[name.upper()]
    except KeyError:
        raise MrcUsageError(f"cc {name!r} is not nscc, fixed or none") from None
    if window is not None and window < 1:
        raise MrcUsageError(f"window {window} is not a positive number of bytes")
    if kind is CcKind.FIXED:
        return CcProfile(kind, window=window or 1 << 20)
    return CcProfile(kind, window=window or 0, nscc=NsccConfig())
