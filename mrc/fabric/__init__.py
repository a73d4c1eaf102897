# SPDX-License-Identifier: BSD-2-Clause
"""What a fabric is, what can happen to it, what is measured on it: one vocabulary for all.

shape     planes, switches, hosts, rates      target    names of their parts
fault     what goes wrong, and when           timeline  faults as changes of links in order of time
measure   gaps and recovery out of samples    units     lie in mrc.units

Pure: nothing here touches a network, reads a clock or knows an engine. The emulated fabric
(mrc.sim) and the fabric of namespaces (mrc.lab) both speak it, and write the same records.
"""

from .errors import FabricError
from .fault import Fault, FaultKind, parse_fault, parse_script
from .shape import FabricShape, Link, Node, Path, Switch, Tier
from .target import Target, TargetKind, parse_target
from .timeline import LinkState, Step, link_states, settle, steps

__all__ = [
    "FabricError",
    "FabricShape",
    "Fault",
    "FaultKind",
    "Link",
    "LinkState",
    "Node",
    "Path",
    "Step",
    "Switch",
    "Target",
    "TargetKind",
    "Tier",
    "link_states",
    "parse_fault",
    "parse_script",
    "parse_target",
    "settle",
    "steps",
]
