"""Permissions beyond the usual verbs that an administrator can grant to nodes."""

from __future__ import annotations

from pilothouse.admission.environment import Environment
from pilothouse.authz.attributes import Attributes as Question
from pilothouse.authz.authorizer import AuthorizationFailed, Decision
from pilothouse.endpoints.admission import Attributes


async def may(environment: Environment, attributes: Attributes, verb: str, resource: str, name: str) -> str | None:
    """None if the user of a request may do this, else what the authorizer failed with, if it did."""
    if environment.authorizer is None:
        return ""
    question = Question(
        attributes.user,
        verb,
        namespace=attributes.namespace,
        group=attributes.resource.group,
        version=attributes.resource.version,
        resource=resource,
        name=name,
    )
    try:
        decision, _ = await environment.authorizer.authorize(question)
    except AuthorizationFailed as failure:
        return str(failure)
    return None if decision is Decision.ALLOW else ""
