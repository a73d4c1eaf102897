# SPDX-License-Identifier: BSD-2-Clause
"""The controller API (C.5 to C.7): what a node's operator sets, whoever uses the paths.

One NodeController for each context. Device attributes, format, EV and CC profiles with their
states, operations on EVs, administrative state of ports, EV events, and the endpoint batch call.
Refusals are MrcControlError, with the errno of C.5 and a sentence that says what to do.
"""

from mrc.epbatch import BatchResult, EndpointOp, EndpointRequest, EndpointResponse, send_and_wait

from .attrs import (
    DeviceAttr,
    EvId,
    EvMode,
    FmtMode,
    NodeLimits,
    OptAttr,
    ProfileState,
    VisibleState,
)
from .cc import CcAttr, ManagedCcProfile
from .evprofile import EvAttr, EvReplace, EvSetState, EvSlot, ManagedEvProfile
from .format import FormatAttr, ManagedFormat
from .node import NodeController, NodeEvent

__all__ = [
    "BatchResult",
    "CcAttr",
    "DeviceAttr",
    "EndpointOp",
    "EndpointRequest",
    "EndpointResponse",
    "EvAttr",
    "EvId",
    "EvMode",
    "EvReplace",
    "EvSetState",
    "EvSlot",
    "FmtMode",
    "FormatAttr",
    "ManagedCcProfile",
    "ManagedEvProfile",
    "ManagedFormat",
    "NodeController",
    "NodeEvent",
    "NodeLimits",
    "OptAttr",
    "ProfileState",
    "VisibleState",
    "send_and_wait",
]
