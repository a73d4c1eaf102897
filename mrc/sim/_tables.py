# SPDX-License-Identifier: BSD-2-Clause
"""What an emulation is made of: the records that csrc/sim/fab.h takes, and the columns it gives.

Everything is counted from 0 here, except planes inside EVs. Times are nanoseconds from the start,
rates bit/s, sizes bytes. A flow is one direction of a queue pair: flow 2q is pair q from a to b,
flow 2q + 1 from b to a.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum

from mrc.types import CcKind, Recovery

__all__ = [
    "NONE",
    "Bulk",
    "Cc",
    "Config",
    "Drop",
    "Ev",
    "Event",
    "EventKind",
    "FlowCol",
    "Knob",
    "LinkCol",
    "Messages",
    "Mode",
    "MsgCol",
    "PathCol",
    "Qp",
    "Sizes",
    "SwitchKnob",
    "Tier",
    "Totals",
]

NONE = 0xFFFFFFFF
_MESSAGE = struct.Struct("=IIIIQ")  # struct fab_msg


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The fabric (struct fab_cfg, where each field is explained)."""

    seed: int = 1
    planes: int
    t0: int
    t1: int
    hosts: int
    hosts_per_t0: int = 0
    number_bits: int = 8
    rate_bps: int
    t1_rate_bps: int = 0
    delay_ns: int = 1000
    jitter_ns: int = 0
    jitter_ppm: int = 0
    mtu_bytes: int = 0
    frame_bytes: int = 0
    queue_bytes: int = 0
    control_bytes: int = 0
    trimmed_bytes: int = 0
    lasthop_bytes: int = 0
    weights: tuple[int, int, int] = (0, 0, 0)
    """Of data, control, trimmed; 0: the default."""
    mark_lo_bytes: int = 0
    mark_hi_bytes: int = 0
    trim_bytes: int = 0
    trim_keeps_lengths: bool = False
    icrc: bool = True
    verify: bool = False
    service_time: bool = False
    turn_ns: int = 500
    carrier_ns: int = 0
    nic_bytes: int = 0
    packets_max: int = 0
    log_max: int = 0


@dataclass(frozen=True, slots=True)
class Ev:
    """An entry of an EV profile: plane(8) uplink(8) entropy(16) (D.9)."""

    ev: int
    backup: bool = False

    @classmethod
    def of(cls, plane: int, t1: int, entropy: int, *, backup: bool = False, base: int = 1) -> Ev:
        """Plane and T1 from 0; `base` is 0 with number_bits 9."""
        return cls((plane + 1) << 24 | (t1 + base) << 16 | entropy, backup)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cc:
    """A congestion control profile (struct mrc_cc_cfg; 0: the default of E.4)."""

    kind: CcKind = CcKind.NSCC
    trimming: bool = False
    disable_qa: bool = False
    mtu_bytes: int
    link_bps: int = 0
    base_rtt_ns: int = 0
    target_delay_ns: int = 0
    qa_gate: float = 0.0
    qa_threshold_ns: int = 0
    max_cwnd_bytes: int = 0
    sack_threshold_bytes: int = 0
    steady: bool = False


class Mode(IntEnum):
    """How a queue pair works: as specified, or as the single-path baseline."""

    MRC = 0
    RC = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Qp:
    """A queue pair at each of two hosts (struct fab_qp)."""

    a: int
    b: int
    evs: int = 0
    """Index of the EV profile."""
    cc: int = 0
    """Index of the congestion control profile."""
    mtu: int = 4096
    mpr: int = 8
    """Units of 128 PSNs."""
    depth: int = 64
    mode: Mode = Mode.MRC
    sack_bytes: int = 0
    min_active: int = 1
    event_ring: int = 64
    timeout: int = 12
    """1.024 us x 2^n (B.9)."""
    linear_cnt: int = 7
    exp_cnt: int = 10
    train_max: int = 1
    """Packets that follow each other on one EV; 1: each is sprayed, as hardware does; 0: auto."""
    timestamps: bool = False
    recovery: Recovery = Recovery.GUARDED
    loss: int = 0
    """0: compared with the other paths; 1: the first loss condemns (ADR 77)."""
    reverse: int = 0
    probe_interval_ns: int = 0
    probe_interval_max_ns: int = 0
    probe_timeout_ns: int = 0
    skip: int = 0
    """0: compared with the other paths; 1: one turn (ADR 96)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk:
    """Messages without end on a flow, a next one for each that completes; stop 0: never."""

    flow: int
    bytes: int
    outstanding: int = 8
    start_ns: int = 0
    stop_ns: int = 0


class Messages:
    """The table of messages, packed as it grows: half a million of them are 12 MB."""

    __slots__ = ("_packed",)

    def __init__(self) -> None:
        self._packed = bytearray()

    def __len__(self) -> int:
        return len(self._packed) // _MESSAGE.size

    def add(
        self, flow: int, bytes_: int, *, after: int = NONE, after2: int = NONE, delay_ns: int = 0
    ) -> int:
        """Number of the new message. It starts `delay_ns` after both others have arrived."""
        self._packed += _MESSAGE.pack(flow, bytes_, after, after2, delay_ns)
        return len(self) - 1

    def packed(self) -> bytearray:
        """As the emulation reads it."""
        return self._packed


class Tier(IntEnum):
    """Directed links: a is the host or the T0, b the T1."""

    HOST_UP = 0
    HOST_DOWN = 1
    T0_T1 = 2
    T1_T0 = 3


class Knob(IntEnum):
    """What can be set of a link, from now on; 0 heals (enum fab_knob)."""

    LOSS_PPM = 0
    LOSS_MASK = 1
    CORRUPT_PPM = 2
    DUP_PPM = 3
    DELAY_NS = 4
    JITTER_NS = 5
    JITTER_PPM = 6
    RATE_BPS = 7
    TRIM_PPM = 8
    MTU = 9
    CUT = 10
    """Silent: the carrier stays."""
    DOWN = 11
    """Visible: a host at either end notices, after carrier_ns."""
    MARK_PPM = 12


class SwitchKnob(IntEnum):
    """What can be set of a switch (enum fab_switch_knob)."""

    STOPPED = 0
    """Takes packets and forwards none; carriers stay."""
    OFF = 1
    """All its carriers are gone."""
    NO_ROUTES = 2
    """Up, with an empty table."""


class Drop(IntEnum):
    """Where packets end (enum fab_drop)."""

    QUEUE = 0
    LOSS = 1
    CUT = 2
    DOWN = 3
    STOPPED = 4
    NO_ROUTE = 5
    HOP_LIMIT = 6
    MTU = 7
    STRAY = 8
    POOL = 9


@dataclass(frozen=True, slots=True)
class Totals:
    """sent + copied = delivered + all of dropped + in_flight, always."""

    sent: int
    copied: int
    delivered: int
    in_flight: int
    events: int
    hops: int
    log_lost: int
    arrived: int
    failed: int
    dropped: dict[Drop, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the emulation is made of."""

    memory_bytes: int
    links: int
    switches: int
    routes_t0: int
    routes_t1: int
    packets_max: int


class EventKind(IntEnum):
    """What an event tells (enum fab_event_kind)."""

    EV = 0
    ASYNC = 1
    FAILED = 2


@dataclass(frozen=True, slots=True)
class Event:
    """Something an engine told: `ev` is the EV, the id of an asynchronous event, or the flow.

    `reason`: mrc.types.EvReason, enum mrc_async_type, or mrc.types.WcStatus, by kind.
    """

    time_ns: int
    kind: EventKind
    host: int
    peer: int | None
    ev: int
    plane: int
    """1.., as the protocol counts; 0: none."""
    from_state: int
    to_state: int
    reason: int
    lost: int


class FlowCol(IntEnum):
    """Columns of Emulation.flows(); ever growing up to ACKED, as of now from CWND on."""

    DELIVERED = 0
    """Payload bytes placed in the receiver's memory."""
    MESSAGES = 1
    SENT_BYTES = 2
    SENT = 3
    RETRANSMITTED = 4
    SPURIOUS = 5
    LOST = 6
    TIMEOUTS = 7
    MARKED = 8
    TRIMMED = 9
    OOO = 10
    DUPLICATES = 11
    NACKS = 12
    PROBES = 13
    ACKED = 14
    CWND = 15
    INFLIGHT = 16
    OUTSTANDING = 17
    STATE = 18
    ERROR = 19
    ACTIVE_EVS = 20


class PathCol(IntEnum):
    """Columns of Emulation.paths()."""

    EV = 0
    PLANE = 1
    STATE = 2
    BACKUP = 3
    SENT = 4
    BYTES = 5
    LOST = 6
    RETRANSMITTED = 7
    MARKED = 8
    TRIMMED = 9
    PROBES = 10
    ANSWERED = 11
    RTT_COUNT = 12
    RTT_SUM_NS = 13
    RTT_MIN_NS = 14
    RTT_MAX_NS = 15
    BAD_SINCE_NS = 16
    GOOD_SINCE_NS = 17


class LinkCol(IntEnum):
    """Columns of Emulation.links()."""

    PACKETS = 0
    BYTES = 1
    QUEUE = 2
    PEAK = 3
    DROPPED = 4
    TRIMMED = 5
    MARKED = 6
    LOST = 7
    CORRUPTED = 8
    REFUSED = 9
    WAIT_NS = 10


class MsgCol(IntEnum):
    """Columns of Emulation.messages(); Emulation.NEVER: not yet."""

    STARTED_NS = 0
    ARRIVED_NS = 1
    DONE_NS = 2
    STATUS = 3
