# SPDX-License-Identifier: BSD-2-Clause
"""Whole runs of both commands over the stand-in: verdicts, exit codes, documents."""

from __future__ import annotations

from mrc.cli.exits import Exit


async def test_counted_messages_are_all_verified(pair):
    await pair.run("-s 10000 -n 50 -i 0")
    assert pair.send.code == Exit.OK, pair.send.json
    end = pair.send.json["end"]
    assert end["verified"] is True
    assert end["sum_sent"]["bytes"] == end["sum_received"]["bytes"] == 500_000
    assert end["streams"][0]["receiver"]["checked"] == 50
    assert pair.recv.code == Exit.OK
    assert pair.recv.json["end"]["verified"] is True
