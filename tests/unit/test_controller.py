# SPDX-License-Identifier: BSD-2-Clause
"""The controller API: the device, formats, EV and CC profiles, ports (C.5, D.3)."""

from __future__ import annotations

import errno
from typing import Any, cast

import pytest

import mrc
from mrc.controller import (
    CcAttr,
    DeviceAttr,
    EvAttr,
    EvMode,
    FmtMode,
    FormatAttr,
    NodeController,
    NodeLimits,
    OptAttr,
    node,
)
from mrc.ev import EvField

from .nodes import INIT, OFFLINE, ONLINE, ev_attr, format_of

# ---- the device ----------------------------------------------------------------------------


def test_device_attributes(control):
    found = control.attributes()
    assert found == DeviceAttr(
        ev_max_fmt_profiles=64,
        ev_max_profiles=64,
        ev_max_count=65536,
        ev_free_count=65536,
        ev_max_count_profile=4096,
        ev_count_align=1,
        ev_max_width=256,
        ev_fmt_mode_mask=FmtMode(7),
        ev_mode_mask=EvMode(7),
        ev_op_max_entries=0,
        cc_max_profiles=64,
        algorithms=("uet-1.0-nscc", "mrc-fixed"),
        phy_port_mask=0b11110,
        opt_attr=OptAttr(1 | 4 | 16 | 32),
    )
    assert (FmtMode.STEV, FmtMode.SRV6, FmtMode.UDP) == (1, 2, 4)
    assert (EvMode.AUTO, EvMode.EXPLICIT, EvMode.GENERATED) == (1, 2, 4)
    assert "phy_port_mask         : 30" in str(found)


def test_evs_are_counted(control):
    fmt = format_of(control)
    profile = control.create_ev_profile()
    profile.modify(ev_attr(fmt), state=OFFLINE)
    assert control.attributes().ev_free_count == 65536 - 16
    profile.modify(state=INIT)
    assert control.attributes().ev_free_count == 65536


def test_one_controller_for_each_context(context, control, refused):
    with refused(errno.EBUSY, "has a controller already"):
        NodeController(context)
    control.close()
    NodeController(context).close()
    control.close()
    with refused(errno.EINVAL, "closed"):
        control.create_format()


def test_privileged(context, monkeypatch, refused):
    monkeypatch.setattr(node, "_may_administer", lambda: False)
    with refused(errno.EPERM, "CAP_NET_ADMIN"):
        NodeController(context, privileged=True)
    NodeController(context).close()
    monkeypatch.setattr(node, "_may_administer", lambda: True)
    NodeController(context, privileged=True).close()


@pytest.mark.parametrize(("mask", "may"), [("0000000000001000", True), ("0000000000000fff", False)])
def test_capability_of_the_process(monkeypatch, mask, may):
    class Status:
        def __init__(self, name):
            assert name == "/proc/self/status"

        def read_text(self, encoding):
            return f"Name:\tx\nCapPrm:\tffffffffffffffff\nCapEff:\t{mask}\n"

    monkeypatch.setattr(node, "Path", Status)
    assert node._may_administer() is may


def test_limits_are_checked(context, refused):
    for name in ("ev_max_profiles", "ev_count_align", "ev_op_max_entries", "event_ring"):
        with refused(errno.EINVAL, name):
            NodeLimits(**cast("dict[str, Any]", {name: -1}))
    with refused(errno.EINVAL, "CC_ONLINE"):
        NodeLimits(opt_attr=OptAttr.CC_ONLINE)
    for ports in (0, 32):
        with refused(errno.EINVAL, "number of ports"):
            NodeController(context, ports=ports)


def test_kinds_are_limited_in_number(context, refused):
    limits = NodeLimits(ev_max_fmt_profiles=1, ev_max_profiles=1, cc_max_profiles=1)
    control = NodeController(context, limits=limits)
    for create in (control.create_format, control.create_ev_profile, control.create_cc_profile):
        first = create()
        with refused(errno.E2BIG, "destroy one"):
            create()
        first.destroy()
        create()
    control.close()


def test_profiles_are_found_by_their_id(control, refused):
    made = control.create_format(), control.create_ev_profile(), control.create_cc_profile()
    assert len({m.id for m in made}) == 3
    assert control.format(made[0].id) is made[0]
    assert control.ev_profile(made[1].id) is made[1]
    assert control.cc_profile(made[2].id) is made[2]
    assert (control.formats, control.ev_profiles, control.cc_profiles) == tuple([m] for m in made)
    for find in (control.format, control.ev_profile, control.cc_profile):
        with refused(errno.ENOENT, "no ", "there are: "):
            find(99)
    for profile in made:
        profile.destroy()
        with refused(errno.ENOENT, "destroyed"):
            profile.modify(state=OFFLINE)
        with refused(errno.ENOENT, "destroyed"):
            profile.destroy()


def test_ports(control, context, refused):
    assert control.ports() == [1, 2, 3, 4]
    control.set_port(2, enabled=False)
    assert not control.port_state(2)
    assert control.port_state(3)
    assert context.planes_up == 0xFFFFFFFE & ~(1 << 2)
    context.endpoint.set_carrier(3, up=False)
    assert control.port_state(3), "administrative, whatever the carrier"
    context.endpoint.set_carrier(3, up=True)
    control.set_port(2, enabled=True)
    assert control.port_state(2)
    assert context.planes_up == 0xFFFFFFFE
    for port in (0, 5, 32, -1):
        with refused(errno.ENOENT, "there are 1, 2, 3, 4"):
            control.set_port(port, enabled=False)
        with refused(errno.ENOENT):
            control.port_state(port)


# ---- the life of a profile -----------------------------------------------------------------


def complete(control, kind):
    if kind == "format":
        return control.create_format(), FormatAttr(FmtMode.UDP, (16,))
    if kind == "ev":
        return control.create_ev_profile(), ev_attr(format_of(control))
    return control.create_cc_profile(), CcAttr("uet-1.0-nscc", mrc.NsccConfig())


@pytest.mark.parametrize("kind", ["format", "ev", "cc"])
def test_init_offline_online_and_back(control, refused, kind):
    profile, attr = complete(control, kind)
    assert profile.state is INIT
    with refused(errno.EINVAL, "from there it goes to OFFLINE only"):
        profile.modify(attr, state=ONLINE)
    with refused(errno.EINVAL, "needs ", "to be OFFLINE"):
        profile.modify(state=OFFLINE)
    profile.modify(attr, state=OFFLINE)
    profile.modify(state=OFFLINE)
    with refused(errno.EBUSY, "take it to INIT"):
        profile.destroy()
    profile.modify(state=ONLINE)
    with refused(errno.EINVAL, "from there it goes to OFFLINE only"):
        profile.modify(state=INIT)
    profile.modify(state=OFFLINE)
    profile.modify(state=INIT)
    with refused(errno.EINVAL, "needs "):
        profile.modify(state=OFFLINE)  # nothing is left of it
    profile.destroy()


def test_what_a_state_needs(control, refused):
    fmt = control.create_format()
    fmt.modify(FormatAttr(mode=FmtMode.STEV), state=OFFLINE)
    with refused(errno.EINVAL, "needs widths to be ONLINE"):
        fmt.modify(state=ONLINE)
    fmt.modify(FormatAttr(widths=(16, 16)), state=ONLINE)
    cc = control.create_cc_profile()
    cc.modify(CcAttr("uet-1.0-nscc"), state=OFFLINE)
    with refused(errno.EINVAL, "needs config to be ONLINE"):
        cc.modify(state=ONLINE)
    ev = control.create_ev_profile()
    with refused(errno.EINVAL, "needs format, count, fields to be OFFLINE"):
        ev.modify(EvAttr(mode=EvMode.GENERATED), state=OFFLINE)
    assert ev.attr.mode is None, "what is refused changes nothing"
    ev.modify(
        EvAttr(EvMode.GENERATED, fmt.id, 1, (EvField(16), EvField(16, 0xC000))), state=OFFLINE
    )
    with refused(errno.EINVAL, "needs min_active, events to be ONLINE"):
        ev.modify(state=ONLINE)


def test_a_format_in_use_stays(control, refused):
    fmt = format_of(control)
    ev = control.create_ev_profile()
    ev.modify(ev_attr(fmt), state=OFFLINE)
    ev.modify(state=ONLINE)
    with refused(errno.EBUSY, f"in use by EV profile {ev.id}, which is ONLINE"):
        fmt.modify(state=OFFLINE)
    with refused(errno.EBUSY, "take it OFFLINE to change widths"):
        fmt.modify(FormatAttr(widths=(8, 8)))
    ev.modify(state=OFFLINE)
    fmt.modify(state=OFFLINE)
    with refused(errno.EINVAL, f"of format {fmt.id}, which is OFFLINE"):
        ev.modify(state=ONLINE)
    fmt.modify(FormatAttr(widths=(8,)), state=ONLINE)
    with refused(errno.EINVAL, "fields are wider than the format's 8 bits"):
        ev.modify(state=ONLINE)
    fmt.modify(state=OFFLINE)
    fmt.modify(state=INIT)
    fmt.destroy()
    with refused(errno.ENOENT, f"no format profile {fmt.id}"):
        ev.modify(state=ONLINE)


# ---- CC profiles ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attr", "kind"),
    [
        (CcAttr("uet-1.0-nscc", mrc.NsccConfig(max_cwnd=65536)), mrc.CcKind.NSCC),
        (CcAttr("mrc-smtrk-1.00", mrc.NsccConfig()), mrc.CcKind.NSCC),
        (CcAttr("mrc-fixed", mrc.NsccConfig(max_cwnd=1 << 20)), mrc.CcKind.FIXED),
        (CcAttr(None), mrc.CcKind.NONE),
    ],
)
def test_algorithms(control, refused, attr, kind):
    profile = control.create_cc_profile()
    with refused(errno.EINVAL, "is INIT; take it ONLINE"):
        _ = profile.profile
    profile.modify(attr, state=OFFLINE)
    profile.modify(state=ONLINE)
    made = profile.profile
    assert made.kind is kind
    if attr.config is not None:
        assert made.nscc == attr.config


def test_cc_profiles_that_cannot_be(control, refused):
    profile = control.create_cc_profile()
    with refused(errno.EINVAL, "'cubic' is not known; one of uet-1.0-nscc, mrc-fixed, or None"):
        profile.modify(CcAttr("cubic"), state=OFFLINE)
    with refused(errno.EINVAL, "fixed window needs its size"):
        profile.modify(CcAttr("mrc-fixed", mrc.NsccConfig()), state=OFFLINE)


def test_a_cc_profile_in_use_stays(control, context, refused):
    profile = control.create_cc_profile()
    profile.modify(CcAttr("mrc-fixed", mrc.NsccConfig(max_cwnd=1 << 20)), state=OFFLINE)
    profile.modify(state=ONLINE)
    with refused(errno.EPERM, "changes nothing"):
        profile.modify(CcAttr(config=mrc.NsccConfig(max_cwnd=1 << 21)))
    with refused(errno.EBUSY, "OFFLINE to change algorithm"):
        profile.modify(CcAttr(None))
    used = mrc.Controller(context, profile.profile, 1024)
    with refused(errno.EBUSY, "in use by 1 congestion controllers"):
        profile.modify(state=OFFLINE)
    with refused(errno.EBUSY, "in use"):
        control.close()
    used.close()
    profile.modify(state=OFFLINE)
