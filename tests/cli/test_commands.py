# SPDX-License-Identifier: BSD-2-Clause
"""Both programs as processes, over real sockets on ::1."""

from __future__ import annotations

import hashlib
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from mrc.cli.exits import Exit

from .schema import check_document, check_end, check_interval, strict

LIMIT_S = 60
SEND_KEYS = {"sum_sent", "sum_received", "cpu_utilization_percent", "verified", "paths", "mrc"}


class Program:
    """A command that runs; its stderr and stdout are collected by `finish`."""

    def __init__(self, module: str, args: list[str], **more) -> None:
        self.process = subprocess.Popen(
            [*more.pop("prefix", []), sys.executable, "-m", f"mrc.cli.{module}", *args],
            stdout=more.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            text=True,
            **more,
        )
        self.out = self.err = ""

    def line(self, stream, pattern: str) -> re.Match[str]:
        """Read lines until one matches; AssertionError after a limit or at the end."""
        until = time.monotonic() + LIMIT_S
        seen = [""]
        # Byte by byte: what a text stream reads ahead would be hidden from select.
        while time.monotonic() < until:
            if not select.select([stream], [], [], 0.2)[0]:
                continue
            byte = os.read(stream.fileno(), 1)
            if not byte:
                break
            seen[-1] += byte.decode("latin-1")
            if byte != b"\n":
                continue
            if match := re.search(pattern, seen[-1]):
                return match
            seen.append("")
        raise AssertionError(f"no {pattern!r} in {seen}")

    def finish(self) -> int:
        out, err = self.process.communicate(timeout=LIMIT_S)
        self.out += out or ""
        self.err += err or ""
        assert "Traceback" not in self.err, self.err
        return self.process.returncode

    def json(self, sender: bool = False):
        document = strict(self.out)
        check_document(document, sender)
        return document

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate(timeout=LIMIT_S)


class Network:
    """Starts programs and ends what is left of them."""

    def __init__(self) -> None:
        self.programs: list[Program] = []

    def start(self, module: str, args: str, **more) -> Program:
        self.programs.append(Program(module, args.split(), **more))
        return self.programs[-1]

    def receiver(self, args: str = "-1 -i 0 --json", **more) -> tuple[Program, str]:
        """A receiver that listens, and the sender's first arguments to reach it."""
        program = self.start("recv", f"-B ::1 -p 0 {args}", **more)
        stream = program.process.stderr if "--json" in args else program.process.stdout
        port = program.line(stream, r"listening on \[::1\]:(\d+)")[1]
        return program, f"::1 -p {port}"

    def sender(self, args: str, **more) -> Program:
        """A sender run to its end."""
        program = self.start("send", args, **more)
        program.finish()
        return program


@pytest.fixture
def net() -> Iterator[Network]:
    network = Network()
    yield network
    for program in network.programs:
        program.stop()


LOADS = [
    "-s 256k -n 40",
    "-s 64k -n 20 -P 3 --bidir",
    "-s 256k -n 40 --no-verify",
    "-n 50 --latency",
    "--sweep 1k:8k -n 10",
    "-s 64k -n 100 --start-psn 0xfffff0",
    "-s 64k -n 20 -e 3 --cc fixed --window 256k --train 4 --mtu 1024",
]


@pytest.mark.parametrize(
    ("load", "loop"),
    [*((load, "uvloop") for load in LOADS), *((load, "asyncio") for load in LOADS[:2])],
)
def test_loads_over_real_sockets(net, load, loop):
    """Field reports 60, 63, 72, 73: the same behaviour and the same fields on both loops."""
    recv, to = net.receiver(f"-1 -i 0 --json --loop {loop}")
    send = net.sender(f"{to} {load} --json --loop {loop}")
    assert send.process.returncode == Exit.OK, send.err
    assert recv.finish() == Exit.OK, recv.err
    end = send.json(sender=True)["end"]
    assert set(end) >= SEND_KEYS
    assert end["verified"] is ("--no-verify" not in load)
    assert end["sum_received"]["bytes"] == end["sum_sent"]["bytes"] > 0
    report = recv.json()
    tests = [report, *report.get("previous", [])]
    assert sum(t["end"]["sum_received"]["bytes"] for t in tests) == end["sum_received"]["bytes"]
    assert end["mrc"]["packets_sent"] >= sum(p["packets_sent"] for p in end["paths"]) > 0


def test_a_file_arrives_equal(net, tmp_path):
    content = os.urandom(5_000_001)
    (tmp_path / "data.bin").write_bytes(content)
    (tmp_path / "in").mkdir()
    recv, to = net.receiver(f"-1 -i 0 --json -o {tmp_path}/in")
    send = net.sender(f"{to} --json --file {tmp_path}/data.bin")
    assert (send.process.returncode, recv.finish()) == (Exit.OK, Exit.OK)
    assert (tmp_path / "in" / "data.bin").read_bytes() == content
    report = send.json(sender=True)["end"]["files"][0]
    assert report["received_sha256"] == hashlib.sha256(content).hexdigest()


def test_the_receiver_streams_while_the_test_runs(net):
    """Wished for of iperf3 for years: output from the server before the end."""
    recv, to = net.receiver("-1 -i 0.1 --json-stream")
    send = net.start("send", f"{to} -t 30 -i 0.1 --json-stream")
    for program in (recv, send):
        program.line(program.process.stdout, r'"event": "start"')
        program.line(program.process.stdout, r'"event": "interval"')
    send.process.send_signal(signal.SIGINT)
    assert send.finish() == Exit.INTERRUPTED
    assert recv.finish() == Exit.OK
    events = [strict(line) for line in send.out.splitlines()]
    assert [set(event) for event in events] == [{"event", "data"}] * len(events)
    assert [e["event"] for e in events][-2:] == ["end", "error"]
    check_end(events[-2]["data"], sender=True)
    for event in events[:-2]:
        check_interval(event["data"])
    assert [strict(line)["event"] for line in recv.out.splitlines()][-1] == "end"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_an_interrupted_run_reports_what_it_measured(net, number):
    recv, to = net.receiver("-1 -i 0.1 --json-stream")
    send = net.start("send", f"{to} -t 30 -i 0.1 --json")
    recv.line(recv.process.stdout, r'"event": "interval"')
    send.process.send_signal(number)
    assert send.finish() == Exit.INTERRUPTED
    document = send.json(sender=True)
    assert document["error"] == f"interrupted by {number.name}"
    assert document["end"]["sum_received"]["bytes"] > 0
    assert recv.finish() == Exit.OK


def test_an_interrupted_receiver_ends_both(net):
    recv, to = net.receiver("-i 0.1 --json")
    send = net.start("send", f"{to} -t 30 -i 0.1 --json-stream")
    send.line(send.process.stdout, r'"event": "interval"')
    recv.process.send_signal(signal.SIGTERM)
    assert recv.finish() == Exit.INTERRUPTED
    assert send.finish() == Exit.PEER
    assert "stopped" in send.err
    assert recv.json()["end"]["sum_received"]["bytes"] > 0


def test_an_idle_receiver_stops_with_valid_json(net):
    recv, _ = net.receiver("-i 0 --json")
    recv.process.send_signal(signal.SIGINT)
    assert recv.finish() == Exit.INTERRUPTED
    assert recv.json() == {"start": {}, "intervals": [], "end": {}}


def test_a_killed_sender_is_reported_and_the_next_one_served(net):
    """Field report 74."""
    recv, to = net.receiver("-i 0.1 --json-stream --idle-timeout 20")
    send = net.start("send", f"{to} -t 30 -i 0")
    recv.line(recv.process.stdout, r'"event": "interval"')
    began = time.monotonic()
    send.process.kill()
    recv.line(recv.process.stdout, r'"event": "error", "data": "the client was lost')
    assert time.monotonic() - began < 20  # at once, in truth; never later than the idle timeout
    assert net.sender(f"{to} -s 64k -n 20").process.returncode == Exit.OK
    recv.process.send_signal(signal.SIGTERM)
    assert recv.finish() == Exit.INTERRUPTED


def test_a_killed_receiver_ends_the_sender(net):
    recv, to = net.receiver("-i 0.1 --json-stream")
    send = net.start("send", f"{to} -t 30 -i 0 --json")
    recv.line(recv.process.stdout, r'"event": "interval"')
    recv.process.kill()
    assert send.finish() == Exit.PEER
    document = send.json(sender=True)
    assert "vanished" in document["error"]
    assert document["end"]["verified"] is False
    assert document["end"]["sum_sent"]["bytes"] > 0


def test_strangers_disturb_nothing(net):
    """Bytes that are no MRC on the TCP and the UDP port, while a test runs."""
    recv, to = net.receiver("-1 -i 0 --json")
    send = net.start("send", f"{to} -t 2 -i 0.1 --json-stream")
    start = send.line(send.process.stdout, r'"event": "start".*"remote_port": (\d+)')
    tcp_port = int(to.split()[-1])
    with (
        socket.create_connection(("::1", tcp_port)) as mute,
        socket.create_connection(("::1", tcp_port)) as loud,
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as udp,
    ):
        loud.sendall(b"GET / HTTP/1.1\r\n\r\n" * 50)
        for size in (0, 1, 12, 100, 1400):
            udp.sendto(os.urandom(size), ("::1", int(start[1])))
        assert send.finish() == Exit.OK
        mute.close()
    assert recv.finish() == Exit.OK
    assert strict(send.out.splitlines()[-1])["data"]["verified"] is True


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ("nosuch.invalid", Exit.PEER, "unknown host"),
        ("::1 -p 1", Exit.PEER, "Connection refused"),
        ("127.0.0.1", Exit.USAGE, "IPv6"),
        ("fe80::1", Exit.USAGE, "needs a zone, e.g. fe80::1%eth0"),
        ("::1 -B fe80::1", Exit.USAGE, "needs a zone, e.g. fe80::1%eth0"),
        ("fe80::1%nodev", Exit.ENVIRONMENT, "no interface nodev"),
    ],
)
@pytest.mark.parametrize("form", ["", "--json"])
def test_a_sender_that_cannot_begin(net, args, code, words, form):
    send = net.sender(f"{args} {form}")
    assert send.process.returncode == code
    assert words in send.err
    if form:
        assert words in send.json()["error"]
    else:
        assert send.out == ""


def test_a_port_in_use(net):
    _, to = net.receiver()
    second = net.start("recv", f"-B ::1 -p {to.split()[-1]} --json")
    assert second.finish() == Exit.ENVIRONMENT
    assert "in use" in second.json()["error"]


@pytest.mark.parametrize(
    ("bind", "code", "words"),
    [
        ("fe80::1", Exit.USAGE, "needs a zone, e.g. fe80::1%eth0"),
        ("fe80::1%nodev", Exit.ENVIRONMENT, "no interface nodev"),
    ],
)
def test_a_receiver_without_a_zone(net, bind, code, words):
    recv = net.start("recv", f"-B {bind}")
    assert recv.finish() == code
    assert words in recv.err


def test_a_source_port_in_use_names_the_way_out(net):
    """Here and at the peer, which answers over the ports of the sender."""
    _, to = net.receiver()
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as taken:
        taken.bind(("::1", 0))
        base = taken.getsockname()[1]
        send = net.sender(f"{to} -n 1 -e 1 --sport-base {base}")
    assert send.process.returncode in (Exit.ENVIRONMENT, Exit.PEER)
    assert f"cannot send from [::1]:{base}: Address already in use" in send.err
    assert "--sport-base" in send.err
    assert "Errno" not in send.err


def test_a_sender_names_an_address_that_is_not_ours(net):
    send = net.sender("::1 -p 1 -B 2001:db8::1")
    assert send.process.returncode == Exit.ENVIRONMENT
    assert "local address 2001:db8::1: Cannot assign requested address" in send.err


@pytest.mark.parametrize("command", ["send ::1 -p 1", "recv"])
def test_an_unknown_local_name_is_the_one_named(net, command):
    module, *args = command.split()
    side = net.start(module, " ".join([*args, "-B", "nosuch.invalid"]))
    assert side.finish() == Exit.PEER
    assert "unknown host: nosuch.invalid: " in side.err


def test_an_address_of_another_host(net):
    recv = net.start("recv", "-B 2001:db8::1")
    assert recv.finish() == Exit.ENVIRONMENT
    assert "2001:db8::1" in recv.err


def test_a_profile_error_names_file_and_place(net, tmp_path):
    (tmp_path / "evs.toml").write_text("[[ev]\n")
    send = net.sender(f"::1 --ev-profile {tmp_path}/evs.toml --json")
    assert send.process.returncode == Exit.USAGE
    assert "evs.toml" in send.json()["error"]


@pytest.mark.parametrize("program", ["send ::1", "recv -1 --idle-timeout 5"])
def test_srv6_paths_over_the_udp_backend_are_refused(net, tmp_path, program):
    (tmp_path / "evs.toml").write_text('format = "srv6"\n[[ev]]\nvalue = 49152\ndst = "fcbb::1"\n')
    module, args = program.split(maxsplit=1)
    side = net.start(module, f"{args} -p 1 --backend udp --ev-profile {tmp_path}/evs.toml")
    assert side.finish() == Exit.USAGE
    assert "evs.toml: format srv6 needs the raw backend" in side.err


def test_raw_without_the_capability_names_it(net):
    prefix = []
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        assert setpriv, "util-linux is missing"
        prefix = [setpriv, "--bounding-set", "-net_raw"]
    recv = net.start("recv", "-B ::1 -p 0 --backend raw --json", prefix=prefix)
    assert recv.finish() == Exit.ENVIRONMENT
    assert "CAP_NET_RAW" in recv.json()["error"]


def test_a_reader_that_goes_away_is_no_crash(net):
    """SIGPIPE: mrc-send ... | head -1."""
    _, to = net.receiver()
    read, write = os.pipe()
    send = net.start("send", f"{to} -t 30 -i 0.05 --json-stream", stdout=write)
    os.close(write)
    assert os.read(read, 10)
    os.close(read)
    assert send.finish() == Exit.INTERRUPTED
    assert send.err == "mrc-send: stdout: nobody reads it any more\n"


def test_text_on_a_pipe_has_no_colour_and_all_parts(net):
    _, to = net.receiver("-1 -i 0")
    out = net.sender(f"{to} -t 0.5 -i 0.2 -s 64k").out
    assert "\x1b" not in out
    for part in ("connected to", "Interval", "/sec", "16/16", "49152", "verified: every byte"):
        assert part in out, out
