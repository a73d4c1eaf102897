# SPDX-License-Identifier: BSD-2-Clause
"""mrc-send and mrc-recv inside a lab: names of hosts, its paths, faults on the command line.

Inside is what `mrc-lab exec` has started. Nothing here is imported, nor anything of mrc.lab, by a
command that runs elsewhere and names no fault.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

from mrc.cli.exits import CliError, Exit
from mrc.cli.labshow import spec_of
from mrc.cli.options import Common, RecvOptions, SendOptions
from mrc.cli.output import say
from mrc.cli.parser import EVS, SPORT_BASE
from mrc.fabric import Fault, FaultKind, settle
from mrc.fabric.shape import FabricShape
from mrc.lab.errors import FabricError
from mrc.lab.remote import Remote, host_number
from mrc.lab.state import Place, surroundings
from mrc.units import format_bytes


def _inside() -> tuple[Place, str] | None:
    try:
        return surroundings()
    except FabricError as error:
        raise CliError(Exit.USAGE, str(error)) from None


def _ask(lab: Place, op: str, **arguments: Any) -> dict[str, Any]:
    """One question to the lab we are in."""
    try:
        with Remote(lab) as remote:
            return remote.ask(op, **arguments)
    except ValueError as error:
        raise CliError(Exit.USAGE, str(error)) from None
    except FabricError as error:
        raise CliError(Exit.ENVIRONMENT, str(error)) from None


def send_options(options: SendOptions) -> SendOptions:
    """With what the lab knows filled in. CliError: faults outside of a lab, or none it can do."""
    inside = _inside()
    if inside is None:
        if options.faults:
            kind = options.faults[0].kind
            raise CliError(
                Exit.USAGE,
                f"--{kind} breaks a part of a lab, and this is none: mrc-lab up; "
                "mrc-lab exec h1 -- mrc-send ...",
            )
        return options
    lab, name = inside
    said = _ask(lab, "status")
    me, peer = _hosts(said, name, options.host)
    if options.faults:
        _ask(lab, "check", script=[str(f) for f in options.faults], pair=_pair(said, me, peer))
    if peer is None:
        return options
    address = said["hosts"].get(f"h{peer + 1}", options.host)
    chosen = options.evs is not None or options.sport_base != SPORT_BASE
    if chosen and options.common.backend != "raw":
        _tell_of_strays(options, spec_of(said).shape.path_count(me, peer))
    own = options.common
    common, fits = (own, None) if chosen else _with_profile(own, lab, me, peer)
    found = dataclasses.replace(options, host=address, common=common)
    return found if fits is None else _with_window(found, fits)


def _tell_of_strays(options: SendOptions, paths: int) -> None:
    """Source ports that this lab leads nowhere in particular, all go the same way."""
    wanted = options.evs or EVS
    led = range(SPORT_BASE, SPORT_BASE + paths)
    strays = sum(port not in led for port in range(options.sport_base, options.sport_base + wanted))
    if strays:
        text = f"{strays} of {wanted} EVs have no path of their own, and all take plane 1"
        there = f"this lab has {paths}, from --sport-base {SPORT_BASE} on"
        say("mrc-send", f"warning: {text}: {there}")


def _with_window(options: SendOptions, fits: int) -> SendOptions:
    """With one that the queues of the lab hold, unless another is asked for (ADR 134)."""
    if options.window is not None or options.cc != "nscc":
        return options
    window = max(fits, options.mtu)
    if options.common.output == "human":
        text = f"at most {format_bytes(window)} in flight, which the queues of this lab hold"
        say("mrc-send", f"{text} (--window)")
    return dataclasses.replace(options, window=window)


def recv_options(options: RecvOptions) -> RecvOptions:
    """The same for mrc-recv: by which paths it answers."""
    inside = _inside()
    if inside is None:
        return options
    lab, name = inside
    said = _ask(lab, "status")
    me, _ = _hosts(said, name, "")
    common = options.common
    others = [h for h in range(len(said["hosts"])) if h != me]
    if common.backend == "raw" and len(others) > 1 and _takes_paths(common):
        # Headers of our own name the way to one host: here they are made for whoever comes.
        file = _ask(lab, "answering", src=me)["file"]
        return dataclasses.replace(options, common=dataclasses.replace(common, ev_profile=file))
    shape = spec_of(said).shape
    peer = max(others, key=lambda h: shape.path_count(me, h))  # under its own T0 there are fewer
    common, _ = _with_profile(common, lab, me, peer)
    return dataclasses.replace(options, common=common)


def _hosts(said: dict[str, Any], name: str, peer: str) -> tuple[int, int | None]:
    """Numbers of the host we are in, and of the one named, if it is one of this lab."""
    hosts = dict(said["hosts"])
    me = host_number(name, len(hosts))
    for other, address in hosts.items():
        if peer in (other, address):
            return me, host_number(other, len(hosts))
    if peer[:1] == "h" and peer[1:].isdecimal():
        raise CliError(
            Exit.PEER, f"there is no host {peer} in this lab, which has h1 to h{len(hosts)}"
        )
    return me, None


def _pair(said: dict[str, Any], me: int, peer: int | None) -> tuple[int, int]:
    """The hosts whose paths an `evN` counts."""
    return me, (me + 1) % len(said["hosts"]) if peer is None or peer == me else peer


def _with_profile(common: Common, lab: Place, me: int, peer: int) -> tuple[Common, int | None]:
    """With the paths of the lab, each with its plane, and the window that fits them.

    As it is, and None, where paths were chosen or only one is used.
    """
    if not _takes_paths(common) or me == peer:
        return common, None
    mode = "srv6" if common.backend == "raw" else "udp"
    said = _ask(lab, "profile", src=me, dst=peer, mode=mode)
    return dataclasses.replace(common, ev_profile=said["file"]), said.get("window")


def _takes_paths(common: Common) -> bool:
    return common.ev_profile is None and common.mode != "rc"


class InlineFaults:
    """The faults of one run of mrc-send. They end with it, however it ends."""

    def __init__(self, options: SendOptions) -> None:
        """Asks the lab nothing yet."""
        self._faults = options.faults
        self._host = options.host
        self._remote: Remote | None = None
        self._clock_ns = 0
        self._end_ns = 0
        self._idle_heals: list[Fault] = []
        self._numbers: list[int] = []
        self._begun: set[int] = set()
        self._new: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        """All that began or ended: t in seconds of the run, what, on, late_ms."""

    def start(self, clock_ns: int) -> None:
        """Play the script; its second 0 is `clock_ns` of CLOCK_MONOTONIC."""
        inside = _inside()
        if inside is None or self._remote is not None:
            return
        lab, name = inside
        said = _ask(lab, "status")
        self._clock_ns = clock_ns
        pair = _pair(said, *_hosts(said, name, self._host))
        script = [str(fault) for fault in self._faults]
        self._idle_heals = idle_heals(self._faults, spec_of(said).shape, pair)
        try:
            self._remote = Remote(lab)
            answer = self._remote.ask(
                "faults", script=script, pair=pair, bound=True, start_ns=clock_ns
            )
            self._numbers = answer["numbers"]
        except (FabricError, ValueError) as error:
            raise CliError(Exit.ENVIRONMENT, f"faults: {error}") from None
        self._hear()
        asyncio.get_running_loop().add_reader(self._remote.fileno(), self._hear)

    def _hear(self) -> None:
        if self._remote is None:
            return
        heard = self._remote.hear()
        if not heard:  # readable, and nothing said: the lab is gone
            asyncio.get_running_loop().remove_reader(self._remote.fileno())
        for event in heard:
            self._begun.add(event["fault"])
            record = {
                "t": round((event["done_ns"] - self._clock_ns) / 1e9, 6),
                "what": event["what"],
                "on": event["on"],
                "late_ms": round((event["done_ns"] - event["due_ns"]) / 1e6, 3),
            }
            self._new.append(record)
            self.events.append(record)

    def reporting(self, emit: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
        """The same, with what has happened since the last report."""

        def report(document: dict[str, Any]) -> None:
            new, self._new = self._new, []
            emit({**document, "faults": new})

        return report

    def stop(self) -> None:
        """End what is still wrong."""
        if self._remote is None:
            return
        self._end_ns = time.monotonic_ns()
        self._hear()  # the last
        remote, self._remote = self._remote, None
        asyncio.get_running_loop().remove_reader(remote.fileno())
        remote.close()

    def idle(self) -> list[dict[str, Any]]:
        """What was asked for and came to nothing, once it is stopped: `what`, `why`."""
        settled = [fault for fault in self._faults if fault.kind is not FaultKind.HEAL]
        missed = [
            fault
            for number, fault in zip(self._numbers, settled, strict=False)
            if number not in self._begun
        ]
        run_ns = self._end_ns - self._clock_ns
        late = [f for f in self._faults if f.kind is FaultKind.HEAL and f.at_ns > run_ns]
        idle = [f for f in self._idle_heals if f not in late]
        return [
            {"what": str(fault), "why": "nothing_to_heal" if fault in idle else "run_over"}
            for fault in self._faults
            if fault in missed or fault in late or fault in idle
        ]


def idle_heals(script: Sequence[Fault], shape: FabricShape, pair: tuple[int, int]) -> list[Fault]:
    """The heals of a script that end no fault of it: none has begun by then, or all are over."""
    faults = [fault for fault in script if fault.kind is not FaultKind.HEAL]
    heals = sorted((f for f in script if f.kind is FaultKind.HEAL), key=lambda f: f.at_ns)
    found = []
    before = settle(faults, shape, pair)
    for number, heal in enumerate(heals, 1):
        after = settle([*faults, *heals[:number]], shape, pair)
        if after == before:
            found.append(heal)
        before = after
    return found
