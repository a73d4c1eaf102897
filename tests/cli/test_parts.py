# SPDX-License-Identifier: BSD-2-Clause
"""The small parts: histogram, test data, progress, JSON, exit codes."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import io
import os
import random
import socket
import subprocess
import sys
import termios
import time
import types
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc.cli.exits import CliError, Exit, from_exception
from mrc.cli.flow import CreditReturn
from mrc.cli.histogram import LatencyHistogram
from mrc.cli.output import JsonOutput, Lines, dumps
from mrc.cli.pattern import Pattern
from mrc.cli.protocol import StreamResult, TestParams
from mrc.cli.stop import Stop
from mrc.errors import (
    MrcHandshakeError,
    MrcPeerLost,
    MrcProfileError,
    MrcUsageError,
    MrcWorkError,
)
from mrc.types import WcFlags, WcOpcode, WcStatus, WorkCompletion

from .schema import strict

# -- histogram


@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=300), st.floats(0, 1))
def test_percentiles_are_within_the_promised_error(values, ratio):
    histogram = LatencyHistogram()
    for value in values:
        histogram.add(value)
    exact = sorted(values)[max(0, -int(-ratio * len(values) // 1) - 1)]
    assert histogram.percentile_ns(ratio) == pytest.approx(exact, rel=0.016, abs=1)
    assert (histogram.min_ns, histogram.max_ns) == (min(values), max(values))


@given(st.lists(st.integers(0, 10**9)), st.lists(st.integers(0, 10**9)))
def test_merging_is_adding_all(first, second):
    apart, together = [LatencyHistogram(), LatencyHistogram()], LatencyHistogram()
    for histogram, values in zip(apart, (first, second), strict=True):
        for value in values:
            histogram.add(value)
            together.add(value)
    apart[0].merge(apart[1])
    assert apart[0].as_json() == together.as_json()


def test_an_empty_histogram_is_all_zeros():
    assert set(LatencyHistogram().as_json().values()) == {0}


def test_negative_latency_is_a_fault_of_ours():
    with pytest.raises(ValueError, match="negative"):
        LatencyHistogram().add(-1)


# -- test data


@given(seed=st.integers(0, 2**63 - 1), size=st.integers(1, 5000), data=st.data())
def test_both_ends_make_the_same_message_and_find_any_changed_byte(seed, size, data):
    sender, receiver = (Pattern(seed, size).lane(3) for _ in range(2))
    number = data.draw(st.integers(0, 1 << 40))
    start = sender.offset(number)
    message = bytearray(sender.block[start : start + size])
    assert receiver.matches(number, memoryview(message))
    at = data.draw(st.integers(0, size - 1))
    message[at] ^= data.draw(st.integers(1, 255))
    assert not receiver.matches(number, memoryview(message))
    assert receiver.first_difference(number, memoryview(message)) == at


def test_neighbouring_messages_and_lanes_differ():
    """What lay in the slot before, or belongs to another connection, never passes."""
    pattern = Pattern(1, 4096)
    for number in random.Random(1).sample(range(1 << 30), 50):
        start = pattern.offset(number)
        message = memoryview(pattern.block)[start : start + 4096]
        assert pattern.matches(number, message)
        assert not any(
            pattern.matches(number + other, message)
            for distance in range(1, 1025)
            for other in (distance, -distance)
        )
        assert not any(pattern.lane(lane).matches(number, message) for lane in range(1, 512))


def test_messages_longer_than_a_tile():
    pattern = Pattern(2, 40 << 20)
    assert len(pattern.block) >= pattern.offset(65520) + (40 << 20)


# -- JSON


def test_no_output_ever_holds_nan():
    """Field report 72."""
    value = {"a": [1.5, float("nan"), {"b": float("inf")}], "c": "NaN"}
    assert strict(dumps(value)) == {"a": [1.5, None, {"b": None}], "c": "NaN"}


def test_json_is_one_object_even_without_a_test():
    """Field report 72."""
    stream = io.StringIO()
    output = JsonOutput("mrc-recv", Lines(stream))
    output.finish()
    assert strict(stream.getvalue()) == {"start": {}, "intervals": [], "end": {}}


def test_a_closed_stdout_is_no_crash():
    read, write = os.pipe()
    os.close(read)
    stream = os.fdopen(write, "w")
    told = []
    lines = Lines(stream)
    lines.on_closed = lambda: told.append(1)
    lines.write("x")
    lines.write("y")
    assert told == [1]
    stream.close()


# -- exit codes


def completion(status: WcStatus) -> WorkCompletion:
    return WorkCompletion(1, 3, 0, 0, status, WcOpcode.RDMA_WRITE, WcFlags.NONE)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), Exit.PEER, "refused"),
        (socket.gaierror(-2, "Name or service not known"), Exit.PEER, "unknown host"),
        (TimeoutError("no answer"), Exit.PEER, "no answer"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), Exit.PEER, "No route"),
        (MrcPeerLost("the peer vanished"), Exit.PEER, "vanished"),
        (MrcHandshakeError("other version"), Exit.PEER, "other version"),
        (MrcWorkError(completion(WcStatus.RETRY_EXC_ERR)), Exit.PEER, "does not answer"),
        (MrcWorkError(completion(WcStatus.REM_ACCESS_ERR)), Exit.FAILED, "remote access"),
        (MrcProfileError("evs.toml: ev 3: bad"), Exit.USAGE, "evs.toml"),
        (OSError(errno.EADDRINUSE, "listen on [::]:1: in use"), Exit.ENVIRONMENT, "in use"),
        (
            OSError(errno.EADDRINUSE, "path: cannot send from [::1]:49152: Address already in use"),
            Exit.ENVIRONMENT,
            "--sport-base",
        ),
        (
            MrcHandshakeError("refused: cannot send from [::1]:49152: Address already in use"),
            Exit.PEER,
            "--sport-base",
        ),
        (
            PermissionError(errno.EACCES, "listen on [::]:80: Permission denied"),
            Exit.ENVIRONMENT,
            "below 1024 need a privilege: CAP_NET_BIND_SERVICE",
        ),
        (
            PermissionError(
                errno.EPERM, "port: cannot open a raw IPv6 socket: Operation not permitted"
            ),
            Exit.ENVIRONMENT,
            "CAP_NET_RAW",
        ),
        (
            PermissionError(errno.EPERM, "raw port: needs CAP_NET_RAW"),
            Exit.ENVIRONMENT,
            "CAP_NET_RAW",
        ),
        (CliError(Exit.INTERRUPTED, "interrupted"), Exit.INTERRUPTED, "interrupted"),
    ],
)
def test_exit_codes(error, code, words):
    known = from_exception(error, "fd00::2 port 18515")
    assert known is not None
    assert known.code == code
    assert words in str(known)


def test_what_is_no_matter_of_privilege_gets_no_advice():
    known = from_exception(PermissionError(errno.EPERM, "sendmsg: Operation not permitted"), "peer")
    assert str(known) == "sendmsg: Operation not permitted"


def test_a_fault_of_ours_is_not_dressed_up():
    assert from_exception(KeyError("x"), "peer") is None


# -- what the other side says


GOOD = TestParams(
    test=0, kind="bulk", size=1, depth=1, verify=True, imm=False, bidir=False, seed=0, messages=0
)


def test_parameters_survive_the_wire():
    assert TestParams.from_json(GOOD.as_json()) == GOOD
    result = StreamResult(bytes=5, messages=2, checked=2)
    result.add_error("x")
    assert StreamResult.from_json(result.as_json()) == result


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size", 0),
        ("size", 1 << 32),
        ("size", "1"),
        ("size", True),
        ("depth", 2000),
        ("depth", None),
        ("kind", "other"),
        ("verify", 1),
        ("seed", -1),
        ("messages", 1.5),
        ("test", []),
    ],
)
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=name):
        TestParams.from_json({**GOOD.as_json(), name: value})


# -- stopping


async def test_work_within_the_grace_still_counts():
    stop = Stop()
    asked: list[int] = []
    going_on = asyncio.Event()

    def on_request() -> None:
        asked.append(1)
        going_on.set()

    async def work() -> int:
        await going_on.wait()
        return 7

    asyncio.get_running_loop().call_soon(stop.request, "why")
    assert await stop.within(work(), 1.0, on_request) == 7
    assert asked == [1]


async def test_work_beyond_the_grace_is_cancelled():
    stop, cancelled = Stop(), []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(1)
            raise

    asyncio.get_running_loop().call_soon(stop.request, "why")
    with pytest.raises(CliError, match="why"):
        await stop.within(work(), 0.01)
    assert cancelled == [1]


# -- modules and stdout


def test_importing_the_commands_is_light():
    """scapy and rich cost a second; neither is needed to print --help or to send over udp."""
    code = (
        "import sys, mrc, mrc.cli.client, mrc.cli.server, mrc.cli.send, mrc.cli.recv;"
        "print([m for m in ('scapy', 'rich', 'numpy') if m in sys.modules])"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_long_output_survives_a_full_non_blocking_pipe(unbuffered: str) -> None:
    """A pipe takes 64 KiB; the rest must wait for its reader, not vanish."""
    script = (
        "import os, sys; os.set_blocking(1, False); from mrc.cli.output import Lines;"
        "Lines(sys.stdout).write('x' * 300_000)"
    )
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=env) as child:
        assert child.stdout is not None
        deadline = time.monotonic() + 30
        held = bytearray(4)
        while int.from_bytes(held, sys.byteorder) < 65536:  # full: the writer has to wait
            assert time.monotonic() < deadline
            fcntl.ioctl(child.stdout.fileno(), termios.FIONREAD, held)
        assert child.stdout.read() == b"x" * 300_000 + b"\n"
    assert child.returncode == 0


# -- the end of a connection


class ClosingOutlet:
    """An outlet whose connection refuses every write but the first, as close() makes it."""

    def __init__(self) -> None:
        self.link = types.SimpleNamespace(fail=self._fail)
        self.failures: list[BaseException] = []
        self.flight: asyncio.Future[Any] | None = None

    def _fail(self, error: BaseException) -> None:
        self.failures.append(error)

    def write(self, length: int, imm: int | None) -> asyncio.Future[Any]:
        if self.flight is not None:
            raise MrcUsageError("the connection is closed")
        self.flight = asyncio.get_running_loop().create_future()
        return self.flight


async def test_a_credit_that_completes_while_the_connection_closes_is_no_crash():
    loop = asyncio.get_running_loop()
    crashes: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: crashes.append(context))
    outlet: Any = ClosingOutlet()
    credit = CreditReturn(outlet)
    credit.advance(1)
    credit.advance(2)  # waits for the credit in flight
    outlet.flight.set_result(None)
    await asyncio.sleep(0)
    assert crashes == []
    assert [str(error) for error in outlet.failures] == ["the connection is closed"]
