# SPDX-License-Identifier: BSD-2-Clause
"""Congestion control: NSCC in floating point, step by step (MRC part E).

Bytes are nominal sizes (E.1), times nanoseconds on one clock.
"""

from dataclasses import dataclass, field

AVG_WEIGHT = 0.0125  # of a sample in avg_delay (E.3, S17)
REFERENCE_BDP_BYTES = 150_000  # 100 Gbit/s x 12 us (E.4)
REFERENCE_DELAY_NS = 12_000
BASE_SHARE = 16  # of config_base_rtt: no base is shorter
BASE_FLOOR_NS = 2_000


@dataclass(frozen=True, slots=True)
class Parameters:
    """Settings, E.4; those left None have the defaults there."""

    link_bps: int
    base_rtt_ns: int  # config_base_rtt
    trimming: bool = False
    mtu: int = 4096
    target_ns: int | None = None
    max_cwnd: int | None = None
    disable_qa: bool = False
    steady: bool = False
    follow: bool = True  # max_wnd and the periods follow the shortest round trip seen

    @property
    def target(self) -> int:
        """T, target_qdelay."""
        if self.target_ns is not None:
            return self.target_ns
        return self.base_rtt_ns - self.base_rtt_ns // 4 if self.trimming else self.base_rtt_ns

    @property
    def bdp(self) -> float:
        """Bandwidth-delay product in bytes."""
        return self.link_bps / 8 * self.base_rtt_ns / 1e9

    @property
    def a(self) -> float:
        """Scale of sizes."""
        return self.bdp / REFERENCE_BDP_BYTES

    @property
    def b(self) -> float:
        """Scale of delays; at most 1 when asked to be steady, or when nobody knows the fabric."""
        b = self.target / REFERENCE_DELAY_NS
        return min(b, 1.0) if self.steady or not self.follow else b

    @property
    def alpha(self) -> float:
        """Bytes per second."""
        return 4 * self.a * self.b * self.mtu / (self.target / 1e9)

    @property
    def fi(self) -> float:
        """Bytes."""
        return 5 * self.mtu * self.a

    @property
    def fi_scale(self) -> float:
        """Share of the acknowledged bytes that fast increase adds."""
        return 0.25 * self.a

    @property
    def eta(self) -> float:
        """Bytes."""
        return 0.15 * self.mtu * self.a

    @property
    def qa_threshold(self) -> float:
        """Queueing delay that makes quick adapt act; never with trimming."""
        return float("inf") if self.trimming else 4.0 * self.target

    gamma = 0.8
    max_md_jump = 0.5
    qa_gate = 3

    @property
    def adjust_bytes(self) -> int:
        """Received bytes that make the window move before its period is over."""
        return 8 * self.mtu


@dataclass(frozen=True, slots=True)
class Sack:
    """What a SACK says to the controller."""

    new_bytes: int  # N
    marked: bool = False  # M
    rtt_ns: int | None = None  # None: no valid sample (E.7)
    penalty: int = 0
    restore: bool = False


@dataclass(slots=True)
class Nscc:
    """State of one controller, E.2."""

    p: Parameters
    now: int  # time of creation
    cwnd: float = field(init=False)
    max_wnd: float = field(init=False)
    base_rtt: int = field(init=False)
    period: int = field(init=False)  # base_rtt, where it stands for a length of time
    inflight: int = field(init=False, default=0)
    saved_cwnd: float = field(init=False, default=0.0)
    achieved_bytes: int = field(init=False, default=0)
    received_bytes: int = field(init=False, default=0)
    fi_count: int = field(init=False, default=0)
    inc_bytes: float = field(init=False, default=0.0)
    bytes_to_ignore: int = field(init=False, default=0)
    bytes_ignored: int = field(init=False, default=0)
    trigger_qa: bool = field(init=False, default=False)
    increase: bool = field(init=False, default=False)
    qa_endtime: int = field(init=False, default=0)
    qa_turn: int | None = field(init=False, default=None)  # in which the period ended
    last_adjust: int = field(init=False)
    last_dec: int = field(init=False)
    avg_delay: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.base_rtt = self.period = self.p.base_rtt_ns
        self.max_wnd = float(self.p.max_cwnd or max(int(1.5 * self.p.bdp), self.p.mtu))
        self.cwnd = min(self.max_wnd, max(1.5 * self.p.bdp, self.p.mtu))  # H41
        self.last_adjust = self.last_dec = self.now

    # ---- sending -------------------------------------------------------------------------------

    def can_send(self, size: int) -> bool:
        """Return whether a packet may leave (E.3, On send)."""
        return self.inflight <= 0 or self.inflight + size <= self.cwnd

    def on_send(self, size: int) -> None:
        """Count a packet, new or sent again."""
        self.inflight += size

    def wants_ack(self, sack_threshold: int) -> bool:
        """Return whether the packet just counted should ask for an acknowledgement."""
        return self.cwnd - self.inflight < self.p.mtu or self.cwnd < sack_threshold

    # ---- events (E.3) --------------------------------------------------------------------------

    def on_sack(self, sack: Sack, now: int) -> None:
        """React to a SACK."""
        n = sack.new_bytes
        self.inflight -= n
        self.bytes_ignored += n
        self.received_bytes += n
        self.achieved_bytes += n
        limited = self._flow_control(sack)
        if sack.rtt_ns is None:
            return
        self._sample(sack.rtt_ns)
        delay = sack.rtt_ns - self.base_rtt
        gone = delay > self.p.target and not sack.marked  # that queue is history
        self._average(0.25 * self.period if gone else delay)
        if self._quick_adapt(loss=False, marked=sack.marked, delay=delay, now=now):
            return
        if not sack.marked and not limited:
            if delay < self.p.target:
                self._proportional_increase(n, delay)
            else:
                self.inc_bytes += self.p.fi * n
        elif sack.marked and delay >= self.p.target:
            self._multiplicative_decrease(now)
        period_over = now - self.last_adjust >= self.p.base_rtt_ns  # adjust_period, E.4
        if period_over or self.received_bytes > self.p.adjust_bytes:
            self._fulfil(now)

    def on_nack(self, size: int, *, trimmed: bool, rtt_ns: int | None, now: int) -> None:
        """React to a NACK; trimmed: TRIMMED or TRIMMED_LASTHOP (MRC has no RCCC)."""
        self.inflight -= size
        if rtt_ns is not None:
            self._sample(rtt_ns)
        if not trimmed:
            return
        self._average(self.p.base_rtt_ns)
        self.bytes_ignored += size
        self.trigger_qa = True
        if not self._quick_adapt(loss=True, marked=True, delay=0, now=now):
            self.cwnd = max(self.cwnd - size, self.p.mtu)

    def on_loss(self, size: int) -> None:
        """React to an inferred loss or a timeout."""
        self.cwnd = max(self.cwnd - size, self.p.mtu)
        self.bytes_ignored += size
        self.inflight -= size

    # ---- routines ------------------------------------------------------------------------------

    def _sample(self, rtt: int) -> None:
        # Not E.3: a peer must not make the base of all that share the controller what it likes.
        rtt = max(rtt, self.p.base_rtt_ns // BASE_SHARE, BASE_FLOOR_NS)
        if rtt >= self.base_rtt:
            return
        self.base_rtt = rtt
        if self.p.follow:
            self.period = self.base_rtt
            if self.p.max_cwnd is None:
                ceiling = 1.5 * self.p.link_bps / 8 * self.base_rtt / 1e9
                self.max_wnd = max(ceiling, self.p.mtu)  # a packet always fits (E.4)

    def _average(self, delay: float) -> None:
        self.avg_delay += AVG_WEIGHT * (delay - self.avg_delay)

    def _flow_control(self, sack: Sack) -> bool:
        """E.6. Return whether increases are suppressed."""
        if sack.penalty > 0:
            self.saved_cwnd = self.saved_cwnd or self.cwnd
            self.cwnd = min(self.cwnd, self.inflight)
            self.cwnd = max(self.p.mtu, self.cwnd - sack.penalty * sack.new_bytes / 128)
            return True
        if sack.restore and self.saved_cwnd > 0:
            self.cwnd = min(self.saved_cwnd, self.max_wnd)
        self.saved_cwnd = 0.0
        return False

    def _proportional_increase(self, n: int, delay: int) -> None:
        if not self._fast_increase(n, delay):
            self.inc_bytes += self.p.alpha * n * (self.p.target - delay) / 1e9

    def _fast_increase(self, n: int, delay: int) -> bool:
        if delay < self.period / 10:  # "about 0", E.4
            self.fi_count += n
            if self.fi_count > self.cwnd or self.increase:
                self.cwnd = min(self.cwnd + self.p.fi_scale * n, self.max_wnd)
                self.increase = True
                return True
        else:
            self.fi_count = 0
        self.increase = False
        return False

    def _fulfil(self, now: int) -> None:
        self.cwnd += self.inc_bytes / self.cwnd
        if now - self.last_adjust >= self.p.base_rtt_ns:
            self.last_adjust = now
            self.cwnd += self.p.eta
        self.cwnd = min(self.cwnd, self.max_wnd)
        self.inc_bytes, self.received_bytes = 0.0, 0

    def _multiplicative_decrease(self, now: int) -> None:
        self.increase, self.fi_count = False, 0
        if self.avg_delay > self.p.target and now - self.last_dec > self.period:
            over = (self.avg_delay - self.p.target) / self.avg_delay
            self.cwnd *= max(1 - self.p.gamma * over, self.p.max_md_jump)
            self.cwnd = max(self.cwnd, self.p.mtu)
            self.last_dec = now

    def _qa_period_over(self, now: int) -> bool:
        """Judge now? Where nobody knows the fabric, not in the turn that ends the period."""
        if now < self.qa_endtime:
            return False
        if self.p.follow or self.qa_endtime == 0:
            return True
        self.qa_turn = now if self.qa_turn is None else self.qa_turn
        if self.qa_turn == now:
            return False
        self.qa_turn = None
        return True

    def _quick_adapt(self, *, loss: bool, marked: bool, delay: int, now: int) -> bool:
        if self.p.disable_qa:
            return False
        done = False
        if self.bytes_ignored < self.bytes_to_ignore and marked:
            done = True  # still draining the old window
        elif self._qa_period_over(now):
            cause = self.trigger_qa or loss or delay > self.p.qa_threshold
            few = self.achieved_bytes < self.max_wnd / 2**self.p.qa_gate
            if self.qa_endtime != 0 and cause and few:
                self.cwnd = max(self.achieved_bytes, self.p.mtu)
                self.bytes_to_ignore, self.bytes_ignored = self.inflight, 0
                self.trigger_qa = False
                done = True
            self.achieved_bytes = 0
            self.qa_endtime = now + self.period + self.p.target
        if done:
            self.inc_bytes, self.received_bytes = 0.0, 0
        return done
