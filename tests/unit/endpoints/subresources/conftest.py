"""A server without a network: endpoints over a store on disk, asked by method, path and body."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from pilothouse.apis.resources import table
from pilothouse.endpoints.installer import install_version
from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request import APIRequest, Ask, Refusal
from pilothouse.endpoints.request_info import resolve
from pilothouse.machinery.gvk import GroupVersion, parse_group_version
from pilothouse.machinery.objects import Object
from pilothouse.machinery.user import User
from pilothouse.net.messages import Response
from pilothouse.registry.storage import StorageFactory
from pilothouse.storage.cacher import Cacher

VERSIONS = ("v1", "apps/v1", "policy/v1", "discovery.k8s.io/v1")


class Asked(APIRequest):
    """A request that came from nowhere."""

    __slots__ = ("sent",)

    def __init__(self, method: str, path: str, body: bytes, headers: dict[bytes, bytes], ask: Ask) -> None:
        self.method, (self.path, _, self.query) = method, path.partition("?")
        self.headers = headers
        self.sent = body
        self._repeated, self._body = {}, None
        self.raw_path, self.host = self.path, b"localhost"
        self.connection = SimpleNamespace(peer=("127.0.0.1", 1))  # type: ignore[assignment]
        self.disconnected, self._on_disconnect = False, None
        self.warnings = self.audit = None
        self.authentication_seconds = 0.0
        self.credential_notes = ()
        self.raw = self.known = self.made = self.foreseen = None
        self.ask = ask
        self._query = None
        self.user = User("admin")
        self.info = resolve(method, self.path, Query(self.query))

    async def body(self, limit: int = 0) -> bytes:
        return self.sent


class Server:
    """``await server("GET", path)`` gives (status, object)."""

    def __init__(self, storage: StorageFactory) -> None:
        self.storage = storage
        self.response = Response()
        self.refusal: Refusal | None = None
        """What further questions to the authorizer are answered with."""
        self._versions = {
            gv: install_version(table()[gv], storage.store_for) for gv in map(parse_group_version, VERSIONS)
        }

    async def __call__(
        self, method: str, path: str, body: Any = None, kind: str = "", **headers: str
    ) -> tuple[int, Any]:
        given = {b"user-agent": b"tests/1", **{k.encode(): v.encode() for k, v in headers.items()}}
        if kind:
            given[b"content-type"] = f"application/{kind}+json".encode()
        request = Asked(method, path, b"" if body is None else orjson.dumps(body), given, self._answer)
        version = self._versions[GroupVersion(request.info.group, request.info.version)]
        self.response = await version.dispatch(request)
        return self.response.status, orjson.loads(self.response.body) if self.response.body else None

    async def _answer(self, request: APIRequest, verb: str) -> Refusal | None:
        return self.refusal

    async def pod(self, name: str = "p", status: Object | None = None, **spec: Any) -> Object:
        """Create a pod, with this status."""
        body = {
            "metadata": {"name": name, "labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "x"}], **spec},
        }
        code, pod = await self("POST", "/api/v1/namespaces/n/pods", body)
        assert code == 201, pod
        if status is not None:
            path = f"/api/v1/namespaces/n/pods/{name}/status"
            code, pod = await self("PATCH", path, {"status": status}, "merge-patch")
            assert code == 200, pod
        made: Object = pod
        return made


@pytest.fixture
def server(cacher: Cacher) -> Server:
    return Server(StorageFactory(cacher))
