"""What a write shows to admission, and what admission must be able to do. The plug-ins live above this layer.

    mutating     after decoding and defaulting, before validation: may change the object in place or replace it
    validating   after validation, right before the write (again after every lost race): may only refuse

Refusing is raising a StatusError.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from pilothouse.machinery.gvk import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.user import User

if TYPE_CHECKING:
    from pilothouse.endpoints.scope import Endpoint

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"
CONNECT: Final = "CONNECT"


@dataclass(slots=True)
class Attributes:
    """One write, as plug-ins see it. Objects are in the hub version."""

    operation: str
    kind: GroupVersionKind
    resource: GroupVersionResource
    subresource: str
    namespace: str
    name: str
    user: User
    object: dict[str, Any] | None
    old_object: dict[str, Any] | None
    options: dict[str, Any]
    dry_run: bool
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    """Audit annotations."""
    request_annotations: dict[str, str] = field(default_factory=dict)
    """Those that only events with the request in them have."""
    verb: str = ""
    """That of the request, as authorizers know it."""
    times: dict[str, float] = field(default_factory=dict)
    """What calls to others took, in seconds, for the audit log."""
    path_name: str = ""
    """The name in the request's path: none in that of a POST, which no right to a named object covers."""
    scope: Endpoint | None = None
    """The endpoint, for plug-ins that convert or decode."""
    reinvocation: Any = None
    """What the chain keeps between its runs over one request."""
    weight: int = 0
    """How much work the objects are, in bytes of JSON; whoever makes one longer says so."""


class Admission(Protocol):
    """The chain of plug-ins."""

    def handles(self, operation: str) -> bool:
        """Whether any plug-in cares for this operation."""
        ...

    async def admit(self, attributes: Attributes) -> None:
        """Run the mutating plug-ins."""
        ...

    async def validate(self, attributes: Attributes) -> None:
        """Run the validating plug-ins."""
        ...
