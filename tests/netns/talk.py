# SPDX-License-Identifier: BSD-2-Clause
"""Two programs that between them send every kind of packet: run in the hosts of a fabric.

    python -m tests.netns.talk listen ADDRESS OPTIONS
    python -m tests.netns.talk dial ADDRESS OPTIONS

OPTIONS is a JSON object: keyword arguments of listen() and connect(), and `dscp` by names.
"""

import asyncio
import json
import sys
from typing import Any

import mrc

PORT = 18516
SIZE = 1 << 17
SHORT_S, LONG_S = 20.0, 40.0


async def listen(address: str, options: dict[str, Any]) -> None:
    """Serve one peer: forget its region, pause, when it asks for that."""
    async with (
        await mrc.listen(f"[{address}]:{PORT}", **options) as server,
        await server.accept(timeout=LONG_S) as conn,
    ):
        region = conn.register(bytearray(SIZE))

        async def pause(_: dict[str, Any]) -> None:
            conn.context.pause_receiving()
            asyncio.get_running_loop().call_later(0.02, conn.context.resume_receiving)

        async def forget(_: dict[str, Any]) -> None:
            region.close()

        conn.serve("pause", pause)
        conn.serve("forget", forget)
        conn.advertise("target", region)
        await conn.wait_closed(timeout=LONG_S)


async def dial(address: str, options: dict[str, Any]) -> None:
    """Writes of all shapes, probes, a pause of the receiver, and at the end a refused write."""
    conn = await mrc.connect(address, PORT, timeout=SHORT_S, **options)
    async with conn:
        target = await conn.remote_region("target", timeout=SHORT_S)
        local = conn.register(bytearray(SIZE))
        for length in (0, 100, 3 * 4096 + 10, SIZE):  # the last ones lose packets on their way
            for imm in (None, 7):
                await conn.write(local, target, length=length, imm=imm, timeout=SHORT_S)
        for _ in range(6):
            await conn.write(local, target, timeout=SHORT_S)
        await conn.probe_paths(timeout=1.0)
        await conn.call("pause", timeout=SHORT_S)
        await conn.write(local, target, timeout=SHORT_S)
        await conn.call("forget", timeout=SHORT_S)
        refused = await asyncio.gather(
            conn.write(local, target, length=100, timeout=SHORT_S), return_exceptions=True
        )
        status = getattr(getattr(refused[0], "wc", None), "status", refused[0])
        # Either may be here first: the NAK, or word of the peer that its queue pair is in error.
        if status is not mrc.WcStatus.REM_ACCESS_ERR and not isinstance(status, mrc.MrcPeerLost):
            raise AssertionError(f"a write to no region gave {status!r}")


def main() -> None:
    """As the first argument says."""
    role, address, text = sys.argv[1:]
    options = json.loads(text)
    if "dscp" in options:
        options["dscp"] = mrc.DscpClasses.parse(options["dscp"])
    asyncio.run({"listen": listen, "dial": dial}[role](address, options))


if __name__ == "__main__":
    main()
