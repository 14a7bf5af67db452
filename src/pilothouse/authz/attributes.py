"""What a request wants to do, as authorizers see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pilothouse.authn.user import User


class Requirement(NamedTuple):
    """One requirement of a field or label selector, as access reviews carry it."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Attributes:
    """One question to an authorizer: may this user do this? Either about a resource or about a path."""

    __slots__ = (
        "field_selector",
        "field_selector_error",
        "group",
        "label_selector",
        "label_selector_error",
        "name",
        "namespace",
        "path",
        "resource",
        "resource_request",
        "subresource",
        "user",
        "verb",
        "version",
    )

    def __init__(
        self,
        user: User,
        verb: str,
        *,
        namespace: str = "",
        group: str = "",
        version: str = "",
        resource: str = "",
        subresource: str = "",
        name: str = "",
        resource_request: bool = True,
        path: str = "",
        field_selector: Sequence[Requirement] = (),
        label_selector: Sequence[Requirement] = (),
    ) -> None:
        self.user = user
        self.verb = verb
        self.namespace = namespace
        self.group = group
        self.version = version
        self.resource = resource
        self.subresource = subresource
        self.name = name
        self.resource_request = resource_request
        self.path = path
        self.field_selector = field_selector
        self.label_selector = label_selector
        # Set when a selector could not be parsed; the requirements are then empty.
        self.field_selector_error = ""
        self.label_selector_error = ""

    @property
    def read_only(self) -> bool:
        """Whether the verb cannot change anything."""
        return self.verb in ("get", "list", "watch")

    def __repr__(self) -> str:
        resource = f"{self.group}/{self.resource}/{self.subresource} {self.name}"
        target = resource if self.resource_request else self.path
        return f"Attributes({self.user.name!r} {self.verb} {target} in {self.namespace!r})"
