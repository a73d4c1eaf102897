# SPDX-License-Identifier: BSD-2-Clause
"""Bytes by TCP or MPTCP, or through a pipe to and from a program that speaks another protocol.

    stream.py recv tcp|mptcp ADDRESS PORT        stream.py send tcp|mptcp ADDRESS PORT
    stream.py sink PROGRAM ...                   stream.py source PROGRAM ...

``recv`` and ``sink`` sample what they have read, each 5 ms; ``sink`` reads what the program writes
to its standard output, ``source`` writes to its standard input.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys

from tools.scorecard.ends.common import Samples, Stop, ready, report

BLOCK = 1 << 20
PROTOCOL = {"tcp": socket.IPPROTO_TCP, "mptcp": 262}


def main(argv: list[str]) -> int:
    """The command line above."""
    stop = Stop()
    match argv:
        case ["recv", kind, address, port]:
            _receive(kind, (address, int(port)), stop)
        case ["send", kind, address, port]:
            _send(kind, (address, int(port)), stop)
        case ["sink" | "source" as role, *program] if program:
            _beside(program, stop, source=role == "source")
        case _:
            print(__doc__, file=sys.stderr)
            return 1
    return 0


def _receive(kind: str, at: tuple[str, int], stop: Stop) -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM, PROTOCOL[kind]) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(at)
        listener.listen()
        ready()
        while not stop.set:
            if select.select([listener], [], [], 0.1)[0]:
                with listener.accept()[0] as conn:
                    _drain(conn.fileno(), stop)
                return


def _send(kind: str, to: tuple[str, int], stop: Stop) -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM, PROTOCOL[kind]) as sock:
        sock.connect(to)
        ready()
        tcp_cc = ""
        if kind == "tcp":
            name = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
            tcp_cc = name.rstrip(b"\0").decode()
        error = _fill(sock.fileno(), stop)
        report(congestion=tcp_cc, error=error)


def _beside(program: list[str], stop: Stop, *, source: bool) -> None:
    """Fill or drain a program of somebody else's."""
    pipe = subprocess.PIPE
    streams = (pipe, None) if source else (None, pipe)
    with subprocess.Popen(program, stdin=streams[0], stdout=streams[1]) as process:
        ready()
        try:
            if source:
                assert process.stdin is not None
                report(error=_fill(process.stdin.fileno(), stop))
            else:
                assert process.stdout is not None
                _drain(process.stdout.fileno(), stop)
        finally:
            process.kill()


def _drain(fd: int, stop: Stop) -> None:
    """Read to the end, sampling."""
    os.set_blocking(fd, False)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    block = bytearray(BLOCK)
    samples, total, error = Samples("delivered"), 0, ""

    def read() -> tuple[int, ...]:
        return (total,)

    while not stop.set:
        samples.due(read)
        if not poll.poll(samples.wait_ms()):
            continue
        try:
            got = os.readv(fd, [block])
        except BlockingIOError:
            continue
        except OSError as problem:
            error = str(problem)
            break
        if not got:
            break
        total += got
    samples.take(read)
    report(samples, error=error)


def _fill(fd: int, stop: Stop) -> str:
    """Write until told to stop; the error that ended it, if one did."""
    os.set_blocking(fd, False)
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    block = os.urandom(BLOCK)
    while not stop.set:
        if not poll.poll(100):
            continue
        try:
            os.write(fd, block)
        except BlockingIOError:
            continue
        except OSError as problem:
            return str(problem)
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
