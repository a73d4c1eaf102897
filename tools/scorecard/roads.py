# SPDX-License-Identifier: BSD-2-Clause
"""How protocols of the kernel cross the fabric: an address per plane, an SRv6 route to each. Pure.

MRC has its paths from source ports. TCP, MPTCP, SRT and libfabric know only addresses: the address
of a host in plane P leads over plane P, with the same SRv6 encapsulation by the same kernel.
"""

from __future__ import annotations

from ipaddress import IPv6Address

from mrc.lab import FabricSpec, paths_between

SYSCTLS = {
    # What one run learned of a path must not help or harm the next one.
    "net/ipv4/tcp_no_metrics_save": "1",
    # Four full queues of 12 ms are 3 MB: the kernel's default leaves MPTCP no room for reordering.
    "net/ipv4/tcp_wmem": "4096 65536 16777216",
    "net/ipv4/tcp_rmem": "4096 131072 33554432",
}


def plane_address(plane: int, host: int) -> IPv6Address:
    """The address of host ``host`` (0-based) in a plane (1-based)."""
    return IPv6Address((0xFD01 << 112) | plane << 64 | (host + 1))


def road_lines(spec: FabricSpec, host: int) -> list[str]:
    """``ip -6 -batch`` lines of a host."""
    peer = 1 - host
    lines = []
    for path in paths_between(spec, host, peer)[: spec.planes]:
        own, other = plane_address(path.plane, host), plane_address(path.plane, peer)
        dev = f"plane{path.plane}"
        encap = f"encap seg6 mode encap.red segs {path.kernel_carrier}"
        lines += [
            f"addr replace {own}/128 dev {dev} nodad",
            f"route replace {other}/128 {encap} dev {dev} src {own}",
        ]
    return lines


def mptcp_lines(spec: FabricSpec, host: int) -> list[str]:
    """The receiver names its other addresses; the sender makes a subflow to each, in its plane."""
    lines = ["mptcp limits set subflow 8 add_addr_accepted 8"]
    if host == 1:
        lines += [
            f"mptcp endpoint add {plane_address(plane, host)} dev plane{plane} signal"
            for plane in range(2, spec.planes + 1)
        ]
    return lines
