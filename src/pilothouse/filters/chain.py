"""The request's journey: every filter, outermost first, folded around the handler in reverse.

A filter is made once, from the next handler inward, and is one coroutine a request. The order is part of the contract:
what is refused early costs little, and nothing behind authentication ever sees an unauthenticated request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pilothouse.authn.authenticator import Authenticator
from pilothouse.authn.metrics import AuthenticationMetrics
from pilothouse.authz.authorizer import Authorizer
from pilothouse.authz.impersonation import Impersonation
from pilothouse.authz.metrics import AuthorizationMetrics
from pilothouse.filters.answer_headers import with_answer_headers, with_cache_control
from pilothouse.filters.audit import Auditing, with_audit
from pilothouse.filters.authentication import with_authentication
from pilothouse.filters.authorization import with_authorization
from pilothouse.filters.cors import with_cors
from pilothouse.filters.filter_durations import FilterDurations, with_sampling
from pilothouse.filters.flow_control import with_flow_control, with_max_in_flight
from pilothouse.filters.impersonation import with_impersonation
from pilothouse.filters.instrumentation import with_instrumentation
from pilothouse.filters.recovery import with_recovery
from pilothouse.filters.request_info import Foresee, with_request_info
from pilothouse.filters.request_metrics import RequestMetrics
from pilothouse.filters.retry_after import Draining, with_retry_after
from pilothouse.filters.strict_transport import with_strict_transport
from pilothouse.filters.timeout import with_timeout
from pilothouse.filters.tracing import Tracer, with_span, with_tracing
from pilothouse.filters.types import Handler
from pilothouse.flowcontrol.controller import FlowController
from pilothouse.flowcontrol.max_in_flight import MaxInFlight

Filter = Callable[[Handler], Handler]
_KNOWN_NAMES: Final = {
    "authentication": "authentication",
    "audit": "audit",
    "impersonation": "impersonation",
    "flow-control": "priorityandfairness",
    "authorization": "authorization",
}


@dataclass(slots=True)
class ChainConfig:
    """What the filters need to know."""

    authenticator: Authenticator
    authorizer: Authorizer
    metrics: RequestMetrics
    request_timeout: float = 60.0
    min_request_timeout: int = 1800
    cors_origins: Sequence[str] = ()
    strict_transport: Sequence[str] = ()
    auditing: Auditing | None = None
    authentication_metrics: AuthenticationMetrics = field(default_factory=AuthenticationMetrics)
    authorization_metrics: AuthorizationMetrics = field(default_factory=AuthorizationMetrics)
    constrained_impersonation: bool = True
    draining: Draining | None = None
    """Given where new requests are to be told to come back while the server stops."""
    flow_control: FlowController | MaxInFlight | None = None
    durations: FilterDurations = field(default_factory=FilterDurations)
    foresee: Foresee | None = None
    """Given where a read has to ask the store how far it is."""
    tracer: Tracer | None = None
    """Given where a collector is to be told of requests."""
    impersonation: Impersonation = field(init=False)
    """Remembers, and so is one for all chains that are made of this."""

    def __post_init__(self) -> None:
        self.impersonation = Impersonation(
            self.authorizer, self.authorization_metrics.impersonation, constrained=self.constrained_impersonation
        )


def filters(config: ChainConfig) -> list[tuple[str, Filter]]:
    """All filters by name, outermost first. A filter that has nothing to do is left out."""
    auditing = config.auditing
    note_refusal = None if auditing is None else auditing.note_refusal
    chain: list[tuple[str, Filter]] = [
        ("answer-headers", with_answer_headers),
        ("recovery", with_recovery),
        ("request-info", lambda following: with_request_info(following, config.foresee)),
        ("instrumentation", lambda following: with_instrumentation(following, config.metrics)),
    ]
    draining = config.draining
    if draining is not None:
        chain.append(("retry-after", lambda following: with_retry_after(following, draining)))
    chain.append(("cache-control", with_cache_control))
    if config.strict_transport:
        chain.append(("strict-transport", lambda following: with_strict_transport(following, config.strict_transport)))
    if config.cors_origins:
        chain.append(("cors", lambda following: with_cors(following, config.cors_origins)))
    chain += [
        ("timeout", lambda following: with_timeout(following, config.request_timeout, config.min_request_timeout)),
        (
            "authentication",
            lambda following: with_authentication(
                following, config.authenticator, note_refusal, config.authentication_metrics
            ),
        ),
    ]
    tracer = config.tracer
    if tracer is not None:
        chain.append(("tracing", lambda following: with_tracing(following, tracer)))
    if auditing is not None:
        chain.append(("audit", lambda following: with_audit(following, auditing)))
    counted = config.authorization_metrics
    chain.append(("impersonation", lambda following: with_impersonation(following, config.impersonation)))
    chain += _limiting(config)
    chain.append(("authorization", lambda following: with_authorization(following, config.authorizer, counted)))
    return chain


def _limiting(config: ChainConfig) -> list[tuple[str, Filter]]:
    limits = config.flow_control
    if isinstance(limits, FlowController):
        return [("flow-control", lambda following: with_flow_control(following, limits, config.request_timeout))]
    if isinstance(limits, MaxInFlight) and limits.is_limited:
        return [("max-in-flight", lambda following: with_max_in_flight(following, limits))]
    return []


def build_filter_chain(handler: Handler, config: ChainConfig) -> Handler:
    """The handler behind all its filters: twice, of which one chain times them."""
    plain = timed = handler
    for name, wrap in reversed(filters(config)):
        known = _known_name(name, config)
        plain = wrap(plain)
        timed = config.durations.timed(known, wrap, timed) if known else wrap(timed)
        if config.tracer is not None and known and name != "authentication":
            plain, timed = with_span(plain, known), with_span(timed, known)
    return with_sampling(plain, timed)


def _known_name(name: str, config: ChainConfig) -> str:
    """What kube-apiserver calls a filter in metrics and traces; nothing for those it does not tell apart."""
    if name == "impersonation" and config.constrained_impersonation:
        return "constrainedimpersonation"
    return _KNOWN_NAMES.get(name, "")
