# SPDX-License-Identifier: BSD-2-Clause
"""The receiver's side of one client: its connections, its tests one after the other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from mrc.cli import report
from mrc.cli.bulk import BulkReceiver, BulkSender
from mrc.cli.exits import CliError, Exit
from mrc.cli.latency import Pong
from mrc.cli.link import Handler, Link
from mrc.cli.options import RING_BYTES_MAX, RecvOptions
from mrc.cli.output import Output
from mrc.cli.pattern import Pattern
from mrc.cli.protocol import StreamResult, TestParams, count_in
from mrc.cli.run import TestRun
from mrc.cli.sink import FileReceiver
from mrc.cli.stream import Stream
from mrc.cli.verdict import compare, server_end
from mrc.units import format_seconds


class Member:
    """One connection's part in the test that runs."""

    def __init__(self, stream: Stream, taker: BulkReceiver | Pong | FileReceiver) -> None:
        self.stream = stream
        self.taker = taker
        self.sender: BulkSender | None = None
        self.sending: asyncio.Task[None] | None = None
        self.result: StreamResult | None = None
        self.problems: list[str] = []
        self.interrupted = False
        self.came_twice: int | None = None
        """Of what we sent, as the client has told."""


class Session:
    """One client. `failed` tells why it ended, None while it goes on or when it ended well."""

    def __init__(self, key: str, streams: int, options: RecvOptions, output: Output) -> None:
        self.key = key
        self.streams = streams
        self.links: dict[int, Link] = {}
        self.tests_done = 0
        self.problem: str | None = None
        """Why a test that came to its end was no success."""
        self.over = asyncio.Event()
        """Set when everything of this client is given back."""
        self._options = options
        self._output = output
        self._members: dict[int, Member] = {}
        self._run: TestRun | None = None
        self._params: TestParams | None = None
        self._block: Pattern | None = None
        self._all_finished = asyncio.Event()
        self._heard = time.monotonic()

    def add(self, link: Link) -> None:
        """Another connection of this client."""
        self.links[link.index] = link
        self.heard()
        for method, handler in (
            ("start", self._start),
            ("go", self._go),
            ("file", self._file),
            ("file-end", self._file_end),
            ("finish", self._finish),
            ("abort", self._abort),
        ):
            link.serve(method, _bound(handler, link, self.heard))

    def heard(self) -> None:
        """Bytes or a call came: the client lives."""
        self._heard = time.monotonic()

    @property
    def idle(self) -> bool:
        """No test is running."""
        return not self._members

    @property
    def silent_seconds(self) -> float:
        """How long the client has been silent."""
        return time.monotonic() - self._heard

    # -- calls -------------------------------------------------------------------------------

    async def _start(self, link: Link, data: dict[str, Any]) -> dict[str, Any]:
        params = TestParams.from_json(data)
        if params.size * params.depth * self.streams > RING_BYTES_MAX:
            raise CliError(Exit.USAGE, f"size x depth x streams is above {RING_BYTES_MAX} bytes")
        if link.index in self._members:
            raise ValueError("a test is running on this connection")
        if self._block is None or not self._members:
            self._params = params
            self._block = Pattern(params.seed, params.size)
            self._all_finished = asyncio.Event()
        if params != self._params:
            raise ValueError("the connections of a test differ in their parameters")
        stream = Stream(link, params, self._block, initiator=False)
        await stream.meet()
        self._members[link.index] = Member(stream, self._taker(stream))
        if len(self._members) == self.streams:
            self._begin(params)
        return {}

    def _taker(self, stream: Stream) -> BulkReceiver | Pong | FileReceiver:
        if stream.params.kind == "latency":
            return stream.pong()
        if stream.params.kind == "file":
            return stream.file_receiver(self._options.directory, self._file_done)
        return stream.bulk_receiver()

    def _file_done(self, file: dict[str, Any]) -> None:
        state = "SHA-256 equal" if file["verified"] else "DIFFERS, removed"
        self._output.note(f"{file['name']}: {file['bytes']} bytes, {state}")

    def _file_given_up(self, file: dict[str, Any]) -> None:
        got, size = file["received_bytes"], file["bytes"]
        self._output.note(f"{file['name']}: incomplete, {got} of {size} bytes arrived; removed")

    def _begin(self, params: TestParams) -> None:
        """All connections have started: measure."""
        links = [self.links[index] for index in sorted(self._members)]
        self._run = TestRun(links, params, sends=False, on_progress=self.heard)
        self._output.start(
            report.start(
                "mrc-recv",
                links,
                {"accepted_connection": links[0].peer()},
                {
                    "num_streams": self.streams,
                    "blksize": params.size,
                    "blocks": params.messages,
                    "bidir": params.bidir,
                    "kind": params.kind,
                    "verify": params.verify,
                    "imm": params.counted,
                    "depth": params.depth,
                    "seed": params.seed,
                    "pump": self._options.common.pump,
                    "test": params.test,
                },
                self.key,
            )
        )
        advice = links[0].advice() if params.test == 0 else None
        if advice is not None:
            self._output.note(advice)
        self._run.start_intervals(self._options.common.interval, self._output.interval)

    def _member(self, link: Link) -> Member:
        member = self._members.get(link.index)
        if member is None:
            raise ValueError("no test is running on this connection")
        return member

    async def _go(self, link: Link, _: dict[str, Any]) -> dict[str, Any]:
        member = self._member(link)
        if not member.stream.params.bidir or member.sending is not None:
            raise ValueError("nothing to send")
        member.sender = member.stream.bulk_sender()
        member.sending = link.spawn(link.guard(member.sender.run()))
        return {}

    async def _file(self, link: Link, data: dict[str, Any]) -> dict[str, Any]:
        return await self._file_taker(link).begin(data)

    async def _file_end(self, link: Link, data: dict[str, Any]) -> dict[str, Any]:
        return await self._file_taker(link).end(data)

    def _file_taker(self, link: Link) -> FileReceiver:
        taker = self._member(link).taker
        if isinstance(taker, FileReceiver):
            return taker
        raise ValueError("this test sends no files")

    async def _finish(self, link: Link, data: dict[str, Any]) -> dict[str, Any]:
        member = self._member(link)
        messages, byte_count = data.get("messages"), data.get("bytes")
        if type(messages) is not int or type(byte_count) is not int or self._run is None:
            raise ValueError("bad finish")
        reverse = StreamResult()
        if member.sender is not None and member.sending is not None:
            if not member.stream.params.messages:
                member.sender.stop()
            await member.sending
            reverse.messages, reverse.bytes = member.sender.messages, member.sender.bytes
        result = await member.taker.finish(messages)
        result.bytes = member.stream.bytes_received
        member.result = result
        member.interrupted = data.get("interrupted") is True
        member.came_twice = count_in(data, "duplicates")
        member.problems = compare(messages, byte_count, result, "this end")
        if all(m.result is not None for m in self._members.values()):
            self._conclude(complete=True)
            self._all_finished.set()
        await self._all_finished.wait()
        run = self._run
        await self._release(link)
        return {
            "stream": result.as_json(),
            "reverse": reverse.as_json(),
            "seconds": round(run.progress.seconds, 6),
            "cpu": list(run.cpu_percent),
            "duplicates": sum(g.qp.duplicates_received for g in run.grown()),
            **report.gap(run),
        }

    async def _abort(self, link: Link, data: dict[str, Any]) -> dict[str, Any]:
        code = Exit.FAILED if data.get("code") == Exit.FAILED else Exit.PEER
        link.fail(CliError(code, f"the client gave up: {str(data.get('reason'))[:500]}"))
        return {}

    # -- ends --------------------------------------------------------------------------------

    def _conclude(self, complete: bool) -> None:
        """The test is over, as agreed or not: report what there is."""
        run = self._run
        if run is None:
            return
        run.stop(aborted=not complete)
        members = [self._members[index] for index in sorted(self._members)]
        problems = [text for member in members for text in member.problems]
        files = [
            file
            for member in members
            if isinstance(member.taker, FileReceiver)
            for file in member.taker.files
        ]
        for file in files:
            if file["state"] == "incomplete":
                self._file_given_up(file)
        self._output.end(
            server_end(
                run,
                [member.taker.result for member in members],
                problems,
                files,
                [member.came_twice for member in members],
                complete=complete,
                interrupted=any(member.interrupted for member in members),
            )
        )
        self.tests_done += complete
        missing = [file["name"] for file in files if not file["verified"]]
        if problems:
            self.problem = "data lost or different"
        elif missing:
            self.problem = f"the client gave up before it had sent all of {', '.join(missing)}"

    async def _release(self, link: Link) -> None:
        member = self._members.pop(link.index)
        if isinstance(member.taker, FileReceiver):
            await member.taker.close()
        await member.stream.release()

    async def watch(self, idle_timeout: float) -> CliError | None:
        """Until the client has gone or is given up; None when it had nothing left to do."""
        while True:
            failures = {link.failed for link in self.links.values()}
            await asyncio.wait(
                failures, timeout=min(0.2, idle_timeout / 4), return_when=asyncio.FIRST_COMPLETED
            )
            for link in self.links.values():
                error = link.failed.exception() if link.failed.done() else None
                if error is not None:
                    return self._meaning(link, error)
            if self.silent_seconds > idle_timeout:
                silence = format_seconds(idle_timeout)
                return CliError(Exit.PEER, f"the client was silent for {silence}")

    def _meaning(self, link: Link, error: BaseException) -> CliError | None:
        """A lost connection is the ordinary end when no test is running."""
        if isinstance(error, CliError):
            return error
        if not self._members and self.tests_done:
            return None
        during = "during the test" if self._members else "before its test"
        if link.said_goodbye:
            return CliError(Exit.PEER, f"the client left {during}")
        return CliError(Exit.PEER, f"the client was lost {during}: {error}")

    async def close(self, reason: CliError | None) -> None:
        """Report a test that did not end, tell the client why, give everything back."""
        if self._members and self._run is not None and not self._all_finished.is_set():
            self._conclude(complete=False)
        if reason is not None:
            await asyncio.gather(
                *(
                    link.tell("abort", {"reason": str(reason), "code": reason.code})
                    for link in self.links.values()
                )
            )
        for member in self._members.values():
            if member.sending is not None:
                member.sending.cancel()
            if isinstance(member.taker, FileReceiver):
                await member.taker.close()
        self._members.clear()
        await asyncio.gather(*(link.close() for link in self.links.values()))


def _bound(
    handler: Callable[[Link, dict[str, Any]], Awaitable[dict[str, Any]]],
    link: Link,
    heard: Callable[[], None],
) -> Handler:
    """A handler of one connection's calls, which also show that the client lives."""

    async def answer(params: dict[str, Any]) -> dict[str, Any]:
        heard()
        try:
            return await handler(link, params)
        finally:
            heard()

    return answer
