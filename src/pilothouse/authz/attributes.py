"""What a request wants to do, as authorizers see it."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.authn.user import User
from pilothouse.machinery import fields, labels


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
        field_selector: Sequence[fields.Requirement] = (),
        label_selector: Sequence[labels.Requirement] = (),
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
        # Set when a selector could not be parsed as a whole; the requirements are those that could.
        self.field_selector_error = ""
        self.label_selector_error = ""

    @property
    def read_only(self) -> bool:
        """Whether the verb cannot change anything."""
        return self.verb in ("get", "list", "watch")

    def selects_field(self, field: str, value: str) -> bool:
        """Whether the request is limited to objects with this value of a field."""
        wanted = fields.Requirement(field, fields.EQUALS, value)
        return any(requirement == wanted for requirement in self.field_selector)

    def copy(self) -> Attributes:
        """A copy to be changed."""
        copied = Attributes.__new__(Attributes)
        for slot in Attributes.__slots__:
            setattr(copied, slot, getattr(self, slot))
        return copied

    def __repr__(self) -> str:
        resource = f"{self.group}/{self.resource}/{self.subresource} {self.name}"
        target = resource if self.resource_request else self.path
        return f"Attributes({self.user.name!r} {self.verb} {target} in {self.namespace!r})"
