# SPDX-License-Identifier: BSD-2-Clause
"""The out-of-band exchange as plain objects: round trips, negotiation (C.4), bad input."""

from __future__ import annotations

import contextlib
import json
from dataclasses import fields, replace
from ipaddress import IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mrc
from mrc.oob import (
    ConnectionInfo,
    FrameError,
    QpInfo,
    RemoteRegion,
    decode_body,
    encode_frame,
    hello,
    negotiate,
    parse_hello,
)
from mrc.types import QpCap

INFO = ConnectionInfo(QpInfo(IPv6Address("fd00::1"), 0x123456, 0xABCDEF, 4792))


def through_json(value):
    return json.loads(json.dumps(value))


def test_round_trip():
    assert ConnectionInfo.from_dict(through_json(INFO.to_dict())) == INFO
    region = RemoteRegion("weights", (1 << 64) - 10, 10, 0xFFFFFFFF)
    assert RemoteRegion.from_dict(through_json(region.to_dict())) == region


def test_hello_round_trip():
    assert parse_hello(decode_body(encode_frame(hello(INFO))[4:])) == INFO


def test_unknown_keys_are_for_later_versions():
    assert ConnectionInfo.from_dict({**INFO.to_dict(), "colour": "blue"}) == INFO


@pytest.mark.parametrize("key", [f.name for f in fields(ConnectionInfo)])
@pytest.mark.parametrize("value", [None, -1, 1 << 40, "x" * 300, [], {}, 1.5])
def test_every_field_is_checked(key, value):
    if (key, value) == ("plane_addresses", []):
        value = [[]]  # an empty list is right there
    with pytest.raises(FrameError) as caught:
        ConnectionInfo.from_dict({**INFO.to_dict(), key: value})
    names = [f.name for f in fields(ConnectionInfo)] + ["gid"]
    assert any(name in str(caught.value) for name in names)


@pytest.mark.parametrize(
    "change",
    [
        {"gid": "10.0.0.1"},
        {"gid": "ff02::1"},
        {"gid": "::"},
        {"gid": "::ffff:10.0.0.1"},
        {"gid": 5},
        {"qpn": 2},  # A.4: 0, 1 and 2 are never handed out
        {"qpn": 1 << 24},
        {"qpn": True},
        {"psn": 1 << 24},
        {"udp_port": 0},
    ],
)
def test_queue_pair_is_checked(change):
    with pytest.raises(FrameError):
        QpInfo.from_dict({**INFO.qp.to_dict(), **change})


@pytest.mark.parametrize(
    "change",
    [
        {"addr": -1},
        {"addr": (1 << 64) - 1, "length": 2},
        {"length": 0},
        {"rkey": 1 << 32},
        {"name": ""},
        {"name": "x" * 256},
        {"name": 7},
    ],
)
def test_region_is_checked(change):
    """Field report 43: a region that wraps at 2^64 is refused before anything is written."""
    good = RemoteRegion("x", 0x1000, 10, 5).to_dict()
    with pytest.raises(FrameError):
        RemoteRegion.from_dict({**good, **change})


# ---- negotiation ---------------------------------------------------------------------------


def test_limits_are_the_smaller():
    own = replace(INFO, path_mtu=4096, mpr=32, mpr_dest=8, max_wimm=100, max_wimm_dest=40)
    peer = replace(INFO, path_mtu=1024, mpr=16, mpr_dest=20, max_wimm=9, max_wimm_dest=64)
    agreed = negotiate(own, peer)
    assert (agreed.path_mtu, agreed.mpr, agreed.mpr_dest) == (1024, 20, 8)
    assert (agreed.max_wimm, agreed.max_wimm_dest) == (64, 40)


limits = st.integers(1, 64)
infos = st.builds(
    replace,
    st.just(INFO),
    path_mtu=st.sampled_from([256, 512, 1024, 2048, 4096]),
    mpr=limits,
    mpr_dest=limits,
    max_wimm=limits,
    max_wimm_dest=limits,
    dynamic_mpr=st.booleans(),
    trim_nack=st.booleans(),
    service_time=st.booleans(),
    versions=st.integers(1, 7),
)


@given(infos, infos)
def test_both_sides_agree(own, peer):
    if own.versions & peer.versions == 0:
        with pytest.raises(mrc.MrcHandshakeError, match="no MRC wire version in common"):
            negotiate(own, peer)
        return
    here, there = negotiate(own, peer), negotiate(peer, own)
    assert (here.version, here.path_mtu) == (there.version, there.path_mtu)
    assert here.mpr <= there.mpr_dest  # what one sends the other has room for (B.12)
    assert there.mpr <= here.mpr_dest
    assert here.max_wimm <= there.max_wimm_dest
    assert there.max_wimm <= here.max_wimm_dest
    assert (here.cap & QpCap.DYNAMIC_MPR) == (there.cap & QpCap.DYNAMIC_MPR)
    assert bool(here.cap & QpCap.NO_TRIM_NACK) is not peer.trim_nack
    assert bool(here.cap & QpCap.NO_SERVICE_TIME) is not peer.service_time


def test_highest_common_version():
    assert negotiate(replace(INFO, versions=7), replace(INFO, versions=3)).version == 2


# ---- frames --------------------------------------------------------------------------------


def test_frame():
    assert encode_frame({"a": 1}) == b'\x00\x00\x00\x07{"a":1}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}, b"x"])
def test_only_strict_json_is_sent(value):
    with pytest.raises(FrameError):
        encode_frame({"a": value})


def test_frame_too_large():
    with pytest.raises(FrameError, match="above the limit"):
        encode_frame({"a": "x" * (5 << 20)})


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"5", b"[]", b"\xff", b"[" * 9999),
        *(b'{"a":NaN}', b'{"a":1,"a":2}', b'{"a":Infinity}'),
    ],
)
def test_only_strict_json_is_read(body):
    with pytest.raises(FrameError):
        decode_body(body)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_verdict(body):
    with contextlib.suppress(FrameError):
        assert isinstance(decode_body(body), dict)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
        max_leaves=20,
    )
)
def test_any_hello_gives_a_verdict(value):
    for message in ({"type": "hello", "oob": 1, "info": value}, {"type": value, "oob": value}):
        with contextlib.suppress(FrameError, mrc.MrcHandshakeError):
            parse_hello(message)
