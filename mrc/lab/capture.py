# SPDX-License-Identifier: BSD-2-Clause
"""What crosses an interface of a host, into a pcap file. No capture program needed."""

from __future__ import annotations

import socket
import struct
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from .fabric import Host

ETH_P_ALL = 0x0003
SO_TIMESTAMPNS = 35
SNAP_BYTES = 1 << 17  # a GSO train is one packet here
MAGIC_NS = 0xA1B23C4D
LINKTYPE_ETHERNET = 1
RING_BYTES = 1 << 23
POLL_S = 0.1


class Capture:
    """Records both directions of one interface while the context lasts.

    A train (GSO) appears as one long packet, unless ``faults.single_packets`` cuts trains up.
    ``packets`` counts what was written.
    """

    def __init__(self, host: Host, device: str, file: Path) -> None:
        """Opens the capture socket: what comes from now on is recorded."""
        self.file = file
        self.packets = 0
        self._sock = host.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RING_BYTES)
        self._sock.settimeout(POLL_S)
        self._sock.bind((device, ETH_P_ALL))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._record, name=f"capture {device}", daemon=True)

    def __enter__(self) -> Self:
        """Start."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write what is still queued, close the file."""
        self._stop.set()
        self._thread.join()
        self._sock.close()

    def _record(self) -> None:
        with self.file.open("wb") as out:
            out.write(struct.pack("!IHHiIII", MAGIC_NS, 2, 4, 0, 0, SNAP_BYTES, LINKTYPE_ETHERNET))
            while True:
                try:
                    data, control, _, _ = self._sock.recvmsg(SNAP_BYTES, 64)
                except TimeoutError:
                    if self._stop.is_set():
                        return
                    continue
                seconds, nanoseconds = _when(control)
                out.write(struct.pack("!IIII", seconds, nanoseconds, len(data), len(data)) + data)
                self.packets += 1


def _when(control: list[tuple[int, int, bytes]]) -> tuple[int, int]:
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack("@ll", data[:16])
            return seconds, nanoseconds
    return divmod(time.time_ns(), 10**9)
