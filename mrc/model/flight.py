# SPDX-License-Identifier: BSD-2-Clause
"""Bytes in flight as the outside can know them (MRC B.5-3, E.1, E.3).

Sending adds the nominal size; rcvd_bytes, NACKs and losses take away. When a loss is declared is
the other side's choice within what is allowed, so there is a least and a most.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Flight:
    """Of one queue pair."""

    most: int = 0
    drift: int = 0  # perhaps taken away: what rounding left, or lost and received after all
    sizes: dict[int, int] = field(default_factory=dict)  # of packets not known received
    out: set[int] = field(default_factory=set)  # refused, not sent again: surely not counted
    doubtful: set[int] = field(default_factory=set)  # perhaps declared lost

    @property
    def least(self) -> int:
        """Bytes, if all that may be declared lost is."""
        return self.most - self.drift - sum(self.sizes.get(n, 0) for n in self.doubtful)

    def allows(self, size: int, cwnd: int | None) -> bool:
        """Return whether a packet may leave: inflight + s <= cwnd, or nothing in flight (E.3)."""
        return cwnd is None or self.least + size <= cwnd or self.least <= 0

    def surely(self, size: int, cwnd: int | None) -> bool:
        """Return whether a packet of that size may leave, however losses and rounding counted."""
        really = sum(s for n, s in self.sizes.items() if n not in self.out)
        most = max(self.most, really)
        return cwnd is None or most + size <= cwnd or most <= 0

    def full(self, mtu: int, cwnd: int | None) -> bool:
        """Return whether the window surely has no room for another packet (E.3)."""
        return cwnd is not None and cwnd - self.least < mtu

    def sent(self, number: int, size: int) -> None:
        """Count a transmission; one that was declared lost was taken away before."""
        if number not in self.sizes or number in self.out:
            self.most += size
        self.sizes[number] = size
        self.out.discard(number)
        self.doubtful.discard(number)

    def repeated(self, size: int) -> None:
        """Count a copy of a packet that is known received (B.6): the peer may count it."""
        self.most += size
        self.drift += size

    def received(self, size: int) -> None:
        """The peer counts so many bytes more."""
        self.most -= size

    def refused(self, number: int, *, certain: bool) -> None:
        """A NACK: the packet is not in flight, unless the NACK was for an earlier copy."""
        if number not in self.sizes or number in self.out:
            return
        if certain:
            self.most -= self.sizes[number]
            self.out.add(number)
            self.doubtful.discard(number)
        else:
            self.doubtful.add(number)
        self._perhaps_idle()

    def lost(self, numbers: set[int]) -> None:
        """These may be declared lost."""
        self.doubtful |= numbers & self.sizes.keys() - self.out
        self._perhaps_idle()

    def _perhaps_idle(self) -> None:
        """If all may be out of flight, what rounding left or took may be forgotten."""
        if self.sizes.keys() <= self.doubtful | self.out:
            short = max(0, sum(s for n, s in self.sizes.items() if n not in self.out) - self.most)
            self.most, self.drift = self.most + short, self.drift + short
            self.drift += max(0, self.least)

    def known(self, number: int) -> None:
        """A packet is known received."""
        size = self.sizes.pop(number, 0)
        self.drift += size if number in self.doubtful else 0
        self.out.discard(number)
        self.doubtful.discard(number)

    def idle(self) -> None:
        """Nothing is in flight: what rounding left is not in flight, either."""
        self.most = max(self.most, 0) if self.sizes else 0
        self.drift = self.drift if self.sizes else 0
