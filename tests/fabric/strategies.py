# SPDX-License-Identifier: BSD-2-Clause
"""Any shape, target and fault, for hypothesis."""

from hypothesis import strategies as st

from mrc.fabric import FabricShape, Fault, FaultKind, Target, TargetKind
from mrc.fabric.target import Way

NUMBER = st.integers(0, 10**6)


@st.composite
def targets(draw) -> Target:
    """Every kind, every direction it has; numbers beyond any shape."""
    kind = draw(st.sampled_from(TargetKind))
    plane = draw(NUMBER)
    match kind:
        case TargetKind.ALL:
            return Target(kind)
        case TargetKind.PLANE:
            return Target(kind, plane=plane)
        case TargetKind.HOST:
            return Target(kind, host=draw(NUMBER))
        case TargetKind.EV:
            return Target(kind, ev=draw(NUMBER))
        case TargetKind.PORT:
            return Target(kind, plane=plane, host=draw(NUMBER), way=draw(st.sampled_from(Way)))
        case TargetKind.SWITCH:
            if draw(st.booleans()):
                return Target(kind, plane=plane, t0=draw(st.integers(0, 18277)))
            return Target(kind, plane=plane, t1=draw(NUMBER))
        case _:
            ends = {"t0": draw(st.integers(0, 18277)), "t1": draw(NUMBER)}
            return Target(kind, plane=plane, **ends, way=draw(st.sampled_from(Way)))


@st.composite
def faults(draw) -> Fault:
    """Every kind, with values it may have."""
    kind = draw(st.sampled_from(FaultKind))
    share, time = st.integers(1, 10**6), st.integers(1, 10**12)
    values = {
        FaultKind.LOSS: share,
        FaultKind.CORRUPT: share,
        FaultKind.TRIM: share,
        FaultKind.DELAY: time,
        FaultKind.RATE: st.integers(1, 10**13),
        FaultKind.FLAP: st.integers(10**6, 10**12),
        FaultKind.REBOOT: time,
    }
    target = draw(targets())
    if kind is FaultKind.REBOOT:
        target = draw(targets().filter(lambda t: t.kind is TargetKind.SWITCH))
    at = draw(st.integers(0, 10**12))
    until = None
    if kind not in (FaultKind.HEAL, FaultKind.REBOOT) and draw(st.booleans()):
        until = at + draw(time)
    silent = kind is FaultKind.FLAP and draw(st.booleans())
    return Fault(kind, target, draw(values.get(kind, st.just(0))), at, until, silent)


@st.composite
def shapes(draw) -> FabricShape:
    """Small fabrics, uneven ones among them."""
    hosts = draw(st.integers(2, 12))
    t0 = draw(st.integers(1, hosts).filter(lambda n: (n - 1) * -(-hosts // n) < hosts))
    return FabricShape(
        planes=draw(st.integers(1, 5)), t0=t0, t1=draw(st.integers(1, 5)), hosts=hosts
    )
