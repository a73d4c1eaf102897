# SPDX-License-Identifier: BSD-2-Clause
"""NodeController: the one controller of a context, and what it keeps (C.5, C.6)."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mrc.device import Context
from mrc.endpoint import CONTROL_CLASS
from mrc.epbatch import BatchResult, EndpointOp, EndpointRequest, send_and_wait
from mrc.errors import MrcControlError
from mrc.types import EvEvent, EvState

from .attrs import (
    ALGORITHMS,
    EV_WIDTH_MAX,
    DeviceAttr,
    EvId,
    EvMode,
    FmtMode,
    NodeLimits,
    OptAttr,
    VisibleState,
    port_mask,
    refuse,
)
from .cc import CcAttr, ManagedCcProfile
from .evprofile import EvAttr, ManagedEvProfile
from .format import FormatAttr, ManagedFormat
from .managed import Managed

__all__ = ["NodeController", "NodeEvent"]

_NET_ADMIN = 12  # bit of CAP_NET_ADMIN
_VISIBLE = {
    EvState.GOOD: VisibleState.GOOD,
    EvState.SKIP: VisibleState.GOOD,  # in service, and soon GOOD
    EvState.ASSUMED_BAD: VisibleState.ASSUMED_BAD,
    EvState.DENIED: VisibleState.DENIED,
}
ProfileT = TypeVar("ProfileT", ManagedFormat, ManagedEvProfile, ManagedCcProfile)


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """An EV of a managed profile changed its state (C.6).

    `time`: ns of the context's clock. `drop_count`: events lost since the previous one delivered;
    where the device cannot count them, 1: some.
    """

    profile: int
    ev: EvId
    state: VisibleState
    drop_count: int
    time: int


class NodeController:
    """Profiles, ports and events of one context; ports are numbered 1..`ports` and are planes.

    EBUSY: the context has a controller already. EPERM, with `privileged`: the process lacks
    CAP_NET_ADMIN. A process governs its own context only, so that is not asked for by default.
    """

    def __init__(
        self,
        ctx: Context,
        *,
        ports: int = 1,
        limits: NodeLimits | None = None,
        privileged: bool = False,
    ) -> None:
        if privileged and not _may_administer():
            refuse(errno.EPERM, "controlling a node needs CAP_NET_ADMIN; run as root")
        if not isinstance(ctx, Context):
            refuse(errno.EINVAL, f"ctx {ctx!r:.60} is no Context")
        if ctx.node is not None:
            refuse(errno.EBUSY, "the context has a controller already; close that first")
        if limits is not None and not isinstance(limits, NodeLimits):
            refuse(errno.EINVAL, f"limits {limits!r:.60} are no NodeLimits")
        self.ctx = ctx
        self.limits = limits or NodeLimits()
        self._port_mask = port_mask(ports)
        self._formats: dict[int, ManagedFormat] = {}
        self._ev: dict[int, ManagedEvProfile] = {}
        self._cc: dict[int, ManagedCcProfile] = {}
        self._last_id = 0
        self._events: deque[NodeEvent] = deque()
        self._lost = 0
        ctx.node = self

    def require_open(self) -> None:
        """EINVAL: it was closed; what it made governs nothing any more."""
        if self.ctx.node is not self:
            refuse(errno.EINVAL, "this controller is closed")

    # -- the device ----------------------------------------------------------------------------

    def attributes(self) -> DeviceAttr:
        """What the device has, and what of it is free."""
        limits = self.limits
        used = sum(p.size for p in self._ev.values())
        return DeviceAttr(
            ev_max_fmt_profiles=limits.ev_max_fmt_profiles,
            ev_max_profiles=limits.ev_max_profiles,
            ev_max_count=limits.ev_max_count,
            ev_free_count=limits.ev_max_count - used,
            ev_max_count_profile=limits.ev_max_count_profile,
            ev_count_align=limits.ev_count_align,
            ev_max_width=EV_WIDTH_MAX,
            ev_fmt_mode_mask=FmtMode.STEV | FmtMode.SRV6 | FmtMode.UDP,
            ev_mode_mask=EvMode.AUTO | EvMode.EXPLICIT | EvMode.GENERATED,
            ev_op_max_entries=limits.ev_op_max_entries,
            cc_max_profiles=limits.cc_max_profiles,
            algorithms=ALGORITHMS,
            phy_port_mask=self._port_mask,
            opt_attr=limits.opt_attr,
        )

    def ports(self) -> list[int]:
        """The port numbers."""
        return [n for n in range(1, 32) if self._port_mask >> n & 1]

    def port_state(self, port: int) -> bool:
        """Whether the port is administratively enabled. ENOENT: no such port."""
        self._check_port(port)
        return self.ctx.endpoint.allowed(port)

    def set_port(self, port: int, *, enabled: bool) -> None:
        """Enable or disable; a disabled port is reported down to all peers. ENOENT."""
        self._check_port(port)
        if not isinstance(enabled, bool):
            refuse(errno.EINVAL, f"enabled {enabled!r:.60} is not True or False")
        if enabled:
            self.ctx.enable_plane(port)
        else:
            self.ctx.disable_plane(port)

    def _check_port(self, port: int) -> None:
        self.require_open()
        if type(port) is not int:
            refuse(errno.EINVAL, f"port {port!r:.60} is not a number")
        if not 0 < port < 32 or not self._port_mask >> port & 1:
            refuse(errno.ENOENT, f"no port {port}; there are {', '.join(map(str, self.ports()))}")

    # -- profiles ------------------------------------------------------------------------------

    def create_format(self) -> ManagedFormat:
        """A format profile in INIT. E2BIG: there are ev_max_fmt_profiles."""
        return self._create(
            self._formats,
            self.limits.ev_max_fmt_profiles,
            ManagedFormat(self, self._last_id + 1, FormatAttr()),
        )

    def create_ev_profile(self) -> ManagedEvProfile:
        """An EV profile in INIT. E2BIG: there are ev_max_profiles."""
        return self._create(
            self._ev,
            self.limits.ev_max_profiles,
            ManagedEvProfile(self, self._last_id + 1, EvAttr()),
        )

    def create_cc_profile(self) -> ManagedCcProfile:
        """A CC profile in INIT. E2BIG: there are cc_max_profiles."""
        return self._create(
            self._cc,
            self.limits.cc_max_profiles,
            ManagedCcProfile(self, self._last_id + 1, CcAttr()),
        )

    def _create(self, kept: dict[int, ProfileT], most: int, made: ProfileT) -> ProfileT:
        self.require_open()
        if len(kept) >= most:
            refuse(errno.E2BIG, f"there are {most} of this kind; destroy one first")
        self._last_id = made.id
        kept[made.id] = made
        return made

    @property
    def formats(self) -> list[ManagedFormat]:
        """All format profiles."""
        return list(self._formats.values())

    @property
    def ev_profiles(self) -> list[ManagedEvProfile]:
        """All EV profiles."""
        return list(self._ev.values())

    @property
    def cc_profiles(self) -> list[ManagedCcProfile]:
        """All CC profiles."""
        return list(self._cc.values())

    def format(self, number: int) -> ManagedFormat:
        """ENOENT: no such format profile."""
        return _find(self._formats, number, "format profile")

    def ev_profile(self, number: int) -> ManagedEvProfile:
        """ENOENT: no such EV profile."""
        return _find(self._ev, number, "EV profile")

    def cc_profile(self, number: int) -> ManagedCcProfile:
        """ENOENT: no such CC profile."""
        return _find(self._cc, number, "CC profile")

    def has(self, profile: object) -> bool:
        """Whether it was not destroyed."""
        return any(profile in kept.values() for kept in (self._formats, self._ev, self._cc))

    def forget(self, profile: Managed[Any]) -> None:
        """It was destroyed."""
        for kept in (self._formats, self._ev, self._cc):
            kept.pop(profile.id, None)

    def send_and_wait(
        self,
        requests: Sequence[EndpointRequest],
        *,
        timeout_ns: int,
        op: EndpointOp = EndpointOp.EV_PROBE,
        dscp: int = CONTROL_CLASS,
    ) -> BatchResult:
        """mrc.controller.send_and_wait() of this context. ENOTSUP: the device has no EV probes."""
        if op is EndpointOp.EV_PROBE and OptAttr.EV_PROBES not in self.limits.opt_attr:
            refuse(errno.ENOTSUP, "this device has no EV probes")
        return send_and_wait(self.ctx, requests, timeout_ns=timeout_ns, op=op, dscp=dscp)

    # -- events --------------------------------------------------------------------------------

    def on_events(self, events: list[EvEvent]) -> None:
        """Context: these were read, by whoever drives it. Kept in a bounded ring."""
        origin = {t.number: t.profile.origin for t in self.ctx.paths}
        for event in events:
            profile = origin.get(event.path)
            if not isinstance(profile, ManagedEvProfile) or profile.node is not self:
                continue
            self._lost += event.drop_count
            slot = profile.slot_of(event.ev)
            if event.from_state is event.to_state:
                continue  # a verdict that was held back, which is no change
            # No slot: the EV was replaced meanwhile, there is none to name.
            if slot is None or len(self._events) >= self.limits.event_ring:
                self._lost += 1
                continue
            exact = OptAttr.EXACT_DROPS in self.limits.opt_attr
            self._events.append(
                NodeEvent(
                    profile.id,
                    slot.id,
                    _VISIBLE[event.to_state],
                    self._lost if exact else min(self._lost, 1),
                    event.time,
                )
            )
            self._lost = 0

    def events(self) -> list[NodeEvent]:
        """Events since the last call, oldest first."""
        if self.ctx.attached is None and not self.ctx.closed:
            self.ctx.events()  # nobody else reads them; we are told
        found = list(self._events)
        self._events.clear()
        return found

    def close(self) -> None:
        """The context may have another controller. EBUSY: queue pairs use a profile of it."""
        if self.ctx.node is not self:
            return
        if not self.ctx.closed:
            users: list[Managed[Any]] = [*self._ev.values(), *self._cc.values()]
            for profile in users:
                if profile.in_use:
                    raise MrcControlError(errno.EBUSY, f"{profile!r} is in use; end that first")
        self.ctx.node = None


def _find(kept: dict[int, ProfileT], number: int, what: str) -> ProfileT:
    found = kept.get(number) if type(number) is int else None
    if found is None:
        known = ", ".join(map(str, kept)) or "none"
        raise MrcControlError(errno.ENOENT, f"no {what} {number}; there are: {known}")
    return found


def _may_administer() -> bool:
    """CAP_NET_ADMIN among the effective capabilities."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff":
            return bool(int(value, 16) >> _NET_ADMIN & 1)
    return False
