# SPDX-License-Identifier: BSD-2-Clause
"""Planes follow the carrier of real interfaces: out of use here and at the peer, and back."""

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.netns

SETUP = """
ip link set lo up
for i in 1 2; do
    ip link add p$i type veth peer name far$i
    for dev in p$i far$i; do ip link set $dev addrgenmode none; ip link set $dev up; done
done
exec {python} -c "$PROGRAM"
"""

HEAD = textwrap.dedent(
    """
    import asyncio, dataclasses, subprocess, mrc

    PLAIN = mrc.EvProfile.udp(8, planes=2)
    PROFILE = dataclasses.replace(PLAIN, interfaces=((1, "p1"), (2, "p2")))

    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    async def until(what, condition):
        for _ in range(5000):
            if condition():
                return
            await asyncio.sleep(0.001)
        raise AssertionError(what)

    def up(mask):
        return [plane for plane in (1, 2) if mask >> plane & 1]
    """
)

FLAP = HEAD + textwrap.dedent(
    """
    async def main():
        async with await mrc.listen("[::1]:0", ev_profile=PLAIN) as server:
            port = server.sockname[1]
            a, b = await asyncio.gather(
                mrc.connect("::1", port, ev_profile=PROFILE), server.accept(timeout=10)
            )
            async with a, b:
                b.advertise("t", b.register(bytearray(100_000)))
                remote = await a.remote_region("t", timeout=5)
                local = a.register(bytearray(100_000))
                assert up(a.context.planes_up) == [1, 2]
                for change in (["set", "far2", "down"], ["set", "p2", "down"], ["del", "far2"]):
                    ip("link", *change)
                    await until(change, lambda: up(b.path.planes().remote_up) == [1])
                    assert up(a.context.planes_up) == [1]
                    await a.write(local, remote, timeout=10)
                    if change[0] == "del":
                        break
                    ip("link", *change[:-1], "up")
                    await until("up", lambda: up(b.path.planes().remote_up) == [1, 2])
                    await a.write(local, remote, timeout=10)
                a.context.disable_plane(1)
                ip("link", "add", "p2", "type", "veth", "peer", "name", "far2")
                ip("link", "set", "p2", "up")
                ip("link", "set", "far2", "up")
                await until("new", lambda: up(b.path.planes().remote_up) == [2])
                a.context.enable_plane(1)
                await until("both", lambda: up(b.path.planes().remote_up) == [1, 2])
                assert all(s.state is mrc.EvState.GOOD for s in b.path_stats())

    asyncio.run(main())
    print("done")
    """
)

DEAD_FROM_THE_START = HEAD + textwrap.dedent(
    """
    async def main():
        ip("link", "set", "far1", "down")
        async with await mrc.listen("[::1]:0", ev_profile=PROFILE) as server:
            port = server.sockname[1]
            a, b = await asyncio.gather(
                mrc.connect("::1", port, ev_profile=PLAIN), server.accept(timeout=10)
            )
            async with a, b:
                assert up(b.path.planes().local_up) == [2]
                await until("told", lambda: up(a.path.planes().remote_up) == [2])
                missing = dataclasses.replace(PLAIN, interfaces=((1, "nosuch"),))
                try:
                    await mrc.connect("::1", port, ev_profile=missing)
                except OSError as exc:
                    assert "no network interface 'nosuch' here" in str(exc), exc
                else:
                    raise AssertionError("connected")

    asyncio.run(main())
    print("done")
    """
)


@pytest.mark.parametrize("program", [FLAP, DEAD_FROM_THE_START], ids=["flap", "dead at start"])
def test_planes_follow_carriers(unshare, program):
    script = SETUP.format(python=sys.executable)
    done = subprocess.run(
        [*unshare, "env", f"PROGRAM={program}", "sh", "-e", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
