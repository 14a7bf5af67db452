"""The loopback client: the API as one user sees it, from inside the process.

    clients = LoopbackClients(handler)                          the handler is the outermost filter
    client = clients.controller("replicaset-controller")        acts as that service account of kube-system
    pods = client.of("", "v1", "pods")
    await pods.create({"metadata": {"name": "a", "namespace": "default"}, "spec": ...})

Objects are dicts and belong to the caller. What the server refuses is raised as ``machinery.errors``: ``NotFound``,
``AlreadyExists``, ``Conflict`` and so on. Who reads much reads from an informer instead.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, Literal
from urllib.parse import quote

import orjson

from pilothouse.authn.loopback import (
    API_SERVER,
    CONTROLLER_MANAGER,
    SCHEDULER,
    LoopbackConnection,
    controller_user,
)
from pilothouse.controllers.runtime.call_turns import CallTurns
from pilothouse.controllers.runtime.transport import Watch, call, make_request
from pilothouse.filters.types import Handler
from pilothouse.machinery.objects import Object
from pilothouse.machinery.user import User

PatchType = Literal["json", "merge", "strategic"]
Propagation = Literal["Orphan", "Background", "Foreground"]
_PATCHES: Final[dict[str, bytes]] = {
    "json": b"application/json-patch+json",
    "merge": b"application/merge-patch+json",
    "strategic": b"application/strategic-merge-patch+json",
}
_PAGE: Final = 500
_METADATA: Final = b"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
"""Lists without what objects say and are; whole ones of servers that have no such form."""


class LoopbackClients:
    """Makes clients for the users that parts of this process act as. Their calls take turns with those of others."""

    def __init__(self, handler: Handler, version: str = "v1.37.0") -> None:
        self._handler, self._version = CallTurns(handler), version

    def as_user(self, user: User, agent: str) -> Client:
        """A client of any user. The agent names the manager of fields that it writes."""
        return Client(self._handler, user, f"{agent}/{self._version}")

    def api_server(self) -> Client:
        """The server itself: ``system:apiserver`` in ``system:masters``."""
        return self.as_user(API_SERVER, "kube-apiserver")

    def controller_manager(self) -> Client:
        """``system:kube-controller-manager``."""
        return self.as_user(CONTROLLER_MANAGER, "kube-controller-manager")

    def scheduler(self) -> Client:
        """``system:kube-scheduler``."""
        return self.as_user(SCHEDULER, "kube-scheduler")

    def controller(self, service_account: str, agent: str = "kube-controller-manager") -> Client:
        """A controller of the controller manager, which acts as a service account of its own in kube-system."""
        return self.as_user(controller_user(service_account), agent)


class Client:
    """The API as one user sees it."""

    def __init__(self, handler: Handler, user: User, agent: str) -> None:
        self.user = user
        self._handler, self._agent = handler, agent.encode()
        self._connection = LoopbackConnection(user)

    def of(self, group: str, version: str, resource: str) -> ResourceClient:
        """The objects of one resource at one version, custom or built in."""
        return ResourceClient(self, group, version, resource)

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: bytes = b"application/json",
        accept: bytes = b"application/json",
    ) -> Object:
        """One call; the object that is answered. Raises ``StatusError``."""
        headers = {b"user-agent": self._agent, b"accept": accept}
        data = None if body is None else orjson.dumps(body)
        if data is not None:
            headers[b"content-type"] = content_type
        return await call(self._handler, make_request(self._connection, method, path, query or {}, headers, data))

    def watch(self, path: str, query: Mapping[str, str]) -> Watch:
        """Open a watch when its block is entered."""
        headers = {b"user-agent": self._agent, b"accept": b"application/json"}
        return Watch(self._handler, make_request(self._connection, "GET", path, query, headers, None))


class ResourceClient:
    """The objects of one resource. The namespace of what has none is empty."""

    def __init__(self, client: Client, group: str, version: str, resource: str) -> None:
        self._client, self._resource = client, resource
        self._root = f"/apis/{group}/{version}" if group else f"/api/{version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Where an object, or a collection, is served."""
        path = f"{self._root}/namespaces/{quote(namespace, '')}" if namespace else self._root
        path = f"{path}/{self._resource}"
        if name:
            path = f"{path}/{quote(name, '')}"
        return f"{path}/{subresource}" if subresource else path

    async def get(self, namespace: str, name: str, subresource: str = "") -> Object:
        """One object, or a subresource of it such as ``scale``. Raises ``NotFound``."""
        return await self._client.request("GET", self.path(namespace, name, subresource))

    async def list(
        self,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
        metadata_only: bool = False,
    ) -> Object:
        """One page of a list, as the server answers it; all of it without a limit."""
        query = _present(
            labelSelector=label_selector,
            fieldSelector=field_selector,
            limit=str(limit) if limit else "",
            resourceVersion=resource_version,
        )
        if continue_token:
            query["continue"] = continue_token
        accept = _METADATA if metadata_only else b"application/json"
        return await self._client.request("GET", self.path(namespace), query, accept=accept)

    async def items(
        self, namespace: str = "", *, label_selector: str = "", field_selector: str = "", metadata_only: bool = False
    ) -> AsyncIterator[Object]:
        """All objects, fetched page by page."""
        token = ""
        while True:
            page = await self.list(
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=_PAGE,
                continue_token=token,
                metadata_only=metadata_only,
            )
            for item in page["items"] or ():
                yield item
            token = page["metadata"].get("continue") or ""
            if not token:
                return

    async def create(self, obj: Object, *, namespace: str | None = None, dry_run: bool = False) -> Object:
        """Create an object in its namespace; what was stored. Raises ``AlreadyExists``."""
        where = _namespace_of(obj) if namespace is None else namespace
        return await self._client.request("POST", self.path(where), _dry(dry_run), obj)

    async def create_subresource(self, namespace: str, name: str, subresource: str, obj: Object) -> Object:
        """Post to a subresource: ``eviction`` or ``binding`` of a pod, ``token`` of a service account."""
        return await self._client.request("POST", self.path(namespace, name, subresource), None, obj)

    async def update(self, obj: Object, *, subresource: str = "", dry_run: bool = False) -> Object:
        """Replace an object. Raises ``Conflict`` if its resourceVersion is not the newest."""
        path = self.path(_namespace_of(obj), obj["metadata"]["name"], subresource)
        return await self._client.request("PUT", path, _dry(dry_run), obj)

    async def update_status(self, obj: Object) -> Object:
        """Replace the status of an object."""
        return await self.update(obj, subresource="status")

    async def patch(
        self, namespace: str, name: str, patch: Any, type: PatchType = "merge", *, subresource: str = ""
    ) -> Object:
        """Patch an object, or a subresource of it."""
        path = self.path(namespace, name, subresource)
        return await self._client.request("PATCH", path, None, patch, _PATCHES[type])

    async def apply(self, obj: Object, manager: str, *, force: bool = False, subresource: str = "") -> Object:
        """Apply the fields that a manager wants. Raises ``Conflict`` if others own some, unless forced."""
        path = self.path(_namespace_of(obj), obj["metadata"]["name"], subresource)
        query = {"fieldManager": manager, **({"force": "true"} if force else {})}
        return await self._client.request("PATCH", path, query, obj, b"application/apply-patch+yaml")

    async def delete(
        self,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
        propagation: Propagation | None = None,
    ) -> Object:
        """Delete an object: with a uid or version only that one (``Conflict`` otherwise). Raises ``NotFound``."""
        options = _delete_options(uid, resource_version, grace_seconds, propagation)
        return await self._client.request("DELETE", self.path(namespace, name), None, options)

    async def delete_collection(
        self,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        grace_seconds: int | None = None,
        propagation: Propagation | None = None,
    ) -> None:
        """Delete all objects that the selectors match, page by page: very many take longer than a request may."""
        query = _present(labelSelector=label_selector, fieldSelector=field_selector) | {"limit": str(_PAGE)}
        options = _delete_options("", "", grace_seconds, propagation)
        token: str | None = ""
        while token is not None:
            page = await self._client.request(
                "DELETE", self.path(namespace), query | _present(**{"continue": token}), options, accept=_METADATA
            )
            token = (page.get("metadata") or {}).get("continue") or None

    def watch(
        self,
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        bookmarks: bool = False,
    ) -> Watch:
        """``async with pods.watch() as events: async for type, obj in events``."""
        query = _present(
            watch="true",
            resourceVersion=resource_version,
            labelSelector=label_selector,
            fieldSelector=field_selector,
            allowWatchBookmarks="true" if bookmarks else "",
        )
        return self._client.watch(self.path(namespace), query)


def _namespace_of(obj: Object) -> str:
    return obj["metadata"].get("namespace") or ""


def _present(**query: str) -> dict[str, str]:
    return {name: value for name, value in query.items() if value}


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}


def _delete_options(uid: str, version: str, grace_seconds: int | None, propagation: str | None) -> Object:
    options: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
    preconditions = _present(uid=uid, resourceVersion=version)
    if preconditions:
        options["preconditions"] = preconditions
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if propagation is not None:
        options["propagationPolicy"] = propagation
    return options
