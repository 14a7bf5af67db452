"""The match conditions of a webhook, looked at last: they cost more than everything before them.

Compiled once for each change of a configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pilothouse.admission.expressions.access_checks import AccessChecks
from pilothouse.admission.expressions.evaluation import Compiler, Meeting
from pilothouse.authz.authorizer import Authorizer
from pilothouse.endpoints.admission import Attributes


class MatchConditions:
    """Compiled conditions."""

    def __init__(self, conditions: Sequence[dict[str, Any]], authorizer: Authorizer | None) -> None:
        self._conditions = Compiler({}, composed=False).conditions({"matchConditions": conditions})
        self._authorizer = authorizer

    async def evaluate(self, request: dict[str, Any], attributes: Attributes) -> Meeting:
        """Whether a request, shown as an AdmissionRequest with its objects, meets all."""
        checks = AccessChecks(self._authorizer, attributes.user)
        bindings = {
            "object": request["object"],
            "oldObject": request["oldObject"],
            "request": {key: value for key, value in request.items() if key not in ("object", "oldObject")},
            "namespaceObject": None,
            **checks.bindings(attributes),
        }
        return await checks.run(lambda: self._conditions.evaluate(bindings))
