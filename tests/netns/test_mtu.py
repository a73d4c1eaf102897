# SPDX-License-Identifier: BSD-2-Clause
"""Links whose MTU shrinks under a running transfer (ADR 92)."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from .links import PLANES, Links, finish, sent, start

pytestmark = pytest.mark.netns

NARROW = 3


def retired(events: list[dict[str, Any]]) -> dict[int, str]:
    """EVs that were given up, and why."""
    return {e["ev"]: e["reason"] for e in events if e["to"] == "DENIED"}


def transfer_over_links_that_change(
    links: Links, folder: Path, backend: str, change: tuple[Any, ...]
) -> dict[str, Any]:
    """What a sender reports at its end, after one change while data flowed."""
    for plane in PLANES:
        links.ip(1, "link", "set", f"p{plane}", "mtu", "9000")
        links.ip(2, "link", "set", f"q{plane}", "mtu", "9000")
    argv = ("-t", "3", "-e", "16", "--mtu", "4096")
    receiver, running = start(links, folder / "log", backend, *argv)
    running.wait_flowing()
    links.ip(*change)
    return finish(receiver, running).end


def check_given_up(end: dict[str, Any]) -> None:
    ours = {p["ev"] for p in end["paths"] if p["plane"] == NARROW}
    found = retired(end["mrc"]["ev_events"])
    assert set(found) == ours, end["mrc"]["ev_events"]
    assert set(found.values()) == {"mtu"}, found
    states = {p["plane"]: p["state"] for p in end["paths"]}
    assert [plane for plane in PLANES if states[plane] == "DENIED"] == [NARROW]
    by_plane = sent(end["paths"])
    assert by_plane[NARROW] < min(by_plane[plane] for plane in PLANES if plane != NARROW) / 2


@pytest.mark.parametrize("backend", ["udp", "raw"])
def test_a_port_that_shrinks_gives_up_its_paths(links: Links, tmp_path: Path, backend: str):
    change = (1, "link", "set", f"p{NARROW}", "mtu", "2000")
    check_given_up(transfer_over_links_that_change(links, tmp_path, backend, change))


@pytest.mark.parametrize("backend", ["udp", "raw"])
def test_a_black_hole_for_full_packets_is_found(links: Links, tmp_path: Path, backend: str):
    """The far end of the link drops what is longer than its own MTU, and says nothing.

    It lets trains pass that are not cut yet, which no real link does: they are cut before it.
    """
    links.ip(1, "link", "set", f"p{NARROW}", "gso_max_segs", "1")
    change = (2, "link", "set", f"q{NARROW}", "mtu", "2000")
    check_given_up(transfer_over_links_that_change(links, tmp_path, backend, change))


@pytest.mark.parametrize("backend", ["udp", "raw"])
def test_a_path_behind_a_narrow_router_is_given_up(links: Links, tmp_path: Path, backend: str):
    """It says "too big", which anybody may say (ADR 93): what counts is that nothing arrives."""
    links.route(NARROW)
    for port in ("near", "distant"):
        links.ip(3, "link", "set", port, "mtu", "9000")
    change = (3, "link", "set", "distant", "mtu", "2000")
    check_given_up(transfer_over_links_that_change(links, tmp_path, backend, change))


# A queue pair of path MTU 4096 takes packets of 4188 bytes: 40 IPv6, 8 UDP, 12 + 4 + 4 + 16 + 4
# headers of MRC at most, 4 iCRC. Prints what its transition to RTR says.
PROGRAM = dedent(
    """
    import sys
    from ipaddress import IPv6Address
    import mrc

    here = IPv6Address("::1")
    with mrc.Context() as ctx:
        port = mrc.Port(ctx, mrc.Backend[sys.argv[1]], addr=here)
        table = mrc.PathTable(port, mrc.EvProfile.udp(2), here, 4792)
        cq = mrc.CompletionQueue(ctx, 16)
        init = mrc.QpInitAttr(sq_depth=4, rq_depth=4)
        qp = mrc.QueuePair(mrc.ProtectionDomain(ctx), cq, cq, init)
        qp.modify(mrc.QpAttr(state=mrc.QpState.INIT, access=mrc.Access.REMOTE_WRITE))
        for mtu in (4096, 2048):
            try:
                qp.modify(
                    mrc.QpAttr(
                        state=mrc.QpState.RTR, src=here, dst=here, dport=4792, dest_qpn=9,
                        path_mtu=mtu, rq_psn=1, path=table.number, mpr_dest=1, max_wimm_dest=1,
                    )
                )
            except mrc.MrcUsageError as exc:
                print(exc)
            else:
                print("RTR at", mtu)
                break
    """
)


@pytest.mark.parametrize("backend", ["UDP", "RAW"])
def test_one_byte_over_is_said_before_anything_is_sent(unshare: list[str], backend: str):
    for mtu in (4187, 4188):
        argv = ["sh", "-c", f'ip link set lo up mtu {mtu}; exec "$@"', "sh"]
        done = subprocess.run(
            [*unshare, *argv, sys.executable, "-c", PROGRAM, backend],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stderr == ""
        lines = done.stdout.splitlines()
        if mtu == 4188:
            assert lines == ["RTR at 4096"]
        else:
            assert "room for 4139 bytes" in lines[0], lines
            assert "path MTU 4096 with its headers needs 4140" in lines[0], lines
            assert lines[1] == "RTR at 2048"
