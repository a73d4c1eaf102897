# SPDX-License-Identifier: BSD-2-Clause
"""Driver: a context on an event loop.

Turns when the context's descriptor is readable, hands completions and events to the connections,
and shares ports, path tables and controllers between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from ipaddress import IPv6Address
from typing import Any, Literal, Protocol

from .carrier import Carriers
from .cc import CcProfile, Controller
from .device import Context
from .dscp import DscpClasses
from .errors import MrcUsageError
from .ev import EvProfile
from .path import PathTable
from .planes import PlanePairs
from .port import Port
from .probing import Prober
from .receive import ReceivePolicy
from .types import UDP_PORT, Backend, EvEvent, TurnFlags

__all__ = ["Driver", "Member"]

_MORE, _CQ, _EVENT = int(TurnFlags.MORE), int(TurnFlags.CQ), int(TurnFlags.EVENT)
_EP, _SOON = int(TurnFlags.EP), int(TurnFlags.SOON)
_UDP_PORT_TRIES = 256


class Member(Protocol):
    """What a connection is to its driver."""

    path_id: int

    def on_completions(self) -> None:
        """Completions may be waiting."""

    def on_events(self, events: list[EvEvent]) -> None:
        """EV events of the member's path table."""

    def on_context_lost(self, exc: Exception) -> None:
        """The context cannot go on."""


class Watcher(Protocol):
    """What else hangs on the loop."""

    def close(self) -> None:
        """Let go of it."""


class _Shared:
    """An object with users; closed when the last one goes."""

    __slots__ = ("obj", "users")

    def __init__(self, obj: Any) -> None:
        self.obj = obj
        self.users = 0


class Driver:
    """One per context, made by attach(). The loop's thread is the only one that touches it."""

    def __init__(self, ctx: Context, *, owned: bool) -> None:
        self.ctx = ctx
        self.loop = asyncio.get_running_loop()
        self._owned = owned
        self._users = 0
        self._members: list[Member] = []
        self._watchers: dict[int, Watcher] = {}
        self._ports: dict[Hashable, Port] = {}
        self._shared: dict[Hashable, _Shared] = {}
        self._scheduled = False
        self._later = False  # something was posted that is to leave with this pass of the loop
        self._missed = 0  # flags that nobody was there for, perhaps
        self.prober = Prober(ctx, self.kick)
        self._carriers = Carriers(ctx.endpoint, self.loop)
        self._fd = ctx.fd
        self.loop.add_reader(self._fd, self._turn)
        ctx.attached = self

    @classmethod
    def attach(
        cls,
        ctx: Context | None,
        seed: int | None = None,
        dscp: DscpClasses | None = None,
        *,
        service_time: bool = False,
        pump: Literal["loop", "thread"] | None = None,
    ) -> Driver:
        """The driver of this context, or of a new one that goes with its last user.

        MrcUsageError: the context is closed, runs on another loop, or has other classes.
        """
        if ctx is not None and not isinstance(ctx, Context):
            raise MrcUsageError(f"context {ctx!r} is no Context")
        if ctx is None:
            receive = ReceivePolicy(service_time=service_time)
            ctx = Context(seed=seed, dscp=dscp, receive=receive, pump=pump)
            return cls(ctx, owned=True)
        if dscp is not None and dscp != ctx.dscp:
            raise MrcUsageError("the DSCP classes are those of the context: set them there")
        if service_time and not ctx.receive.service_time:
            raise MrcUsageError("service time is a matter of the context: switch it on there")
        if ctx.closed:
            raise MrcUsageError("the context is closed")
        if pump is not None and (pump == "thread") is not ctx.threaded:
            raise MrcUsageError("who pumps is a matter of the context: say it there")
        driver = ctx.attached
        if driver is None:
            return cls(ctx, owned=False)
        if not isinstance(driver, Driver) or driver.loop is not asyncio.get_running_loop():
            raise MrcUsageError("the context is driven by another event loop")
        return driver

    # -- users -------------------------------------------------------------------------------

    def hold(self) -> None:
        """One more connection or server needs the context."""
        self._users += 1

    def drop(self) -> None:
        """One fewer; with the last one the loop is left, and a context made here closed."""
        self._users -= 1
        if self._users == 0:
            self._detach()
            if self._owned:
                self.ctx.close()

    def _detach(self) -> None:
        if self.ctx.attached is self:
            self.ctx.attached = None
            if not self.ctx.pump.foreign:  # a forked child shares the loop's descriptors
                self.loop.remove_reader(self._fd)
                self._carriers.stop()
            self.prober.fail(MrcUsageError("no connection drives the context any more"))

    def join(self, member: Member) -> None:
        """Tell this member of completions and events, of those that came before as well."""
        self._members.append(member)
        self._missed |= _CQ | _EVENT
        self._soon()

    def watch(self, fd: int, watcher: Watcher) -> None:
        """Close this one before the context or its channel does: it waits for a descriptor.

        MrcUsageError: another one does.
        """
        if fd in self._watchers:
            raise MrcUsageError("something else waits for these events already")
        self._watchers[fd] = watcher

    def unwatch(self, fd: int) -> None:
        """No longer."""
        self._watchers.pop(fd, None)

    def leave(self, member: Member) -> None:
        """No longer."""
        if member in self._members:
            self._members.remove(member)

    # -- the loop ----------------------------------------------------------------------------

    def kick(self) -> None:
        """A turn soon: something was posted. A thread of the context knows by itself."""
        if not self.ctx.threaded:
            self._soon()

    def push_soon(self) -> None:
        """What was posted for later leaves at the end of this pass of the loop."""
        self._later = True
        self._soon()

    def _soon(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        if self.ctx.attached is not self:  # closed, or no longer needed, meanwhile
            return
        pump = self.ctx.pump
        try:
            if self._later:
                self._later = False
                if pump.threaded:
                    pump.push()
            flags = pump.turn(0) | self._missed
        except OSError as exc:
            self._detach()
            self._lose(exc)
            return
        self._missed = 0
        if flags & _EVENT:
            self._events()
        if flags & _EP:
            self.prober.on_results()
        if flags & _CQ:
            for member in tuple(self._members):
                member.on_completions()
        if flags & (_MORE | _SOON):
            self.kick()

    def _events(self) -> None:
        by_path: dict[int, list[EvEvent]] = {}
        for event in self.ctx.events():
            by_path.setdefault(event.path, []).append(event)
        for member in tuple(self._members):
            events = by_path.get(member.path_id)
            if events:
                member.on_events(events)

    def before_close(self) -> None:
        """The context is being closed by its owner, under the connections that use it."""
        self._detach()
        self._lose(MrcUsageError("the context was closed"))

    def before_close_of(self, fd: int) -> None:
        """A channel is being closed by its owner: whoever waits for its events learns of it."""
        if watcher := self._watchers.get(fd):
            watcher.close()

    def _lose(self, exc: Exception) -> None:
        for watcher in tuple(self._watchers.values()):
            watcher.close()
        for member in tuple(self._members):
            member.on_context_lost(exc)

    # -- what connections share --------------------------------------------------------------

    def port(
        self,
        backend: Backend,
        addr: IPv6Address,
        scope_id: int,
        udp_port: int | None,
        also: int | None = None,
    ) -> Port:
        """The port of this backend on this address, made when it is not there yet. OSError.

        udp_port: exactly that one; None: 4791, or the next one that is free. `also`: a second UDP
        port on which its packets are taken, exactly that one (H1).
        """
        for key in ((backend, IPv6Address(0), 0), (backend, addr, scope_id)):
            if key in self._ports:
                there = self._ports[key]
                if udp_port not in (None, there.udp_port):
                    raise MrcUsageError(
                        f"UDP port {udp_port}: the context receives on {there.udp_port} already"
                    )
                return there
        port = Port(
            self.ctx,
            backend,
            addr=addr,
            scope_id=scope_id,
            udp_port=udp_port or UDP_PORT,
            udp_port_tries=_UDP_PORT_TRIES if udp_port is None else 0,
        )
        self._ports[(backend, addr, scope_id)] = port
        if also is not None and also != port.udp_port:
            try:
                Port(self.ctx, backend, addr=addr, scope_id=scope_id, udp_port=also)
            except OSError as exc:
                raise OSError(exc.errno, f"second UDP port {also}: {exc.strerror}") from exc
        return port

    def path(
        self,
        port: Port,
        profile: EvProfile,
        *,
        src: IPv6Address,
        dst: IPv6Address,
        scope_id: int,
        dport: int,
        planes: PlanePairs = (),
        via: Hashable = None,
    ) -> tuple[Hashable, PathTable]:
        """The path table towards a peer, shared by all connections to it; give() takes it back.

        via: who says that the peer is there; those of somebody else share nothing with it.

        OSError: the profile names an interface that is not there.
        """
        self._carriers.follow(profile.interfaces)
        key = ("path", port.index, profile, src, dst, scope_id, dport, planes, via)
        table: PathTable = self._take(
            key,
            lambda: PathTable(port, profile, dst, dport, src=src, scope_id=scope_id, planes=planes),
        )
        return key, table

    def controller(
        self,
        profile: CcProfile,
        dst: IPv6Address,
        scope_id: int,
        path_mtu: int,
        via: Hashable = None,
    ) -> tuple[Hashable, Controller]:
        """The congestion controller of a destination (H42); give() takes it back.

        path_mtu is that of the connection which makes it; others may differ.
        """
        key = ("cc", profile, dst, scope_id, via)
        found: Controller = self._take(key, lambda: Controller(self.ctx, profile, path_mtu))
        return key, found

    def _take(self, key: Hashable, make: Callable[[], Any]) -> Any:
        shared = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = _Shared(make())
        shared.users += 1
        return shared.obj

    def users(self, key: Hashable) -> int:
        """How many have it."""
        return self._shared[key].users

    def give(self, key: Hashable) -> None:
        """One user fewer of a path table or controller; the last one closes it."""
        shared = self._shared[key]
        shared.users -= 1
        if shared.users == 0:
            del self._shared[key]
            shared.obj.close()
