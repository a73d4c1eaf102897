# SPDX-License-Identifier: BSD-2-Clause
"""The sending side of --file: read and hashed in chunks, sent, compared at the end.

Disk and SHA-256 work in a thread, one chunk at a time and in order; the event loop only moves
slots.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import pathlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mrc.cli.exits import CliError, Exit
from mrc.cli.flow import Outlet, SendWindow
from mrc.cli.plainfile import open_plain
from mrc.cli.protocol import NUMBER_MASK, TestParams

_END_TIMEOUT_S = 600.0  # the receiver may still be writing to a slow disk


class FileSender:
    """Sends files one after the other through the slots of `buffer`."""

    def __init__(
        self,
        params: TestParams,
        paths: Sequence[str],
        buffer: bytearray,
        outlet: Outlet,
        on_done: Callable[[dict[str, Any]], None],
    ) -> None:
        self._outlet = outlet
        self._params = params
        self._paths = paths
        self._view = memoryview(buffer)
        self._on_done = on_done
        self._stopping = False
        self.window = SendWindow(outlet.link, params.depth, counted=True)
        self.end_ns = 0
        self.files = [_not_sent(path) for path in paths]
        """One record a file, from the beginning; `state` says what became of it."""

    def stop(self) -> None:
        """Give the file under way up."""
        self._stopping = True

    async def run(self) -> None:
        """Send all; CliError(FAILED) for a file that cannot be read as it was announced."""
        with ThreadPoolExecutor(1, "mrc-file") as pool:
            for index, path in enumerate(self._paths):
                if self._stopping:
                    break
                await self._send_file(pool, index, path)
        await self.window.drain()
        self.end_ns = time.monotonic_ns()

    @property
    def messages(self) -> int:
        """Complete chunks."""
        return self.window.completed

    @property
    def bytes(self) -> int:
        """Bytes of complete chunks."""
        return self.window.completed_bytes

    async def _send_file(self, pool: ThreadPoolExecutor, index: int, path: str) -> None:
        report = self.files[index]
        file = await asyncio.get_running_loop().run_in_executor(pool, _open, path)
        with file:
            size = report["bytes"] = os.fstat(file.fileno()).st_size
            request = {"index": index, "name": report["name"], "size": size}
            await self._outlet.link.call("file", request)
            report["state"] = "incomplete"
            digest = await self._send_chunks(pool, file, path, size)
        if digest is None:
            return
        end = await self._outlet.link.call(
            "file-end", {"index": index, "sha256": digest}, limit_s=_END_TIMEOUT_S
        )
        equal = end.get("sha256") == digest
        report |= {
            "sha256": digest,
            "received_sha256": end.get("sha256"),
            "stored_as": _stored_name(end) if equal else None,
            "verified": equal,
            "state": "arrived" if equal else "differs",
        }
        self._on_done(report)

    async def _send_chunks(
        self, pool: ThreadPoolExecutor, file: io.FileIO, path: str, size: int
    ) -> str | None:
        """The digest of what was sent; None when stopped on the way."""
        sha256, left = hashlib.sha256(), size
        loop, params = asyncio.get_running_loop(), self._params
        while left:
            await self.window.room()
            if self._stopping:
                return None
            number = self.window.posted
            slot = number % params.depth * params.size
            chunk = self._view[slot : slot + min(left, params.size)]
            if not await loop.run_in_executor(pool, _read_chunk, file, chunk, sha256):
                raise CliError(Exit.FAILED, f"{path}: the file shrank while it was being sent")
            self.window.add(
                self._outlet.write(
                    len(chunk), imm=number & NUMBER_MASK, local_offset=slot, remote_offset=slot
                ),
                len(chunk),
            )
            left -= len(chunk)
        await self.window.drain()
        return sha256.hexdigest()


def _stored_name(end: dict[str, Any]) -> str | None:
    """The name in the receiver's answer; None for a file it did not keep, or what is no name."""
    name = end.get("name")
    kept = end.get("stored", True) and isinstance(name, str) and name.isprintable()
    return str(name) if kept else None


def _not_sent(path: str) -> dict[str, Any]:
    """The record of a file before its turn."""
    return {
        "name": pathlib.Path(path).name,
        "bytes": pathlib.Path(path).stat().st_size,
        "sha256": None,
        "received_sha256": None,
        "stored_as": None,
        "verified": False,
        "state": "not sent",
    }


def _open(path: str) -> io.FileIO:
    try:
        return open_plain(path)
    except OSError as error:
        raise CliError(Exit.FAILED, f"{path}: {error.strerror}") from None


def _read_chunk(file: io.FileIO, chunk: memoryview, sha256: Any) -> bool:
    """Fill `chunk` from the file and hash it; False at an early end."""
    filled = 0
    while filled < len(chunk):
        n = file.readinto(chunk[filled:])
        if not n:
            return False
        filled += n
    sha256.update(chunk)
    return True
