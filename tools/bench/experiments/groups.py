# SPDX-License-Identifier: BSD-2-Clause
"""Which cost stands in the way, and would this remove it? One row for each question.

No row is wanted to be anything: all are ratios to the bare loops of the same round.
"""

from __future__ import annotations

from typing import NamedTuple

from tools.bench.bare import PING, WAKE, WALK, bare, bare_raw, longest_train, ping
from tools.bench.experiments.rows import (
    frames,
    hand,
    never,
    no_ring,
    no_uring,
    nothing,
    uring_recv,
    uring_send,
    with_source,
    work,
)
from tools.bench.method import Group, Method, Unit, nothing_missing
from tools.bench.ours import application, command, mem, once

FULL, SMALL, LANES = 4096, 64, 16
TRAIN = longest_train(FULL)
GSO, SINGLE = f"bare-gso{TRAIN}", "bare-single"
COLUMNS = (Unit.GBPS, Unit.SEND, Unit.RECV, Unit.CPU, Unit.LOSS)


def _gso() -> Method:
    loop = bare(FULL, lanes=LANES, train=TRAIN, batch=1)
    return Method(GSO, f"the bare GSO loop, trains of {TRAIN}", loop)


def _single() -> Method:
    return Method(SINGLE, "the bare loop of single datagrams", bare(FULL, lanes=LANES))


def _kernel() -> Group:
    rows = (
        _gso(),
        _single(),
        Method(f"uring-gso{TRAIN}", "trains by io_uring, 4 a call: is it the call?",
               uring_send(FULL, TRAIN, 4), no_uring),
        Method(f"uring-zc{TRAIN}", "and SEND_ZC from registered memory: is it the copy?",
               uring_send(FULL, TRAIN, 4, "-z"), no_uring),
        Method("uring-single", "single datagrams by io_uring, 16 a call: is it the call?",
               uring_send(FULL, 1, 16), no_uring),
        Method("single-order", "single datagrams, a call and the next socket for each: what is"
               " their order?", bare(FULL, lanes=LANES, batch=1)),
        Method("uring-order", "the next socket for each, 16 a call by io_uring: is it the call?",
               uring_send(FULL, 1, 16, "-i"), no_uring),
        Method("single-tunsrc", "a given source of outer headers: is it choosing one?",
               with_source(bare(FULL, lanes=LANES))),
        Method("uring-recv", "multishot receive by io_uring: is it the receiver's call?",
               uring_recv(FULL, TRAIN), no_uring),
        Method(f"zerocopy{TRAIN}", "MSG_ZEROCOPY with trains: is it the sender's copy?",
               work(FULL, TRAIN, 1, send="-Z")),
        Method("headers-only", "a receiver that copies no data: is it the receiver's copy?",
               work(FULL, TRAIN, 1, recv="-X")),
        Method("uring-zcrx", "io_uring's zero-copy receive", nothing,
               never("wants a network card that splits headers from data")),
    )  # fmt: skip
    title = "Other ways into the kernel, 16 SRv6 lanes"
    return Group("kernel", title, "fabric", rows, COLUMNS, against=(GSO, SINGLE))


class Shape(NamedTuple):
    """What leaves a sender."""

    payload: int
    train: int
    """Datagrams in one."""
    batch: int
    """Trains in a call."""


def _steps(name: str, title: str, shape: Shape, base: Method, ours: Method) -> Group:
    """What a transport cannot leave out, one thing after the other; the last row is ours."""

    def step(row: str, what: str, recv: str, send: str) -> Method:
        return Method(f"{name}-{row}", what, work(*shape, recv, send))

    rows = (
        base,
        step("region", "data gathered from a region larger than the caches", "", "-R"),
        step("place", "and copied to their place at the receiver", "-P", "-R"),
        step("icrc", "and the CRC of the iCRC at both ends", "-P -C", "-R -C"),
        step("answers", "and an answer to each 42 packets", "-P -C -A", "-R -C -A"),
        step("window-1m", "and at most 1 MB unanswered", "-P -C -A", "-R -C -A -W 1000"),
        step("window-4m", "or 4 MB", "-P -C -A", "-R -C -A -W 4000"),
        ours,
    )
    against = (base.name, f"{name}-answers", f"{name}-window-1m")
    return Group(name, title, "fabric" if shape.payload == FULL else "veth", rows, COLUMNS,
                 against=against)  # fmt: skip


def _srv6() -> Group:
    rows = (
        _gso(),
        Method("bare-raw", "the bare raw loop: outer headers of our own", bare_raw(FULL)),
        Method("srv6-single", "the same headers by AF_PACKET, 16 a call",
               frames(FULL, "call", 1, 16), no_ring("call")),
        Method(f"srv6-gso{TRAIN}", "and trains", nothing,
               never("the kernel drops a train in an outer header that is not its own: it would cut"
                     " it before the device, and takes it for no tunnel")),
    )  # fmt: skip
    title = "Outer headers of our own past the raw socket, 16 SRv6 paths"
    return Group("srv6", title, "fabric", rows, COLUMNS, against=("bare-raw", GSO))


def _rings() -> Group:
    rows = (
        _gso(),
        _single(),
        Method("bare-raw", "the bare raw loop: outer headers of our own", bare_raw(FULL)),
        Method("packet-single", "AF_PACKET past the queueing discipline, 16 a call",
               frames(FULL, "call", 1, 16), no_ring("call")),
        Method("packet-ring", "AF_PACKET's ring in shared memory, 16 a call",
               frames(FULL, "ring", 1, 16), no_ring("ring")),
        Method(f"packet-gso{TRAIN}", "headers of our own and trains: AF_PACKET, 4 a call",
               frames(FULL, "call", TRAIN, 4), no_ring("call")),
        Method(f"ring-gso{TRAIN}", "the ring with trains, 4 a call",
               frames(FULL, "ring", TRAIN, 4), no_ring("ring")),
        Method("xdp", "AF_XDP in copy mode, 16 a call: is it the socket?",
               frames(FULL, "xdp", 1, 16), no_ring("xdp")),
        Method("xdp-zero-copy", "AF_XDP without a copy", nothing,
               never("the driver of a veth has no such mode")),
    )  # fmt: skip
    title = "Past the socket: frames of our own, one veth"
    return Group("rings", title, "veth", rows, COLUMNS, against=(GSO, SINGLE, "bare-raw"))


def _wake() -> Group:
    ways = (
        ("spin", "a client that never sleeps: is it the waking?"),
        ("epoll", "epoll_wait before each receive: an event loop's way"),
        ("uring", "send and receive in one call of io_uring: is it the call?"),
        ("eventfd", "a thread receives and wakes the client by eventfd: what is a switch?"),
        ("futex", "the same by futex"),
        ("spin-eventfd", "by eventfd, and the thread never sleeps; both on one core"),
    )
    server = (PING, list[str]())
    rows = (
        Method("bare-ping", "the bare ping-pong, blocking sockets", ping(SMALL)),
        *(
            Method(f"ping-{way}", what, ping(SMALL, server, (WAKE, ["-m", way])),
                   no_uring if way == "uring" else nothing_missing)
            for way, what in ways
        ),
        Method("ping-spin-both", "neither end ever sleeps",
               ping(SMALL, (WAKE, []), (WAKE, ["-m", "spin"]))),
        Method("hand-eventfd", "two threads of one core, no network, both ways", hand("eventfd")),
        Method("hand-futex", "the same by futex", hand("futex")),
    )  # fmt: skip
    title = "Waiting: one datagram of 100 bytes there and back, one veth"
    columns = (Unit.P50, Unit.P99)
    return Group("wake", title, "veth", rows, columns, overhead_s=0.6, against=("bare-ping",))


def _walk() -> Group:
    rows = (
        Method("packet", "a packet of one queue pair, both ends, in memory",
               mem("-s", str(FULL), "-d", "10000", "-w", str(1 << 20))),
        *(
            Method(f"walk-{name}", f"state of {pieces} queue pairs alone, 20 lines of each{more}",
                   once([str(WALK), str(pieces), *options],
                        lambda r: {Unit.NS: r["ns_per_packet"]}))
            for name, pieces, more, options in (
                ("1", 1, "", ()), ("100", 100, "", ()), ("1000", 1000, "", ()),
                ("10000", 10000, "", ()), ("10000-huge", 10000, ", large pages", ("-H",)),
            )
        ),
    )  # fmt: skip
    title = "What it costs that the state of many queue pairs is in memory"
    return Group("walk", title, None, rows, (Unit.NS,), overhead_s=0.3, against=("packet",))


def experiments() -> list[Group]:
    """All of them, in the order in which they run."""
    bulk = Method("mrc", "mrc-send as it is", command())
    spray = Method("mrc-single", "mrc-send --train 1", command("--train", "1"))
    small = Method("mrc-c", "an application in C on the pump",
                   application("-s", str(SMALL), "-d", "1024"))  # fmt: skip
    tiny = Method("bare-gso16", "the bare GSO loop, trains of 16",
                  bare(SMALL, lanes=LANES, train=16, batch=1))  # fmt: skip
    left = "cannot leave out, 16"
    return [
        _kernel(),
        _srv6(),
        _steps("steps", f"What bulk {left} SRv6 lanes", Shape(FULL, TRAIN, 1), _gso(), bulk),
        _steps("steps1", f"What single packets {left} SRv6 lanes", Shape(FULL, 1, 16), _single(),
               spray),
        _steps("steps64", f"What writes of 64 bytes {left} lanes", Shape(SMALL, 16, 1), tiny,
               small),
        _rings(),
        _wake(),
        _walk(),
    ]  # fmt: skip
