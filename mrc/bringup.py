# SPDX-License-Identifier: BSD-2-Clause
"""From nothing to a queue pair in RTS: what each side makes before and after the exchange (C.3)."""

from __future__ import annotations

import socket
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from ipaddress import IPv6Address

from . import _chance
from .cq import CompletionQueue
from .driver import Driver
from .errors import MrcUsageError
from .ev import EvProfile
from .headers import OUTER_BYTES
from .oob import Agreement, ConnectionInfo, QpInfo, negotiate
from .options import ConnectionOptions
from .path import PathTable
from .pd import ProtectionDomain
from .planes import PlaneAddresses, pair_up
from .port import Port
from .qp import QpAttr, QpInitAttr, QueuePair
from .qpattr import QpMode
from .types import (
    EV_MAX,
    PATH_MTUS,
    PLANES_ALL,
    Access,
    Backend,
    PortCap,
    QpCap,
    QpState,
    Recovery,
)

__all__ = ["RECV_ID", "Half", "Local", "Whole", "complete", "lanes_towards", "prepare", "route_mtu"]

RECV_ID = 1 << 63  # marks the work request ids of receives

_PASSIVE_EVS_MAX = 256
_SPORT_MIN = 1024  # no peer makes us use a port that the system reserves for services
_IPV6_MTU = 24  # getsockopt of a connected socket; not in the socket module
# IPv6, UDP, BTH, METH, TSETH, RETH, ImmDt, iCRC (A.1); outer IPv6 and SRH come on top.
_OVERHEAD = 40 + 8 + 12 + 4 + 4 + 16 + 4 + 4


@dataclass(frozen=True, slots=True)
class Local:
    """Where we are reached: port, address and its zone."""

    port: Port
    addr: IPv6Address
    scope_id: int = 0


@dataclass(slots=True)
class Half:
    """Our side, made before the peer is known: a queue pair in RESET and what we say of it."""

    driver: Driver
    local: Local
    options: ConnectionOptions
    pd: ProtectionDomain
    cq: CompletionQueue
    qp: QueuePair
    info: ConnectionInfo

    def close(self) -> None:
        """Undo prepare()."""
        if not self.driver.ctx.closed:
            self.pd.close()
            self.cq.close()


@dataclass(slots=True)
class Whole:
    """Both sides: the queue pair is in RTS, over this path table."""

    half: Half
    peer: ConnectionInfo
    agreed: Agreement
    path: PathTable
    keys: tuple[Hashable, ...]

    def close(self) -> None:
        """Undo complete() and prepare()."""
        self.half.close()
        if not self.half.driver.ctx.closed:
            for key in self.keys:
                self.half.driver.give(key)


def route_mtu(dst: IPv6Address, scope_id: int) -> int:
    """MTU of the route to dst in bytes, as the kernel sees it before any packet was sent."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        probe.connect((str(dst), 9, 0, scope_id))
        return probe.getsockopt(socket.IPPROTO_IPV6, _IPV6_MTU)


def _path_mtu(local: Local, options: ConnectionOptions, ends: Iterable[IPv6Address]) -> int:
    """The largest path MTU not above the wish that fits the routes. MrcUsageError: none does."""
    if local.port.backend is Backend.MEM:
        return options.mtu
    profile = options.profile(options.evs, options.sport_base)
    outer = 0
    if local.port.backend is Backend.RAW:  # the route is that of the outer header, if there is one
        outer = OUTER_BYTES[profile.format]
        ends = {e.dst for e in profile if e.dst is not None} or ends
    narrow, dst = min((route_mtu(end, local.scope_id), end) for end in ends)
    room = narrow - _OVERHEAD - outer
    fitting = [mtu for mtu in PATH_MTUS if mtu <= min(options.mtu, room)]
    if not fitting:
        raise MrcUsageError(f"the route to {dst} has no room for packets of {PATH_MTUS[0]} bytes")
    return fitting[-1]


def prepare(
    driver: Driver,
    local: Local,
    options: ConnectionOptions,
    dst: IPv6Address,
    planes: PlaneAddresses = (),
) -> Half:
    """Queue pair, completion queue and domain, and the info to send.

    dst, and those of planes as far as they are known: for the routes' MTU. MrcResourceError: no
    queue pair is left.
    """
    mtu = _path_mtu(local, options, {dst, *(address for _, address in planes)})
    profile = options.profile(options.evs, options.sport_base)
    depth = options.depth + options.imm_queue
    pd = ProtectionDomain(driver.ctx)
    cq = None
    try:
        cq = CompletionQueue(driver.ctx, depth)
        init = QpInitAttr(
            sq_depth=options.depth,
            rq_depth=options.imm_queue,
            mpr_max=options.window_max,
            max_wimm_dest=options.max_wimm,
            ev_max=EV_MAX if options.ev_profile is None else len(profile),
        )
        qp = QueuePair(pd, cq, cq, init)
    except BaseException:
        pd.close()
        if cq is not None:
            cq.close()
        raise
    psn = _chance.bits(24) if options.start_psn is None else options.start_psn
    info = ConnectionInfo(
        qp=QpInfo(local.addr, qp.qpn, psn, local.port.udp_port),
        path_mtu=mtu,
        max_wimm=options.max_wimm,
        max_wimm_dest=options.max_wimm,
        mpr=options.window_max,
        mpr_dest=options.mpr,
        dynamic_mpr=options.dynamic_mpr,
        service_time=driver.ctx.receive.service_time,
        trim_nack=driver.ctx.dscp.trims and bool(local.port.stats().caps & PortCap.TRIM),
        ports_up=driver.ctx.planes_up,
        evs=len(profile),
        sport_base=min(e.source_port for e in profile),
        imm_queue=options.imm_queue,
        backend=local.port.backend.name.lower(),
        plane_addresses=options.sources,
        mode=options.mode,
    )
    return Half(driver, local, options, pd, cq, qp, info)


def lanes_towards(options: ConnectionOptions, peer: ConnectionInfo) -> int:
    """How many the passive side makes: its own profile's, or as many as the peer has, in bounds."""
    own = options.ev_profile
    return len(own) if isinstance(own, EvProfile) else min(peer.evs, _PASSIVE_EVS_MAX)


def complete(half: Half, peer: ConnectionInfo, *, passive: bool, via: Hashable) -> Whole:
    """Lanes towards the peer, and the queue pair through INIT and RTR to RTS, receives posted.

    via: whom the peer's half came from. Lanes and controller are shared with connections set up
    by the same host only, for where its packets go, and which planes it has up, is what it says.
    MrcHandshakeError: no common version. OSError: a lane could not be set up. On failure the half
    is closed.
    """
    options, local, driver = half.options, half.local, half.driver
    keys: list[Hashable] = []
    try:
        agreed = negotiate(half.info, peer)
        evs, base = options.evs, options.sport_base
        if passive:  # over ports as the peer's, but the peer does not decide on all our sockets
            evs, base = lanes_towards(options, peer), max(peer.sport_base, _SPORT_MIN)
        key, path = driver.path(
            local.port,
            options.profile(evs, min(base, 0x10000 - evs)),
            src=local.addr,
            dst=peer.qp.gid,
            scope_id=local.scope_id,
            dport=peer.qp.udp_port,
            planes=pair_up(options.sources, peer.plane_addresses, local.addr, peer.qp.gid),
            via=via,
        )
        keys.append(key)
        ours = driver.ctx.planes_up if driver.users(key) == 1 else path.planes().local_up
        path.set_planes(ours, peer.ports_up & PLANES_ALL)  # later changes it reports itself (F.1)
        key, controller = driver.controller(
            options.cc_profile, peer.qp.gid, local.scope_id, agreed.path_mtu, via
        )
        keys.append(key)
        _to_rts(half, peer, agreed, path.number, controller.number)
    except BaseException:
        half.close()  # the queue pair lets go of path and controller
        for key in keys:
            driver.give(key)
        raise
    return Whole(half, peer, agreed, path, tuple(keys))


def _to_rts(half: Half, peer: ConnectionInfo, agreed: Agreement, path: int, cc: int) -> None:
    """The transitions of C.3, with what each needs."""
    qp, options = half.qp, half.options
    access = Access.LOCAL_WRITE | Access.REMOTE_WRITE
    version = 1 << (agreed.version - 1)
    mode = QpMode[options.mode.upper()]
    qp.modify(QpAttr(state=QpState.INIT, access=access, version=version, mode=mode))
    qp.modify(
        QpAttr(
            state=QpState.RTR,
            src=half.local.addr,
            dst=peer.qp.gid,
            dport=peer.qp.udp_port,
            dest_qpn=peer.qp.qpn,
            path_mtu=agreed.path_mtu,
            rq_psn=peer.qp.psn,
            path=path,
            mpr_dest=agreed.mpr_dest,
            max_wimm_dest=agreed.max_wimm_dest,
            sack_threshold=options.sack_threshold,
            cap=agreed.cap if half.driver.ctx.dscp.trims else agreed.cap | QpCap.NO_TRIM_NACK,
        )
    )
    qp.post_recv([RECV_ID] * options.imm_queue)
    qp.modify(
        QpAttr(
            state=QpState.RTS,
            sq_psn=half.info.qp.psn,
            cc=cc,
            mpr=agreed.mpr,
            max_wimm=agreed.max_wimm,
            timeout=options.ack_timeout,
            linear_cnt=options.retry_linear,
            exp_cnt=options.retry_exp,
            train_max=0 if options.train == "auto" else options.train,
            timestamps=options.timestamps,
            recovery=Recovery[options.recovery.upper()],
        )
    )
    if agreed.cap & QpCap.DYNAMIC_MPR:  # the peer may let the window grow to our own limit (B.12)
        qp.modify(QpAttr(mpr=options.window_max))
