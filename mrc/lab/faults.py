# SPDX-License-Identifier: BSD-2-Clause
"""What can go wrong in a fabric, on request.

Loss is decided at the spine, at the ingress of its interfaces, by a classic BPF program: that kind
may be loaded in a user namespace, where eBPF may not, and neither nftables nor netem need exist.
Nothing is reported to anybody: no ICMP, no carrier change. A path crosses exactly one spine, so
loss at the spine is the path's loss, in both directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from . import config
from .counters import settle
from .plan import FabricSpec, Path

if TYPE_CHECKING:
    from .client import HolderClient

Spine = tuple[int, int]
"""(plane, spine), both 1-based."""

_LOAD_RANDOM = "32 0 0 4294963256"  # A = random 32 bits: BPF_LD|BPF_W|BPF_ABS at SKF_AD_OFF+RANDOM
_JGE = "53 0 1"
_DROP = "6 0 0 2"  # TC_ACT_SHOT
_KEEP = "6 0 0 4294967295"  # TC_ACT_UNSPEC: as if there were no filter
_CLSACT = "clsact"


def drop_program(probability: float) -> str:
    """Classic BPF for ``tc ... bpf da bytecode`` that drops with this probability (0..1]."""
    if not 0.0 < probability <= 1.0:
        raise ValueError(f"probability must be above 0 and at most 1, not {probability}")
    if probability == 1.0:
        return f"1,{_DROP}"
    threshold = round((1.0 - probability) * 2**32)
    # random >= threshold: fall through to the drop; else skip it
    return f"4,{_LOAD_RANDOM},{_JGE} {min(threshold, 2**32 - 1)},{_DROP},{_KEEP}"


class Faults:
    """The faults of one fabric. Calls return when the fault is in force."""

    def __init__(self, client: HolderClient, spec: FabricSpec) -> None:
        """Made by Fabric.up only."""
        self._client = client
        self._spec = spec
        self._loss: dict[Spine, float] = {}
        self._cut: set[Spine] = set()

    def cut(self, *spines: Spine) -> None:
        """From now on every packet through these spines vanishes, silently, links staying up."""
        for spine in self._known(spines):
            self._set_drop(spine, 1.0)
            self._cut.add(spine)

    def heal(self, *spines: Spine) -> None:
        """Undo ``cut``; without arguments, every cut. Loss set before is in force again."""
        for spine in self._known(spines or tuple(self._cut)):
            self._set_drop(spine, self._loss.get(spine, 0.0))
            self._cut.discard(spine)

    def loss(
        self, probability: float, spines: Iterable[Spine] | None = None, *, trains: bool = False
    ) -> None:
        """Random loss per packet on these spines, or on all; 0 ends it.

        A GSO train would cross a spine as one packet and be lost as one. Unless ``trains`` is set,
        the links into the spine therefore cut trains up first, as a wire would.
        """
        chosen = self._known(tuple(spines) if spines is not None else self._all())
        self._set_trains(chosen, whole=trains or probability == 0.0)
        for spine in chosen:
            if spine not in self._cut:
                self._set_drop(spine, probability)
            self._loss[spine] = probability

    def single_packets(self, *, on: bool = True) -> None:
        """Cut trains (GSO) up at the hosts' ports: every packet crosses the fabric by itself."""
        for host in range(self._spec.hosts):
            lines = [
                f"link set dev plane{plane} gso_max_segs {1 if on else 65535}"
                for plane in range(1, self._spec.planes + 1)
            ]
            self._client.batch(config.host_ns(host), "ip", lines)

    def clear(self) -> None:
        """End all cuts and losses, let trains pass. Links that are down stay down, rates stay."""
        self.single_packets(on=False)
        self._cut.clear()
        if lossy := [spine for spine, probability in self._loss.items() if probability]:
            self._set_trains(lossy, whole=True)
        self._loss.clear()
        for spine in self._all():
            self._set_drop(spine, 0.0)

    def rate(self, rate_mbit: int) -> None:
        """Change the rate of every fabric link."""
        for ns, lines in config.tbf_lines(self._spec, rate_mbit).items():
            self._client.batch(ns, "tc", lines)

    def link_down(self, plane: int, host: int, spine: int | None = None) -> None:
        """A failure everybody sees: a host's port (no ``spine``) or a T0-T1 link loses carrier."""
        ns, dev = self._cable(plane, host, spine)
        self._client.batch(ns, "ip", [f"link set {dev} down"])

    def link_up(self, plane: int, host: int, spine: int | None = None) -> None:
        """Plug the cable back in."""
        ns, dev = self._cable(plane, host, spine)
        self._client.batch(ns, "ip", [f"link set {dev} up"])
        # The switch forgot the interface's routes and neighbours when it went down.
        self._client.batch(ns, "ip", config.namespace_lines(self._spec)[ns])
        settle(self._client, self._spec)

    def _all(self) -> tuple[Spine, ...]:
        spec = self._spec
        return tuple(
            (p, s) for p in range(1, spec.planes + 1) for s in range(1, spec.spines + 1)
        )

    def _known(self, spines: Sequence[Spine]) -> Sequence[Spine]:
        for plane, spine in spines:
            if not (1 <= plane <= self._spec.planes and 1 <= spine <= self._spec.spines):
                raise ValueError(f"there is no spine {spine} in plane {plane}")
        return spines

    def _devs(self) -> list[str]:
        return [f"t0-{h + 1}" for h in range(self._spec.hosts)]

    def _set_drop(self, spine: Spine, probability: float) -> None:
        ns = config.t1_ns(*spine)
        devs = self._devs()
        if probability > 0.0:
            code = drop_program(probability)
            lines = [f"qdisc replace dev {dev} {_CLSACT}" for dev in devs]
            lines += [
                f"filter replace dev {dev} ingress pref 1 handle 1 protocol all"
                f" bpf da bytecode '{code}'"
                for dev in devs
            ]
        else:  # replace first: a spine that was never faulty has none to delete
            lines = [f"qdisc {do} dev {dev} {_CLSACT}" for do in ("replace", "del") for dev in devs]
        self._client.batch(ns, "tc", lines)

    def _set_trains(self, spines: Iterable[Spine], *, whole: bool) -> None:
        segments = 65535 if whole else 1
        lines: dict[str, list[str]] = {}
        for plane, spine in spines:
            for host in range(self._spec.hosts):
                line = f"link set dev spine{spine} gso_max_segs {segments}"
                lines.setdefault(config.t0_ns(plane, host), []).append(line)
        for ns, text in lines.items():
            self._client.batch(ns, "ip", text)

    def _cable(self, plane: int, host: int, spine: int | None) -> tuple[str, str]:
        self._known([(plane, 1 if spine is None else spine)])
        if not 0 <= host < self._spec.hosts:
            raise ValueError(f"there is no host {host}")
        return config.t0_ns(plane, host), "host" if spine is None else f"spine{spine}"


def spine_of(path: Path) -> Spine:
    """The spine a path crosses."""
    return path.plane, path.spine
