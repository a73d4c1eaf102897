# SPDX-License-Identifier: BSD-2-Clause
"""Links that cannot finish checksums for the sender (field reports 56 and 69)."""

from pathlib import Path
from textwrap import dedent

import pytest

from .links import PLANES, Links, finish, sent, start
from .programs import installed

pytestmark = pytest.mark.netns

# Says what the link does about checksums of what it sends; there may be no ethtool command.
PROGRAM = dedent(
    """
    import array, fcntl, socket, struct, sys

    GET, SET, SIOCETHTOOL = 0x16, 0x17, 0x8946
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        for command in (SET, GET):
            value = array.array("I", [command, int(sys.argv[2])])
            where = struct.pack("16sP16x", sys.argv[1].encode(), value.buffer_info()[0])
            fcntl.ioctl(sock, SIOCETHTOOL, where)
    sys.exit(value[1] != int(sys.argv[2]))
    """
)


@pytest.mark.parametrize("backend", ["udp", "raw"])
@pytest.mark.parametrize("offload", [True, False])
def test_data_arrives_with_and_without_offload(
    links: Links, tmp_path: Path, offload: bool, backend: str
):
    """Field report 69: a raw packet is whole whoever sends it. Field report 56: a train of UDP
    segments needs the offload, and is sent packet by packet where there is none; nothing is lost.
    """
    for host, port in ((1, "p"), (2, "q")):
        for plane in PLANES:
            argv = [installed("python"), "-c", PROGRAM, f"{port}{plane}", str(int(offload))]
            assert links.run(host, argv).wait(10) == 0
    receiver, running = start(links, tmp_path / "log", backend, "-n", "200", "-s", "256k")
    end = finish(receiver, running).end
    assert all(packets > 0 for packets in sent(end["paths"]).values())
    assert sum(p["packets_lost"] for p in end["paths"]) <= 0.01 * sum(sent(end["paths"]).values())
