# SPDX-License-Identifier: BSD-2-Clause
"""Link-local addresses with zones, and the MTU of real links, in a network of one namespace."""

import subprocess
import sys
import textwrap

import pytest

from mrc.cli.exits import Exit

pytestmark = pytest.mark.netns

SETUP = """
ip link set lo up
ip link add va mtu {mtu} type veth peer name vb mtu {mtu}
for dev in va vb; do ip link set $dev addrgenmode none; ip link set $dev up; done
ip addr add fe80::1/64 dev va nodad
ip addr add fe80::2/64 dev vb nodad
exec "$@"
"""

PROGRAM = textwrap.dedent(
    """
    import asyncio, sys, mrc, uvloop

    async def main():
        async with await mrc.listen("[fe80::2%vb]:0") as server:
            port = server.sockname[1]
            a, b = await asyncio.gather(
                mrc.connect("fe80::2%va", port, timeout=10, local=sys.argv[1] or None),
                server.accept(timeout=10),
            )
            source, target = bytearray(range(256)) * 500, bytearray(128_000)
            b.advertise("t", b.register(target))
            remote = await a.remote_region("t", timeout=5)
            await a.write(a.register(source), remote, imm=5, timeout=10)
            await b.receive_imm(timeout=5)
            print(source == target, a.local.qp.gid, b.local.qp.gid, a.agreed.path_mtu)
            await a.close()
            await b.close()

    factory = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}[sys.argv[2]]
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())
    """
)


def run_in(unshare, mtu: int, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run it where fe80::1%va and fe80::2%vb are the ends of one link."""
    return subprocess.run(
        [*unshare, "sh", "-e", "-c", SETUP.format(mtu=mtu), "sh", *argv],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize(
    ("mtu", "path_mtu"), [(1280, 1024), (1500, 1024), (4187, 2048), (4188, 4096), (9000, 4096)]
)
def test_link_local_zone_and_route_mtu(unshare, mtu, path_mtu, loop):
    local = "fe80::1%va" if mtu == 1500 else ""
    done = run_in(unshare, mtu, sys.executable, "-c", PROGRAM, local, loop)
    assert done.stderr == ""
    assert done.stdout.split() == ["True", "fe80::1", "fe80::2", str(path_mtu)]


COMMANDS = r"""
: >recv.out
{python} -m mrc.cli.recv -1 -B fe80::2%vb -p 23000 --idle-timeout 20 --loop {loop} >recv.out &
until grep -q 'listening on \[fe80:.*%' recv.out; do kill -0 $! || exit 9; sleep 0.02; done
{python} -m mrc.cli.send fe80::2%va -B fe80::1%va -p 23000 -n 20 -s 64k --loop {loop}
wait $!
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_the_commands_take_zones(unshare, tmp_path, loop):
    """Field report 63: on both loops the bytes are on the wire, and compared."""
    text = f"cd '{tmp_path}'" + COMMANDS.format(python=sys.executable, loop=loop)
    done = run_in(unshare, 1500, "sh", "-e", "-c", text)
    assert (done.returncode, done.stderr) == (Exit.OK, "")
    assert "verified" in done.stdout
