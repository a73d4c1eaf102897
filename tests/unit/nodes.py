# SPDX-License-Identifier: BSD-2-Clause
"""A controlled node with an explicit UDP profile, alone or at one end of a memory wire."""

from __future__ import annotations

from ipaddress import IPv6Address
from typing import Any

import mrc
from mrc._core import MemWire
from mrc.controller import (
    EvAttr,
    EvId,
    EvMode,
    EvReplace,
    FmtMode,
    FormatAttr,
    NodeController,
    NodeLimits,
    OptAttr,
    ProfileState,
    VisibleState,
)
from mrc.ev import EventMask, EvField

from .sides import Side, completions

INIT, OFFLINE, ONLINE = ProfileState.INIT, ProfileState.OFFLINE, ProfileState.ONLINE
NONE = EventMask.NONE
FIELDS = (EvField(16, 0xC000, mask=0x000F),)
GOOD, BAD, DENIED = VisibleState.GOOD, VisibleState.ASSUMED_BAD, VisibleState.DENIED
UNKNOWN = VisibleState.UNKNOWN
EMPTY = EvId(b"", 0)
HERE, THERE = IPv6Address("fd00::a"), IPv6Address("fd00::b")
USID = (32, 16, 16, 16, 16, 16, 16)
ALL = OptAttr.EV_ONLINE | OptAttr.EV_EVENTS | OptAttr.EXACT_DROPS | OptAttr.EV_PROBES


def udp(sport, port=1):
    return EvId(sport.to_bytes(2, "big"), port)


class Node:
    """A controller with an explicit UDP profile of four, and path tables made from it."""

    def __init__(self, ctx, **limits):
        self.ctx = ctx
        self.control = NodeController(ctx, ports=2, limits=NodeLimits(**limits))
        self.fmt = self.control.create_format()
        self.fmt.modify(FormatAttr(FmtMode.UDP, (16,)), state=OFFLINE)
        self.fmt.modify(state=ONLINE)
        self.profile = self.control.create_ev_profile()
        self.wire = MemWire(64, 1)
        self.port = mrc.Port(ctx, mrc.Backend.MEM, wire=self.wire, mem_end=0)

    def offline(self, **more):
        values: dict[str, Any] = {
            "mode": EvMode.EXPLICIT,
            "format": self.fmt.id,
            "count": 4,
            "fields": (EvField(16, mask=0xFFFF),),
            "min_active": 1,
            "events": EventMask.GOOD | EventMask.ASSUMED_BAD,
        }
        self.profile.modify(EvAttr(**(values | more)), state=OFFLINE)
        return self

    def fill(self, *evs):
        self.profile.modify(ops=[EvReplace(EMPTY, ev) for ev in evs])
        return self

    def online(self):
        self.fill(udp(50001), udp(50002, 2), udp(50003), udp(50004, 2))
        self.profile.modify(state=ONLINE)
        return self

    def table(self, dst=THERE, **more):
        return mrc.PathTable(self.port, self.profile.profile, dst, 4791, src=HERE, **more)

    def states(self):
        return [state for _, state in self.profile.query_array(64)]


class Writer:
    """Two sides on a memory wire; the first sends on a managed profile, and one EV can die."""

    def __init__(self, **limits):
        self.wire = MemWire(1024, 1)
        self.a, self.b = Side(self.wire, 0), Side(self.wire, 1)
        self.node = Node(self.a.ctx, **limits).offline().online()
        self.a.connect(self.b, self.node.profile.profile)
        self.b.connect(self.a)
        both = mrc.Access.LOCAL_WRITE | mrc.Access.REMOTE_WRITE
        self.src = mrc.MemoryRegion(self.a.pd, bytearray(4096), both)
        self.dst = mrc.MemoryRegion(self.b.pd, bytearray(4096), both)

    def write(self):
        wr = mrc.SendWr(1, self.src.addr, self.dst.addr, 4096, self.src.lkey, self.dst.rkey)
        self.a.qp.post_send(wr)
        (done,) = completions((self.a, self.b), self.a.cq, 1)
        assert done.status is mrc.WcStatus.SUCCESS

    def until(self, state):
        """Write until the EV 50002 is in that state."""
        for _ in range(2000):
            if self.node.profile.query_state([udp(50002, 2)]) == [state]:
                return
            self.write()
        raise AssertionError(f"not {state.name} after 2000 writes")

    def die(self):
        self.wire.faults(loss_ppm=1_000_000, ev=50002)
        self.until(BAD)

    def heal(self):
        self.wire.faults(loss_ppm=0, ev=50002)
        self.until(GOOD)


def format_of(control, mode=FmtMode.UDP, widths=(16,)):
    made = control.create_format()
    made.modify(FormatAttr(mode, widths), state=OFFLINE)
    made.modify(state=ONLINE)
    return made


def ev_attr(fmt, **more):
    values = {
        "mode": EvMode.GENERATED,
        "format": fmt.id,
        "count": 16,
        "fields": FIELDS,
        "min_active": 4,
        "events": NONE,
    }
    return EvAttr(**(values | more))
