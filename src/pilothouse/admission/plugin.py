"""What a plug-in is: a class with a name, the requests it cares for, and up to two hooks.

    admit       mutating phase: may change ``attributes.object`` in place, or refuse
    validate    validating phase, when the object is final: may only refuse

Refusing is raising a ``StatusError``; ``refusals.forbidden`` makes the usual one. A plug-in is made once, from its
environment and its section of the admission configuration. Requests outside of its operations, resources and
subresources never reach it and cost nothing. Hooks run on the event loop: they must not block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pilothouse.admission.environment import Environment
from pilothouse.admission.objects import Objects
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery.gvk import GroupResource


class Plugin:
    """Base of every plug-in."""

    name: ClassVar[str] = ""
    """What flags and configuration files call it."""
    default_on: ClassVar[bool] = False
    """Whether a plug-in of a user's own runs without being enabled by flag."""
    operations: ClassVar[frozenset[str]] = frozenset()
    resources: ClassVar[frozenset[GroupResource] | None] = None
    """None for every resource."""
    only_looks: ClassVar[bool] = False
    """Whether its hooks touch nothing but the request and wait for nothing: long objects are then looked at aside."""
    subresources: ClassVar[frozenset[str] | None] = frozenset({""})
    """The empty name stands for the resource itself; None for everything."""

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        self.environment = environment

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """Whether such requests interest this plug-in. Asked once for each combination, then remembered."""
        return (
            operation in self.operations
            and (self.resources is None or resource in self.resources)
            and (self.subresources is None or subresource in self.subresources)
        )

    def is_idle(self) -> bool:
        """Whether there is nothing just now that any request is held against: then its hooks need not be called.

        Asked before every request where a plug-in has its own and does not say what it decides by.
        """
        return False

    def idle_by(self) -> Sequence[Objects]:
        """All that ``is_idle`` decides by: what it says holds until one of them changes. Nothing: it is asked anew."""
        return ()

    async def admit(self, attributes: Attributes) -> None:
        """Change the object, or refuse the request."""

    async def validate(self, attributes: Attributes) -> None:
        """Refuse the request, or let it pass."""

    async def reload(self) -> None:
        """Look for changes of the files that the plug-in reads; called every few seconds."""

    async def close(self) -> None:
        """Release what the plug-in holds, when the server stops."""
