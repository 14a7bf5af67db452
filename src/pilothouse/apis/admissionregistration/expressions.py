"""Where the CEL expressions of webhooks and policies are compiled.

Validation hands over every expression at the point where the original compiles it, so that faults come in its order.
``compile_expressions`` is the one place to plug a compiler in; without one, no expression is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pilothouse.machinery.field_errors import FieldError, Path


class Expression(NamedTuple):
    """One expression and what it may refer to."""

    text: str
    purpose: str
    """Decides the type it must evaluate to: ``matchCondition``, ``variable``, ``validation``, ``message``,
    ``auditAnnotation``, ``applyConfiguration`` or ``jsonPatch``."""
    path: Path
    has_params: bool = False
    has_authorizer: bool = True
    variables: tuple[tuple[str, str], ...] = ()
    """Names and expressions of the variables declared before it."""
    stored: bool = False
    """Whether the stored object already holds it: then everything ever allowed is allowed."""


def compile_expressions(expressions: Iterable[Expression]) -> list[FieldError]:
    """Faults of expressions that do not compile. Every expression passes until a compiler is plugged in here."""
    return []
