# SPDX-License-Identifier: BSD-2-Clause
"""The prose of mrc-lab --help."""

ABOUT = """\
A multi-plane fabric on this machine: hosts, T0 and T1 switches as network
namespaces, the kernel's own SRv6 in every switch. Work in its hosts, break
parts of it, heal them. Works as root and, in a user namespace, for an
ordinary user; everything is gone after `mrc-lab down`."""

_TARGETS = """\
targets:
  all                    everything
  plane2                 everything of plane 2
  p1.t1.2                the second T1 switch (spine) of plane 1
  p1.t0.a                the first T0 switch of plane 1
  p1.t0.a--t1.2          a cable; p1.t0.a->t1.2 one direction of it
  h2.port1               the cable of host 2 into plane 1; h2.port1-> what it
                         sends, ->h2.port1 what it receives (quote the arrow)
  h2                     all ports of a host
  ev7                    path number 7 from h1 to h2 (or --pair)
"""

_TIMES = """\
times and values:
  TARGET@3s..5s          from 3 s from now until 5 s from now; @3s: from then on
  TARGET=VALUE           20ms, 500us; 5%, 300ppm; 100mbit. One VALUE at the end
                         of the line is for all targets before it
"""

_CODES = """\
exit codes:
  0    done
  1    the command line cannot be run as given, or there is no such lab
       (for `down`: then there is nothing to do, 0)
  2    something failed that should not have
  4    this machine lacks something (named: a privilege, a sysctl, a tool, an
       stdout that takes what is said: what was asked for is done all the same)
  130  stopped by Ctrl-C or SIGTERM: what was being built is gone; or nobody
       reads stdout any more
  `exec` ends with the exit code of its command
"""

_FILES = """\
environment:
  MRC_LAB        name of the lab, where --name is not given; set by exec, with
                 MRC_LAB_HOST (h1, ..) and MRC_LAB_FOLDER
  XDG_RUNTIME_DIR  its folder mrc-lab notes the labs of this user; else
                 /run/mrc-lab (root), /tmp/mrc-lab-UID (others)
"""

EPILOG = f"""\
examples:
  mrc-lab up --rate 500mbit
  mrc-lab exec h2 -- mrc-recv &
  mrc-lab exec h1 -- mrc-send h2 -t 10 --fail p1.t1.2@3s --heal @6s
  mrc-lab loss ev7 5%
  mrc-lab fail --visible h1.port2 --for 2s
  mrc-lab heal
  mrc-lab status
  mrc-lab down

`mrc-lab VERB --help` says more of each.

{_TARGETS}
{_CODES}
{_FILES}"""

UP = """\
Build a fabric and return; it stays until `mrc-lab down`.

Every host has one port per plane, every plane is a two-tier fabric of its own:
each T0 switch has a cable to each T1 switch (spine). A path is a plane and a
spine, and has a UDP source port (49152 + number) that leads to it. TCP between
hosts takes a management network that no fault touches."""

UP_EPILOG = """\
examples:
  mrc-lab up                               2 hosts, 4 planes x 4 spines
  mrc-lab up --rate 500mbit --queue 200KB  ports with a rate and a real queue
  mrc-lab up --planes 2 --hosts 8 --t0 2   8 hosts, 4 under each T0
  mrc-lab up --name second                 beside the first one

Ports have a rate only if --rate is given. Marks, trims, corrupted packets need
root, clang at build time and a kernel with BPF; all else works without."""

_FAULTS = {
    "fail": (
        "packets vanish, carriers stay (or, --visible, do not)",
        """\
Packets vanish, carriers stay: nobody is told (a silent black hole).
With --visible the carrier is lost, which both ends of the cable see.""",
    ),
    "loss": (
        "a share of the packets vanishes",
        "That share of the packets vanishes, each by itself.",
    ),
    "corrupt": (
        "a share of the packets is damaged",
        "Of that share of the packets one bit is flipped, which the iCRC finds.",
    ),
    "trim": (
        "a share of the data packets is cut to headers",
        """\
That share of the data packets is cut to its headers and forwarded as TRIMMED,
as a switch does that has no room. Only data between two ends with --backend
raw may be cut: through a UDP socket nobody sees that a packet was.""",
    ),
    "delay": ("packets take longer", "Packets take so much longer on the way."),
    "rate": ("links have another rate", "The links have that rate."),
    "flap": (
        "down and up, again and again",
        """\
Down for half of each period, up for the other: carriers come and go.
With --silent packets vanish and carriers stay.""",
    ),
    "reboot": (
        "a switch is away for a while",
        "A switch is gone for that time, its carriers lost, and comes back.",
    ),
}


def fault(kind: str) -> tuple[str, str]:
    """What a fault is: in a line, and at the head of its help."""
    return _FAULTS[kind]


FAULT_EPILOG = f"""\
{_TARGETS}
{_TIMES}
A fault stays until it is healed, unless it has an end. Faults that meet on a
link add up: losses are independent, delays add, the lowest rate holds."""

HEAL = """\
End faults that have begun and lie wholly within the targets; without a target
all, and drop those to come: each is named."""

HEAL_EPILOG = f"""\
{_TARGETS}
It is done at once. A fault ends by itself with --for TIME or
TARGET@START..END."""

EXEC = """\
Run a command in a host. It sees the host's interfaces and addresses; files,
user and terminal are yours. mrc-send and mrc-recv find the names of the hosts
and the paths by themselves there."""

EXEC_EPILOG = """\
examples:
  mrc-lab exec h2 -- mrc-recv -1 &
  mrc-lab exec h1 -- mrc-send h2 --fail p1.t1.2@3s --heal @5s
  mrc-lab exec h1 -- ip -6 route show table 1000
  mrc-lab exec h1 -- bash"""

RUN = """\
Run scenarios: build a lab of the shape each asks for, start mrc-recv and
mrc-send in its hosts, break what is to break when it is due, say what came of
it, and remove the lab. Scenario files, report and record are those of
python -m mrc.sim; --list names the scenarios that a lab can run. Cases a lab
cannot do are refused before anything starts."""

RUN_EPILOG = """\
examples:
  mrc-lab run my.toml
  mrc-lab run t1-switch-reboot --set fabric.planes=2 --json run.json
  mrc-lab run my.toml --case main --figure out.svg

Exit codes: 0 every expectation is met; 2 one is not; else as of the others."""

STATUS = """\
What is up, and what is wrong in it. Also removes what a crash has left."""

DOWN = """\
Stop what runs in the hosts, remove the fabric and everything noted of it.
Also removes what a crash has left. A lab that is not there is down already:
said, and no error. Not from inside of its hosts, where it would end itself."""
