# SPDX-License-Identifier: BSD-2-Clause
"""Carriers: planes follow the carrier of their interfaces, on an event loop (D.7)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .endpoint import Endpoint
from .errors import MrcUsageError

if TYPE_CHECKING:
    from .netif import CarrierWatch

__all__ = ["Carriers"]


class Carriers:
    """One per driver. A plane is down while one of the interfaces that carry it is."""

    def __init__(self, endpoint: Endpoint, loop: asyncio.AbstractEventLoop) -> None:
        self._endpoint = endpoint
        self._loop = loop
        self._watch: CarrierWatch | None = None
        self._plane: dict[str, int] = {}
        self._down: set[str] = set()

    def follow(self, interfaces: Iterable[tuple[int, str]]) -> None:
        """These (plane, interface) pairs from now on; what is down now is down when this returns.

        OSError: no such interface. MrcUsageError: it carries another plane already.
        """
        new = {name: plane for plane, name in interfaces}
        if not new:
            return
        for name, plane in new.items():
            if self._plane.get(name, plane) != plane:
                raise MrcUsageError(f"interface {name!r} carries plane {self._plane[name]} already")
        watch = self._watch
        if watch is None:
            from .netif import CarrierWatch  # netlink costs a sixth of a second to import

            watch = CarrierWatch()
            try:
                watch.add(new)
            except BaseException:
                watch.close()
                raise
            self._watch = watch
            self._loop.add_reader(watch.fileno(), self._on_change)
        else:
            watch.add(new)
        self._plane |= new
        self._on_change()

    def _on_change(self) -> None:
        if self._watch is None:
            return
        for name, up in self._watch.read().items():
            if up:
                self._down.discard(name)
            else:
                self._down.add(name)
        down = {self._plane[name] for name in self._down}
        for plane in set(self._plane.values()):
            self._endpoint.set_carrier(plane, up=plane not in down)

    def stop(self) -> None:
        """Follow no longer; what was down for want of a carrier is in use again."""
        if self._watch is not None:
            self._loop.remove_reader(self._watch.fileno())
            self._watch.close()
            self._watch = None
        for plane in set(self._plane.values()):
            self._endpoint.set_carrier(plane, up=True)
        self._down.clear()
        self._plane.clear()
