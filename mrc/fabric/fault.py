# SPDX-License-Identifier: BSD-2-Clause
"""What goes wrong in a fabric, and when.

One fault a line:   KIND TARGET[=VALUE][@START[..END]] [silent]

    fail p1.t1.2@3s..5s        packets vanish, carrier stays: nobody is told
    down h1.port1@2s..4s       the carrier is lost: both ends of the cable see it
    loss ev7=5%                that share of the packets vanishes
    corrupt plane1=100ppm      that share has bits flipped, which the iCRC finds (A.13.3)
    trim p1.t1.2=1%            that share is cut to its headers although the queue has room (A.13.6)
    delay ev3=200us            so much longer on the way
    rate p1.t0.a->t1.1=100mbit the links have that rate
    flap h1.port1=1s@2s..62s   down for the first half of each period; silent: fail, not down
    reboot p1.t1.2=2s@3s       a switch is gone for that time, carriers lost, and comes back
    heal p1.t1.2@5s            ends the faults within that target; without one, all

Without @ a fault is there from the start. Times are 500us, 20ms, 3s; shares 5%, 0.1%, 500ppm.
`parse_fault(str(f)) == f`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from mrc.units import parse_bps, parse_ns, parse_ppm, ppm_text, rate_text, time_text

from .errors import FabricError, near
from .shape import FabricShape
from .target import Target, TargetKind, parse_target

__all__ = ["Fault", "FaultKind", "parse_fault", "parse_script", "parse_spot"]


class FaultKind(enum.StrEnum):
    """What happens."""

    FAIL = "fail"
    DOWN = "down"
    LOSS = "loss"
    CORRUPT = "corrupt"
    TRIM = "trim"
    DELAY = "delay"
    RATE = "rate"
    FLAP = "flap"
    REBOOT = "reboot"
    HEAL = "heal"

    @property
    def has_value(self) -> bool:
        """Whether `=VALUE` belongs to it."""
        return self in _VALUES


_VALUES: dict[FaultKind, tuple[Callable[[str], int], Callable[[int], str], str]] = {
    FaultKind.LOSS: (parse_ppm, ppm_text, "5%"),
    FaultKind.CORRUPT: (parse_ppm, ppm_text, "5%"),
    FaultKind.TRIM: (parse_ppm, ppm_text, "5%"),
    FaultKind.DELAY: (parse_ns, time_text, "200us"),
    FaultKind.RATE: (parse_bps, rate_text, "100mbit"),
    FaultKind.FLAP: (parse_ns, time_text, "1s"),
    FaultKind.REBOOT: (parse_ns, time_text, "2s"),
}
_MILLISECOND = 1_000_000
_LINE = re.compile(r"(?P<kind>\S+)(?:\s+(?P<spot>\S+))?(?P<silent>\s+silent)?")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong. FabricError: it makes no sense in itself."""

    kind: FaultKind
    target: Target
    value: int = 0
    """ppm of LOSS, CORRUPT, TRIM; ns of DELAY, FLAP (period), REBOOT (time away); bit/s of RATE."""
    at_ns: int = 0
    until_ns: int | None = None
    """When it is undone; None: never, unless a HEAL does."""
    silent: bool = False
    """FLAP: packets vanish, carriers stay."""

    def __post_init__(self) -> None:
        """Refuse what cannot happen."""
        if self.at_ns < 0 or (self.until_ns is not None and self.until_ns <= self.at_ns):
            raise FabricError(f"{self}: ends before it begins")
        if self.silent and self.kind is not FaultKind.FLAP:
            raise FabricError(f"{self}: only a flap can be silent; fail is the silent form of down")
        if self.kind is FaultKind.HEAL and self.until_ns is not None:
            raise FabricError(f"{self}: a heal has a time, no end")
        if self.kind.has_value != (self.value != 0):
            if not self.kind.has_value:
                raise FabricError(f"{self.kind} takes no value")
            raise FabricError(f"{self}: {self.kind} needs a value above 0")
        if self.kind is FaultKind.REBOOT:
            if self.target.kind is not TargetKind.SWITCH:
                raise FabricError(f"{self}: only switches reboot (p1.t1.2, p1.t0.a)")
            if self.until_ns is not None:
                raise FabricError(f"{self}: a reboot ends after its value ({self.kind} X=2s@3s)")
        if self.kind is FaultKind.FLAP and self.value < _MILLISECOND:
            raise FabricError(f"{self}: a period is 1ms at least")

    def __str__(self) -> str:
        text = f"{self.kind} {self.target}"
        if self.kind.has_value:
            text += f"={_VALUES[self.kind][1](self.value)}"
        if self.at_ns or self.until_ns is not None:
            text += f"@{time_text(self.at_ns)}"
        if self.until_ns is not None:
            text += f"..{time_text(self.until_ns)}"
        return text + (" silent" if self.silent else "")

    def check(self, shape: FabricShape, pair: tuple[int, int] = (0, 1)) -> None:
        """FabricError: that fabric has no such target."""
        self.target.check(shape, pair)


def parse_value(kind: FaultKind, text: str | None) -> int:
    """The value of a fault of this kind; None: none was given. FabricError: with an example."""
    if not kind.has_value:
        if text is not None:
            raise FabricError(f"{kind} takes no value, but {text!r} was given")
        return 0
    parse, _, example = _VALUES[kind]
    if text is None:
        raise FabricError(f"{kind} needs a value: {kind} TARGET={example}")
    try:
        return parse(text)
    except ValueError as error:
        raise FabricError(f"{kind}: {error}") from None


def _time(text: str) -> int:
    try:
        return parse_ns(text)
    except ValueError as error:
        raise FabricError(str(error)) from None


def parse_kind(text: str) -> FaultKind:
    """A kind by its name. FabricError: with a near match."""
    try:
        return FaultKind(text)
    except ValueError:
        raise FabricError(f"{text!r} is no fault; {near(text, list(FaultKind))}") from None


def parse_spot(kind: FaultKind, text: str, *, silent: bool = False) -> Fault:
    """`TARGET[=VALUE][@START[..END]]`, the part behind the kind and an option of mrc-send.

    The value may stand behind a colon, too (`--loss ev7:5%`); a heal may leave the target out
    (`@5s`).
    """
    head, at, when = text.strip().partition("@")
    name, sign, value = head.partition("=" if "=" in head else ":")
    if not name and kind is FaultKind.HEAL:
        name = "all"
    start, dots, end = when.partition("..")
    if at and not start:
        raise FabricError(f"{text!r}: behind @ stands a time, or two: @3s, @3s..5s")
    if dots and not end:
        raise FabricError(f"{text!r}: behind .. stands a time: @3s..5s")
    return Fault(
        kind,
        parse_target(name),
        parse_value(kind, value if sign else None),
        _time(start) if at else 0,
        _time(end) if dots else None,
        silent,
    )


def parse_fault(text: str) -> Fault:
    """One line of a script. FabricError: with what is wrong in it."""
    match = _LINE.fullmatch(text.strip())
    if match is None:
        raise FabricError(f"{text!r} is no fault: KIND TARGET[=VALUE][@START[..END]]")
    kind = parse_kind(match["kind"])
    if match["spot"] is None and kind is not FaultKind.HEAL:
        raise FabricError(f"{text!r}: {kind} what? {kind} TARGET, such as {kind} p1.t1.2@3s")
    return parse_spot(kind, match["spot"] or "all", silent=match["silent"] is not None)


def parse_script(text: str) -> tuple[Fault, ...]:
    """Faults, one a line or parted by semicolons; # begins a comment. In the order of the text."""
    faults = []
    for number, line in enumerate(text.splitlines(), 1):
        for part in line.partition("#")[0].split(";"):
            if part.strip():
                try:
                    faults.append(parse_fault(part))
                except FabricError as error:
                    raise FabricError(f"line {number}: {error}") from None
    return tuple(faults)


def shifted(fault: Fault, by_ns: int) -> Fault:
    """The same fault, later."""
    until = None if fault.until_ns is None else fault.until_ns + by_ns
    return replace(fault, at_ns=fault.at_ns + by_ns, until_ns=until)
