"""The past of one object, as far as the store remembers it: ``GET /console/history/<path of the object>``.

To all filters such a request is a ``get`` of the object (``with_object_info``), so that authorization, flow control,
audit and metrics treat it as one: who may get an object may see what it was. Versions are found by walking back: the
state before a version is what the store held one revision earlier. That takes a read by key for each version, whatever
else happened in between, and works on every backend.

    {"versions": [{"resourceVersion": "812", "by": ["kubectl-edit"], "time": ..., "yaml": ...}, …], "end": "created"}

Newest first, at most ``PAGE`` of them, and less where they are large; ``?before=812`` goes on. ``end`` says why there
are no more: the object was
``created`` there, or what came before is ``compacted``; empty where there may be more.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from pilothouse.console.assets import PREFIX
from pilothouse.endpoints.installed import fits
from pilothouse.endpoints.output.objects import served_object
from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.request_info import RequestInfo, resolve
from pilothouse.endpoints.responses import error_response
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.filters.types import Handler, Serving, answered
from pilothouse.machinery import errors, yaml_codec
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed
from pilothouse.net.messages import Response
from pilothouse.server.generic import GenericAPIServer
from pilothouse.storage.backends.contract import Compacted, FutureRevision
from pilothouse.storage.cacher import Entry

HISTORY: Final = PREFIX + "history/"
PAGE: Final = 20
_MOST_BYTES: Final = 2 << 20
"""Of YAML on a page, but for its last version."""
_NO_QUERY: Final = Query("")


def with_object_info(following: Handler) -> Handler:
    """Take the place of the filter that reads paths: a request is about the object whose history it asks for."""

    def handle(request: APIRequest) -> Serving:
        info = resolve("GET", request.path.removeprefix(HISTORY[:-1]), _NO_QUERY)
        request.info = info
        if request.method != "GET" or info.verb != "get" or not info.name or info.subresource:
            request.info = resolve(request.method, request.path, _NO_QUERY)
            return answered(error_response(request, errors.not_found_anything()))
        return following(request)

    return handle


class ObjectHistory:
    """Serves the history of whatever a chain of servers keeps."""

    def __init__(self, front: GenericAPIServer) -> None:
        self._servers = front.chain()

    async def serve(self, request: APIRequest) -> Response:
        """A page of versions, or the Status of why there is none."""
        try:
            before = max(0, request.options.integer("before") or 0)
            return await self._page(self._find_scope(request), request.info, before)
        except errors.StatusError as error:
            return error_response(request, error)
        except FutureRevision as error:
            return error_response(request, errors.bad_request(str(error)))

    def _find_scope(self, request: APIRequest) -> ResourceScope:
        """The endpoint that would answer a get of the object.

        As there, a path must have the shape of its resource: rights in a namespace are none to what is in no namespace.
        """
        info = request.info
        for server in self._servers:
            installed = server.versions.get(GroupVersion(info.group, info.version))
            scope = None if installed is None else installed.scope(info.resource)
            if isinstance(scope, ResourceScope) and "get" in scope.verbs and fits(scope, request):
                return scope
        raise errors.not_found_anything()

    async def _page(self, scope: ResourceScope, info: RequestInfo, before: int) -> Response:
        page = _Page()
        end = ""
        try:
            entry = await (_read(scope, info, before - 1) if before else scope.store.get(info.namespace, info.name))
            while entry is not None and not page.is_full:
                if scope.prepare is not None:
                    await scope.prepare([entry])
                await weighed(len(entry.data), page.add, scope, entry)
                entry = await _read(scope, info, entry.revision - 1)
            end = "created" if entry is None else ""
        except Compacted:
            end = "compacted"
        await weighed(page.size, page.finish)
        return Response(200, b'{"versions":[%b],"end":"%b"}' % (b",".join(page.versions), end.encode()))


class _Page:
    """Versions as they are told. Only the last one is kept as an object, until the one before it is known."""

    def __init__(self) -> None:
        self.versions: list[bytes] = []
        self.size = 0
        self._last: Object | None = None

    @property
    def is_full(self) -> bool:
        return len(self.versions) + (self._last is not None) >= PAGE or self.size >= _MOST_BYTES

    def add(self, scope: ResourceScope, entry: Entry) -> None:
        """The next older version."""
        version = _describe(scope, entry)
        self.size += len(version["yaml"])
        self._tell_last(version)
        self._last = version

    def finish(self) -> None:
        """There are no more, or none that fit."""
        self._tell_last(None)

    def _tell_last(self, earlier: Object | None) -> None:
        version, self._last = self._last, None
        if version is not None:
            _note_authors(version, earlier)
            self.versions.append(orjson.dumps(version))


async def _read(scope: ResourceScope, info: RequestInfo, revision: int) -> Entry | None:
    key = scope.store.key(info.namespace if scope.resource.namespaced else "", info.name)
    return await scope.store.cache.get_at(key, revision)


def _describe(scope: ResourceScope, entry: Entry) -> Object:
    """A version for people: its YAML without the bookkeeping of field managers, which goes beside it."""
    obj = served_object(scope, entry)
    managers = obj["metadata"].pop("managedFields", None) or []
    obj["metadata"].pop("resourceVersion", None)
    return {
        "resourceVersion": str(entry.revision),
        "managers": managers,
        "object": obj,
        "yaml": yaml_codec.dump(obj),
    }


def _note_authors(version: Object, earlier: Object | None) -> None:
    """Note with a version who made it and when, as far as field managers tell.

    Those who were not there in the version before, or not at that time, made it. Times are of whole seconds: where
    nobody is new, it was one of the newest who has a field that changed.
    """
    managers: list[Object] = version.pop("managers")
    new = version.pop("object")
    newest = max((each.get("time", "") for each in managers), default="")
    latest = [each for each in managers if each.get("time", "") == newest]
    if earlier is not None:
        known = {_identity(each) for each in earlier["managers"]}
        fresh = [each for each in latest if _identity(each) not in known]
        old = earlier["object"]
        latest = fresh or [each for each in latest if _has_changed(each.get("fieldsV1"), old, new)] or latest
    version["by"] = list(dict.fromkeys(each.get("manager", "") for each in latest))
    version["time"] = newest


def _identity(manager: Object) -> tuple[str, ...]:
    return tuple(manager.get(key, "") for key in ("manager", "operation", "subresource", "time"))


def _has_changed(fields: Object | None, old: Any, new: Any) -> bool:
    """Whether some of a manager's fields differ; of a list, whether anything in it does."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return bool(old != new)
    return any(
        _has_changed(inner, old.get(name[2:]), new.get(name[2:]))
        for name, inner in (fields or {}).items()
        if name.startswith("f:")
    )
