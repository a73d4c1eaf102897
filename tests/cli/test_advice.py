# SPDX-License-Identifier: BSD-2-Clause
"""What is advised where the kernel gave a socket less buffer than wanted."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mrc.cli.link import Link
from mrc.cli.ports import RCVBUF_WANTED, SNDBUF_WANTED


def _advice(received: int, sent: int) -> str | None:
    port = SimpleNamespace(udp_port=4791, rcvbuf_bytes=received, sndbuf_bytes=sent)
    link = SimpleNamespace(conn=SimpleNamespace(port_stats=lambda: port))
    return Link.advice(link)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("received", "sent", "words"),
    [
        (212992, SNDBUF_WANTED, ("receive", "212992", RCVBUF_WANTED, "rmem_max")),
        (RCVBUF_WANTED, 212992, ("send", "212992", SNDBUF_WANTED, "wmem_max")),
        (1, 1, ("receive", "1 bytes", RCVBUF_WANTED, "rmem_max")),
    ],
)
def test_the_advice_names_wanted_got_and_the_right_setting(received, sent, words):
    """Field report 65: rmem_max for what is received, wmem_max for what is sent."""
    direction, got, wanted, setting = words
    text = _advice(received, sent)
    assert text is not None
    assert f"the {direction} buffer of UDP port 4791 is {got}" in text
    assert f"wanted {wanted}: raise it by sysctl net.core.{setting}={wanted}" in text
    other = {"rmem_max": "wmem_max", "wmem_max": "rmem_max"}[setting]
    assert other not in text


def test_no_advice_where_the_kernel_gave_enough():
    assert _advice(RCVBUF_WANTED, SNDBUF_WANTED) is None
