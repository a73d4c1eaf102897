# SPDX-License-Identifier: BSD-2-Clause
"""Multipath Reliable Connection: one connection sprayed over many paths. Public names only.

Each name's module is imported when the name is first used: asyncio by those who connect, what reads
EV profiles by those who have one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .aio import (
        Connection,
        Immediate,
        Notifications,
        Prober,
        RemoteRegion,
        Server,
        connect,
        listen,
        mem_pair,
    )
    from .cc import CcInfo, CcProfile, Controller, NsccConfig
    from .comp import CompletionChannel
    from .cq import CompletionQueue, WcBatch
    from .device import API_VERSION, Context, ContextLimits, DeviceAttr, DeviceCap, query_device
    from .dscp import DscpClasses
    from .errors import (
        MrcControlError,
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
    from .events import AsyncEvent, AsyncEvents, AsyncType
    from .hint import QpHint
    from .mr import MemoryRegion
    from .path import PathTable, ProbeConfig
    from .pd import ProtectionDomain
    from .port import Port
    from .qp import QpInitAttr, QueuePair, SendBatch, SendWr
    from .qpattr import HINT_NONE, QpAttr, QpMode
    from .receive import ReceivePolicy
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

__version__ = "0.1.0"

_WHERE = {
    "aio": "Connection Immediate Notifications Prober RemoteRegion Server connect listen mem_pair",
    "cc": "CcInfo CcProfile Controller NsccConfig",
    "comp": "CompletionChannel",
    "cq": "CompletionQueue WcBatch",
    "device": "API_VERSION Context ContextLimits DeviceAttr DeviceCap query_device",
    "dscp": "DscpClasses",
    "errors": (
        "MrcControlError MrcError MrcForkError MrcHandshakeError MrcPeerLost MrcProfileError "
        "MrcRemoteError MrcResourceError MrcUsageError MrcWorkError"
    ),
    "ev": "EvEntry EvField EvProfile",
    "events": "AsyncEvent AsyncEvents AsyncType",
    "hint": "QpHint",
    "mr": "MemoryRegion",
    "path": "PathTable ProbeConfig",
    "pd": "ProtectionDomain",
    "port": "Port",
    "qp": "QpInitAttr QueuePair SendBatch SendWr",
    "qpattr": "HINT_NONE QpAttr QpMode",
    "receive": "ReceivePolicy",
    "types": (
        "Access Backend CcKind CcState DropReason EvEvent EvFormat EvReason EvState PathPlanes "
        "PathStats PortCap PortStats ProbeResult QpCap QpState QpStats Recovery SendFlags "
        "TurnFlags WcFlags WcOpcode WcStatus WorkCompletion WrOpcode"
    ),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names.split()}

__all__ = [
    "API_VERSION",
    "HINT_NONE",
    "Access",
    "AsyncEvent",
    "AsyncEvents",
    "AsyncType",
    "Backend",
    "CcInfo",
    "CcKind",
    "CcProfile",
    "CcState",
    "CompletionChannel",
    "CompletionQueue",
    "Connection",
    "Context",
    "ContextLimits",
    "Controller",
    "DeviceAttr",
    "DeviceCap",
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
    "MrcControlError",
    "MrcError",
    "MrcForkError",
    "MrcHandshakeError",
    "MrcPeerLost",
    "MrcProfileError",
    "MrcRemoteError",
    "MrcResourceError",
    "MrcUsageError",
    "MrcWorkError",
    "Notifications",
    "NsccConfig",
    "PathPlanes",
    "PathStats",
    "PathTable",
    "Port",
    "PortCap",
    "PortStats",
    "ProbeConfig",
    "ProbeResult",
    "Prober",
    "ProtectionDomain",
    "QpAttr",
    "QpCap",
    "QpHint",
    "QpInitAttr",
    "QpMode",
    "QpState",
    "QpStats",
    "QueuePair",
    "ReceivePolicy",
    "Recovery",
    "RemoteRegion",
    "SendBatch",
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
    "query_device",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
        globals()[name] = value  # so that it is asked for once
        return value
    if name in _WHERE:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
