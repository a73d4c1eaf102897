# SPDX-License-Identifier: BSD-2-Clause
"""The C congestion controller beside the model, within the rounding of doubles."""

import math
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mrc.model.nscc import Nscc, Parameters, Sack
from tests.oracle import unit as unit_module

REL = 1e-9
SIZE = st.integers(84, 4264)
# From hopeless to unqueued, with edges of the quadrants on the way, as shares of base_rtt.
RTT = st.sampled_from([0.5, 0.9, 0.999, 1.0, 1.05, 1.1, 1.5, 1.75, 2.0, 3.0, 5.0, 20.0])

# Model's name -> C's, where they differ.
STATE = {
    "cwnd": "cwnd",
    "saved_cwnd": "saved_cwnd",
    "max_wnd": "max_wnd",
    "achieved_bytes": "achieved_bytes",
    "received_bytes": "received_bytes",
    "fi_count": "fi_count",
    "inc_bytes": "inc_bytes",
    "bytes_to_ignore": "bytes_to_ignore",
    "bytes_ignored": "bytes_ignored",
    "avg_delay": "avg_delay_ns",
    "base_rtt": "base_rtt_ns",
    "period": "scale_rtt_ns",
    "qa_endtime": "qa_endtime",
    "last_adjust": "last_adjust",
    "last_dec": "last_dec",
    "trigger_qa": "trigger_qa",
    "increase": "increase",
}


def start_core(parameters: Parameters, now: int, **settings_: int) -> Any:
    """Return a C controller with these parameters, everything derivable left to it."""
    unit = unit_module.module()
    cfg = {
        "kind": unit.lib.MRC_CC_NSCC,
        "trimming": parameters.trimming,
        "disable_qa": parameters.disable_qa,
        "mtu_bytes": parameters.mtu,
        "link_bps": parameters.link_bps,
        "base_rtt_ns": parameters.base_rtt_ns if parameters.follow else 0,
        "target_delay_ns": parameters.target_ns or 0,
        "max_cwnd_bytes": parameters.max_cwnd or 0,
        "steady": parameters.steady,
    }
    cc = unit.ffi.new("struct mrc_cc *")
    assert unit.lib.mrc_cc_init(cc, unit.ffi.new("struct mrc_cc_cfg *", cfg | settings_), now) == 0
    return cc


PARAMETERS = st.builds(
    Parameters,
    link_bps=st.sampled_from([10**9, 10**10, 10**11, 8 * 10**11]),
    base_rtt_ns=st.integers(8_000, 800_000),
    trimming=st.booleans(),
    mtu=st.sampled_from([256, 1024, 4096]),
    target_ns=st.none() | st.integers(1_000, 800_000),
    max_cwnd=st.none() | st.integers(4_096, 4_000_000),
    disable_qa=st.booleans(),
    steady=st.booleans(),
) | st.builds(  # a fabric nobody described: the core's defaults for a software stack
    Parameters,
    link_bps=st.just(10**10),
    base_rtt_ns=st.just(500_000),
    trimming=st.booleans(),
    follow=st.just(value=False),
)


class NsccMachine(RuleBasedStateMachine):
    """Any order of events; sizes and delays as they could be on a network."""

    model: Nscc

    @initialize(parameters=PARAMETERS, now=st.integers(1, 10**12))
    def start(self, parameters: Parameters, now: int) -> None:
        unit = unit_module.module()
        self.ffi, self.lib = unit.ffi, unit.lib
        self.now = now
        self.model = Nscc(parameters, now)
        self.core = start_core(parameters, now)

    def rtt(self, share: float) -> int:
        return max(int(self.model.p.base_rtt_ns * share), 1)

    @rule(share=st.floats(0, 4))
    def wait(self, share: float) -> None:
        self.now += int(self.model.p.base_rtt_ns * share)

    @rule(size=SIZE, times=st.integers(1, 40))
    def send(self, size: int, times: int) -> None:
        for _ in range(times):
            allowed = self.lib.mrc_cc_can_send(self.core, size)
            assert allowed == self.model.can_send(size) or self.close(self.model.inflight + size)
            if not allowed:
                break
            self.model.on_send(size)
            self.lib.mrc_cc_on_send(self.core, size)
        threshold, wanted = self.core.cfg.sack_threshold_bytes, self.lib.mrc_cc_want_ack(self.core)
        close = self.close(threshold) or self.close(self.model.inflight + self.model.p.mtu)
        assert wanted == self.model.wants_ack(threshold) or close

    def close(self, size: int) -> bool:
        """Whether rounding alone may decide on which side of a size the window lies."""
        return math.isclose(self.model.cwnd, size, rel_tol=REL)

    @rule(
        new_bytes=st.integers(0, 80).map(lambda units: 256 * units),
        marked=st.booleans(),
        share=RTT,
        valid=st.booleans() | st.just(value=True),
        flow_control=st.just((0, False))
        | st.tuples(st.sampled_from([0, 1, 64, 127]), st.booleans()),
    )
    def sack(
        self,
        new_bytes: int,
        marked: bool,
        share: float,
        valid: bool,
        flow_control: tuple[int, bool],
    ) -> None:
        rtt, (penalty, restore) = self.rtt(share), flow_control
        said = {
            "now": self.now,
            "new_bytes": new_bytes,
            "marked": marked,
            "rtt_valid": valid,
            "restore": restore,
            "penalty": penalty,
            "rtt_ns": rtt,
        }
        self.lib.mrc_cc_on_sack(self.core, self.ffi.new("struct mrc_cc_sack *", said))
        heard = Sack(new_bytes, marked, rtt if valid else None, penalty, restore)
        self.model.on_sack(heard, self.now)

    @rule(marked=st.booleans(), share=RTT, times=st.integers(2, 60), size=st.integers(1, 64))
    def steady(self, marked: bool, share: float, times: int, size: int) -> None:
        """A flow: what is acknowledged is sent again, a round trip passes over the run."""
        for _ in range(times):
            self.now += max(self.rtt(share) // times, 1)
            self.send(256 * size, 1)
            self.sack(256 * size, marked, share, valid=True, flow_control=(0, False))

    @rule(size=SIZE, trimmed=st.booleans(), share=RTT, valid=st.booleans())
    def nack(self, size: int, trimmed: bool, share: float, valid: bool) -> None:
        rtt = self.rtt(share)
        self.lib.mrc_cc_on_nack(self.core, size, trimmed, valid, rtt, self.now)
        self.model.on_nack(size, trimmed=trimmed, rtt_ns=rtt if valid else None, now=self.now)

    @rule(size=SIZE)
    def loss(self, size: int) -> None:
        self.lib.mrc_cc_on_loss(self.core, size, self.now)
        self.model.on_loss(size)

    @invariant()
    def same_state(self) -> None:
        assert self.core.inflight == self.model.inflight
        for ours, theirs in STATE.items():
            expected, found = getattr(self.model, ours), getattr(self.core.nscc, theirs)
            assert math.isclose(found, expected, rel_tol=REL, abs_tol=1e-6), ours

    @invariant()
    def in_bounds(self) -> None:
        """Between one packet and max_wnd, once max_wnd has had its say (E.4)."""
        assert self.core.nscc.cwnd >= self.model.p.mtu
        assert self.lib.mrc_cc_cwnd(self.core) == int(self.core.nscc.cwnd)


TestNscc: Any = NsccMachine.TestCase
TestNscc.settings = settings(
    max_examples=120, stateful_step_count=40, deadline=None, report_multiple_bugs=False
)


@pytest.mark.parametrize(
    ("link_gbps", "base_us", "trimming", "row"),
    [  # E.4: BDP, T us, alpha B/us, fi, fi_scale, eta, max_wnd
        (100, 12, True, (150_000, 9, 1365, 20480, 0.25, 614, 225_000)),
        (400, 10, True, (500_000, 7.5, 4551, 68267, 0.83, 2048, 750_000)),
        (800, 10, True, (1_000_000, 7.5, 9102, 136533, 1.67, 4096, 1_500_000)),
        (10, 200, True, (250_000, 150, 2276, 34133, 0.42, 1024, 375_000)),
        (1, 500, False, (62_500, 500, 569, 8533, 0.10, 256, 93_750)),
    ],
)
def test_defaults_are_those_of_the_table(
    link_gbps: int, base_us: int, trimming: bool, row: tuple[float, ...]
) -> None:
    p = Parameters(link_gbps * 10**9, base_us * 1000, trimming)
    core = start_core(p, 0)
    cfg = core.cfg
    model = (p.bdp, p.target / 1e3, p.alpha / 1e6, p.fi, p.fi_scale, p.eta, Nscc(p, 0).cwnd)
    c = (cfg.target_delay_ns / 1e3, cfg.alpha / 1e6, cfg.fi, cfg.fi_scale, cfg.eta, core.nscc.cwnd)
    for expected, found in zip(row, model, strict=True):
        assert found == pytest.approx(expected, rel=1e-3, abs=0.006)
    assert c == pytest.approx(model[1:], rel=REL)
    assert (cfg.gamma, cfg.max_md_jump, cfg.qa_gate) == (p.gamma, p.max_md_jump, p.qa_gate)
    assert (cfg.adjust_bytes, cfg.adjust_period_ns) == (p.adjust_bytes, p.base_rtt_ns)
    if not trimming:
        assert cfg.qa_threshold_ns == p.qa_threshold


def test_half_penalty_for_a_round_trip_halves_the_window() -> None:
    """E.6: 64 in all SACKs of one RTT halves every sender's window."""
    model = Nscc(Parameters(10**10, 200_000), 0)
    model.on_send(int(model.cwnd))
    before = model.cwnd
    for _ in range(100):
        model.on_sack(Sack(int(before / 100), penalty=64), 0)
        model.on_send(int(before / 100))  # stays full, as the rule compares with inflight
    assert model.cwnd == pytest.approx(before / 2, rel=0.03)
