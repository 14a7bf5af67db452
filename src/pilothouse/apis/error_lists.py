"""Collecting the errors of an object in kube-apiserver's order.

Upstream some rules are written as code and some are declared on the types. The declared ones are checked last, and
where both know an error only the declared wording is shown. Validation therefore keeps two lists, joined at the end:

    errors = Errors()
    errors.errors.append(invalid(path, value, "must be …"))    # a written rule
    errors.declared.append(required(path))                      # a declared rule: no detail
    return errors.listed()
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, invalid

_NOT_SHOWN: Final = orjson.Fragment(b"null")
"""Other than None, which is shown as the empty list or map that was given."""


def declare_name(metadata: dict[str, Any], declared: list[FieldError]) -> None:
    """The declared rule for names of new objects: a subdomain, counted in bytes."""
    name = metadata.get("name")
    if name:
        messages = names.check_dns1123_subdomain(name, "bytes")
        declared += (invalid(Path("metadata", "name"), name, message) for message in messages)


class ErrorList:
    """Errors by written rules (``errors``) and by declared ones."""

    __slots__ = ("declared", "errors")

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self.declared: list[FieldError] = []

    def listed(self) -> list[FieldError]:
        """All errors as a client sees them."""
        return self.errors + self.declared if self.declared else self.errors

    def keep(self, path: Path, value: Any, old: Any) -> None:
        """A written rule: the value may not change. The refused value is shown."""
        if value != old:
            self.errors.append(invalid(path, value, IMMUTABLE))

    def keep_declared(self, path: Path, value: Any, old: Any) -> bool:
        """A declared rule: the value may not change. The refused value is not shown. Says whether it was kept."""
        if value == old:
            return True
        self.declared.append(invalid(path, _NOT_SHOWN, IMMUTABLE))
        return False
