"""Which definition serves a request: one group version of custom resources, with what kube-apiserver refuses how.

no such resource, wrong scope, version not served     plain text 404: somebody else might have served it
no such subresource                                   404 Status
a verb the resource does not take                     405 Status
creating while the definition goes away               403 Status
"""

from __future__ import annotations

from pilothouse.apiextensions.serving.definition import ServedDefinition
from pilothouse.apis.apiextensions.custom_resource_definition import definitions
from pilothouse.apis.resources import Version
from pilothouse.endpoints.installed import InstalledVersion, call_verb
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import error_response, page_not_found
from pilothouse.machinery import errors
from pilothouse.net.messages import Response

PRIORITY = (1000, 100)
"""Of the groups and versions of all custom resources."""


class CustomVersion(InstalledVersion):
    """A group version and the definitions that have it."""

    __slots__ = ("definitions", "established")

    def __init__(self, group: str, version: str, served: dict[str, ServedDefinition]) -> None:
        self.definitions = served
        self.established = [
            served[name] for name in sorted(served) if definitions.is_true(served[name].crd, definitions.ESTABLISHED)
        ]
        rows = [definition.resource(version) for definition in self.established]
        super().__init__(Version(group, version, PRIORITY, rows, custom=True), {})

    async def dispatch(self, request: APIRequest) -> Response:
        info = request.info
        definition = self.definitions.get(info.resource)
        if definition is None or not _in_scope(definition, request):
            return page_not_found()
        await definition.compile(info.version)
        main = definition.endpoint(info.version, "")
        if main is not None and main.deprecation:
            request.warn(main.deprecation)
        scope = definition.endpoint(info.version, info.subresource)
        if scope is None:
            return error_response(request, errors.not_found(definition.group_resource, info.name))
        verb = scope.verbs.get(info.verb)
        if verb is None:
            return error_response(request, errors.method_not_supported(definition.group_resource, info.verb))
        return await call_verb(verb, scope, request)


def _in_scope(definition: ServedDefinition, request: APIRequest) -> bool:
    info = request.info
    if not definition.namespaced:
        return not info.namespace
    return bool(info.namespace) or info.verb in ("list", "watch")
