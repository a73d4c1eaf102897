# SPDX-License-Identifier: BSD-2-Clause
"""What a connection can be asked to be, and what not."""

from __future__ import annotations

from dataclasses import fields
from ipaddress import IPv6Address

import pytest

import mrc
from mrc.options import ConnectionOptions, OptionArgs


def test_arguments_and_options_are_the_same():
    assert set(OptionArgs.__annotations__) == {f.name for f in fields(ConnectionOptions)}


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"depth": 0}, "depth 0"),
        ({"mpr": 65}, "mpr 65"),
        ({"mtu": 1500}, "mtu 1500"),
        ({"train": 17}, "train 17"),
        ({"train": 0}, "train 0"),
        ({"start_psn": 1 << 24}, "start_psn"),
        ({"backend": "dpdk"}, "dpdk"),
        ({"cc": "cubic"}, "cubic"),
        ({"window": 0}, "window 0"),
        ({"evs": 0}, "EVs 0"),
        ({"evs": 16, "sport_base": 65530}, "65530..65545"),
        ({"imm_queue": 0}, "imm_queue"),
        ({"retry_exp": 26}, "retry_exp"),
        ({"udp_port": 0}, "udp_port"),
        ({"recovery": "brave"}, "recovery"),
    ],
)
def test_refused(option, words):
    with pytest.raises(mrc.MrcUsageError, match=words):
        ConnectionOptions(**option)


def test_controllers():
    assert ConnectionOptions().cc_profile.kind is mrc.CcKind.NSCC
    assert ConnectionOptions(cc="none").cc_profile.kind is mrc.CcKind.NONE
    fixed = ConnectionOptions(cc="fixed", window=100_000).cc_profile
    assert (fixed.kind, fixed.window) == (mrc.CcKind.FIXED, 100_000)
    own = mrc.CcProfile(link_bps=1_000_000_000)
    assert ConnectionOptions(cc=own).cc_profile is own


def test_auto_backend_follows_the_profile(tmp_path):
    entry = mrc.EvEntry(0xC000, dst=IPv6Address("fcbb::1"))
    srv6 = mrc.EvProfile(mrc.EvFormat.SRV6, (entry,))
    assert ConnectionOptions().backend_kind() is mrc.Backend.UDP
    assert ConnectionOptions(ev_profile=srv6).backend_kind() is mrc.Backend.RAW
    path = tmp_path / "p.toml"
    path.write_text('format = "udp"\n[[ev]]\nvalue = 5\n')
    options = ConnectionOptions(ev_profile=str(path))
    assert options.backend_kind() is mrc.Backend.UDP
    assert [e.value for e in options.profile(16, 49152)] == [5]


@pytest.mark.parametrize("fmt", [mrc.EvFormat.SRV6, mrc.EvFormat.SRV6_SRH])
@pytest.mark.parametrize("backend", ["udp", "mem"])
def test_srv6_paths_are_never_ignored(fmt, backend):
    segment = IPv6Address("fcbb::2") if fmt is mrc.EvFormat.SRV6_SRH else None
    entry = mrc.EvEntry(0xC000, dst=IPv6Address("fcbb::1"), srh=segment)
    profile = mrc.EvProfile(fmt, (entry,), name="p.toml")
    with pytest.raises(mrc.MrcUsageError, match=f"p.toml: format {fmt.value} needs the raw"):
        ConnectionOptions(ev_profile=profile, backend=backend)
    assert ConnectionOptions(ev_profile=profile, backend="raw").backend_kind() is mrc.Backend.RAW


def test_peer_decides_the_evs_of_a_listener_without_profile():
    assert [e.value for e in ConnectionOptions().profile(3, 50000)] == [50000, 50001, 50002]


def test_dscp_classes_by_name():
    classes = mrc.DscpClasses.parse("trimmable-retx=10, control=0")
    assert classes == mrc.DscpClasses(trimmable_retx=10, control=0)
    assert classes.trimmable == 4
    assert classes.trims
    assert not mrc.DscpClasses.parse("trimmed=0").trims


@pytest.mark.parametrize(
    "text", ["", "control", "control=", "control=x", "control=-1", "data=4", "control=1,control=1"]
)
def test_dscp_classes_that_are_none(text):
    with pytest.raises(mrc.MrcUsageError, match="is not CLASS=DSCP"):
        mrc.DscpClasses.parse(text)


def test_dscp_classes_have_six_bits_and_nothing_sent_looks_trimmed():
    for name in mrc.DscpClasses.__slots__:
        with pytest.raises(mrc.MrcUsageError, match=f"{name}: 64 is not a number in 0..63"):
            mrc.DscpClasses(**{name: 64})
    for name in ("no_trim", "trimmable", "trimmable_retx", "control"):
        with pytest.raises(mrc.MrcUsageError, match=f"{name}: 16 means that a packet was trimmed"):
            mrc.DscpClasses(**{name: 16})
        assert mrc.DscpClasses(**{name: 16}, trimmed_lasthop=0)


def test_data_port_is_4791_unless_said_otherwise():
    assert mrc.types.UDP_PORT == 4791  # H1
    assert ConnectionOptions().udp_port is None
    assert ConnectionOptions(udp_port=4971).udp_port == 4971
