# SPDX-License-Identifier: BSD-2-Clause
"""The address and EV plan of a whole fabric: by default the published one, 131,072 NICs (MRC G.1).

Switches of 512 ports at 100 Gbit/s: a T0 has 256 ports down and 256 up, a plane 512 T0 and 256 T1
switches, a NIC a port in each of 8 planes. Numbers are those of D.9, a little wider: a uSID is
role(4) plane(3) number(9), counted from 0; an EV is plane(8) uplink(8) entropy(16).

    python -m mrc.sim.plan            # generate, check, print
    python -m mrc.sim.plan --hosts-per-t0 16 --t0 8 --t1 16 --planes 4

Tables and cables are made apart; the checks walk packets by the tables, along the cables. Pure:
nothing is emulated, and the whole plan is never in memory at once.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv6Address
from typing import NamedTuple

from mrc.errors import MrcUsageError

__all__ = [
    "AddressPlan",
    "Hop",
    "PlanError",
    "Role",
    "Switch",
    "check_pair",
    "check_switches",
    "main",
    "sample_pairs",
]

BLOCK = 0xFCBBBBBB
"""The SRv6 locator block (A.13.1)."""
GIB = range(0x0001, 0xE000)
"""Where numbers of nodes lie (A.13.1)."""
_HOPS_MAX = 16
_USIDS = (1 << 96) - 1


class PlanError(Exception):
    """The plan does not hold; the message says where."""


class Role(IntEnum):
    """The upper four bits of a uSID (D.9)."""

    T0 = 1
    T1 = 2
    HOST = 3


class Switch(NamedTuple):
    """A switch; plane and number from 0."""

    role: Role
    plane: int
    number: int


class Hop(NamedTuple):
    """A packet leaves a switch by this port."""

    switch: Switch
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPlan:
    """Which uSIDs, EVs, carriers and static tables a fabric has. Counted from 0.

    Ports of a T0: 0.. to hosts, hosts_per_t0.. to T1 switches. Port n of a T1 goes to T0 n.
    """

    planes: int = 8
    t0: int = 512
    t1: int = 256
    hosts_per_t0: int = 256
    number_bits: int = 9
    """8: role(4) plane(4) number(8), numbers from 1; 9: role(4) plane(3) number(9), from 0."""

    def __post_init__(self) -> None:
        """Refuse what cannot be numbered."""
        if self.number_bits not in (8, 9):
            raise MrcUsageError(f"number_bits is 8 or 9, not {self.number_bits}")
        numbers = (1 << self.number_bits) - self.base
        planes = (1 << (12 - self.number_bits)) - self.base
        for what, count, most in (
            ("planes", self.planes, planes),
            ("t0", self.t0, numbers),
            ("t1", self.t1, 256 - self.base),  # an EV has 8 bits for them
            ("hosts_per_t0", self.hosts_per_t0, numbers),
        ):
            if not 1 <= count <= most:
                raise MrcUsageError(f"{what} is 1 to {most}, not {count}")

    @property
    def base(self) -> int:
        """What planes and numbers in uSIDs count from."""
        return 1 if self.number_bits == 8 else 0

    @property
    def hosts(self) -> int:
        """NICs; host h is under T0 h // hosts_per_t0 of every plane."""
        return self.t0 * self.hosts_per_t0

    # ---- numbers ----

    def usid(self, role: Role, plane: int, number: int) -> int:
        """One 16-bit uSID."""
        return role << 12 | (plane + self.base) << self.number_bits | (number + self.base)

    def ev(self, plane: int, t1: int, entropy: int = 0) -> int:
        """Wire value: the plane as the protocol counts it (from 1), the uplink, free bits."""
        return (plane + 1) << 24 | (t1 + self.base) << 16 | entropy

    def carrier(self, src: int, dst: int, ev: int) -> int:
        """Outer destination: the row template with the EV's plane and uplink put in (D.9)."""
        plane, t1 = (ev >> 24) - 1, (ev >> 16 & 0xFF) - self.base
        near, far = src // self.hosts_per_t0, dst // self.hosts_per_t0
        usids = [self.usid(Role.T0, plane, near)]
        if near != far:
            usids += [self.usid(Role.T1, plane, t1), self.usid(Role.T0, plane, far)]
        usids.append(self.usid(Role.HOST, plane, dst % self.hosts_per_t0))
        value = BLOCK
        for usid in (*usids, *[0] * (6 - len(usids))):
            value = value << 16 | usid
        return value

    def profile(self, count: int, seed: int) -> list[int]:
        """EVs of one profile: as many in each plane, uplinks drawn, none twice (D.1)."""
        each, rest = divmod(count, self.planes)
        if rest or not 1 <= each <= self.t1:
            raise MrcUsageError(f"{count} EVs are not the same 1 to {self.t1} in each plane")
        draw = random.Random(seed)  # noqa: S311 - spreading, not secrecy
        uplinks = [draw.sample(range(self.t1), each) for _ in range(self.planes)]
        return [self.ev(p, uplinks[p][i]) for i in range(each) for p in range(self.planes)]

    # ---- switches: tables, and apart from them the cables ----

    def switches(self) -> Iterator[Switch]:
        """All of them."""
        for plane in range(self.planes):
            yield from (Switch(Role.T0, plane, n) for n in range(self.t0))
            yield from (Switch(Role.T1, plane, n) for n in range(self.t1))

    def routes(self, switch: Switch) -> dict[int, int]:
        """The static table: active uSID (a /48 behind the block) to port."""
        t0, t1, host = (self.usid(role, switch.plane, 0) for role in Role)
        if switch.role is Role.T1:
            return {t0 + n: n for n in range(self.t0)}
        down = {host + n: n for n in range(self.hosts_per_t0)}
        up = {t1 + n: self.hosts_per_t0 + n for n in range(self.t1)}
        return down | up

    def ports(self, switch: Switch) -> int:
        """How many it uses."""
        return self.t0 if switch.role is Role.T1 else self.hosts_per_t0 + self.t1

    def neighbour(self, switch: Switch, port: int) -> Switch | int:
        """What the cable of a port leads to: a switch, or a host."""
        if not 0 <= port < self.ports(switch):
            raise PlanError(f"{switch} has no port {port}")
        if switch.role is Role.T1:
            return Switch(Role.T0, switch.plane, port)
        if port >= self.hosts_per_t0:
            return Switch(Role.T1, switch.plane, port - self.hosts_per_t0)
        return switch.number * self.hosts_per_t0 + port

    # ---- walking ----

    def forward(self, switch: Switch, address: int, table: dict[int, int]) -> tuple[int, int]:
        """A.13.1, uN: the address shifted if its active uSID is the switch's own, and the port."""
        if address >> 96 != BLOCK:
            raise PlanError(f"{switch}: {IPv6Address(address)} is not of the block")
        if address >> 80 & 0xFFFF == self.usid(switch.role, switch.plane, switch.number):
            address = BLOCK << 96 | (address << 16 & _USIDS)
        active = address >> 80 & 0xFFFF
        if active not in table:
            raise PlanError(f"{switch}: no route for {active:04x} of {IPv6Address(address)}")
        return address, table[active]

    def walk(
        self, src: int, dst: int, ev: int, tables: dict[Switch, dict[int, int]]
    ) -> tuple[Hop, ...]:
        """The ports a packet leaves by, to the host at the end. `tables` keeps what was made.

        PlanError: it does not get to `dst`, or not with its own carrier.
        """
        address = self.carrier(src, dst, ev)
        at: Switch | int = Switch(Role.T0, (ev >> 24) - 1, src // self.hosts_per_t0)
        hops: list[Hop] = []
        while isinstance(at, Switch):
            if len(hops) == _HOPS_MAX:
                raise PlanError(f"EV {ev:08x} from {src} to {dst} goes round")
            if at not in tables:
                tables[at] = self.routes(at)
            address, port = self.forward(at, address, tables[at])
            hops.append(Hop(at, port))
            at = self.neighbour(at, port)
        own = self.usid(Role.HOST, (ev >> 24) - 1, dst % self.hosts_per_t0)
        if at != dst or address >> 80 & 0xFFFF != own:
            raise PlanError(f"EV {ev:08x} from {src} to {dst} ends at {at}")
        return tuple(hops)


# ---- checks ----


def check_pair(plan: AddressPlan, src: int, dst: int) -> int:
    """Every EV there is between two hosts reaches `dst`; how many there are.

    Between different T0s no two EVs share a cable between switches; the hosts' own cables are those
    of the EV's plane. Under one T0 a plane is one path.
    """
    tables: dict[Switch, dict[int, int]] = {}
    used: dict[Hop, int] = {}
    same = src // plan.hosts_per_t0 == dst // plan.hosts_per_t0
    evs = [plan.ev(p, n) for p in range(plan.planes) for n in range(1 if same else plan.t1)]
    for ev in evs:
        hops = plan.walk(src, dst, ev, tables)
        if len(hops) != (1 if same else 3):
            raise PlanError(f"EV {ev:08x} from {src} to {dst} takes {len(hops)} switches")
        for hop in hops:
            if hop.switch.plane != (ev >> 24) - 1:
                raise PlanError(f"EV {ev:08x} from {src} to {dst} leaves its plane")
        for hop in hops[:-1]:
            if hop in used:
                raise PlanError(f"EVs {used[hop]:08x} and {ev:08x} share {hop}")
            used[hop] = ev
    return len(evs)


def check_switches(plan: AddressPlan) -> dict[Role, int]:
    """Every entry of every switch leads to who has that number, by a port of its own.

    Returns the size of the largest table of each tier.
    """
    owner: dict[int, Switch] = {}
    for switch in plan.switches():
        own = plan.usid(switch.role, switch.plane, switch.number)
        if own in owner or own not in GIB:
            raise PlanError(f"{switch}: {own:04x} is not a number of its own")
        owner[own] = switch
    largest = dict.fromkeys((Role.T0, Role.T1), 0)
    for switch in owner.values():
        table = plan.routes(switch)
        if len(set(table.values())) != len(table) or len(table) != plan.ports(switch):
            raise PlanError(f"{switch}: ports and routes are not one to one")
        for usid, port in table.items():
            end = plan.neighbour(switch, port)
            if isinstance(end, Switch):
                right = owner.get(usid) == end
            else:
                host = plan.usid(Role.HOST, switch.plane, end % plan.hosts_per_t0)
                right = usid == host and usid not in owner and usid in GIB
            if not right:
                raise PlanError(f"{switch}: {usid:04x} goes to {end} by port {port}")
        largest[switch.role] = max(largest[switch.role], len(table))
    return largest


def sample_pairs(plan: AddressPlan, count: int, seed: int) -> list[tuple[int, int]]:
    """Corners first: neighbours, first and last; then drawn from a seed."""
    last = plan.hosts - 1
    pairs = [(0, last), (last, 0), (0, 1), (0, plan.hosts_per_t0 - 1), (0, plan.hosts_per_t0)]
    draw = random.Random(seed)  # noqa: S311 - spreading, not secrecy
    while len(pairs) < count + 5:
        pairs.append((draw.randrange(plan.hosts), draw.randrange(plan.hosts)))
    return [(a, b) for a, b in dict.fromkeys(pairs) if a != b and max(a, b) <= last]


# ---- the command ----


def describe(plan: AddressPlan) -> Iterator[str]:
    """Lines for people."""
    switches = plan.planes * (plan.t0 + plan.t1)
    last = plan.hosts - 1
    ev = plan.ev(plan.planes - 1, plan.t1 - 1)
    plane_bits = 12 - plan.number_bits
    yield f"NICs            {plan.hosts:,}, a port in each of {plan.planes} planes"
    yield f"switches        {switches:,}: {plan.t0} T0 and {plan.t1} T1 in each plane"
    yield f"ports in use    T0 {plan.hosts_per_t0} down + {plan.t1} up, T1 {plan.t0}"
    yield f"cables          {plan.hosts * plan.planes:,} to hosts,"
    yield f"                {plan.planes * plan.t0 * plan.t1:,} between switches"
    yield f"paths of a pair {plan.planes * plan.t1:,} between T0s, {plan.planes} under one"
    yield f"uSID            role(4) plane({plane_bits}) number({plan.number_bits})"
    carrier = IPv6Address(plan.carrier(0, last, ev))
    yield f"EV {ev:08x}     {carrier}, from the first to the last NIC"


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; 0: the plan holds, 1: it does not, 2: there is no such plan."""
    about = __doc__.split("\n", 1)[0]
    parser = argparse.ArgumentParser(prog="python -m mrc.sim.plan", description=about)
    for name, default in (
        ("planes", 8),
        ("t0", 512),
        ("t1", 256),
        ("hosts-per-t0", 256),
        ("number-bits", 9),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--pairs", type=int, default=20, help="drawn pairs of NICs, all their EVs")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    try:
        plan = AddressPlan(
            planes=args.planes,
            t0=args.t0,
            t1=args.t1,
            hosts_per_t0=args.hosts_per_t0,
            number_bits=args.number_bits,
        )
    except MrcUsageError as exc:
        sys.stderr.write(f"plan: {exc}\n")
        return 2
    out = sys.stdout.write
    for line in describe(plan):
        out(line + "\n")
    try:
        largest = check_switches(plan)
        pairs = sample_pairs(plan, args.pairs, args.seed)
        walked = sum(check_pair(plan, a, b) for a, b in pairs)
    except PlanError as exc:
        sys.stderr.write(f"plan: {exc}\n")
        return 1
    total = plan.planes * (plan.t0 * largest[Role.T0] + plan.t1 * largest[Role.T1])
    t0, t1 = largest[Role.T0], largest[Role.T1]
    out(f"table sizes     T0 {t0} routes of /48, T1 {t1}; {total:,} in all switches\n")
    out(f"checked         every route; {walked:,} EVs of {len(pairs)} pairs walked\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
