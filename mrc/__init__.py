# SPDX-License-Identifier: BSD-2-Clause
"""Multipath Reliable Connection: one connection sprayed over many paths. Public names only."""

from __future__ import annotations

from .cc import CcProfile, Controller, NsccConfig
from .cq import CompletionQueue, WcBatch
from .device import Context, ContextLimits, DscpClasses
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
    DropReason,
    EvEvent,
    EvFormat,
    EvReason,
    EvState,
    PathStats,
    PortCap,
    PortStats,
    QpCap,
    QpState,
    QpStats,
    SendFlags,
    TurnFlags,
    WcFlags,
    WcOpcode,
    WcStatus,
    WorkCompletion,
    WrOpcode,
)

__version__ = "0.1.0"

__all__ = [
    "Access",
    "Backend",
    "CcKind",
    "CcProfile",
    "CompletionQueue",
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
    "PathStats",
    "PathTable",
    "Port",
    "PortCap",
    "PortStats",
    "ProbeConfig",
    "ProtectionDomain",
    "QpAttr",
    "QpCap",
    "QpInitAttr",
    "QpState",
    "QpStats",
    "QueuePair",
    "SendFlags",
    "SendWr",
    "TurnFlags",
    "WcBatch",
    "WcFlags",
    "WcOpcode",
    "WcStatus",
    "WorkCompletion",
    "WrOpcode",
]
