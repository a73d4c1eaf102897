# SPDX-License-Identifier: BSD-2-Clause
"""Outer headers of SRv6 packets: a template per peer and format, specialised per EV (A.13).

The template is built with scapy, imported when the first one is needed (it costs a second).
C patches payload length, traffic class and flow label per packet.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv6Address

from .errors import MrcUsageError
from .ev import EvEntry, EvProfile
from .types import EvFormat

__all__ = ["HOP_LIMIT", "OUTER_BYTES", "outer_template", "outer_templates"]

HOP_LIMIT = 64  # A.2
# In front of the inner header (A.13): IPv6; and an SRH with its one entry, whether that extends the
# path or is a copy of the destination. On a route of the kernel's own SRv6 it is the kernel's.
OUTER_BYTES = {EvFormat.UDP: 0, EvFormat.STEV: 0, EvFormat.SRV6: 40, EvFormat.SRV6_SRH: 64}
_SRC_AT = 8  # source address inside an IPv6 header
_DST_AT = 24  # destination address inside an IPv6 header
_SEGMENTS_LEFT_AT = 43  # in the SRH, which follows the 40 bytes of the IPv6 header
_SEGMENT_AT = 48  # the one SRH entry, after the fixed part of 8


def outer_template(fmt: EvFormat, src: IPv6Address) -> bytes:
    """Outer headers with unspecified destination and segment.

    IPv6 (next header 41), or IPv6 (next header 43) and a reduced SRH with one entry: Last Entry 0
    (H26). Segments Left is the EV's: 1, its entry extends the path, or 0, it is a copy.
    """
    from scapy.layers.inet6 import IPv6, IPv6ExtHdrSegmentRouting

    outer = IPv6(src=str(src), dst="::", hlim=HOP_LIMIT, nh=41, plen=0)
    if fmt is EvFormat.SRV6:
        return bytes(outer)
    if fmt is EvFormat.SRV6_SRH:
        outer.nh = 43
        srh = IPv6ExtHdrSegmentRouting(nh=41, segleft=1, lastentry=0, addresses=["::"])
        return bytes(outer / srh)
    raise MrcUsageError(f"format {fmt.value} has no outer header")


def _specialise(template: bytearray, entry: EvEntry) -> bytes:
    if entry.dst is None:
        raise MrcUsageError(f"EV {entry.value:#x} has no outer destination")
    template[_DST_AT : _DST_AT + 16] = entry.dst.packed
    if entry.srh is not None:
        template[_SEGMENT_AT : _SEGMENT_AT + 16] = entry.srh.packed
        # The destination once more is a copy for whoever looks at packets; no switch is to act on
        # it. Anything else is where to go when the first carrier is used up (A.13.2).
        template[_SEGMENTS_LEFT_AT] = 0 if entry.srh == entry.dst else 1
    return bytes(template)


def outer_templates(
    profile: EvProfile, src: IPv6Address, planes: Mapping[int, IPv6Address] | None = None
) -> list[bytes]:
    """The outer header of each EV, in profile order; empty ones where the format has none.

    planes: our addresses in planes, where they are others than src (A.13.1).
    """
    if profile.format in (EvFormat.UDP, EvFormat.STEV):
        return [b""] * len(profile)
    template = bytearray(outer_template(profile.format, src))
    found = []
    for entry in profile:
        template[_SRC_AT : _SRC_AT + 16] = (planes or {}).get(entry.plane, src).packed
        found.append(_specialise(template, entry))
    return found
