# SPDX-License-Identifier: BSD-2-Clause
"""Multi-plane leaf-spine fabrics out of network namespaces, the kernel's own SRv6 as switches.

    with Fabric() as fabric:               # 2 hosts, 4 planes x 4 spines, 16 paths
        sender, receiver = fabric.hosts
        receiver.exec(["mrc-recv", "-1"])
        sender.run(["mrc-send", str(receiver.address), "-e", "16"])
        fabric.faults.cut((1, 2))          # plane 1, spine 2: packets vanish, links stay up

Works for root, and for an ordinary user inside a user namespace. Needs Linux 6.1 and iproute2 6.1.
Why ``ip -batch`` and no netlink library, and why the namespaces have no names: ADR 0020.
"""

from .capture import Capture
from .counters import SpineCounters, Traffic
from .errors import FabricError, FabricUnavailableError
from .fabric import Fabric, Host, cleanup_stale, tcp_listens, why_unavailable
from .faults import Faults, Spine, spine_of
from .plan import FabricSpec, Path, Role, carrier, host_address, paths_between, usid
from .profile import Mode, ev_profile

__all__ = [
    "Capture",
    "Fabric",
    "FabricError",
    "FabricSpec",
    "FabricUnavailableError",
    "Faults",
    "Host",
    "Mode",
    "Path",
    "Role",
    "Spine",
    "SpineCounters",
    "Traffic",
    "carrier",
    "cleanup_stale",
    "ev_profile",
    "host_address",
    "paths_between",
    "spine_of",
    "tcp_listens",
    "usid",
    "why_unavailable",
]
