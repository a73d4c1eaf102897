# SPDX-License-Identifier: BSD-2-Clause
"""The life that format, EV and CC profiles share: INIT, OFFLINE, ONLINE, and back (C.5)."""

from __future__ import annotations

import errno
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, TypeVar

from mrc._typed import wrong_type
from mrc.errors import MrcControlError

from .attrs import ProfileState

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from .node import NodeController

__all__ = ["UNSET", "Managed", "Unset"]


class Unset:
    """What was not given, where None is a value."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET = Unset()
AttrT = TypeVar("AttrT", bound="DataclassInstance")

_STEPS = {
    ProfileState.INIT: (ProfileState.OFFLINE,),
    ProfileState.OFFLINE: (ProfileState.ONLINE, ProfileState.INIT),
    ProfileState.ONLINE: (ProfileState.OFFLINE,),
}


class Managed(Generic[AttrT]):
    """One profile. A call that is refused changes nothing."""

    what: ClassVar[str]
    offline_needs: ClassVar[tuple[str, ...]]
    online_needs: ClassVar[tuple[str, ...]]
    online_may: ClassVar[tuple[str, ...]]  # be changed ONLINE, if the device can

    def __init__(self, node: NodeController, number: int, attr: AttrT) -> None:
        self.node = node
        self.id = number
        self.state = ProfileState.INIT
        self.attr = attr
        self._blank = attr

    def modify(self, attr: AttrT | None = None, *, state: ProfileState | None = None) -> None:
        """Set what `attr` gives, then go to `state`.

        EINVAL: something is missing, out of range, or no such step. EBUSY: it is in use, or must be
        OFFLINE for that. EPERM: the device cannot change it ONLINE.
        """
        self._require_exists()
        self._check_types(attr, state)
        given = _given(attr)
        to = state or self.state
        self._check_step(to)
        if given and self.state is ProfileState.ONLINE:
            self._check_online_change(given)
        self._check_values(given)
        new = replace(self.attr, **given)
        if to is not ProfileState.INIT:
            self._check_complete(new, to)
            self._check(new)
        self._commit(new, to)

    @property
    def in_use(self) -> bool:
        """Whether anything forbids to take it OFFLINE."""
        return self._users() != ""

    # -- what the kinds of profiles fill in ----------------------------------------------------

    def _check_values(self, given: dict[str, Any]) -> None:
        """EINVAL: a value that is right in no state, whatever the others are."""

    def _check(self, attr: AttrT) -> None:
        """EINVAL: the values, complete for OFFLINE, are not acceptable."""
        raise NotImplementedError

    def _users(self) -> str:
        """Who uses it now, in words; empty: nobody."""
        raise NotImplementedError

    def _enter(self, attr: AttrT, to: ProfileState) -> None:
        """Carry out the change; the last chance to refuse it."""

    # -- checks --------------------------------------------------------------------------------

    def _check_types(self, attr: AttrT | None, state: ProfileState | None) -> None:
        if attr is not None and not isinstance(attr, type(self._blank)):
            self.refuse(errno.EINVAL, f"{attr!r:.60} is no {type(self._blank).__name__}")
        problem = wrong_type(attr) if attr is not None else None
        if problem is not None:
            self.refuse(errno.EINVAL, problem)
        if state is not None and not isinstance(state, ProfileState):
            self.refuse(errno.EINVAL, f"state {state!r:.60} is no ProfileState")

    def _check_step(self, to: ProfileState) -> None:
        if to is self.state:
            return
        if to not in _STEPS[self.state]:
            steps = " or ".join(s.name for s in _STEPS[self.state])
            self.refuse(errno.EINVAL, f"is {self.state.name}, from there it goes to {steps} only")
        users = self._users()
        if self.state is ProfileState.ONLINE and users:
            self.refuse(errno.EBUSY, f"is in use by {users}; end that first")

    def _check_online_change(self, given: dict[str, Any]) -> None:
        fixed = [name for name in given if name not in self.online_may]
        if fixed:
            self.refuse(errno.EBUSY, f"is ONLINE; take it OFFLINE to change {', '.join(fixed)}")
        if not self._may_change_online():
            self.refuse(
                errno.EPERM, "is ONLINE, where this device changes nothing; take it OFFLINE first"
            )

    def _may_change_online(self) -> bool:
        return False

    def _check_complete(self, attr: AttrT, to: ProfileState) -> None:
        needed = self.offline_needs
        if to is ProfileState.ONLINE:
            needed += self._online_needs(attr)
        defaults = {f.name: f.default for f in fields(attr)}
        missing = [name for name in needed if getattr(attr, name) is defaults[name]]
        if missing:
            self.refuse(errno.EINVAL, f"needs {', '.join(missing)} to be {to.name}")

    def _online_needs(self, attr: AttrT) -> tuple[str, ...]:  # noqa: ARG002 - may depend on it
        return self.online_needs

    def _commit(self, new: AttrT, to: ProfileState) -> None:
        self._enter(new, to)
        self.attr = self._blank if to is ProfileState.INIT and to is not self.state else new
        self.state = to

    def _require_exists(self) -> None:
        self.node.require_open()
        if not self.node.has(self):
            self.refuse(errno.ENOENT, "was destroyed; create another")

    def destroy(self) -> None:
        """EBUSY: it is not in INIT."""
        self._require_exists()
        if self.state is not ProfileState.INIT:
            self.refuse(errno.EBUSY, f"is {self.state.name}; take it to INIT to destroy it")
        self.node.forget(self)

    def refuse(self, number: int, reason: str) -> NoReturn:
        """Raise MrcControlError about this profile."""
        raise MrcControlError(number, f"{self.what} {self.id}: {reason}")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.state.name}>"


def _given(attr: DataclassInstance | None) -> dict[str, Any]:
    if attr is None:
        return {}
    values = {f.name: getattr(attr, f.name) for f in fields(attr)}
    defaults = {f.name: f.default for f in fields(attr)}
    return {name: value for name, value in values.items() if value is not defaults[name]}
