"""A small client for tests: objects are plain dicts, kinds are found by discovery, refusals are exceptions.

``Client`` is for code that blocks, ``AsyncClient`` for coroutines; both do the same. ``wait_for`` and ``wait_gone``
come back when something is so, and otherwise fail with what was seen last, its conditions and its events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from pilothouse.machinery.objects import Object
from pilothouse.testing.calling import Answer, Caller
from pilothouse.testing.waiting import PATIENCE_SECONDS, describe, wait

APPLY: Final = "application/apply-patch+yaml"
MERGE: Final = "application/merge-patch+json"
Until = Callable[[Object], bool]


class Refused(Exception):
    """The server did not do what it was asked; ``status`` is its answer."""

    def __init__(self, asked: str, answer: Answer) -> None:
        try:
            self.status: Object = answer.json
        except ValueError:
            self.status = {"message": answer.body.decode(errors="replace")}
        self.code = answer.status
        self.reason: str = self.status.get("reason", "")
        super().__init__(f"{asked}: {answer.status} {self.reason}: {self.status.get('message', '')}")


class Client:
    """Talks as one user. ``namespace`` is where objects of namespaced kinds are if nothing else is said."""

    def __init__(self, caller: Caller, namespace: str = "default") -> None:
        self._caller = caller
        self.namespace = namespace
        self._resources: dict[tuple[str, str], Object] = {}

    def request(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        """One request; its decoded answer. Raises Refused."""
        answer = self._caller.call(method, path, body, headers)
        if answer.status >= 400:
            raise Refused(f"{method} {path}", answer)
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        return answer.json if is_json else answer.body.decode()

    def create(self, obj: Object, namespace: str | None = None) -> Object:
        """Create it. Raises Refused."""
        created: Object = self.request("POST", self._path_of(obj, namespace, named=False), obj)
        return created

    def apply(self, obj: Object, manager: str = "test", namespace: str | None = None) -> Object:
        """Create or change it by server-side apply, taking fields from other managers. Raises Refused."""
        query = urlencode({"fieldManager": manager, "force": "true"})
        path = f"{self._path_of(obj, namespace)}?{query}"
        applied: Object = self.request("PATCH", path, obj, {"Content-Type": APPLY})
        return applied

    def replace(self, obj: Object) -> Object:
        """Put it in the place of what is there. Raises Refused."""
        replaced: Object = self.request("PUT", self._path_of(obj, None), obj)
        return replaced

    def get(self, kind: str, name: str, namespace: str | None = None) -> Object:
        """The object; ``kind`` is ``v1/Pod`` or ``apps/v1/Deployment``. Raises Refused."""
        found: Object = self.request("GET", f"{self.path(kind, namespace)}/{quote(name)}")
        return found

    def list(self, kind: str, namespace: str | None = None, **query: str) -> list[Object]:
        """All objects of a kind (``namespace=""`` means all namespaces); ``labelSelector=`` and the like narrow it."""
        path = self.path(kind, namespace) + (f"?{urlencode(query)}" if query else "")
        items: list[Object] = self.request("GET", path)["items"]
        return items

    def patch(
        self, kind: str, name: str, change: Object, namespace: str | None = None, subresource: str = ""
    ) -> Object:
        """A merge patch. Raises Refused."""
        path = f"{self.path(kind, namespace)}/{quote(name)}" + (f"/{subresource}" if subresource else "")
        patched: Object = self.request("PATCH", path, change, {"Content-Type": MERGE})
        return patched

    def delete(self, kind: str, name: str, namespace: str | None = None, **query: str) -> None:
        """Delete it; it may take a while to go. Raises Refused."""
        path = f"{self.path(kind, namespace)}/{quote(name)}" + (f"?{urlencode(query)}" if query else "")
        self.request("DELETE", path)

    def path(self, kind: str, namespace: str | None = None) -> str:
        """Where objects of a kind are."""
        version, _, name = kind.rpartition("/")
        resource = self._resource(version, name)
        base = _base(version)
        where = self.namespace if namespace is None else namespace
        within = f"/namespaces/{quote(where)}" if resource["namespaced"] and where else ""
        return f"{base}{within}/{resource['name']}"

    def wait_for(
        self,
        kind: str,
        name: str,
        until: Until | None = None,
        namespace: str | None = None,
        *,
        condition: str = "",
        seconds: float = PATIENCE_SECONDS,
    ) -> Object:
        """The object once it is there and ``until`` says so, or a condition is True. Raises AssertionError."""
        wanted = until or (lambda obj: not condition or has_condition(obj, condition))
        what = f"{kind} {name}" + (f" with condition {condition}" if condition else "")

        def look() -> tuple[bool, Object]:
            found = self._find(kind, name, namespace)
            return bool(found) and wanted(found), found

        return wait(look, what, seconds, lambda found: describe(found, self._events(found)))

    def wait_gone(
        self, kind: str, name: str, namespace: str | None = None, *, seconds: float = PATIENCE_SECONDS
    ) -> None:
        """Come back when there is no such object. Raises AssertionError."""

        def look() -> tuple[bool, Object]:
            found = self._find(kind, name, namespace)
            return not found, found

        wait(look, f"{kind} {name} to go", seconds, lambda found: describe(found, self._events(found)))

    def _find(self, kind: str, name: str, namespace: str | None) -> Object:
        try:
            return self.get(kind, name, namespace)
        except Refused as refusal:
            if refusal.code != 404:
                raise
            return {}

    def _events(self, obj: Object) -> Sequence[Object]:
        if not obj:
            return []
        metadata = obj["metadata"]
        selector = f"involvedObject.name={metadata['name']},involvedObject.kind={obj['kind']}"
        try:
            return self.list("v1/Event", metadata.get("namespace", "default"), fieldSelector=selector)
        except Refused:
            return []

    def _path_of(self, obj: Object, namespace: str | None, *, named: bool = True) -> str:
        metadata = obj["metadata"]
        path = self.path(f"{obj['apiVersion']}/{obj['kind']}", namespace or metadata.get("namespace"))
        return f"{path}/{quote(metadata['name'])}" if named else path

    def _resource(self, version: str, kind: str) -> Object:
        found = self._resources.get((version, kind))
        if found is None:
            for each in self.request("GET", _base(version))["resources"]:
                if "/" not in each["name"]:
                    self._resources[version, each["kind"]] = each
            found = self._resources.get((version, kind))
        if found is None:
            raise LookupError(f"the server has no kind {kind} in {version}")
        return found


class AsyncClient:
    """The same for coroutines; requests are made in threads."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.namespace = client.namespace

    async def request(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        """One request; its decoded answer. Raises Refused."""
        return await asyncio.to_thread(self._client.request, method, path, body, headers)

    async def create(self, obj: Object, namespace: str | None = None) -> Object:
        """Create it. Raises Refused."""
        return await asyncio.to_thread(self._client.create, obj, namespace)

    async def apply(self, obj: Object, manager: str = "test", namespace: str | None = None) -> Object:
        """Create or change it by server-side apply. Raises Refused."""
        return await asyncio.to_thread(self._client.apply, obj, manager, namespace)

    async def replace(self, obj: Object) -> Object:
        """Put it in the place of what is there. Raises Refused."""
        return await asyncio.to_thread(self._client.replace, obj)

    async def get(self, kind: str, name: str, namespace: str | None = None) -> Object:
        """The object. Raises Refused."""
        return await asyncio.to_thread(self._client.get, kind, name, namespace)

    async def list(self, kind: str, namespace: str | None = None, **query: str) -> list[Object]:
        """All objects of a kind."""
        return await asyncio.to_thread(self._client.list, kind, namespace, **query)

    async def patch(
        self, kind: str, name: str, change: Object, namespace: str | None = None, subresource: str = ""
    ) -> Object:
        """A merge patch. Raises Refused."""
        return await asyncio.to_thread(self._client.patch, kind, name, change, namespace, subresource)

    async def delete(self, kind: str, name: str, namespace: str | None = None, **query: str) -> None:
        """Delete it. Raises Refused."""
        await asyncio.to_thread(self._client.delete, kind, name, namespace, **query)

    async def wait_for(
        self,
        kind: str,
        name: str,
        until: Until | None = None,
        namespace: str | None = None,
        *,
        condition: str = "",
        seconds: float = PATIENCE_SECONDS,
    ) -> Object:
        """The object once it is as wanted. Raises AssertionError."""
        return await asyncio.to_thread(
            lambda: self._client.wait_for(kind, name, until, namespace, condition=condition, seconds=seconds)
        )

    async def wait_gone(
        self, kind: str, name: str, namespace: str | None = None, *, seconds: float = PATIENCE_SECONDS
    ) -> None:
        """Come back when there is no such object. Raises AssertionError."""
        await asyncio.to_thread(lambda: self._client.wait_gone(kind, name, namespace, seconds=seconds))


def has_condition(obj: Object, type: str) -> bool:
    """Whether the status says that this is so."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == type and each.get("status") == "True" for each in conditions)


def _base(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"
