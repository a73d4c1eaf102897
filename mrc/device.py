# SPDX-License-Identifier: BSD-2-Clause
"""The device's attributes (C.2), and Context: one engine, its ports, one descriptor, turn()."""

from __future__ import annotations

import os
import sys
from _thread import RLock
from dataclasses import asdict, dataclass
from enum import IntFlag
from typing import Literal, Protocol

from . import _chance
from ._check import U32_MAX, whole
from ._children import Children, Closing, warn_unclosed
from ._core import Pin, Pump
from ._typed import check_fields, named, typed
from ._verbs import API_VERSION, Verbs, device_attr
from .dscp import DscpClasses
from .endpoint import Endpoint
from .errors import MrcUsageError
from .events import AsyncEvents
from .receive import ReceivePolicy
from .types import EvEvent, TurnFlags

__all__ = [
    "API_VERSION",
    "Context",
    "ContextLimits",
    "DeviceAttr",
    "DeviceCap",
    "query_device",
]

SPIN_US = 100
_SPIN_US_MAX = 1000


class DeviceCap(IntFlag):
    """What the transport can do, as `cap` of C.2."""

    NONE = 0
    TRIM_NACK = 1
    DYNAMIC_MPR = 2
    SERVICE_TIME = 4


@dataclass(frozen=True, slots=True)
class DeviceAttr:
    """Device attributes (C.2). MPR in units of 128 PSNs; `max_cqe`, `max_qp_wr` per queue.

    mrc_protocol_version: bitmap, bit 0 is wire version 1. api_version: major << 24 | minor << 16 |
    subminor (C.8).
    """

    api_version: int
    mrc_protocol_version: int
    max_qp_hint: int
    cap: DeviceCap
    max_wimm: int
    max_wimm_dest: int
    max_mpr: int
    mpr_resolution: int
    max_qp: int
    max_cq: int
    max_mr: int
    max_cqe: int
    max_qp_wr: int


def _device_attr(raw: dict[str, int]) -> DeviceAttr:
    return DeviceAttr(**{**raw, "cap": DeviceCap(raw["cap"])})  # type: ignore[arg-type]


def query_device() -> DeviceAttr:
    """What this build supports at most. MRC is always supported: there is no device to ask."""
    return _device_attr(device_attr())


@named
@dataclass(frozen=True, slots=True)
class ContextLimits:
    """How many objects a context can hold at the same time; memory is set aside for the tables.

    ooo_max, imm_max: packets that arrived above a gap, and immediates that wait for earlier data,
    of all queue pairs together; beyond that packets are refused with a NACK and come again (B.3).
    0: as many as the windows allow.
    """

    qp_max: int = 1024
    mr_max: int = 4096
    cq_max: int = 1024
    path_max: int = 1024
    cc_max: int = 1024
    hint_max: int = 64
    ooo_max: int = 0
    imm_max: int = 0

    def __post_init__(self) -> None:
        check_fields(self)


class Attached(Protocol):
    """Who drives a context."""

    def before_close(self) -> None:
        """The context is about to close: let go of its descriptor."""

    def before_close_of(self, fd: int) -> None:
        """So is this descriptor of it."""


class EventSink(Protocol):
    """Who wants to see EV events beside whoever reads them."""

    def on_events(self, events: list[EvEvent]) -> None:
        """These were read."""


class Context(Closing):
    """Parent of everything.

    pump: who moves the packets. "loop": whoever calls turn() or wait(), an event loop as a rule; by
    one thread at a time, a second one is refused. "thread": a thread of C, which needs no Python
    for it; any thread may call, and waits for the end of a turn (ADR 122). turn() then moves no
    packets and says what was found since it was called last, and `fd` when that is worth while.
    `spin_us`: how long, 0..1000 microseconds, that thread looks for more packets before it sleeps,
    but on the core that last called only when that sleeps itself. In "loop" so long after single
    packets turn() returns SOON and wait() does not sleep, if that was worth it lately (ADR 131).
    The default of `pump` is the MRC_PUMP environment variable, else "loop".

    `seed` fixes every random choice of the engine (order of paths); the default is the MRC_SEED
    environment variable, else 64 random bits, logged at debug level. `solicited_bit7` sends the
    solicited event in bit 7 of BTH byte 1 (H2). `api_version` is what the program was written for;
    one newer than API_VERSION is a MrcUsageError (C.8). Closing closes all that hangs
    off it.
    """

    @typed
    def __init__(
        self,
        *,
        seed: int | None = None,
        limits: ContextLimits | None = None,
        dscp: DscpClasses | None = None,
        solicited_bit7: bool = False,
        receive: ReceivePolicy | None = None,
        api_version: int = API_VERSION,
        pump: Literal["loop", "thread"] | None = None,
        spin_us: int = SPIN_US,
    ) -> None:
        threaded = _threaded(pump)
        whole("spin_us", spin_us, 0, _SPIN_US_MAX)
        if not 0 <= api_version <= API_VERSION:
            raise MrcUsageError(
                f"API version {_dotted(api_version)} is newer than ours, {_dotted(API_VERSION)}"
            )
        self.seed = _seed() if seed is None else seed & (1 << 64) - 1
        self.limits = limits or ContextLimits()
        self.dscp = dscp or DscpClasses()
        self.receive = receive or ReceivePolicy()
        self.pump = Pump(
            seed=self.seed,
            se_bit7=int(solicited_bit7),
            dscp_data=self.dscp.trimmable,
            dscp_retx=self.dscp.trimmable_retx,
            dscp_no_trim=self.dscp.no_trim,
            dscp_control=self.dscp.control,
            dscp_trimmed=self.dscp.trimmed,
            dscp_trimmed_lasthop=self.dscp.trimmed_lasthop,
            dscp_exact=1,
            api_version=api_version,
            **asdict(self.limits),
            **asdict(self.receive),
        )
        if threaded:
            self.pump.start(spin_us)
        else:
            self.pump.spin(spin_us)
        self.verbs = Verbs(self.pump)
        self.endpoint = Endpoint(self.pump)
        if logging := sys.modules.get("logging"):  # who did not import it does not read it
            logging.getLogger("mrc").debug("context seed %#018x", self.seed)
        self.pds = Children()
        self.cqs = Children()
        self.channels = Children()
        self.hints = Children()
        self.paths = Children()
        self.controllers = Children()
        # Memory stays pinned while C knows it, even when the MemoryRegion object was lost.
        # rkey -> (protection domain, pin)
        self.pins: dict[int, tuple[int, Pin]] = {}
        self.keepalive: list[object] = []
        self.attached: Attached | None = None
        self.node: EventSink | None = None  # the controller of this context, if any (C.5)
        self._pd_last = 0
        self._closing = RLock()

    @property
    def fd(self) -> int:
        """Readable when a turn is due: poll it, or give it to an event loop."""
        return self.pump.fd()

    @property
    def closed(self) -> bool:
        """True after close()."""
        return self.pump.closed

    @property
    def async_events(self) -> AsyncEvents:
        """Its asynchronous events (C.1)."""
        return AsyncEvents(self)  # not kept: each would keep the other

    @property
    def threaded(self) -> bool:
        """A thread of its own takes the turns: pump="thread"."""
        return self.pump.threaded

    def turn(self, budget: int = 0) -> TurnFlags:
        """Packets in, time, packets out; at most `budget` packets each way (0: the default).

        OSError: a port became unusable. MrcUsageError: another thread is inside.
        """
        return TurnFlags(self.pump.turn(whole("budget", budget, 0, U32_MAX)))

    def wait(self, timeout_ms: int = -1) -> TurnFlags:
        """Block until a turn is due or the time passed (-1: no limit), then one turn."""
        return TurnFlags(self.pump.wait(whole("timeout_ms", timeout_ms, -1, (1 << 31) - 1)))

    def now(self) -> int:
        """The clock of all times in events and statistics: monotonic, ns."""
        return self.pump.now()

    def events(self) -> list[EvEvent]:
        """EV events of all path tables since the last call (C.6)."""
        found = self.pump.events()
        if self.node is not None and found:
            self.node.on_events(found)
        return found

    def drops(self) -> dict[str, int]:
        """Packets dropped, by reason; every reason is present."""
        return self.pump.drops()

    @property
    def planes_up(self) -> int:
        """Planes in use here: bit N is plane N."""
        return self.endpoint.planes_up

    def disable_plane(self, plane: int) -> None:
        """Send no more on this plane, 1..31, towards any peer, and tell the peers (D.7, F.1).

        EVs keep their states. The peers stop sending on it to us within a round trip; one that
        does not acknowledge is told again until it does. PathTable.planes() has both views.
        """
        self.endpoint.set_plane(plane, up=False)

    def enable_plane(self, plane: int) -> None:
        """Take disable_plane() back."""
        self.endpoint.set_plane(plane, up=True)

    def pause_receiving(self) -> None:
        """Take no new data on any queue pair; the peers are told, and try again (NO_RESOURCE).

        Each does so as long as its retries last (B.9). One queue pair: QpAttr.rx_paused.
        """
        self.pump.rx_pause(True)

    def resume_receiving(self) -> None:
        """Take pause_receiving() back."""
        self.pump.rx_pause(False)

    def query_device(self) -> DeviceAttr:
        """Device attributes as this context is configured: the extended query of C.1."""
        return _device_attr(self.verbs.query())

    def next_pd(self) -> int:
        """A protection domain number not used before in this context."""
        self._pd_last += 1
        return self._pd_last

    def unpin(self, rkey: int) -> None:
        """Unregister a region and let its memory go. MrcUsageError while work refers to it."""
        self.pump.mr_deregister(rkey)
        if found := self.pins.pop(rkey, None):  # None: another thread has just closed us
            found[1].release()

    def close(self) -> None:
        """Close everything that hangs off this context, and its sockets. Twice is once.

        MrcUsageError, and nothing was closed: another thread is inside, or waits. One that closes
        as well is waited for. In a forked child nothing but this object's own state is touched:
        event loop, connections and descriptors are the parent's.
        """
        if self.pump.foreign:
            self._close()
            return
        with self._closing:  # once more inside: the last connection that goes closes its context
            self._close()

    def _close(self) -> None:
        if self.pump.closed:
            return
        if not self.pump.foreign:
            self.pump.closing()
            if self.attached is not None:
                self.attached.before_close()
        # The engine goes first: it frees all objects at once, whatever refers to whatever. The
        # children then only learn that they are closed, and the memory is let go last.
        self.pump.close()
        children_of = (self.pds, self.cqs, self.channels, self.hints, self.paths, self.controllers)
        for children in children_of:
            children.close_all()
        for _, pin in list(self.pins.values()):  # others may take theirs out meanwhile
            pin.release()
        self.pins.clear()
        self.keepalive.clear()

    def __del__(self) -> None:
        pump = getattr(self, "pump", None)
        if pump is not None and not pump.closed:
            pump.stop()  # before the pins go: no thread may write to memory that is let go
            warn_unclosed(self)


def _dotted(version: int) -> str:
    return f"{version >> 24}.{version >> 16 & 0xFF}.{version & 0xFFFF}"


def _threaded(pump: object) -> bool:
    """MrcUsageError: neither loop nor thread."""
    source, name = ("pump", pump) if pump is not None else ("MRC_PUMP", os.environ.get("MRC_PUMP"))
    if name not in (None, "", "loop", "thread"):
        raise MrcUsageError(f"{source} {name!r:.40} is not loop or thread")
    return name == "thread"


def _seed() -> int:
    text = os.environ.get("MRC_SEED")
    if text is None:
        return _chance.bits(64)
    try:
        return int(text, 0) & (1 << 64) - 1
    except ValueError:
        raise MrcUsageError(f"MRC_SEED={text!r} is not an integer") from None
