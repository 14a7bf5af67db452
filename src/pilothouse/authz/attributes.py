"""What a request wants to do, as authorizers see it."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.machinery import fields, labels
from pilothouse.machinery.selection import Selection
from pilothouse.machinery.user import User


class Attributes:
    """One question to an authorizer: may this user do this? Either about a resource or about a path."""

    __slots__ = (
        "_field_selector",
        "_field_selector_error",
        "_label_selector",
        "_label_selector_error",
        "_unread",
        "group",
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
        self._field_selector = field_selector
        self._label_selector = label_selector
        self._unread: Selection | None = None
        # Set when a selector could not be parsed as a whole; the requirements are those that could.
        self._field_selector_error = ""
        self._label_selector_error = ""

    def note_selection(self, selection: Selection) -> None:
        """The request's selectors. They may be long, and few authorizers look at them: they are read when one does."""
        self._unread = selection

    @property
    def selectors_length(self) -> int:
        """How long the text is that has not been read yet."""
        return 0 if self._unread is None else self._unread.unread

    @property
    def field_selector(self) -> Sequence[fields.Requirement]:
        """What the request is limited to by field."""
        self.read_selectors()
        return self._field_selector

    @field_selector.setter
    def field_selector(self, requirements: Sequence[fields.Requirement]) -> None:
        self._field_selector = requirements

    @property
    def label_selector(self) -> Sequence[labels.Requirement]:
        """What the request is limited to by label."""
        self.read_selectors()
        return self._label_selector

    @label_selector.setter
    def label_selector(self, requirements: Sequence[labels.Requirement]) -> None:
        self._label_selector = requirements

    @property
    def field_selector_error(self) -> str:
        """Why the selector could not be read as a whole, if so."""
        self.read_selectors()
        return self._field_selector_error

    @field_selector_error.setter
    def field_selector_error(self, why: str) -> None:
        self._field_selector_error = why

    @property
    def label_selector_error(self) -> str:
        """The same for the labels."""
        self.read_selectors()
        return self._label_selector_error

    @label_selector_error.setter
    def label_selector_error(self, why: str) -> None:
        self._label_selector_error = why

    def read_selectors(self) -> None:
        """Read what has not been read yet."""
        if self._unread is None:
            return
        selection, self._unread = self._unread, None
        try:
            self._field_selector = selection.fields.requirements
        except fields.SelectorError as error:
            self._field_selector_error = str(error)
        try:
            self._label_selector = selection.labels.requirements
        except labels.SelectorError as error:
            self._label_selector_error = str(error)

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
