# SPDX-License-Identifier: BSD-2-Clause
"""A case of a scenario as the tables an emulation takes, with what follows from the fabric."""

from __future__ import annotations

from collections.abc import Sequence

from mrc.fabric.scenario import Case
from mrc.fabric.shape import FabricShape
from mrc.fabric.ways import TURN_NS, Pair, base_rtt_ns, path_numbers
from mrc.types import CcKind

from ._fab import Emulation
from ._tables import Cc, Config, Ev, Mode, Qp
from .traffic import Traffic

__all__ = ["base_rtt_ns", "build", "path_numbers"]

ENTROPY = 0xC000
KEPT_BYTES = 128
"""IP bytes that are left of a packet that is cut: outer to RETH (H43)."""
MPR_UNIT = 128
MPR_MAX = 64
_TIMEOUT_UNIT_NS = 1024
_DEPTH = 64


def _profile(case: Case, pair: Pair, base: int) -> tuple[Ev, ...]:
    numbers = path_numbers(case, pair)
    backups = case.transport.backups if case.transport.mode == "mrc" and not pair.work.paths else 0
    evs = []
    for k, number in enumerate(numbers):
        path = case.shape.path(pair.a, pair.b, number)
        backup = k >= len(numbers) - backups
        evs.append(Ev.of(path.plane, path.t1 or 0, ENTROPY + k, backup=backup, base=base))
    return tuple(evs)


def _config(case: Case) -> Config:
    shape = case.shape
    return Config(
        seed=case.run.seed,
        planes=shape.planes,
        t0=shape.t0,
        t1=shape.t1,
        hosts=shape.hosts,
        number_bits=_number_bits(shape),
        rate_bps=shape.rate_bps,
        t1_rate_bps=shape.t1_rate_bps,
        delay_ns=shape.delay_ns,
        jitter_ns=shape.jitter_ns,
        jitter_ppm=1_000_000 if shape.jitter_ns else 0,
        mtu_bytes=shape.mtu,
        queue_bytes=shape.queue_bytes,
        control_bytes=shape.queue_bytes,
        trimmed_bytes=shape.queue_bytes,
        lasthop_bytes=shape.queue_bytes * 3 // 2 if shape.trim else 0,
        mark_lo_bytes=shape.ecn_lo or 0,
        mark_hi_bytes=shape.ecn_hi or 0,
        trim_bytes=KEPT_BYTES if shape.trim else 0,
        icrc=False,
        turn_ns=TURN_NS,
    )


def _number_bits(shape: FabricShape) -> int:
    return 8 if max(shape.t0, shape.hosts_per_t0) < 256 and shape.t1 < 256 else 9


def _controller(case: Case, kind: CcKind) -> Cc:
    shape, transport = case.shape, case.transport
    planes = shape.planes if transport.mode == "mrc" else 1
    return Cc(
        kind=kind,
        trimming=shape.trim,
        mtu_bytes=transport.path_mtu,
        link_bps=planes * shape.rate_bps,
        base_rtt_ns=transport.base_rtt_ns or base_rtt_ns(case),
        max_cwnd_bytes=transport.window_bytes,
        steady=transport.steady,
    )


def _timeout(case: Case) -> int:
    """Exponent of B.9's timer: as asked for, or three round trips through full queues."""
    shape = case.shape
    full = shape.queue_bytes * 8 * 10**9 // min(shape.rate_bps, shape.t1_rate_bps)
    wanted = case.transport.timeout_ns or 3 * (base_rtt_ns(case) + full)
    return max(0, min(24, (-(-wanted // _TIMEOUT_UNIT_NS) - 1).bit_length()))


def _mpr(case: Case, window: int) -> int:
    """Units of 128 packets: twice the window, so that the controller decides, not the range."""
    packets = 2 * window // case.transport.path_mtu
    return max(8, min(MPR_MAX, -(-packets // MPR_UNIT)))


def build(case: Case, traffic: Traffic) -> Emulation:
    """The emulation of a case, at time 0. MrcUsageError: it cannot be."""
    base = 1 if _number_bits(case.shape) == 8 else 0
    sets: dict[tuple[Ev, ...], int] = {}
    evs = [sets.setdefault(_profile(case, pair, base), len(sets)) for pair in traffic.pairs]
    cc = _controller(case, CcKind[case.transport.cc.upper()])
    window = cc.max_cwnd_bytes or cc.link_bps * cc.base_rtt_ns * 3 // (16 * 10**9)
    profiles: Sequence[tuple[Ev, ...]] = list(sets)
    qps = [
        Qp(
            a=pair.a,
            b=pair.b,
            evs=number,
            mtu=case.transport.path_mtu,
            mpr=_mpr(case, window),
            depth=case.transport.depth or max(_DEPTH, pair.work.outstanding),
            mode=Mode.RC if case.transport.mode == "rc" else Mode.MRC,
            min_active=case.transport.min_active
            or max(1, sum(not ev.backup for ev in profiles[number]) // 4),
            timeout=_timeout(case),
            train_max=case.transport.train,
            timestamps=case.transport.timestamps,
            loss=1 if case.transport.loss_rule == "first" else 0,
            skip=1 if case.transport.skip_rule == "turn" else 0,
        )
        for pair, number in zip(traffic.pairs, evs, strict=True)
    ]
    return Emulation(
        _config(case),
        ev_sets=profiles,
        ccs=[cc],
        qps=qps,
        messages=traffic.messages,
        bulks=traffic.bulks,
    )
