# SPDX-License-Identifier: BSD-2-Clause
"""What is compared with what, and what is wanted of it."""

from __future__ import annotations

import sys
from dataclasses import replace
from os import sched_getaffinity
from typing import Any

from tools.bench import peers
from tools.bench.bare import CRC, LOAD, WAKE, bare, bare_raw, longest_train, ping
from tools.bench.experiments.groups import experiments
from tools.bench.experiments.rows import spread
from tools.bench.method import Group, Method, Target, Unit
from tools.bench.ours import (
    application,
    command,
    library,
    mem,
    mem_cores,
    mem_library,
    no_thread_mode,
    no_thread_option,
    once,
)

SPIN = "50"
"""How long a pump's thread looks for more, in microseconds: the library's default."""
FULL, SMALL_MTU, SMALL = 4096, 1024, 64
"""Bytes of data in a packet: path MTUs, and a small write."""
MESSAGE = 16 * FULL
"""A message of several packets: what it has of its own is shared among them."""
TRAINS = ("1", "2", "4", "8", "16", "auto")
"""What --train may be told; beyond 15 full packets it is no message that UDP can carry."""
U = Unit
BULK = (U.GBPS, U.LOSS, U.SEND, U.RECV, U.CPU)
OURS = (*BULK, U.TRAIN)
IPERF = ("iperf3",)

IMPORT = """
import json, sys, time
begin = time.perf_counter()
import mrc
taken = time.perf_counter() - begin
print(json.dumps({"seconds": taken, "scapy": "scapy" in sys.modules}))
"""


def _tcp(name: str = "tcp") -> Method:
    return Method(
        name,
        "iperf3, one TCP stream",
        peers.iperf3(),
        peers.not_installed("iperf3"),
        IPERF,
    )


def _udp(payload: int) -> Method:
    what = f"iperf3 UDP, datagrams as long as ours with {payload}"
    missing = peers.not_installed("iperf3")
    return Method("udp", what, peers.iperf3(udp_payload=payload), missing, IPERF)


def _gso(lanes: int, train: int = longest_train(FULL), payload: int = FULL) -> Method:
    what = f"bare loop: {lanes} sockets, trains of {train}, GRO"
    loop = bare(payload, lanes=lanes, train=train, batch=1)
    return Method(f"bare-gso{train}", what, loop)


def _single(lanes: int, payload: int = FULL) -> Method:
    what = f"bare loop: {lanes} sockets, sendmmsg of 16 single datagrams"
    return Method("bare-single", what, bare(payload, lanes=lanes))


def _bulk(evs: int) -> Group:
    title = f"Bulk: 1 MB writes, one queue pair, {evs} SRv6 lanes, trains as they come"
    rows = (
        Method("mrc", "mrc-send as it is", command(evs=evs)),
        Method("mrc-thread", "the same, thread mode", command(evs=evs, pump="thread"),
               no_thread_mode),
        _gso(evs),
        _tcp(),
    )  # fmt: skip
    gso = rows[2].name
    wanted = (
        Target(f"bulk, {evs} lanes / bare GSO loop", U.GBPS, "mrc", gso, 0.80),
        Target(f"bulk, {evs} lanes / one TCP stream", U.GBPS, "mrc", "tcp", 1.0),
        Target(f"CPU per GB, {evs} lanes / TCP", U.CPU, "mrc", "tcp", 1.3, at_least=False),
        Target(f"thread mode, {evs} lanes / bare GSO loop", U.GBPS, "mrc-thread", gso, 0.80),
        Target(f"thread mode, {evs} lanes / one TCP stream", U.GBPS, "mrc-thread", "tcp", 1.0),
    )
    name = "bulk" if evs == 16 else f"bulk{evs}"
    return Group(name, title, "fabric", rows, OURS, wanted)


def _spray() -> Group:
    rows = (
        Method("mrc-single", "mrc-send --train 1", command("--train", "1")),
        _single(16),
        Method("bare-order", "bare loop: a call for each datagram, 16 sockets in turn, as ours",
               bare(FULL, lanes=16, batch=1)),
    )
    wanted = (
        Target("per packet, 16 lanes / bare sendmmsg", U.GBPS, "mrc-single", "bare-single", 0.90),
    )
    title = "Pure spraying: single packets, 16 SRv6 lanes"
    return Group("spray", title, "fabric", rows, OURS, wanted)


def _raw() -> Group:
    rows = (
        Method("mrc-raw", "mrc-send --backend raw, uSID", command(raw=True)),
        Method("bare-raw", "bare loop: one raw socket each, the same headers", bare_raw(FULL)),
    )  # fmt: skip
    wanted = (Target("raw uSID / bare raw loop", U.GBPS, "mrc-raw", "bare-raw", 0.90),)
    return Group("raw", "Outer headers of our own, single packets", "fabric", rows, OURS, wanted)


def _trains() -> Group:
    rows = (
        *(
            Method(f"mrc-train-{n}", f"mrc-send --train {n}", spread(command("--train", n)))
            for n in TRAINS
        ),
        *(replace(loop, run=spread(loop.run)) for loop in (_gso(16), _gso(16, 8), _single(16))),
    )
    columns = (*OURS, U.ROW, U.UNEVEN, U.UNEVEN_MS)
    title = "Lengths of trains, 16 SRv6 lanes"
    return Group("trains", title, "fabric", rows, columns, overhead_s=5.5)


def _evs() -> Group:
    rows = tuple(Method(f"mrc-evs-{n}", f"mrc-send -e {n}", command(evs=n)) for n in (1, 16, 256))
    return Group("evs", "Numbers of entropy values", "fabric", rows, OURS)


def _standard() -> Group:
    mtu = ("--mtu", str(SMALL_MTU))
    rows = (
        Method("mrc-1024", "mrc-send --mtu 1024", command(*mtu)),
        _gso(16, longest_train(SMALL_MTU), SMALL_MTU),
        _single(16, SMALL_MTU),
        _udp(SMALL_MTU),
        _tcp(),
    )
    wanted = (Target("path MTU 1024 / iperf3 UDP", U.GBPS, "mrc-1024", "udp", 3.0),)
    return Group("mtu1500", "Standard links: MTU 1500, one veth", "veth1500", rows, OURS, wanted)


def _mtus() -> Group:
    rows = tuple(
        Method(f"mrc-mtu-{n}", f"mrc-send --mtu {n}", command("--mtu", str(n)))
        for n in (1024, 2048, 4096)
    )
    return Group("mtus", "Path MTUs on one jumbo veth; 4096 is the largest", "veth", rows, OURS)


def _qps() -> Group:
    rows = tuple(
        Method(f"mrc-qps-{n}", f"mrc-send -P {n}", command("-P", str(n))) for n in (1, 4, 64)
    )
    return Group("qps", "Numbers of queue pairs", "fabric", rows, OURS)


def _sizes() -> Group:
    sizes = ((64, "64"), (1024, "1k"), (1 << 14, "16k"), (1 << 18, "256k"), (1 << 20, "1M"),
             (1 << 26, "64M"))  # fmt: skip

    def depth(size: int) -> str:
        return str(min(1024, max(4, (1 << 24) // size)))

    rows = tuple(
        Method(
            f"mrc-size-{name}",
            f"mrc-send -s {name} --depth {depth(size)}",
            command("-s", name, "--depth", depth(size)),
        )
        for size, name in sizes
    )
    return Group("sizes", "Sizes of writes", "fabric", rows, (*OURS, U.MWRITES))


def _ways() -> Group:
    rows = (
        Method("mrc-uvloop", "loop mode on uvloop", command(loop="uvloop", pump="loop")),
        Method("mrc-asyncio", "loop mode on asyncio", command(loop="asyncio", pump="loop")),
        Method("mrc-thread", "thread mode", command(pump="thread"), no_thread_mode),
        Method("mrc-verify", "the receiver compares every byte", command("--verify")),
        Method("mrc-4m", "a window of up to 4 MB", command("--window", "4M")),
        Method("mrc-no-cc", "no congestion control", command("--cc", "none")),
        Method("mrc-c", "an application in C on the pump", application()),
        Method("mrc-c-thread", "the same, thread mode", application("-p", SPIN)),
    )
    return Group("ways", "Ways to run, 16 SRv6 lanes", "fabric", rows, OURS)


def _peers() -> Group:
    rows = (
        Method("mrc", "mrc-send as it is, 16 lanes", command()),
        _tcp(),
        Method("tcp-plain", "iperf3 TCP, no offloads", peers.iperf3(offloads=False),
               peers.no_offload_switch, ("iperf3", "ethtool")),
        _udp(FULL),
        Method("rxd", "libfabric udp;ofi_rxd", peers.rxd(), peers.no_rxd,
               ("libfabric-dev", "libfabric-bin")),
        Method("srt", "srt-live-transmit, file mode", peers.srt(),
               peers.not_installed("srt-live-transmit"), ("srt-tools",)),
        Method("quic", "aioquic, one stream", peers.quic(), peers.no_quic),
    )  # fmt: skip
    wanted = (
        Target("veth / libfabric rxd", U.GBPS, "mrc", "rxd", 3.0),
        Target("veth / aioquic", U.GBPS, "mrc", "quic", 50.0),
        Target("veth / SRT", U.GBPS, "mrc", "srt", 5.0),
        Target("CPU per GB, veth / TCP", U.CPU, "mrc", "tcp", 1.3, at_least=False),
    )
    return Group("peers", "Peers on one jumbo veth", "veth", rows, OURS, wanted, overhead_s=2.2)


def _latency() -> Group:
    rows = (
        Method("bare-ping", "UDP ping-pong in C, blocking sockets", ping(SMALL)),
        Method("bare-spin", "the same, neither end ever sleeps",
               ping(SMALL, (WAKE, []), (WAKE, ["-m", "spin"]))),
        Method("sockperf", "sockperf ping-pong", peers.sockperf(SMALL),
               peers.not_installed("sockperf"), ("sockperf",)),
        Method("mrc-uvloop", "await write(), uvloop", library("latency", "uvloop")),
        Method("mrc-asyncio", "await write(), asyncio", library("latency", "asyncio")),
        Method("mrc-thread", "await write(), thread mode",
               library("latency", "uvloop", pump="thread"), no_thread_option),
        Method("mrc-c", "an application in C that waits in the pump",
               application("-s", str(SMALL), "-d", "1", latency=True)),
        Method("mrc-c-thread", "the same, thread mode",
               application("-s", str(SMALL), "-d", "1", "-p", SPIN, latency=True)),
    )  # fmt: skip
    wanted = (
        Target("64 B write, thread mode, p50 / bare ping-pong", U.P50, "mrc-thread", "bare-ping",
               2.0, at_least=False),
        Target("64 B write, thread mode, p99 / bare ping-pong", U.P99, "mrc-thread", "bare-ping",
               3.0, at_least=False),
        Target("64 B write, loop mode, p50 in us", U.P50, "mrc-uvloop", None, 80, at_least=False),
        Target("64 B write, C on the pump, p50 / bare ping-pong", U.P50, "mrc-c", "bare-ping",
               2.0, at_least=False),
        Target("64 B write, C, thread mode, p50 / bare ping-pong", U.P50, "mrc-c-thread",
               "bare-ping", 2.0, at_least=False),
    )  # fmt: skip
    title = "A 64 B write until it is completed at the sender, one veth"
    return Group("latency", title, "veth", rows, (U.P50, U.P99), wanted)


def _small() -> Group:
    deep = ("-s", str(SMALL), "-d", "1024")
    rows = (
        Method("mrc-c", "an application in C on the pump", application(*deep)),
        Method("mrc-c-thread", "the same, thread mode", application(*deep, "-p", SPIN)),
        Method("mrc-python", "write_nowait(), uvloop", library("pipelined", "uvloop", depth=1024)),
        Method("mrc-thread", "write_nowait(), thread mode",
               library("pipelined", "uvloop", depth=1024, pump="thread"), no_thread_option),
        _single(16, SMALL),
        _gso(16, 16, SMALL),
    )  # fmt: skip
    wanted = (
        Target("64 B writes / bare sendmmsg loop", U.MWRITES, "mrc-c", "bare-single", 0.9),
        Target("64 B writes / bare GSO loop", U.MWRITES, "mrc-c", "bare-gso16", 0.9),
    )
    title = "64 B writes, pipelined, 16 lanes of one veth"
    return Group("small", title, "veth", rows, (U.MWRITES, U.SEND, U.RECV, U.LOSS), wanted)


def _small_mem() -> Group:
    rows = (
        Method("mem-c", "C, both ends in one thread", mem("-s", str(SMALL), "-d", "1024")),
        Method("mem-python", "Python, both ends in one loop", mem_library("uvloop", depth=1024)),
    )
    wanted = (Target("million 64 B writes a second per core, mem", U.MCORE, "mem-c", None, 1.0),)
    title = "64 B writes, pipelined, a wire in memory"
    return Group("mem", title, None, rows, (U.MWRITES, U.MCORE, U.NS), wanted, 0.8)


def _scale_qps() -> Group:
    counts = (1, 100, 1000, 10000)

    def load(payload: int, qps: int) -> Method:
        # The same number of writes in flight, the same window: only the queue pairs differ.
        run = mem("-s", str(payload), "-d", "10000", "-w", str(1 << 20), "-q", str(qps))
        return Method(f"qps-{qps}-{payload}", f"{qps} queue pairs, writes of {payload}", run)

    payloads = (MESSAGE, FULL, SMALL)
    rows = tuple(load(payload, n) for payload in payloads for n in counts)
    wanted = tuple(
        Target(f"10,000 queue pairs / 1, writes of {payload}", U.NS, f"qps-10000-{payload}",
               f"qps-1-{payload}", 1.3, at_least=False)
        for payload in payloads
    )  # fmt: skip
    title = "One load over 1 to 10,000 queue pairs, a wire in memory"
    return Group("qpscale", title, None, rows, (U.NS, U.MWRITES), wanted, 1.0)


def _scale_evs() -> Group:
    counts = (16, 256, 4096)
    rows = tuple(
        Method(
            f"evs-{n}-{payload}",
            f"{n} entropy values, writes of {payload}",
            mem("-s", str(payload), "-d", "1024", "-w", str(1 << 20), "-e", str(n)),
        )
        for payload in (FULL, SMALL)
        for n in counts
    )
    wanted = tuple(
        Target(f"4,096 entropy values / 16, writes of {payload}", U.NS, f"evs-4096-{payload}",
               f"evs-16-{payload}", 1.15, at_least=False)
        for payload in (FULL, SMALL)
    )  # fmt: skip
    title = "One load over 16 to 4,096 entropy values, a wire in memory"
    return Group("evscale", title, None, rows, (U.NS, U.MWRITES), wanted, 0.6)


def _cores() -> Group:
    """Up to the cores there are; a row less where there is one."""
    counts = [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= len(sched_getaffinity(0))]
    deep = ("-s", str(SMALL), "-d", "1024")
    rows = [
        Method(f"cores-{n}", f"{n} pairs of contexts in one process, each on a core",
               mem_cores(n, 1, *deep))
        for n in counts
    ]  # fmt: skip
    wanted: tuple[Target, ...] = ()
    if (most := counts[-1]) > 1:
        rows.append(Method(f"apart-{most}", f"{most} processes, each on a core",
                           mem_cores(most, most, *deep)))  # fmt: skip
        wanted = (
            Target("contexts on all cores / as many processes", U.MWRITES, f"cores-{most}",
                   f"apart-{most}", 0.95),
        )  # fmt: skip
    title = "Several contexts, a core for each, 64 B writes, wires in memory"
    columns = (U.MWRITES, U.MCORE, U.NS)
    return Group("cores", title, None, tuple(rows), columns, wanted, 0.8, against=("cores-1",))


def _idle(report: dict[str, Any]) -> dict[Unit, float]:
    """Bytes beside the bits for each PSN of its window."""
    return {U.BYTES: _whole(report)[U.BYTES] - report["window_bytes"]}


def _whole(report: dict[str, Any]) -> dict[Unit, float]:
    return {U.BYTES: report["qp_bytes"] + report["engine_bytes_per_qp"]}


def _alone() -> Group:
    rows = (
        Method("idle-qp", "bytes of an idle queue pair beside its bitmaps of PSNs",
               once([str(LOAD), "size"], _idle), once=True),
        Method("idle-qp-all", "the same with them", once([str(LOAD), "size"], _whole), once=True),
        Method("icrc", "CRC over full packets, one core",
               once([str(CRC), "0.3"], lambda r: {U.GBYTES: r["gigabytes_per_second"]})),
        Method("import", "import mrc",
               once([sys.executable, "-c", IMPORT],
                    lambda r: {U.SECONDS: r["seconds"], U.SCAPY: float(r["scapy"])})),
    )  # fmt: skip
    wanted = (
        Target("iCRC, GB/s", U.GBYTES, "icrc", None, 8.0),
        Target(
            "idle queue pair beside bitmap, bytes", U.BYTES, "idle-qp", None, 4096, at_least=False
        ),
        Target("import mrc, s", U.SECONDS, "import", None, 0.15, at_least=False),
        Target("import mrc brings scapy", U.SCAPY, "import", None, 0, at_least=False),
    )
    columns = (U.GBYTES, U.BYTES, U.SECONDS, U.SCAPY)
    return Group("alone", "Without a network", None, rows, columns, wanted, -1.5)


def groups() -> list[Group]:
    """All of them, in the order in which they run: those over one kind of link side by side."""
    return [
        _bulk(16),
        _bulk(256),
        _spray(),
        _raw(),
        _trains(),
        _evs(),
        _qps(),
        _sizes(),
        _ways(),
        _standard(),
        _mtus(),
        _peers(),
        _latency(),
        _small(),
        _small_mem(),
        _cores(),
        _scale_qps(),
        _scale_evs(),
        *experiments(),
        _alone(),
    ]
