"""The match conditions of a webhook, looked at last: they cost more than everything before them.

All must be true. One that is false settles it, whatever the others say; one that cannot be evaluated makes the request
fail, or passes the webhook by, as its failure policy has it. Compiled once for each change of a configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pilothouse.admission.expressions.deciding import AccessChecks
from pilothouse.admission.expressions.declaring import admission_environment
from pilothouse.authz.authorizer import Authorizer
from pilothouse.cel.environment import PER_CALL_LIMIT, Program
from pilothouse.cel.issues import CompileError
from pilothouse.cel.kubernetes import CURRENT
from pilothouse.cel.planning import InstantiationError
from pilothouse.cel.steps import Tracker
from pilothouse.cel.types import BOOL
from pilothouse.cel.values import EvaluationError
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery.field_errors import aggregate

_BUDGET: Final = 2_500_000
_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


class ConditionError(Exception):
    """Conditions that could not be evaluated."""


class MatchConditions:
    """Compiled conditions."""

    def __init__(
        self, conditions: Sequence[dict[str, Any]], authorizer: Authorizer | None, *, ignores_failure: bool
    ) -> None:
        self._programs = [_compile(each.get("expression", "")) for each in conditions]
        self._authorizer = authorizer
        self._ignores_failure = ignores_failure

    async def matches(self, request: dict[str, Any], attributes: Attributes) -> bool:
        """Whether a request, shown as an AdmissionRequest with its objects, meets all; raises ConditionError."""
        checks = AccessChecks(self._authorizer, attributes.user)
        bindings = {
            "object": request["object"],
            "oldObject": request["oldObject"],
            "request": {key: value for key, value in request.items() if key not in ("object", "oldObject")},
            "namespaceObject": None,
            **checks.bindings(attributes),
        }
        faults: list[str] = []
        budget = _BUDGET
        for program in self._programs:
            if isinstance(program, str):
                faults.append(f"compilation error: {program}")
                continue
            value, fault, cost = await checks.run(lambda program=program: _evaluate(program, bindings))  # type: ignore[misc]
            budget -= cost
            if budget < 0:
                faults = [_OUT_OF_BUDGET]
                break
            if fault:
                faults.append(fault)
            elif value is False:
                return False
        if not faults:
            return True
        if self._ignores_failure:
            return False
        raise ConditionError(aggregate(faults))


def _compile(text: str) -> Program | str:
    """The program, or why there is none."""
    try:
        program = admission_environment(CURRENT).compile(text)
        program.plan()
    except CompileError as error:
        return f"compilation failed: {error}"
    except InstantiationError as error:
        return f"program instantiation failed: {error}"
    return program if program.type == BOOL else f"must evaluate to bool but got {program.type}"


def _evaluate(program: Program, bindings: dict[str, Any]) -> tuple[Any, str, int]:
    """Value, fault and cost."""
    tracker = Tracker(PER_CALL_LIMIT)
    try:
        return program.run(bindings, tracker), "", tracker.cost
    except EvaluationError as error:
        return None, f"expression '{program.text}' resulted in error: {error}", tracker.cost
