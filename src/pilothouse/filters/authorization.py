"""Whether the user may. Everything that is not allowed is a 403 that says what was missing."""

from __future__ import annotations

import time
from typing import Final

from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import AuthorizationFailed, Authorizer, Decision, forbidden
from pilothouse.authz.metrics import AuthorizationMetrics
from pilothouse.endpoints.request import APIRequest, Refusal
from pilothouse.filters.refusals import refusal, undecided
from pilothouse.filters.types import Handler
from pilothouse.machinery import errors
from pilothouse.net.messages import Response

DECISION: Final = "authorization.k8s.io/decision"
REASON: Final = "authorization.k8s.io/reason"
_SELECTING: Final = frozenset({"list", "watch", "deletecollection"})


def with_authorization(
    following: Handler,
    authorizer: Authorizer,
    metrics: AuthorizationMetrics | None = None,
) -> Handler:
    """Ask the authorizer, then go on or refuse."""
    authorize = authorizer.authorize
    results, clock = (metrics or AuthorizationMetrics()).results, time.perf_counter
    allowed = results["allowed"].observe

    async def ask(request: APIRequest, verb: str) -> Refusal | None:
        question = attributes_of(request)
        question.verb = verb
        try:
            decision, reason = await authorize(question)
        except AuthorizationFailed as failure:
            return Refusal(errors.internal_error(str(failure)), str(failure))
        return None if decision is Decision.ALLOW else Refusal(forbidden(question, reason), reason)

    async def handle(request: APIRequest) -> Response:
        attributes = attributes_of(request)
        audit = request.audit
        started = clock()
        try:
            decision, reason = await authorize(attributes)
        except AuthorizationFailed as failure:
            results["error"].observe(clock() - started)
            if audit is not None:
                audit.annotate(REASON, "internal error")
            return undecided(request, str(failure))
        if decision is Decision.ALLOW:
            seconds = clock() - started
            allowed(seconds)
            if audit is not None:
                audit.times["authorization"] = seconds
                audit.annotate(DECISION, "allow")
                audit.annotate(REASON, reason)
            request.authorized_by = reason
            request.ask = ask
            return await following(request)
        results["denied" if decision is Decision.DENY else "no-opinion"].observe(clock() - started)
        if audit is not None:
            audit.annotate(DECISION, "forbid")
            audit.annotate(REASON, reason)
        return refusal(request, forbidden(attributes, reason))

    return handle


def attributes_of(request: APIRequest) -> Attributes:
    """What the authorizer is asked about."""
    info = request.info
    attributes = Attributes(
        user=request.user,
        verb=info.verb,
        namespace=info.namespace,
        group=info.group,
        version=info.version,
        resource=info.resource,
        subresource=info.subresource,
        name=info.name,
        resource_request=info.is_resource,
        path=info.path,
    )
    if request.query and info.is_resource and info.verb in _SELECTING:
        _add_selectors(attributes, request)
    return attributes


def _add_selectors(attributes: Attributes, request: APIRequest) -> None:
    """Selectors narrow what is asked for. Not with the old way of watching by path, which does not honour them."""
    if f"/{request.info.version}/watch/" in request.path:
        return
    attributes.note_selection(request.options.selection)
