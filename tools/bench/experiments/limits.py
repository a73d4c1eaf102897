# SPDX-License-Identifier: BSD-2-Clause
"""For each target that may stay out of reach: which cost stands in the way, what was tried.

Words only. All figures come from the document of a bench; whether something helps is for the
ratio to say.
"""

from __future__ import annotations

from dataclasses import dataclass

GSO, SINGLE = "bare-gso15", "bare-single"


@dataclass(frozen=True, slots=True)
class Trial:
    """A row of an experiment, and the row that it is compared with; none: the figure itself."""

    group: str
    row: str
    against: str


@dataclass(frozen=True, slots=True)
class Limit:
    """What is known of one or several targets."""

    title: str
    targets: tuple[str, ...]
    """How their names begin."""
    cost: str
    tried: tuple[Trial, ...]
    remedy: str

    def explains(self, target: str) -> bool:
        """Whether a target is one of these."""
        return target.startswith(self.targets)


def _trials(group: str, against: str, *rows: str) -> tuple[Trial, ...]:
    return tuple(Trial(group, row, against) for row in rows)


def _steps(name: str, base: str, ours: str) -> tuple[Trial, ...]:
    order = ("region", "place", "icrc", "answers", "window-1m", "window-4m")
    steps = _trials(name, base, *(f"{name}-{step}" for step in order))
    return (*steps, Trial(name, ours, f"{name}-answers"), Trial(name, ours, f"{name}-window-1m"))


KNOWN = (
    Limit(
        "Bulk",
        ("bulk, ", "thread mode, ", "CPU per GB, "),
        "The bare loop sends one buffer that stays in the cache, and its receiver looks at nothing."
        " The rows `steps-...` add, each to all before it, what a reliable transport cannot leave"
        " out. What the bare loop has left after `steps-answers` is all that any transport with"
        " these duties could have of it on two cores; what lies between `steps-answers` and"
        " `steps-window-1m` is that two ends that wait for each other sleep and are woken; what"
        " `mrc` has less than both is what MRC itself adds: order, loss, congestion, paths, and"
        " Python. In thread mode each end is two threads, and here they have one core: what their"
        " taking turns costs is the difference of `mrc-uvloop` and `mrc-thread`, and without Python"
        " of `mrc-c` and `mrc-c-thread`.",
        (
            *_steps("steps", GSO, "mrc"),
            *_trials("kernel", GSO, "uring-gso15", "uring-zc15", "zerocopy15", "uring-recv",
                     "headers-only", "uring-zcrx"),
            *_trials("rings", GSO, "packet-gso15", "ring-gso15"),
            *_trials("ways", "", "mrc-uvloop", "mrc-thread", "mrc-c", "mrc-c-thread"),
        ),
        "what stands in the table as better. A copy saved at the sender is worth nothing while the"
        " packets end in a socket of the same machine, for the kernel then copies after all"
        " (`copied` in the samples); over a network card it is another question. The CRC and the"
        " copy of the receiver can be one pass, or the card's. Trains past the UDP socket"
        " (`packet-gso15`, `ring-gso15`) want CAP_NET_RAW and the next hop's address, and the"
        " routes of a path then are the program's business. For thread mode, a core for each of its"
        " threads.",
    ),
    Limit(
        "Single packets",
        ("per packet, ",),
        "Each datagram is a walk through the stack at the sender, through three hops, and at the"
        " receiver: that is nearly all of it, and the bare loop pays it too. The bare loop shares a"
        " system call among sixteen for one path; ours has one for each, so that they leave in the"
        " order of their paths, which is the row `single-order`. What MRC adds stands in the rows"
        " `steps1-...`.",
        (
            *_steps("steps1", SINGLE, "mrc-single"),
            *_trials("kernel", SINGLE, "single-order", "uring-order", "uring-single",
                     "single-tunsrc", GSO),
            *_trials("rings", SINGLE, "packet-single", "packet-ring", "xdp", "xdp-zero-copy"),
        ),
        "a source that is given (`ip sr tunsrc set`), as far as its row says; beyond that not a"
        " cheaper call but fewer walks: trains, or a way past the socket (`xdp`,"
        " `packet-ring`) on a wire that is not the same machine's stack again.",
    ),
    Limit(
        "Outer headers of our own",
        ("raw uSID",),
        "A raw socket takes one packet at a time: no trains, a route looked up for each, and at the"
        " receiver no merging.",
        (
            *_trials("srv6", "bare-raw", "srv6-single", "srv6-gso15", GSO),
            *_trials("rings", "bare-raw", "packet-single", "packet-ring", "xdp", "packet-gso15"),
        ),
        "letting the kernel write the outer header (the `udp` backend over its SRv6 routes, which"
        " is the row of the bare GSO loop here), or a network card that cuts a train inside a"
        " tunnel. A train in an outer header that the program wrote is what this kernel"
        " refuses.",
    ),
    Limit(
        "Latency",
        ("64 B write, ",),
        "Most of a round trip is waking: a packet is handed to a core that sleeps, twice."
        " `ping-spin` and `ping-spin-both` say what is left when one end or both never sleep;"
        " `ping-epoll`, `ping-eventfd` and `ping-futex` what an event loop or a second thread adds"
        " to the bare ping-pong; `hand-...` what two switches of threads cost.",
        (
            *_trials("wake", "bare-ping", "ping-spin", "ping-spin-both", "ping-epoll", "ping-uring",
                     "ping-eventfd", "ping-futex", "ping-spin-eventfd"),
            *_trials("wake", "", "bare-ping", "hand-eventfd", "hand-futex"),
        ),
        "a core for each end that never sleeps. With threads, a completion without a switch: the"
        " application looks for it itself instead of being woken.",
    ),
    Limit(
        "Small writes",
        ("64 B writes / ", "million 64 B writes"),
        "With 64 bytes in a packet there is no work on data to speak of, and the bare loops do none"
        " for a packet: sixteen of them are one message. MRC makes a header, a place, an"
        " acknowledgement and a completion for each. The rows `steps64-...` are the bare loop with"
        " the work that no transport can leave out; `make bench-core` counts the instructions of"
        " ours.",
        (*_steps("steps64", "bare-gso16", "mrc-c"), *_trials("mem", "", "mem-c", "mem-python")),
        "several writes in one packet, which the protocol does not have; or fewer instructions for"
        " a message that is its own first and last packet.",
    ),
    Limit(
        "Many queue pairs, many entropy values",
        ("10,000 queue pairs", "4,096 entropy values"),
        "10,000 writes are in flight. In one queue pair their packets follow each other: a SACK, a"
        " transport ACK, a turn and a timer serve all that came together. In 10,000 queue pairs"
        " each has one write, and a write of one packet has all of these for itself; in writes of"
        " 64 KiB sixteen packets share them. That the state of many is not in the cache costs what"
        " the rows `walk-...` say, which go round as many pieces of it without doing anything"
        " else.",
        (
            *_trials("qpscale", "", f"qps-1-{64 << 10}", f"qps-10000-{64 << 10}", "qps-1-4096",
                     "qps-10000-4096", "qps-1-64", "qps-10000-64"),
            *_trials("walk", "", "packet", "walk-1", "walk-100", "walk-1000", "walk-10000",
                     "walk-10000-huge"),
        ),
        "longer messages, or more than one under way in a queue pair. An answer that serves several"
        " queue pairs is nothing that the protocol has.",
    ),
    Limit(
        "An idle queue pair",
        ("idle queue pair",),
        "It is a sum, not a speed: what a queue pair keeps while nothing is under way. The second"
        " row has the bitmaps of packet numbers as well.",
        _trials("alone", "", "idle-qp", "idle-qp-all"),
        "lending tables out with the first packet that needs them.",
    ),
)  # fmt: skip
