# SPDX-License-Identifier: BSD-2-Clause
"""The receiving side of --file: chunks become files that exist whole and equal, or not at all.

Disk and SHA-256 work in a thread, one chunk at a time and in order; the event loop only moves
slots.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mrc.cli.exits import CliError, Exit
from mrc.cli.flow import CreditReturn
from mrc.cli.protocol import NUMBER_MASK, StreamResult, TestParams

_NAME_BYTES = 200
_SIZE_MAX = 1 << 62


def safe_name(name: str) -> str:
    """A plain file name out of whatever the peer sent.

    No directory, no control characters, not hidden, of a length every file system takes, never
    empty.
    """
    base = re.split(r"[/\\]", name)[-1]
    base = "".join(c if c.isprintable() else "_" for c in base).strip()
    if base.startswith("."):
        base = "_" + base[1:]
    base = base.encode("utf-8", "replace")[:_NAME_BYTES].decode("utf-8", "ignore")
    return base if base.strip("_.") else "file"


class FileSink:
    """One file that arrives: `NAME.part` while it does, removed unless it is complete and equal.

    Without a directory the bytes are hashed only. Used from one thread at a time.
    """

    def __init__(self, directory: str | None, name: str, size: int) -> None:
        self.name = safe_name(name)
        self.size = size
        self.left = size
        self._sha256 = hashlib.sha256()
        self._directory = directory
        self._part: Path | None = None
        self._fd = -1

    def open(self) -> None:
        """Create the partial file; OSError with its name where that is not possible."""
        if self._directory is None:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        for part in _numbered(self._directory, self.name, ".part"):
            try:
                self._fd = os.open(part, flags, 0o644)
            except FileExistsError:
                continue
            self._part = part
            return

    def write(self, chunk: memoryview) -> None:
        """Take the next bytes of the file."""
        self._sha256.update(chunk)
        self.left -= len(chunk)
        while self._fd >= 0 and len(chunk):
            chunk = chunk[os.write(self._fd, chunk) :]

    def finish(self, sha256: str) -> str:
        """The digest of what arrived; the file gets its final name if that is the one sent."""
        digest = self._sha256.hexdigest()
        if self._part is not None and self.left == 0 and digest == sha256:
            os.close(self._fd)
            self._fd = -1
            self._publish(self._part)
        self.abandon()
        return digest

    def _publish(self, part: Path) -> None:
        """Give the file its name without ever replacing another: the name is taken first."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        for final in _numbered(part.parent, self.name, ""):
            try:
                os.close(os.open(final, flags, 0o644))
            except FileExistsError:
                continue
            part.replace(final)
            self.name = final.name
            self._part = None
            return

    def abandon(self) -> None:
        """Close and remove what is partial; harmless after `finish`."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._part is not None:
            with contextlib.suppress(FileNotFoundError):
                self._part.unlink()
            self._part = None


def _numbered(directory: str | Path, name: str, suffix: str) -> Iterator[Path]:
    """NAME, NAME.1, NAME.2 ... with the suffix: names to try until one is free."""
    yield Path(directory, name + suffix)
    for number in range(1, 10000):
        yield Path(directory, f"{name}.{number}{suffix}")
    raise OSError(errno.EEXIST, f"ten thousand files named {name} exist")


class FileReceiver:
    """Takes files one after the other from the ring of one connection."""

    def __init__(
        self,
        params: TestParams,
        ring: bytearray,
        credit: CreditReturn,
        *,
        directory: str | None,
        on_done: Callable[[dict[str, Any]], None],
    ) -> None:
        self._link = credit.link
        self._params = params
        self._view = memoryview(ring)
        self._credit = credit
        self._directory = directory
        self._on_done = on_done
        self._pool = ThreadPoolExecutor(1, "mrc-file")
        self._sink: FileSink | None = None
        self._waiting: deque[int] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._expected = 0
        self.result = StreamResult()
        self._received: list[dict[str, Any]] = []
        credit.link.on_message = self._on_message

    async def begin(self, params: dict[str, Any]) -> dict[str, Any]:
        """Answer to `file`."""
        name, size = params.get("name"), params.get("size")
        if not isinstance(name, str) or type(size) is not int or not 0 <= size < _SIZE_MAX:
            raise ValueError("bad file name or size")
        if self._sink is not None:
            raise ValueError("the file before this one is not finished")
        sink = FileSink(self._directory, name, size)
        try:
            sink.open()
        except OSError as error:
            raise CliError(Exit.FAILED, f"cannot store {sink.name}: {error.strerror}") from None
        self._sink = sink
        return {"name": sink.name}

    async def end(self, params: dict[str, Any]) -> dict[str, Any]:
        """Answer to `file-end`: asked when every chunk has its credit, so all are written."""
        sink, sha256 = self._sink, params.get("sha256")
        if sink is None or not isinstance(sha256, str) or sink.left:
            raise ValueError("no file is complete")
        self._sink = None
        digest = await asyncio.get_running_loop().run_in_executor(self._pool, sink.finish, sha256)
        if digest != sha256:
            self.result.add_error(f"{sink.name}: the received bytes differ from those sent")
        report = {
            "name": sink.name,
            "bytes": sink.size,
            "received_bytes": sink.size - sink.left,
            "sha256": digest,
            "verified": digest == sha256,
            "stored": digest == sha256 and self._directory is not None,
            "state": "arrived" if digest == sha256 else "differs",
        }
        self._received.append(report)
        self._on_done(report)
        return {"sha256": digest, "name": sink.name, "stored": report["stored"]}

    @property
    def files(self) -> list[dict[str, Any]]:
        """One record a file; that of a file still under way is `incomplete`."""
        sink = self._sink
        if sink is None:
            return self._received
        under_way = {
            "name": sink.name,
            "bytes": sink.size,
            "received_bytes": sink.size - sink.left,
            "sha256": None,
            "verified": False,
            "stored": False,
            "state": "incomplete",
        }
        return [*self._received, under_way]

    def _on_message(self, number: int) -> None:
        if self._sink is None or number != self._expected & NUMBER_MASK:
            raise CliError(Exit.PEER, f"chunk {number} arrived where none was due (B.8)")
        self._expected += 1
        self._waiting.append(self._expected - 1)
        if self._worker is None or self._worker.done():
            self._worker = self._link.spawn(self._work(self._sink))

    async def _work(self, sink: FileSink) -> None:
        loop, params = asyncio.get_running_loop(), self._params
        while self._waiting:
            slot = self._waiting.popleft() % params.depth * params.size
            chunk = self._view[slot : slot + min(sink.left, params.size)]
            try:
                await loop.run_in_executor(self._pool, sink.write, chunk)
            except OSError as error:
                text = f"cannot store {sink.name}: {error.strerror}"
                raise CliError(Exit.FAILED, text) from None
            self.result.messages += 1
            self.result.checked += 1
            self._credit.advance(self.result.messages)

    async def finish(self, messages: int) -> StreamResult:
        """The result; a file that was given up on the way is removed."""
        if self.result.messages != messages:
            self.result.add_error(f"{self.result.messages} of {messages} chunks arrived")
        return self.result

    async def close(self) -> None:
        """Stop the thread; remove what is partial."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.wait({self._worker})
        self._pool.shutdown(wait=True)
        if self._sink is not None:
            self._sink.abandon()
            self._sink = None
