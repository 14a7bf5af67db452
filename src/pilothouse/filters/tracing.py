"""Requests as spans that a collector of traces is told of, where ``--tracing-config-file`` names one.

Behind authentication, so that it is known who asks: only requests of ``system:masters`` and ``system:monitoring`` go on
with the trace that their ``traceparent`` names. Those of others begin a trace of their own, which is linked to it, and
cannot decide about sampling.

Without a tracer none of this is in the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler, Serving
from pilothouse.machinery.spans import Exported, Fields, Span, current
from pilothouse.net.messages import Response

_TRUSTED: Final = frozenset({"system:masters", "system:monitoring"})
_FAILURE: Final = 500


class RequestSpan(Exported, Protocol):
    """The span of a whole request."""

    def add(self, fields: Fields) -> None:
        """More is known of it now."""

    def past(self, name: str, seconds: float) -> None:
        """A child that began with it and lasted so long."""

    def fail(self) -> None:
        """It is an error of the server's."""


class Tracer(Protocol):
    """Decides which requests are traced."""

    def begin(
        self, name: str, headers: Mapping[bytes, bytes], fields: Callable[[], Fields], trusted: bool, seconds: float
    ) -> RequestSpan | None:
        """The span of a request that came ``seconds`` ago, None if it is not sampled."""
        ...


def with_tracing(following: Handler, tracer: Tracer) -> Handler:
    """Begin the span of each request that is sampled."""

    def handle(request: APIRequest) -> Serving:
        trusted = not _TRUSTED.isdisjoint(request.user.groups)
        exported = tracer.begin(
            span_name(request), request.headers, lambda: _fields(request), trusted, request.authentication_seconds
        )
        return following(request) if exported is None else _trace(following, request, exported)

    return handle


async def _trace(following: Handler, request: APIRequest, exported: RequestSpan) -> Response:
    exported.past("authentication", request.authentication_seconds)
    with Span(span_name(request), exported=exported, threshold=float("inf")):
        response = await following(request)
        size = len(response.body) or response.length or 0
        exported.add({"http.response.status_code": response.status, "http.response.body.size": size})
        if response.status >= _FAILURE:
            exported.fail()
        return response


def with_span(following: Handler, name: str) -> Handler:
    """A filter, and all that it leads to, as a span of requests that are traced."""

    def handle(request: APIRequest) -> Serving:
        return following(request) if current() is None else _spanned(following, request, name)

    return handle


async def _spanned(following: Handler, request: APIRequest, name: str) -> Response:
    with Span(name, threshold=float("inf")):
        return await following(request)


def span_name(request: APIRequest) -> str:
    """The method and the shape of the path, without names."""
    info = request.info
    if not info.is_resource:
        return request.method
    parts = ["", info.prefix, info.group, info.version] if info.group else ["", info.prefix, info.version]
    if info.namespace:
        parts += ["namespaces", "{:namespace}"]
    parts.append(info.resource)
    if info.name:
        parts.append("{:name}")
    if info.subresource:
        parts.append(info.subresource)
    return f"{request.method} {'/'.join(parts)}"


def _fields(request: APIRequest) -> Fields:
    return {
        "http.target": request.target.decode("latin-1"),
        "audit-id": request.audit_id,
        "http.request.method": request.method,
        "url.path": request.path,
        "url.scheme": "https",
        "user_agent.original": request.headers.get(b"user-agent", b"").decode("latin-1"),
    }
