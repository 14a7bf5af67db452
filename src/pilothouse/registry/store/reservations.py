"""What a write reserves outside the object, such as a service's addresses and ports."""

from __future__ import annotations

from typing import Protocol

from pilothouse.apis.strategy import Context
from pilothouse.machinery.objects import Object


class Reservation(Protocol):
    """What one write has reserved."""

    async def commit(self) -> None:
        """The write is done: give back what it no longer needs."""
        ...

    async def undo(self) -> None:
        """The write failed: give back what was reserved for it."""
        ...


class Reservations(Protocol):
    """Things outside the object that it needs for itself, such as a service's addresses and ports."""

    async def allocate_create(self, ctx: Context, obj: Object, /) -> Reservation:
        """Reserve for a new object, and note it in the object."""
        ...

    async def allocate_update(self, ctx: Context, obj: Object, old: Object, /) -> Reservation:
        """Reserve what the change needs, and note it in the object."""
        ...

    async def release(self, obj: Object, /) -> None:
        """Give back everything of an object that has gone."""
        ...
