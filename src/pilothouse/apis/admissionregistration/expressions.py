"""Where the CEL expressions of webhooks and policies are compiled.

Validation hands over every expression at the point where kube-apiserver compiles it, so that errors come in its order.
The CEL engine is imported with the first expression: objects without any never need it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from pilothouse.machinery.field_errors import FieldError, Path, internal, invalid

if TYPE_CHECKING:
    from pilothouse.cel.environment import Environment
    from pilothouse.cel.types import Type


class Variables:
    """The variables that a policy has declared so far. Each is compiled once, however many expressions see it."""

    def __init__(self, names_and_texts: Iterable[tuple[str, str]] = (), *, has_params: bool = False) -> None:
        self._has_params = has_params
        self._waiting = list(names_and_texts)
        self._types: dict[str, Type] = {}

    def declare(self, name: str, text: str) -> None:
        """One more, that all expressions from now on may speak of."""
        self._waiting.append((name, text))

    def types(self) -> dict[str, Type]:
        """What each of them is; of one that does not compile, which is reported where it stands, nothing is known."""
        from pilothouse.cel.policies import PolicyError, as_field, compile_expression, policy_environment
        from pilothouse.cel.types import DYN

        for name, text in self._waiting:
            known = policy_environment(params=self._has_params, authorizer=True, variables=self._types)
            try:
                self._types[name] = as_field(compile_expression(known, text, ()).type)
            except PolicyError:
                self._types[name] = DYN
        self._waiting.clear()
        return self._types


class Expression(NamedTuple):
    """One expression and what it may refer to."""

    text: str
    purpose: str
    """Decides the type it must evaluate to: ``matchCondition``, ``variable``, ``validation``, ``message``,
    ``auditAnnotation``, ``applyConfiguration`` or ``jsonPatch``."""
    path: Path
    has_params: bool = False
    has_authorizer: bool = True
    variables: Variables | None = None
    """The variables declared before it."""
    composed: bool = False
    """Whether it may speak of variables at all."""
    stored: bool = False
    """Whether the stored object already holds it: then everything ever allowed is allowed."""


def compile_expressions(expressions: Iterable[Expression]) -> list[FieldError]:
    """Errors of expressions that do not compile, or that give something else than they should."""
    return [error for expression in expressions if (error := _error(expression)) is not None]


def _error(expression: Expression) -> FieldError | None:
    from pilothouse.cel.policies import PolicyError, compile_expression

    environment = _environment(expression)
    try:
        compile_expression(environment, expression.text, _wanted(expression.purpose))
    except PolicyError as error:
        if error.internal:
            return internal(expression.path, str(error))
        return invalid(expression.path, expression.text, str(error))
    return None


def _environment(expression: Expression) -> Environment:
    from pilothouse.cel.policies import policy_environment

    declared = {} if expression.variables is None else expression.variables.types()
    return policy_environment(
        params=expression.has_params,
        authorizer=expression.has_authorizer,
        variables=declared if expression.composed else None,
        patches=expression.purpose in ("applyConfiguration", "jsonPatch"),
    )


def _wanted(purpose: str) -> tuple[Type, ...]:
    from pilothouse.cel.library.patches import JSON_PATCH_TYPE, OBJECT_TYPE
    from pilothouse.cel.types import BOOL, NULL, STRING, list_of

    return {
        "matchCondition": (BOOL,),
        "validation": (BOOL,),
        "message": (STRING,),
        "auditAnnotation": (STRING, NULL),
        "applyConfiguration": (OBJECT_TYPE,),
        "jsonPatch": (list_of(JSON_PATCH_TYPE),),
    }.get(purpose, ())
