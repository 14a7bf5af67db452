"""Expressions of ``--authentication-config``: who a token's claims make somebody, and whether that is acceptable.

    claims → username, groups, uid, extra → claim rules → user rules

Numbers of claims are floating point, as everywhere in JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pilothouse.authn.authenticator import InvalidCredentials
from pilothouse.machinery.user import User

if TYPE_CHECKING:
    from pilothouse.cel.environment import Environment, Program
    from pilothouse.cel.nodes import Node

_NO_STRINGS: Final = "expression must return a string or a list of strings"


class BadExpression(ValueError):
    """An expression that does not compile; the text says why."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Something that must hold, and what to say when it does not."""

    program: Program
    message: str = ""


@dataclass(frozen=True, slots=True)
class ClaimExpressions:
    """The expressions of one issuer; what has none is left to plain claims."""

    username: Program | None = None
    groups: Program | None = None
    uid: Program | None = None
    extra: Mapping[str, Program] = field(default_factory=dict)
    claim_rules: tuple[Rule, ...] = ()
    user_rules: tuple[Rule, ...] = ()

    def read_username(self, claims: Mapping[str, Any]) -> str:
        """The user's name. Raises InvalidCredentials, also for an empty one."""
        assert self.username is not None
        name = _evaluate(self.username, {"claims": claims}, "username claim")
        if not isinstance(name, str):
            raise InvalidCredentials(
                "oidc: error evaluating username claim expression: username claim expression must return a string"
            )
        if not name:
            raise InvalidCredentials("oidc: empty username via CEL expression is not allowed")
        return name

    def read_groups(self, claims: Mapping[str, Any]) -> tuple[str, ...]:
        """The user's groups. Raises InvalidCredentials."""
        assert self.groups is not None
        return _strings(_evaluate(self.groups, {"claims": claims}, "group claim"), "group claim expression")

    def read_uid(self, claims: Mapping[str, Any]) -> str:
        """The user's uid. Raises InvalidCredentials."""
        assert self.uid is not None
        uid = _evaluate(self.uid, {"claims": claims}, "uid claim")
        if not isinstance(uid, str):
            raise InvalidCredentials(
                "oidc: error evaluating uid claim expression: uid claim expression must return a string"
            )
        return uid

    def read_extra(self, claims: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        """Extra attributes that have values. Raises InvalidCredentials."""
        found: dict[str, tuple[str, ...]] = {}
        for key, program in self.extra.items():
            value = _evaluate(program, {"claims": claims}, "extra claim")
            values = _strings(value, f"extra claim expression: {program.text}")
            if values:
                found[key] = values
        return found

    def check_claims(self, claims: Mapping[str, Any]) -> None:
        """Raise InvalidCredentials unless all rules about claims hold."""
        _check(self.claim_rules, {"claims": claims}, "claim validation expression")

    def check_user(self, user: User) -> None:
        """Raise InvalidCredentials unless all rules about the user hold."""
        if self.user_rules:
            described = {
                "username": user.name,
                "uid": user.uid,
                "groups": list(user.groups),
                "extra": {key: list(values) for key, values in user.extra.items()},
            }
            _check(self.user_rules, {"user": described}, "user info validation rule")


def claims_value(claims: Any) -> Any:
    """Claims as expressions see them."""
    if isinstance(claims, dict):
        return {key: claims_value(value) for key, value in claims.items()}
    if isinstance(claims, list):
        return [claims_value(value) for value in claims]
    return float(claims) if isinstance(claims, int) and not isinstance(claims, bool) else claims


def compile_claims(text: str, *, condition: bool = False) -> Program:
    """Compile an expression over ``claims``; a condition must be a boolean. Raises BadExpression."""
    return _compile("claims", text, condition)


def compile_user(text: str) -> Program:
    """Compile a condition over ``user``. Raises BadExpression."""
    return _compile("user", text, True)


def uses_claim(program: Program, name: str) -> bool:
    """Whether an expression selects a claim."""
    return any(_selects(node, name) for node in _walk(program.root))


def _compile(variable: str, text: str, condition: bool) -> Program:
    from pilothouse.cel.issues import CompileError
    from pilothouse.cel.planning import InstantiationError
    from pilothouse.cel.types import BOOL

    try:
        program = _environment(variable).compile(text)
        program.plan()
    except CompileError as error:
        raise BadExpression(f"compilation failed: {error}") from None
    except InstantiationError as error:
        raise BadExpression(f"program instantiation failed: {error}") from None
    if condition and program.type != BOOL:
        raise BadExpression("must evaluate to bool")
    return program


@cache
def _environment(variable: str) -> Environment:
    from pilothouse.cel.declarations import PlainStruct, Structs
    from pilothouse.cel.environment import Environment
    from pilothouse.cel.kubernetes import CURRENT, libraries
    from pilothouse.cel.types import ANY, STRING, list_of, map_of, struct

    if variable == "claims":
        return Environment({"claims": map_of(STRING, ANY)}, libraries(CURRENT))
    strings = list_of(STRING)
    fields = {"username": STRING, "uid": STRING, "groups": strings, "extra": map_of(STRING, strings)}
    user = PlainStruct(struct("kubernetes.UserInfo"), fields)
    return Environment({"user": user.type}, libraries(CURRENT), Structs({user.type.name: user}))


def _evaluate(program: Program, bindings: Mapping[str, Any], what: str) -> Any:
    from pilothouse.cel.values import CostLimitExceeded, EvaluationError

    try:
        return program.evaluate(bindings).value
    except (EvaluationError, CostLimitExceeded) as error:
        raise InvalidCredentials(
            f"oidc: error evaluating {what} expression: expression '{program.text}' resulted in error: {error}"
        ) from None


def _check(rules: tuple[Rule, ...], bindings: Mapping[str, Any], what: str) -> None:
    for rule in rules:
        held = _evaluate(rule.program, bindings, what.removesuffix(" expression"))
        if held is not True:
            why = f"validation expression '{rule.program.text}' failed: {rule.message}"
            raise InvalidCredentials(f"oidc: error evaluating {what}: {why}")


def _strings(value: Any, what: str) -> tuple[str, ...]:
    if value is None:
        return ()
    values = value if isinstance(value, list | tuple) else [value]
    if any(not isinstance(each, str) for each in values):
        raise InvalidCredentials(f"oidc: error evaluating {what}: {_NO_STRINGS}")
    return tuple(each for each in values if each)


def _selects(node: Node, name: str) -> bool:
    from pilothouse.cel.nodes import Call, Ident, Literal, Select

    if isinstance(node, Select):
        return node.field == name and isinstance(node.operand, Ident) and node.operand.name == "claims"
    if isinstance(node, Call) and node.target is None and len(node.arguments) == 2:
        operand, chosen = node.arguments
        optional = isinstance(operand, Ident) and operand.name == "claims"
        return optional and isinstance(chosen, Literal) and chosen.value == name
    return False


def _walk(node: Any) -> Iterator[Node]:
    """A node and all below it, whatever their kinds keep them in."""
    from pilothouse.cel.nodes import Entry, Node

    if isinstance(node, list):
        for each in node:
            yield from _walk(each)
    elif isinstance(node, Node | Entry):
        if isinstance(node, Node):
            yield node
        for part in type(node).__slots__:
            if part not in ("type", "ident", "overloads"):
                yield from _walk(getattr(node, part, None))
