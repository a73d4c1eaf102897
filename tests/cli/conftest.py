# SPDX-License-Identifier: BSD-2-Clause
"""Both commands in one loop, over the stand-in of the library."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from mrc.cli.client import Client
from mrc.cli.exits import CliError, Exit, from_exception
from mrc.cli.options import parse_recv, parse_send
from mrc.cli.output import JsonOutput
from mrc.cli.server import Server
from mrc.cli.stop import Stop

from .fake import FakeNet


def strict(text: str) -> Any:
    """Parse JSON as a strict reader does: NaN and Infinity are refused."""

    def refuse(constant: str) -> NoReturn:
        raise AssertionError(f"{constant} in JSON")

    return json.loads(text, parse_constant=refuse)


class Side:
    """One command: its output, how it ended."""

    def __init__(self, program: str) -> None:
        self.stream = io.StringIO()
        self.output = JsonOutput(program, self.stream)
        self.stop = Stop()
        self.code: Exit | None = None

    async def run(self, work: Callable[[Stop], Any]) -> None:
        """As frame.run does, without the process around it."""
        try:
            self.code = await work(self.stop) or Exit.OK
        except Exception as error:
            known = from_exception(error, "peer") or CliError(Exit.ENVIRONMENT, repr(error))
            self.code = known.code
            self.output.error(str(known))
        self.output.finish()

    @property
    def json(self) -> Any:
        return strict(self.stream.getvalue())


class Pair:
    """Runs a sender against a receiver."""

    def __init__(self) -> None:
        self.net = FakeNet()
        self.send = Side("mrc-send")
        self.recv = Side("mrc-recv")

    async def run(self, send: str, recv: str = "-1 -i 0",
                  during: Callable[[], Any] | None = None) -> None:
        """To the end of both; `during` runs beside them."""
        server = Server(parse_recv(recv.split()), self.recv.output, self.net.listen)
        client = Client(parse_send(["h", *send.split()]), self.send.output, self.net.connect)
        async with asyncio.timeout(20):
            receiving = asyncio.create_task(self.recv.run(server.run))
            await asyncio.sleep(0)
            extra = asyncio.create_task(during()) if during else None
            await self.send.run(client.run)
            if extra is not None:
                await extra
            if "-1" not in recv:
                self.recv.stop.request("stopped by the test")
            await receiving


@pytest.fixture
def pair() -> Pair:
    return Pair()


@pytest.fixture
def wait_for() -> Callable[..., Any]:
    """Wait for a named condition with a limit."""

    async def wait(condition: Callable[[], bool], limit_s: float = 5.0) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while not condition():
                    await asyncio.sleep(0.002)
        assert condition()

    return wait
