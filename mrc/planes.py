# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of planes: a host with a NIC for each plane may have an address for each (C.4)."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import AddressValueError, IPv6Address

from .errors import MrcUsageError
from .types import PLANE_MAX

__all__ = ["PlaneAddresses", "PlanePairs", "address_problem", "pair_up", "plane_addresses"]

PlaneAddresses = tuple[tuple[int, IPv6Address], ...]
"""(plane, address of one host there), planes ascending."""

PlanePairs = tuple[tuple[int, IPv6Address, IPv6Address], ...]
"""(plane, own address, the peer's)."""


def address_problem(address: IPv6Address) -> str | None:
    """Why packets of a plane cannot go to or from this address, or None."""
    if address.is_multicast or address.is_unspecified or address.ipv4_mapped is not None:
        return f"{address} is no unicast IPv6 address"
    if address.is_link_local or address.scope_id is not None:
        return f"{address} is link-local, and says no plane to the other host"
    return None


def plane_addresses(given: Mapping[int, str | IPv6Address]) -> PlaneAddresses:
    """Own addresses as an application gives them. MrcUsageError: a plane or address that cannot be.

    The system has the last word on whether an address is ours, when a path is set up.
    """
    found = []
    for plane, text in sorted(given.items()):
        if not 1 <= plane <= PLANE_MAX:
            raise MrcUsageError(f"plane {plane} is not in 1..{PLANE_MAX}")
        try:
            address = IPv6Address(text)
        except AddressValueError:
            raise MrcUsageError(f"plane {plane}: {text!r} is not an IPv6 address") from None
        problem = address_problem(address)
        if problem is not None:
            raise MrcUsageError(f"plane {plane}: {problem}")
        found.append((plane, address))
    return tuple(found)


def pair_up(
    own: PlaneAddresses, peer: PlaneAddresses, src: IPv6Address, dst: IPv6Address
) -> PlanePairs:
    """The ends of each plane that one side has an address for; the other side's main one if not."""
    ours, theirs = dict(own), dict(peer)
    planes = sorted(ours.keys() | theirs.keys())
    return tuple((p, ours.get(p, src), theirs.get(p, dst)) for p in planes)
