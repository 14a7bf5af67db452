"""Flow schemas in the order in which they are asked, and the flows that they make of requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pilothouse.endpoints.request_info import RequestInfo
from pilothouse.flowcontrol.rules import matches_rules
from pilothouse.machinery.objects import Object
from pilothouse.machinery.user import User

CATCH_ALL: Final = "catch-all"
EXEMPT: Final = "exempt"
_DEFAULT_PRECEDENCE: Final = 1000


class FlowSchema:
    """One of them, read from its object."""

    __slots__ = ("_distinguisher", "_rules", "level", "name", "precedence", "uid")

    def __init__(self, obj: Object) -> None:
        metadata, spec = obj["metadata"], obj["spec"]
        self.name: str = metadata["name"]
        self.uid: str = metadata.get("uid", "")
        self.level: str = (spec.get("priorityLevelConfiguration") or {}).get("name", "")
        self.precedence: int = spec.get("matchingPrecedence") or _DEFAULT_PRECEDENCE
        self._distinguisher: str = (spec.get("distinguisherMethod") or {}).get("type", "")
        self._rules: list[Object] = spec.get("rules") or []

    def matches(self, user: User, info: RequestInfo) -> bool:
        """Whether a request belongs here."""
        return matches_rules(self._rules, user, info)

    def distinguish(self, user: User, info: RequestInfo) -> str:
        """What tells flows of this schema apart."""
        if self._distinguisher == "ByUser":
            return user.name
        return info.namespace if self._distinguisher == "ByNamespace" else ""


def in_order(schemas: Iterable[FlowSchema], levels: Iterable[str]) -> list[FlowSchema]:
    """Those whose priority level exists, by precedence and then by name."""
    known = set(levels)
    return sorted((each for each in schemas if each.level in known), key=lambda each: (each.precedence, each.name))
