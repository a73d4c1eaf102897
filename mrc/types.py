# SPDX-License-Identifier: BSD-2-Clause
"""Enums and frozen records shared by all layers, numbered as in csrc: a test compares them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum, IntFlag
from typing import NamedTuple

__all__ = [
    "Access",
    "Backend",
    "CcKind",
    "CcState",
    "DropReason",
    "EvEvent",
    "EvFormat",
    "EvReason",
    "EvState",
    "PathPlanes",
    "PathStats",
    "PortCap",
    "PortStats",
    "ProbeResult",
    "QpCap",
    "QpState",
    "QpStats",
    "Recovery",
    "SendFlags",
    "TurnFlags",
    "WcFlags",
    "WcOpcode",
    "WcStatus",
    "WorkCompletion",
    "WrOpcode",
]

UDP_PORT = 4791  # H1
EV_MAX = 4096  # entries of one path table
PLANE_MAX = 31  # planes are numbered 1..31 (C.5)
PLANES_ALL = 0xFFFFFFFE  # plane masks: bit N is plane N (H19)
MPR_UNIT = 128  # PSNs per unit of MPR (B.12)
MPR_MAX = 64  # units
TRAIN_MAX = 16  # packets of one path sent back to back
MESSAGE_BYTES_MAX = 1 << 31  # H20
PATH_MTUS = (256, 512, 1024, 2048, 4096)


class Access(IntFlag):
    """What a memory region allows. A region without LOCAL_WRITE may be read-only memory."""

    NONE = 0
    LOCAL_WRITE = 1
    REMOTE_WRITE = 2


class Backend(Enum):
    """How packets leave and arrive."""

    UDP = 0
    RAW = 1
    MEM = 2


class CcKind(IntEnum):
    """Congestion controllers (E)."""

    NONE = 0
    FIXED = 1
    NSCC = 2


class CcState(IntEnum):
    """States of a congestion controller and its queue pairs (E.5, figure 4)."""

    IDLE = 0
    PENDING = 1
    ACTIVE = 2
    READY = 3


class WrOpcode(IntEnum):
    """Operations of a send work request; MRC has no others (0.3)."""

    RDMA_WRITE = 0
    RDMA_WRITE_WITH_IMM = 1


class SendFlags(IntFlag):
    """SIGNALED: a success, too, makes a completion. SOLICITED: sets BTH.se in the last packet."""

    NONE = 0
    SIGNALED = 1
    SOLICITED = 2


class WcStatus(IntEnum):
    """How a work request ended (B.14)."""

    SUCCESS = 0
    LOC_PROT_ERR = 1
    WR_FLUSH_ERR = 2
    RETRY_EXC_ERR = 3
    REM_INV_REQ_ERR = 4
    REM_ACCESS_ERR = 5
    REM_OP_ERR = 6
    LOC_QP_OP_ERR = 7

    @property
    def text(self) -> str:
        """The status in words."""
        return _STATUS_TEXT[self]


_STATUS_TEXT = {
    WcStatus.SUCCESS: "success",
    WcStatus.LOC_PROT_ERR: "local protection error (key, bounds or access of the local region)",
    WcStatus.WR_FLUSH_ERR: "flushed, the queue pair is in error or was closed",
    WcStatus.RETRY_EXC_ERR: "retry counter exceeded, the peer does not answer",
    WcStatus.REM_INV_REQ_ERR: "remote invalid request",
    WcStatus.REM_ACCESS_ERR: "remote access error (key, bounds or access of the remote region)",
    WcStatus.REM_OP_ERR: "remote operation error (no receive was posted, or the peer failed)",
    WcStatus.LOC_QP_OP_ERR: "local queue pair error",
}


class WcOpcode(IntEnum):
    """What a completion is of."""

    RDMA_WRITE = 0
    RECV_RDMA_WITH_IMM = 1


class WcFlags(IntFlag):
    """WITH_IMM: `imm` is valid. SOLICITED: the sender asked for an event."""

    NONE = 0
    WITH_IMM = 1
    SOLICITED = 2


class QpState(IntEnum):
    """States of a queue pair (C.3)."""

    RESET = 0
    INIT = 1
    RTR = 2
    RTS = 3
    ERR = 4


class QpCap(IntFlag):
    """Per-QP switches (C.3 `cap`): the first and last say what the *peer* lacks."""

    NONE = 0
    NO_TRIM_NACK = 1
    DYNAMIC_MPR = 2
    NO_SERVICE_TIME = 4


class Recovery(IntEnum):
    """What a sender does about a gap that has grown too wide to be reordering (B.10, ADR 70)."""

    GUARDED = 0  # send again what is also later than normal on its own path
    OFF = 1  # leave it to the rules that know paths, and to the timers
    PLAIN = 2  # send again all that is missing: for fabrics of equal paths


class EvState(IntEnum):
    """States of an entropy value (D.5)."""

    GOOD = 0
    SKIP = 1
    ASSUMED_BAD = 2
    DENIED = 3


class EvReason(IntEnum):
    """Why an entropy value changed its state."""

    NONE = 0
    ECN = 1
    TRIMMED = 2
    ALWAYS_SKIP = 3
    TIMEOUT = 4
    LOSS = 5
    PROBE = 6
    ROTATION = 7
    CONTROL = 8
    SEND_ERROR = 9
    MTU = 10


class EvFormat(Enum):
    """Where the path value is carried (D.2)."""

    UDP = "udp"
    STEV = "stev"
    SRV6 = "srv6"
    SRV6_SRH = "srv6-srh"


class TurnFlags(IntFlag):
    """What a turn of the pump left behind."""

    NONE, MORE, CQ, EVENT, BLOCKED, EP = 0, 1, 2, 4, 8, 16
    NOTIFY = 32  # in thread mode
    SOON = 64  # nothing to do now, but look again before you sleep; in loop mode


class PortCap(IntFlag):
    """What a port turned out to have."""

    NONE = 0
    GSO = 1
    GRO = 2
    OUTER_ECN = 4
    TRIM = 8
    FLOWLABEL = 16
    NO_FLOWINFO = 32


class DropReason(IntEnum):
    """Why packets are dropped: one counter each."""

    SHORT = 0
    TVER = 1
    OPCODE = 2
    LENGTH = 3
    ICRC = 4
    UDP_LEN = 5
    QPN = 6
    QP_STATE = 7
    PEER = 8
    PSN_STALE = 9
    PSN_WINDOW = 10
    PAYLOAD = 11
    ACCESS = 12
    WIMM_LIMIT = 13
    NO_RECV = 14
    SACK_RANGE = 15
    ACK_RANGE = 16
    NACK_RANGE = 17
    PROBE_RATE = 18
    EP_UNKNOWN = 19
    TRIM_OFF = 20
    EP_STALE = 21
    NO_BITMAP = 22
    NO_BUFFER = 23
    PAUSED = 24
    RQMSN = 25


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What became of one EV probe (C.7). It tells nothing about the way back.

    `rtt_ns` is from its sending to the answer; None: no answer in time. `adjusted`: without the
    time that the peer took to answer (H11). `port` is the plane the answer came back by, 1..31; 0:
    there was none, or it came on an EV of the peer's that says no plane.
    """

    ev: int
    plane: int
    rtt_ns: int | None
    port: int
    adjusted: bool = False


@dataclass(frozen=True, slots=True)
class PathPlanes:
    """Which planes are up, bit N for plane N (D.7): here, at the peer as it reported.

    `told` is what the peer has acknowledged of ours; `pending`: it is being told something else.
    """

    local_up: int
    remote_up: int
    told: int
    pending: bool


class WorkCompletion(NamedTuple):
    """One completion. `imm` is meaningful when WcFlags.WITH_IMM is set; `byte_len` in bytes."""

    wr_id: int
    qpn: int
    byte_len: int
    imm: int
    status: WcStatus
    opcode: WcOpcode
    flags: WcFlags


@dataclass(frozen=True, slots=True)
class EvEvent:
    """One change of an entropy value (C.6).

    `time` in ns of the monotonic clock; `path` is the table; `drop_count` events were lost just
    before this one.
    """

    time: int
    ev: int
    plane: int
    from_state: EvState
    to_state: EvState
    reason: EvReason
    drop_count: int
    path: int


@dataclass(frozen=True, slots=True)
class PathStats:
    """One entropy value: its state now, and counters that only grow. Times in ns."""

    packets_sent: int
    bytes_sent: int
    packets_lost: int
    retransmits: int
    ecn_marks: int
    trims: int
    probes_sent: int
    probes_answered: int
    rtt_count: int
    rtt_sum_ns: int
    rtt_min_ns: int
    rtt_max_ns: int
    bad_since_ns: int
    good_since_ns: int
    ev: int
    plane: int
    state: EvState
    backup: bool

    @property
    def rtt_avg_ns(self) -> float | None:
        """Mean round trip, None before the first sample."""
        return self.rtt_sum_ns / self.rtt_count if self.rtt_count else None


@dataclass(frozen=True, slots=True)
class PortStats:
    """One port: counters that only grow, and what the system granted."""

    tx_packets: int
    tx_bytes: int
    tx_calls: int
    tx_trains: int
    tx_blocked: int
    tx_errors: int
    tx_refused: int
    gso_refused: int
    rx_packets: int
    rx_bytes: int
    rx_calls: int
    rx_malformed: int
    rx_socket_drops: int
    caps: PortCap
    sndbuf_bytes: int
    rcvbuf_bytes: int
    udp_port: int
    kind: Backend
    tx_errno: int


@dataclass(frozen=True, slots=True)
class QpStats:
    """One queue pair. Counters only grow; cwnd, inflight, outstanding, sq_used, state are now."""

    packets_sent: int
    bytes_sent: int
    packets_retransmitted: int
    bytes_acked: int
    spurious_retransmits: int
    sacks_received: int
    nacks_received: int
    acks_received: int
    timeouts: int
    losses_inferred: int
    probes_sent: int
    ecn_marks: int
    packets_received: int
    bytes_received: int
    duplicates_received: int
    ooo_received: int
    ce_received: int
    trims_received: int
    sacks_sent: int
    nacks_sent: int
    acks_sent: int
    cwnd_bytes: int
    inflight_bytes: int
    outstanding: int
    sq_used: int
    state: QpState
    error: WcStatus
