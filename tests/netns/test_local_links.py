# SPDX-License-Identifier: BSD-2-Clause
"""Link-local addresses with zones, and the MTU of real links, in a network of one namespace."""

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.netns

SETUP = """
ip link set lo up
ip link add va mtu {mtu} type veth peer name vb mtu {mtu}
for dev in va vb; do ip link set $dev addrgenmode none; ip link set $dev up; done
ip addr add fe80::1/64 dev va nodad
ip addr add fe80::2/64 dev vb nodad
exec {python} -c "$PROGRAM"
"""

PROGRAM = textwrap.dedent(
    """
    import asyncio, mrc

    async def main():
        async with await mrc.listen("[fe80::2%vb]:0") as server:
            port = server.sockname[1]
            a, b = await asyncio.gather(
                mrc.connect("fe80::2%va", port, timeout=10), server.accept(timeout=10)
            )
            source, target = bytearray(range(256)) * 500, bytearray(128_000)
            b.advertise("t", b.register(target))
            remote = await a.remote_region("t", timeout=5)
            await a.write(a.register(source), remote, imm=5, timeout=10)
            await b.receive_imm(timeout=5)
            print(source == target, a.local.qp.gid, b.local.qp.gid, a.agreed.path_mtu)
            await a.close()
            await b.close()

    asyncio.run(main())
    """
)


@pytest.mark.parametrize(("mtu", "path_mtu"), [(1280, 1024), (1500, 1024), (9000, 4096)])
def test_link_local_zone_and_route_mtu(unshare, mtu, path_mtu):
    script = SETUP.format(mtu=mtu, python=sys.executable)
    done = subprocess.run(
        [*unshare, "env", f"PROGRAM={PROGRAM}", "sh", "-e", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["True", "fe80::1", "fe80::2", str(path_mtu)]
