# SPDX-License-Identifier: BSD-2-Clause
"""Carrier of interfaces: what the kernel says of this machine, and of others."""

from __future__ import annotations

import struct

import pytest

from mrc.netif import CarrierWatch, _links


def link(name=b"eth0\0", *, kind=16, family=0, flags=0x41, before=b""):
    """One link message; `before`: attributes ahead of the name."""
    attribute = struct.pack("=HH", 4 + len(name), 3) + name
    attribute += bytes(-len(attribute) % 4)
    body = struct.pack("=BxHiII", family, 1, 7, flags, 0) + before + attribute
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


@pytest.fixture
def watch():
    found = CarrierWatch()
    yield found
    found.close()


def test_loopback_is_reported_once(watch):
    watch.add(["lo"])
    assert set(watch.read()) == {"lo"}
    watch.add(["lo"])
    assert watch.read() == {}


def test_an_interface_that_is_not_there(watch):
    with pytest.raises(OSError, match="no network interface 'nosuch0' here"):
        watch.add(["lo", "nosuch0"])
    assert watch.read() == {}


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (link(), [("eth0", True)]),
        (link(flags=0x01), [("eth0", False)]),  # no carrier
        (link(flags=0x40), [("eth0", False)]),  # taken down
        (link(kind=17), [("eth0", False)]),  # removed
        (link(family=7), []),  # a bridge tells of its port
        (link(before=struct.pack("=HHBxxx", 5, 9, 1)), [("eth0", True)]),
        (link() + link(b"eth1\0"), [("eth0", True), ("eth1", True)]),
    ],
)
def test_messages(message, found):
    assert list(_links(message)) == found
