# SPDX-License-Identifier: BSD-2-Clause
"""The controller API: which formats and EV profiles are accepted (C.5, D.2, D.3)."""

from __future__ import annotations

import errno

import pytest

import mrc
from mrc.controller import EvAttr, EvMode, FmtMode, FormatAttr, NodeController, NodeLimits, OptAttr
from mrc.ev import EventMask, EvField

from .nodes import FIELDS, INIT, OFFLINE, ev_attr, format_of

# ---- formats (D.2) -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "widths", "wire"),
    [
        (FmtMode.UDP, (16,), mrc.EvFormat.UDP),
        (FmtMode.STEV, (16, 16), mrc.EvFormat.STEV),
        (FmtMode.STEV, (3, 8, 4, 4, 13), mrc.EvFormat.STEV),
        (FmtMode.SRV6, (32, 16, 16, 16, 16, 16, 16), mrc.EvFormat.SRV6),
        (FmtMode.SRV6, (32, *[16] * 6, 32, 16, 16), mrc.EvFormat.SRV6_SRH),
    ],
)
def test_formats(control, mode, widths, wire):
    assert format_of(control, mode, widths).format is wire


@pytest.mark.parametrize(
    ("mode", "widths", "words"),
    [
        (FmtMode.UDP, (17,), "17 bits of fields"),
        (FmtMode.STEV, (16, 17), "33 bits of fields"),
        (FmtMode.SRV6, (32,) * 9, "288 bits of fields"),
        (FmtMode.SRV6, (33,), "not each in 1..32"),
        (FmtMode.SRV6, (0, 16), "not each in 1..32"),
        (FmtMode.SRV6, (), "not each in 1..32"),
        (FmtMode.STEV | FmtMode.UDP, (16,), "not one of STEV, SRV6, UDP"),
    ],
)
def test_formats_that_cannot_be(control, refused, mode, widths, words):
    with refused(errno.EINVAL, words):
        control.create_format().modify(FormatAttr(mode, widths), state=OFFLINE)
    with refused(errno.EINVAL, "not configured"):
        _ = control.create_format().format


# ---- D.3 -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fields": FIELDS * 2}, "2 fields, the format has 1"),
        ({"fields": (EvField(17, mask=3),)}, "wider than the format's 16 bits"),
        ({"fields": (EvField(16, 0x10000, mask=3),)}, "field 1: init: 0x10000 does not fit"),
        ({"fields": (EvField(8, 0, mask=0x100),)}, "field 1: mask: 0x100 has bits outside"),
        ({"fields": (EvField(8, 0, 0, 4, 0x3),)}, "field 1: max: 4 does not fit"),
        ({"fields": (EvField(8, 0, 3, 2, 0x3),)}, "field 1: min: 3"),
        ({"fields": (EvField(33, mask=3),)}, "field 1: width: 33 is not in 1..32"),
        ({"count": 17}, "count 17, but the fields have 16 combinations"),
        ({"count": 0}, "count 0 is not in 1..4096"),
        ({"count": 4097}, "count 4097 is not in 1..4096"),
        ({"min_active": 17}, "min_active 17 is not in 1..16"),
        ({"min_active": 0}, "min_active 0 is not in 1..16"),
        ({"backups": 16}, "backups 16 is not in 0..15"),
        ({"backups": 13}, "min_active 4 is not in 1..3"),
        ({"events": EventMask.DENIED}, "only GOOD and ASSUMED_BAD may be asked"),
        ({"mode": EvMode(6)}, "not one of AUTO, EXPLICIT, GENERATED"),
    ],
)
def test_checks_of_an_ev_profile(control, refused, change, words):
    fmt = format_of(control)
    profile = control.create_ev_profile()
    with refused(errno.EINVAL, words):
        profile.modify(ev_attr(fmt, **change), state=OFFLINE)
    assert profile.state is INIT
    profile.modify(ev_attr(fmt), state=OFFLINE)


def test_a_format_field_is_not_overrun_by_its_own(control, refused):
    fmt = format_of(control, FmtMode.STEV, (8, 24))
    with refused(errno.EINVAL, "field 1: 16 bits, it has 8"):
        control.create_ev_profile().modify(
            ev_attr(fmt, fields=(EvField(16, mask=15),)), state=OFFLINE
        )


def test_more_ev_bits_than_there_can_be(control, refused):
    fmt = control.create_format()
    fmt.modify(FormatAttr(FmtMode.SRV6), state=OFFLINE)  # no widths that forbid it earlier
    full = EvField(32, mask=0xFFFFFFFF)
    with refused(errno.EINVAL, "288 bits of EV, where 256 are possible"):
        control.create_ev_profile().modify(
            ev_attr(fmt, mode=EvMode.EXPLICIT, fields=(full,) * 9), state=OFFLINE
        )


def test_alignment_and_free_evs(context, refused):
    limits = NodeLimits(ev_count_align=8, ev_max_count=24, ev_max_count_profile=16)
    control = NodeController(context, limits=limits)
    fmt = format_of(control)
    first, second = control.create_ev_profile(), control.create_ev_profile()
    with refused(errno.EINVAL, "count 12 is no multiple of 8"):
        first.modify(ev_attr(fmt, count=12), state=OFFLINE)
    first.modify(ev_attr(fmt), state=OFFLINE)
    with refused(errno.E2BIG, "16 EVs, where 8 are free"):
        second.modify(ev_attr(fmt), state=OFFLINE)
    second.modify(ev_attr(fmt, count=8), state=OFFLINE)
    first.modify(EvAttr(count=8, min_active=2))
    second.modify(EvAttr(count=16))
    control.close()


def test_events_need_the_capability(context, refused):
    control = NodeController(context, limits=NodeLimits(opt_attr=OptAttr(0)))
    fmt = format_of(control)
    with refused(errno.EPERM, "no EV events"):
        control.create_ev_profile().modify(ev_attr(fmt, events=EventMask.GOOD), state=OFFLINE)
    control.create_ev_profile().modify(ev_attr(fmt), state=OFFLINE)
    control.close()
