# SPDX-License-Identifier: BSD-2-Clause
"""Which links of a fabric have a relay, and for how long it keeps their packets."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from mrc.fabric.shape import Link as Way

from . import config
from .errors import FabricError, FabricUnavailableError
from .relay import Relay, RelayError, library

if TYPE_CHECKING:
    from .client import HolderClient
    from .plan import FabricSpec


class Delays:
    """The delays of one fabric. The relay starts with the first of them."""

    def __init__(self, client: HolderClient, spec: FabricSpec) -> None:
        """Starts nothing."""
        self._client = client
        self._mtu = spec.mtu
        self._relay: Relay | None = None
        self._links: dict[Way, int] = {}

    def require(self) -> None:
        """FabricUnavailableError: no link can have a delay here."""
        if library() is None:
            raise FabricUnavailableError("the relay for delays is not compiled", "make")

    def set(self, way: Way, delay_ns: int) -> None:
        """Packets of this direction take so much longer from now on; 0 ends it.

        The filter at the end of the link, which lets the relay's packets pass, is the caller's:
        in force between the first `set` and the last.
        """
        try:
            if delay_ns == 0:
                self._end(way)
                return
            if way not in self._links:
                self._links[way] = self._add(way)
            self._running.set(self._links[way], delay_ns)
        except RelayError as error:
            raise FabricError(f"delay of {way.name}: {error}") from error

    @property
    def pid(self) -> int | None:
        """Of the relay, while one runs."""
        return None if self._relay is None else self._relay.pid

    def stats(self) -> dict[str, int]:
        """What the relay counted; empty while none runs."""
        return {} if self._relay is None else self._relay.stats()

    def close(self) -> None:
        """End the relay."""
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.close()
        self._links.clear()

    @property
    def _running(self) -> Relay:
        if self._relay is None:
            self._relay = Relay()
        return self._relay

    def _end(self, way: Way) -> None:
        link = self._links.pop(way, None)
        if link is not None:
            self._running.end(link)

    def _add(self, way: Way) -> int:
        (begin_ns, begin), (end_ns, end) = config.out_port(way), config.in_port(way)
        rx = self._client.socket(end_ns, socket.AF_PACKET, socket.SOCK_RAW, 0)
        tx = self._client.socket(begin_ns, socket.AF_PACKET, socket.SOCK_RAW, 0)
        return self._running.add(rx, tx, end, begin, self._mtu)
