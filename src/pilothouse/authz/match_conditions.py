"""Match conditions of authorization webhooks: expressions that say which questions a webhook is asked at all.

All must hold. One that is false keeps the webhook out, whatever the others say; one that fails, with none false, is
what the webhook's failure policy is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pilothouse.authz.attributes import Attributes
from pilothouse.machinery.field_errors import FieldError, Path, aggregate, duplicate, invalid, required, too_many

if TYPE_CHECKING:
    from pilothouse.cel.environment import Environment, Program

_MOST: Final = 64


class ConditionFailed(Exception):
    """Whether the conditions hold could not be told."""


class MatchConditions:
    """Compiled conditions."""

    def __init__(self, programs: Sequence[Program]) -> None:
        self._programs = tuple(programs)

    def matches(self, attributes: Attributes, selectors: Mapping[str, Any]) -> bool:
        """Whether all hold; ``selectors`` is how the webhook would be told of selectors. Raises ConditionFailed."""
        from pilothouse.cel.values import CostLimitExceeded, EvaluationError

        bindings = {"request": _request_of(attributes, selectors)}
        failures: list[str] = []
        for program in self._programs:
            try:
                if not program.evaluate(bindings).value:
                    return False
            except (EvaluationError, CostLimitExceeded) as error:
                failures.append(f"cel evaluation error: expression '{program.text}' resulted in error: {error}")
        if failures:
            raise ConditionFailed(aggregate(failures))
        return True


def compile_conditions(expressions: Sequence[str], path: Path) -> tuple[MatchConditions | None, list[FieldError]]:
    """The conditions, None without any, and what is wrong with them."""
    if len(expressions) > _MOST:
        return None, [too_many(path, len(expressions), _MOST)]
    errs: list[FieldError] = []
    programs: list[Program] = []
    for index, text in enumerate(expressions):
        where = path.index(index).child("expression")
        if not text.strip():
            errs.append(required(where, ""))
        elif text in expressions[:index]:
            errs.append(duplicate(where, text))
        else:
            error = _compile(text, where, programs)
            errs += [] if error is None else [error]
    return (MatchConditions(programs) if programs else None), errs


def _compile(text: str, path: Path, programs: list[Program]) -> FieldError | None:
    from pilothouse.cel.policies import PolicyError, compile_expression
    from pilothouse.cel.types import BOOL

    try:
        programs.append(compile_expression(_environment(), text, (BOOL,)))
    except PolicyError as error:
        return invalid(path, text, str(error))
    return None


@cache
def _environment() -> Environment:
    from pilothouse.cel.declarations import PlainStruct, Structs
    from pilothouse.cel.environment import Environment
    from pilothouse.cel.kubernetes import CURRENT, libraries
    from pilothouse.cel.types import STRING, Type, list_of, map_of, struct

    def declare(name: str, /, **fields: Type) -> PlainStruct:
        return PlainStruct(struct(f"kubernetes.{name}"), fields)

    strings = list_of(STRING)
    requirement = declare("SelectorRequirement", key=STRING, operator=STRING, values=strings)
    selector = {"rawSelector": STRING, "requirements": list_of(requirement.type)}
    by_field, by_label = declare("FieldSelectorAttributes", **selector), declare("LabelSelectorAttributes", **selector)
    names = ("namespace", "verb", "group", "version", "resource", "subresource", "name")
    resource = declare(
        "ResourceAttributes",
        **dict.fromkeys(names, STRING),
        fieldSelector=by_field.type,
        labelSelector=by_label.type,
    )
    other = declare("NonResourceAttributes", path=STRING, verb=STRING)
    request = declare(
        "SubjectAccessReviewSpec",
        resourceAttributes=resource.type,
        nonResourceAttributes=other.type,
        user=STRING,
        groups=strings,
        extra=map_of(STRING, strings),
        uid=STRING,
    )
    declared = (requirement, by_field, by_label, resource, other, request)
    return Environment(
        {"request": request.type}, libraries(CURRENT), Structs({each.type.name: each for each in declared})
    )


def _request_of(attributes: Attributes, selectors: Mapping[str, Any]) -> dict[str, Any]:
    user = attributes.user
    request: dict[str, Any] = {
        "user": user.name,
        "groups": list(user.groups),
        "uid": user.uid,
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    if attributes.resource_request:
        request["resourceAttributes"] = {
            "namespace": attributes.namespace,
            "verb": attributes.verb,
            "group": attributes.group,
            "version": attributes.version,
            "resource": attributes.resource,
            "subresource": attributes.subresource,
            "name": attributes.name,
            **selectors,
        }
    else:
        request["nonResourceAttributes"] = {"path": attributes.path, "verb": attributes.verb}
    return request
