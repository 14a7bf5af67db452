"""Asking a webhook's match conditions about a request."""

from __future__ import annotations

from typing import Any

from pilothouse.admission.metrics import ADMIT, VALIDATE, ConditionMetrics
from pilothouse.admission.webhooks.matching import Invocation
from pilothouse.admission.webhooks.reviews import make_request
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery import errors


async def meets_conditions(
    invocation: Invocation, attributes: Attributes, obj: Any, old: Any, metrics: ConditionMetrics, phase: str
) -> bool:
    """Whether a request meets the conditions; raises the 403 when that cannot be told and must not be passed over."""
    hook, operation = invocation.hook, attributes.operation
    if hook.conditions is None:
        return True
    found = await hook.conditions.evaluate(make_request("", attributes, invocation, obj, old), attributes)
    metrics.evaluated(hook.name, "webhook", phase, operation, found.seconds, found.errs)
    if found.error and not hook.ignores_failure:
        raise errors.forbidden(attributes.resource.group_resource, attributes.name, found.error)
    if not found.met:
        # kube-apiserver names the phase differently where it counts these.
        metrics.excluded(hook.name, "webhook", ADMIT if phase == ADMIT else VALIDATE, operation)
    return found.met
