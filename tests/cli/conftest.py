# SPDX-License-Identifier: BSD-2-Clause
"""Both commands in one loop, over the stand-in of the library."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import Callable
from typing import Any

import pytest

from mrc.cli.client import Client
from mrc.cli.exits import CliError, Exit, from_exception
from mrc.cli.options import parse_recv, parse_send
from mrc.cli.output import JsonOutput, Lines
from mrc.cli.server import Server
from mrc.cli.stop import Stop

from .fake import FakeNet
from .schema import check_document, strict


class Side:
    """One command: its output, how it ended."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.stream = io.StringIO()
        self.output = JsonOutput(program, Lines(self.stream))
        self.stop = Stop()
        self.code: Exit | None = None

    async def run(self, work: Callable[[Stop], Any]) -> None:
        """As frame.run does, without the process around it."""
        try:
            self.code = await work(self.stop) or Exit.OK
        except Exception as error:  # noqa: BLE001 - becomes an exit code, as in frame.run
            known = from_exception(error, "peer") or CliError(Exit.ENVIRONMENT, repr(error))
            self.code = known.code
            self.output.error(str(known))
        self.output.finish()

    @property
    def json(self) -> Any:
        """The report, checked."""
        document = strict(self.stream.getvalue())
        check_document(document, sender=self.program == "mrc-send")
        return document

    @property
    def end(self) -> Any:
        return self.json["end"]


class Pair:
    """Runs a sender against a receiver."""

    def __init__(self) -> None:
        self.net = FakeNet()
        self.send = Side("mrc-send")
        self.recv = Side("mrc-recv")

    def receive(self, args: str = "-1 -i 0") -> asyncio.Task[None]:
        """Start the receiver."""
        server = Server(parse_recv(args.split()), self.recv.output, self.net.listen)
        return asyncio.create_task(self.recv.run(server.run))

    async def sender(self, args: str, side: Side | None = None) -> Side:
        """Run a sender to its end."""
        side = side or self.send
        await self.net.listening.wait()
        client = Client(parse_send(["h", *args.split()]), side.output, self.net.connect)
        await side.run(client.run)
        return side

    async def run(
        self, send: str, recv: str = "-1 -i 0", during: Callable[[], Any] | None = None
    ) -> None:
        """Both to their ends; `during` runs beside them. No callback may crash on the way."""
        crashes: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: crashes.append(what))
        async with asyncio.timeout(20):
            receiving = self.receive(recv)
            extra = asyncio.create_task(during()) if during else None
            await self.sender(send)
            if extra is not None:
                await extra
            if "-1" not in recv:
                self.recv.stop.request("stopped by the test")
            await receiving
        await asyncio.sleep(0)
        assert crashes == []


@pytest.fixture
def pair() -> Pair:
    return Pair()


@pytest.fixture
def wait_for() -> Callable[..., Any]:
    """Wait for a named condition with a limit."""

    async def wait(condition: Callable[[], bool], limit_s: float = 5.0) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while not condition():  # noqa: ASYNC110 - any condition, no event to wait for
                    await asyncio.sleep(0.002)
        assert condition()

    return wait
