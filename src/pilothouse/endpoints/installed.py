"""Installed versions: from a request's coordinates to the verb that serves it.

No patterns are matched: the reading of the path (request info) is looked up. What has no such resource is a 404 Status,
what does not take the method a 405.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from pilothouse.apis.deprecations import removal_of
from pilothouse.apis.resources import Version
from pilothouse.endpoints.negotiation import comes_to_endpoint
from pilothouse.endpoints.output.compression import compress, is_worth_compressing
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import error_response
from pilothouse.endpoints.scope import Endpoint, EndpointVerb
from pilothouse.machinery import errors
from pilothouse.machinery.disposal import dispose
from pilothouse.machinery.spans import Fields, Span, current
from pilothouse.machinery.workers import LONG, afterwards, aside
from pilothouse.net.messages import MalformedBody, Response

Scopes = dict[tuple[str, str], Endpoint]
"""The endpoints of resources and their subresources, by the names of both."""


@dataclass(frozen=True, slots=True)
class Unmade:
    """A resource that nobody has asked for yet."""

    prepare: Callable[[], object]
    """What takes time: imports the modules of its kind. May be called in a thread."""
    make: Callable[[], Scopes]


class InstalledVersion:
    """One group version as it is served. Resources that are not in use cost neither memory nor time at the start."""

    __slots__ = ("_made", "_unmade", "version")

    def __init__(self, version: Version, scopes: Scopes, unmade: dict[str, Unmade] | None = None) -> None:
        """``unmade`` has, by name, the resources whose scopes are made when first asked for."""
        self.version = version
        self._made, self._unmade = scopes, {} if unmade is None else unmade

    def scope(self, resource: str, subresource: str = "") -> Endpoint | None:
        """The endpoint of a resource or subresource, if there is one."""
        unmade = self._unmade.pop(resource, None)
        if unmade is not None:
            self._made |= unmade.make()
        return self._made.get((resource, subresource))

    def all_scopes(self) -> Scopes:
        """All there are."""
        for resource in list(self._unmade):
            self.scope(resource)
        return self._made

    def dispatch(self, request: APIRequest) -> Coroutine[Any, Any, Response]:
        """Serve a resource request, or refuse it with the Status that fits. No coroutine of its own: all come by."""
        info = request.info
        scope = self._made.get((info.resource, info.subresource))
        if scope is None and info.resource in self._unmade:
            return self._make_and_dispatch(request)
        if scope is None or info.verb == "proxy" or (info.fitting is not scope and not fits(scope, request)):
            return _refuse(request, _misfit(scope, request))
        verb = scope.verbs.get(info.verb)
        if verb is None or (info.fitting is not scope and not _allowed(scope, request)):
            return _refuse(request, errors.method_not_allowed())
        info.fitting = scope
        if scope.deprecation and comes_to_endpoint(request, scope.formats):
            _tell_deprecation(scope, request)
        return call_verb(verb, scope, request)

    async def _make_and_dispatch(self, request: APIRequest) -> Response:
        resource = request.info.resource
        await aside(self._unmade[resource].prepare, weight=LONG)
        self.scope(resource)
        return await self.dispatch(request)


def _misfit(scope: Endpoint | None, request: APIRequest) -> errors.StatusError:
    """What is said of a path that has not the shape of the resource's scope: a namespace may be named, and be empty."""
    info = request.info
    if scope is None or not scope.resource.namespaced or info.namespace or len(info.parts) == 1:
        return errors.not_found_anything()
    if f"/namespaces//{info.resource}/" not in request.path or len(info.parts) > 3:
        return errors.not_found_anything()
    if info.verb not in scope.verbs or (info.verb == "create" and not scope.subresource):
        return errors.method_not_allowed()
    return errors.bad_request("Namespace parameter required.")


async def _refuse(request: APIRequest, error: errors.StatusError) -> Response:
    return error_response(request, error)


async def call_verb(verb: EndpointVerb, scope: Endpoint, request: APIRequest) -> Response:
    """What a verb answers, or the Status of why it does not; compressed where that is worth it."""
    waste: list[Any] | None = None
    try:
        named = _SPANS.get(request.info.verb)
        if named is None and current() is None:
            response = await verb(scope, request)
        else:
            with Span(named or _UNRECORDED.get(request.info.verb, "Connect"), lambda: trace_fields(request)):
                response = await verb(scope, request)
        if is_worth_compressing(request, response):
            response = await compress(response)
    except errors.StatusError as error:
        is_long = len(error.message) >= LONG
        if is_long:
            response = await aside(error_response, request, error)
            waste = [error.details, error.errs]  # tens of thousands of errors, which are not to be freed here
        else:
            response = error_response(request, error)
    except MalformedBody as error:
        response = error_response(request, errors.generic(str(error)))
    if request.made is not None:
        afterwards(dispose, request.made)
    if waste is not None:
        afterwards(dispose, waste)
    return response


def trace_fields(request: APIRequest) -> Fields:
    """What a span says of the request it is for, as kube-apiserver says it."""
    info, headers = request.info, request.headers
    scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
    return {
        "accept": headers.get(b"accept", b"").decode("latin-1"),
        "audit-id": request.audit_id,
        "client": request.connection.peer[0],
        "api-group": info.group,
        "api-version": info.version,
        "name": info.name,
        "subresource": info.subresource,
        "namespace": info.namespace,
        "resource": info.resource,
        "scope": scope,
        "url": request.path,
        "user-agent": headers.get(b"user-agent", b"").decode("latin-1"),
        "verb": request.method,
    }


def _tell_deprecation(scope: Endpoint, request: APIRequest) -> None:
    request.warn(scope.deprecation)
    removal = request.removed_release = removal_of(scope.resource)
    if request.audit is not None:
        request.audit.annotate("k8s.io/deprecated", "true")
        if removal:
            request.audit.annotate("k8s.io/removed-release", removal)


_SPANS = {
    "create": "Create", "update": "Update", "patch": "Patch", "delete": "Delete", "deletecollection": "Delete",
    "list": "List",
}  # fmt: skip
"""The verbs whose steps are always noted: they may take long."""
_UNRECORDED = {"get": "Get", "watch": "Watch"}
"""Those that are noted only where a collector of traces wants it."""


def fits(scope: Endpoint, request: APIRequest) -> bool:
    """Whether the path has the shape of the resource's scope."""
    info = request.info
    depth = len(info.parts)
    if depth > (3 if scope.subresource else 2) and not scope.takes_path:
        return False
    if not scope.subresource and not scope.resource.is_stored and "list" not in scope.resource.verbs:
        return depth == 1 and bool(info.namespace) == scope.resource.namespaced
    if scope.resource.namespaced:
        return bool(info.namespace) or depth == 1
    return not info.namespace or (scope.resource.name == "namespaces" and info.name == info.namespace)


def _allowed(scope: Endpoint, request: APIRequest) -> bool:
    """Whether the method makes sense for a collection, an object or a subresource."""
    info = request.info
    if scope.takes_path:
        return True
    if request.method in ("HEAD", "OPTIONS") or (info.verb == "watch" and request.method != "GET"):
        return False
    collection = len(info.parts) == 1
    if collection and info.verb in ("update", "patch"):
        return False
    if scope.subresource:
        return True
    if not collection and info.verb == "create":
        return False
    if info.namespace or not scope.resource.namespaced or info.verb in ("list", "watch"):
        return True
    return f"/namespaces//{info.resource}" in request.path  # a namespace that is named, and empty
