"""Asking a webhook's match conditions about a request."""

from __future__ import annotations

from typing import Any

from pilothouse.admission.webhooks.matching import Invocation
from pilothouse.admission.webhooks.reviews import make_request
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery import errors


async def meets_conditions(invocation: Invocation, attributes: Attributes, obj: Any, old: Any) -> bool:
    """Whether a request meets the conditions; raises the 403 when that cannot be told."""
    conditions = invocation.hook.conditions
    if conditions is None:
        return True
    from pilothouse.admission.webhooks.match_conditions import ConditionError

    try:
        return await conditions.matches(make_request("", attributes, invocation, obj, old), attributes)
    except ConditionError as error:
        raise errors.forbidden(attributes.resource.group_resource, attributes.name, str(error)) from None
