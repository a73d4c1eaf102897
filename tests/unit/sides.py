# SPDX-License-Identifier: BSD-2-Clause
"""Two contexts at the ends of a memory wire, driven without asyncio."""

from __future__ import annotations

from ipaddress import IPv6Address

import mrc

ADDR = [IPv6Address("fd00::a"), IPv6Address("fd00::b")]


class Side:
    """One context at an end of a memory wire, with a queue pair up to RTS on demand."""

    def __init__(self, wire, end):
        self.end = end
        self.wire = wire
        self.ctx = mrc.Context(seed=end + 1)
        self.port = mrc.Port(self.ctx, mrc.Backend.MEM, wire=wire, mem_end=end)
        self.pd = mrc.ProtectionDomain(self.ctx)
        self.cq = mrc.CompletionQueue(self.ctx, 256)
        self.qp = mrc.QueuePair(self.pd, self.cq, self.cq)

    def connect(self, peer, profile=None):
        src, dst = ADDR[self.end], ADDR[1 - self.end]
        profile = profile or mrc.EvProfile.udp(4)
        self.path = mrc.PathTable(self.port, profile, dst, peer.port.udp_port, src=src)
        fixed = mrc.CcProfile(mrc.CcKind.FIXED, window=1 << 20)
        self.cc = mrc.Controller(self.ctx, fixed, 1024)
        both = mrc.Access.LOCAL_WRITE | mrc.Access.REMOTE_WRITE
        self.qp.modify(mrc.QpAttr(state=mrc.QpState.INIT, access=both))
        self.qp.modify(
            mrc.QpAttr(
                state=mrc.QpState.RTR,
                src=src,
                dst=dst,
                dport=peer.port.udp_port,
                dest_qpn=peer.qp.qpn,
                path_mtu=1024,
                rq_psn=100 + peer.end,
                path=self.path.number,
                mpr_dest=8,
                max_wimm_dest=16,
            )
        )
        self.qp.modify(
            mrc.QpAttr(
                state=mrc.QpState.RTS,
                sq_psn=100 + self.end,
                cc=self.cc.number,
                mpr=8,
                max_wimm=16,
                timeout=12,
                linear_cnt=3,
                exp_cnt=3,
            )
        )


def completions(sides, cq, count, turns=10_000):
    """Turn both sides until that many completions came; with a limit."""
    found: list[mrc.WorkCompletion] = []
    for _ in range(turns):
        for side in sides:
            side.ctx.wait(1)
        found.extend(cq.poll(100))
        if len(found) >= count:
            return found
    raise AssertionError(f"{len(found)} of {count} completions came")
