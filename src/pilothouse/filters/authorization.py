"""Whether the user may. Everything that is not allowed is a 403 that says what was missing."""

from __future__ import annotations

import time
from collections.abc import Coroutine
from typing import Any, Final, cast

from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import AuthorizationFailed, Authorizer, Decision, NotKnownYet, forbidden
from pilothouse.authz.metrics import AuthorizationMetrics
from pilothouse.endpoints.request import APIRequest, Refusal
from pilothouse.filters.refusals import refusal, undecided
from pilothouse.filters.types import Handler, Serving, answered
from pilothouse.machinery import errors
from pilothouse.net.eager import step
from pilothouse.net.messages import Response

DECISION: Final = "authorization.k8s.io/decision"
REASON: Final = "authorization.k8s.io/reason"
_SELECTING: Final = frozenset({"list", "watch", "deletecollection"})
Deciding = Coroutine[Any, Any, tuple[Decision, str]]


def with_authorization(
    following: Handler,
    authorizer: Authorizer,
    metrics: AuthorizationMetrics | None = None,
) -> Handler:
    """Ask the authorizer, then go on or refuse."""
    authorize, decide = authorizer.authorize, getattr(authorizer, "decide", None)
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

    def handle(request: APIRequest) -> Serving:
        attributes = kept_attributes(request)
        started = clock()
        if decide is not None:
            try:
                decided: tuple[Decision, str] = decide(attributes)
            except (NotKnownYet, AuthorizationFailed):
                pass
            else:
                return go_on(request, attributes, started, *decided)
        try:
            stepped = step(authorize(attributes))
        except AuthorizationFailed as failure:
            return answered(fail(request, started, failure))
        if type(stepped) is not tuple:
            return wait(request, attributes, started, cast(Deciding, stepped))
        return go_on(request, attributes, started, *stepped[0])

    async def wait(request: APIRequest, attributes: Attributes, started: float, deciding: Deciding) -> Response:
        try:
            decision, reason = await deciding
        except AuthorizationFailed as failure:
            return fail(request, started, failure)
        return await go_on(request, attributes, started, decision, reason)

    def go_on(request: APIRequest, attributes: Attributes, started: float, decision: Decision, reason: str) -> Serving:
        audit = request.audit
        if decision is Decision.ALLOW:
            seconds = clock() - started
            allowed(seconds)
            if audit is not None:
                audit.times["authorization"] = seconds
                audit.annotate(DECISION, "allow")
                audit.annotate(REASON, reason)
            request.authorized_by = reason
            request.ask = ask
            return following(request)
        results["denied" if decision is Decision.DENY else "no-opinion"].observe(clock() - started)
        if audit is not None:
            audit.annotate(DECISION, "forbid")
            audit.annotate(REASON, reason)
        return answered(refusal(request, forbidden(attributes, reason)))

    def fail(request: APIRequest, started: float, failure: AuthorizationFailed) -> Response:
        results["error"].observe(clock() - started)
        if request.audit is not None:
            request.audit.annotate(REASON, "internal error")
        return undecided(request, str(failure))

    return handle


def kept_attributes(request: APIRequest) -> Attributes:
    """What the authorizer is asked about: as at the last time, where the same user asks for the same."""
    info = request.info
    kept = info.question
    if type(kept) is Attributes and kept.user is request.user:
        return kept
    made = attributes_of(request)
    if not _selects(request):
        info.question = made
    return made


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
    if _selects(request):
        _add_selectors(attributes, request)
    return attributes


def _selects(request: APIRequest) -> bool:
    """Whether what is asked for may be narrowed by selectors."""
    return bool(request.query) and request.info.is_resource and request.info.verb in _SELECTING


def _add_selectors(attributes: Attributes, request: APIRequest) -> None:
    """Selectors narrow what is asked for. Not with the old way of watching by path, which does not honour them."""
    if f"/{request.info.version}/watch/" in request.path:
        return
    attributes.note_selection(request.options.selection)
