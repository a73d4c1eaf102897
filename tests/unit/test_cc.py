# SPDX-License-Identifier: BSD-2-Clause
"""Controllers as Python sees them: settings by their API names, state, counts (E.2, E.4, E.5)."""

from __future__ import annotations

import errno
import math
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import mrc
from mrc.controller import CcAttr
from tests.unit.sides import completions

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "congestion-control.md"

# C.5, "NSCC configuration fields": name here -> field of struct mrc_cc_cfg.
API = {
    "disable_qa": "disable_qa",
    "adjust_bytes_threshold": "adjust_bytes",
    "adjust_period_threshold": "adjust_period_ns",
    "base_rtt": "base_rtt_ns",
    "eta": "eta",
    "fi": "fi",
    "fi_scale": "fi_scale",
    "gamma": "gamma",
    "max_md_jump": "max_md_jump",
    "max_cwnd": "max_cwnd_bytes",
    "qa_gate": "qa_gate",
    "qa_threshold": "qa_threshold_ns",
    "target_delay": "target_delay_ns",
}


def test_settings_have_the_names_of_the_api_and_no_others():
    assert {f.name for f in fields(mrc.NsccConfig)} == set(API)


@pytest.mark.parametrize("name", API)
def test_each_setting_reaches_its_field(name):
    small: dict[str, Any] = {"disable_qa": True, "gamma": 0.17, "max_md_jump": 0.17, "qa_gate": 17}
    value = small.get(name, 1017)
    there = mrc.CcProfile(nscc=mrc.NsccConfig(**{name: value})).native(4096)
    plain = mrc.CcProfile().native(4096)
    assert there[API[name]] == value
    assert {k: v for k, v in there.items() if v != plain[k]} == {API[name]: value}


def test_steady_reaches_its_field():
    assert mrc.CcProfile(steady=True).native(4096)["steady"] is True
    assert mrc.CcProfile().native(4096)["steady"] is False


def test_the_page_lists_each_setting():
    assert set(API) <= set(re.findall(r"^\| `(\w+)`", PAGE.read_text(), re.MULTILINE))


def test_states_and_counts_of_a_controller(sides):
    a, b = sides
    idle = a.cc.query()
    assert (idle.state, idle.qps, idle.backlog_bytes) == (mrc.CcState.IDLE, 1, 0)
    assert idle.cwnd_bytes == idle.max_wnd_bytes == 1 << 20
    access = mrc.Access.LOCAL_WRITE | mrc.Access.REMOTE_WRITE
    source = mrc.MemoryRegion(a.pd, bytearray(10_000))
    target = mrc.MemoryRegion(b.pd, bytearray(10_000), access)
    a.qp.post_send(
        mrc.SendWr(
            wr_id=1,
            laddr=source.addr,
            lkey=source.lkey,
            length=10_000,
            raddr=target.addr,
            rkey=target.rkey,
        )
    )
    ready = a.cc.query()
    assert (ready.state, ready.backlog_bytes) == (mrc.CcState.READY, 10_000)
    a.ctx.pump.turn(0)
    pending = a.cc.query()
    assert (pending.state, pending.inflight_pkts) == (mrc.CcState.PENDING, 10)
    assert pending.inflight_bytes == 10_000 + 10 * 84  # nominal, E.1
    assert len(completions(sides, a.cq, 1)) == 1
    assert a.cc.query().state is mrc.CcState.IDLE


def test_without_congestion_control_there_is_no_limit(context):
    info = mrc.Controller(context, mrc.CcProfile(mrc.CcKind.NONE), 1024).query()
    assert info.cwnd_bytes is None
    assert info.max_wnd_bytes is None


_NUMBERS = ["qa_gate", "eta", "fi", "fi_scale", "gamma", "max_md_jump"]
_COUNTS = [f.name for f in fields(mrc.NsccConfig) if f.name not in [*_NUMBERS, "disable_qa"]]
_IMPOSSIBLE = [
    *((name, value) for name in _NUMBERS for value in (math.nan, math.inf, -0.5, 1e13)),
    *((name, value) for name in _COUNTS for value in (-1, 2**64)),
    ("gamma", 5.0),
    ("max_md_jump", 1.5),
    ("max_cwnd", 100),
]


@pytest.mark.parametrize(("name", "value"), _IMPOSSIBLE)
def test_what_no_controller_can_be_is_refused_by_name(name, value):
    config = mrc.NsccConfig(**{name: value})
    with pytest.raises(mrc.MrcUsageError, match=f"^{name} "):
        mrc.CcProfile(nscc=config)


@pytest.mark.parametrize(("name", "value"), _IMPOSSIBLE)
def test_a_profile_is_refused_when_it_is_configured(name, value, control, refused):
    profile = control.create_cc_profile()
    attr = CcAttr(config=mrc.NsccConfig(**{name: value}))
    with refused(errno.EINVAL, f"{name} "):
        profile.modify(attr)
    assert profile.attr.config is None


@pytest.mark.parametrize(("name", "high"), [("gamma", 1.0), ("qa_gate", 32.0), ("fi", 1e12)])
def test_the_ends_of_a_range_are_in_it(name, high, context):
    config = mrc.NsccConfig(**{name: high})
    mrc.Controller(context, mrc.CcProfile(nscc=config), 4096).close()


def test_closed_controller_cannot_be_asked(context):
    controller = mrc.Controller(context, mrc.CcProfile(), 1024)
    controller.close()
    with pytest.raises(mrc.MrcUsageError):
        controller.query()
