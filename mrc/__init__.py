# SPDX-License-Identifier: BSD-2-Clause
"""Multipath Reliable Connection: one connection sprayed over many paths. Public names only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .cc import CcInfo, CcProfile, Controller, NsccConfig
from .cq import CompletionQueue, WcBatch
from .device import Context, ContextLimits
from .dscp import DscpClasses
from .errors import (
    MrcError,
    MrcForkError,
    MrcHandshakeError,
    MrcPeerLost,
    MrcProfileError,
    MrcRemoteError,
    MrcResourceError,
    MrcUsageError,
    MrcWorkError,
)
from .ev import EvEntry, EvField, EvProfile
from .mr import MemoryRegion
from .path import PathTable, ProbeConfig
from .pd import ProtectionDomain
from .port import Port
from .qp import QpAttr, QpInitAttr, QueuePair, SendWr
from .types import (
    Access,
    Backend,
    CcKind,
    CcState,
    DropReason,
    EvEvent,
    EvFormat,
    EvReason,
    EvState,
    PathPlanes,
    PathStats,
    PortCap,
    PortStats,
    ProbeResult,
    QpCap,
    QpState,
    QpStats,
    Recovery,
    SendFlags,
    TurnFlags,
    WcFlags,
    WcOpcode,
    WcStatus,
    WorkCompletion,
    WrOpcode,
)

if TYPE_CHECKING:
    from .aio import Connection, Immediate, RemoteRegion, Server, connect, listen, mem_pair

__version__ = "0.1.0"

# asyncio is imported when one of these is first used: verbs users do without it.
_AIO = ("Connection", "Immediate", "RemoteRegion", "Server", "connect", "listen", "mem_pair")

__all__ = [
    "Access",
    "Backend",
    "CcInfo",
    "CcKind",
    "CcProfile",
    "CcState",
    "CompletionQueue",
    "Connection",
    "Context",
    "ContextLimits",
    "Controller",
    "DropReason",
    "DscpClasses",
    "EvEntry",
    "EvEvent",
    "EvField",
    "EvFormat",
    "EvProfile",
    "EvReason",
    "EvState",
    "Immediate",
    "MemoryRegion",
    "MrcError",
    "MrcForkError",
    "MrcHandshakeError",
    "MrcPeerLost",
    "MrcProfileError",
    "MrcRemoteError",
    "MrcResourceError",
    "MrcUsageError",
    "MrcWorkError",
    "NsccConfig",
    "PathPlanes",
    "PathStats",
    "PathTable",
    "Port",
    "PortCap",
    "PortStats",
    "ProbeConfig",
    "ProbeResult",
    "ProtectionDomain",
    "QpAttr",
    "QpCap",
    "QpInitAttr",
    "QpState",
    "QpStats",
    "QueuePair",
    "Recovery",
    "RemoteRegion",
    "SendFlags",
    "SendWr",
    "Server",
    "TurnFlags",
    "WcBatch",
    "WcFlags",
    "WcOpcode",
    "WcStatus",
    "WorkCompletion",
    "WrOpcode",
    "connect",
    "listen",
    "mem_pair",
]


def __getattr__(name: str) -> Any:
    if name in _AIO:
        from . import aio

        return getattr(aio, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
