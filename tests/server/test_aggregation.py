"""A server behind the server: what reaches it, what comes back, and what it cannot do to others."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.server.conftest import make_certificate

from pilothouse.testing.in_process import InProcessServer

GROUP = "example.com"
BASE = f"/apis/{GROUP}/v1"
Serve = Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def ok(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")


class Backend:
    """An aggregated server that is always well, and otherwise does as ``serve`` does."""

    def __init__(self) -> None:
        self.serve: Serve = ok
        self.documents: dict[str, Any] = {}
        """OpenAPI documents by path."""
        self.discovery: bytes | None = None
        """The aggregated document of discovery, under the tag "1"."""
        self.tags: list[bytes] = []
        """What discovery was said to be known as."""
        self.heads: list[bytes] = []
        self.shown: list[Any] = []
        self.gone = asyncio.Event()
        self.open = 0
        self.serving: set[asyncio.Task[Any]] = set()
        self.met = False
        """Whether anybody ever connected."""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.met = True
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if b"X-Remote-User: system:kube-aggregator\r\n" in head:
                    if self.discovery is not None and head.startswith(b"GET /apis HTTP"):
                        self.discover(head, writer)
                    else:
                        await ok(head, reader, writer)
                    continue
                if b"X-Remote-User: system:aggregator\r\n" in head:
                    self.document(head.split()[1].decode(), writer)
                    continue
                self.heads.append(head)
                self.shown.append(writer.get_extra_info("peercert"))
                await self.serve(head, reader, writer)
                if self.serve is not ok:
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.LimitOverrunError):
            pass
        finally:
            self.gone.set()
            self.open -= 1
            self.serving.discard(task)
            writer.transport.abort()

    def document(self, path: str, writer: asyncio.StreamWriter) -> None:
        found = self.documents.get(path)
        body = b"" if found is None else orjson.dumps(found)
        status = b"404 Not Found" if found is None else b"200 OK"
        writer.write(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))

    def discover(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        known = head.lower().partition(b"if-none-match: ")[2].partition(b"\r\n")[0]
        self.tags.append(known)
        if known == b'"1"':
            writer.write(b"HTTP/1.1 304 Not Modified\r\n\r\n")
        else:
            body = self.discovery or b""
            writer.write(b'HTTP/1.1 200 OK\r\nETag: "1"\r\nContent-Length: %d\r\n\r\n%b' % (len(body), body))

    async def drain(self) -> None:
        """Wait until everybody has gone; who waits for a word of the test, which may have failed, is sent away."""
        for task in self.serving:
            task.cancel()
        while self.open:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)


class Aggregated:
    """A server with a backend behind it."""

    def __init__(self, server: InProcessServer, backend: Backend) -> None:
        self.server, self.backend = server, backend
        self._context = server.ssl_context()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.server.port, ssl=self._context)

    async def ask(self, head: bytes, *, until: bytes = b"") -> bytes:
        """What comes back to a raw request, up to some bytes or the end."""
        reader, writer = await self.connect()
        writer.write(head)
        try:
            async with asyncio.timeout(120):
                return await (reader.readuntil(until) if until else reader.read())
        finally:
            writer.transport.abort()

    async def register(self, port: int, **spec: Any) -> None:
        """Announce the backend."""
        name = {"metadata": {"name": "behind"}}
        service = {**name, "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}}
        await self.server.request("POST", "/api/v1/namespaces/default/services", service)
        wanted = {
            "group": GROUP,
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "service": {"namespace": "default", "name": "behind", "port": port},
            **spec,
        }
        document = {"metadata": {"name": f"v1.{GROUP}"}, "spec": wanted}
        answer = await self.server.request("POST", "/apis/apiregistration.k8s.io/v1/apiservices", document)
        assert answer.status == 201, answer.body

    async def unavailable(self, name: str) -> None:
        """Wait until an APIService is known to lead nowhere."""
        async with asyncio.timeout(120):
            while True:
                found = (await self.server.request("GET", f"/apis/apiregistration.k8s.io/v1/apiservices/{name}")).json
                if [each["status"] for each in found["status"].get("conditions") or ()] == ["False"]:
                    return
                await asyncio.sleep(0.05)

    async def condition(self, **wanted: str) -> dict[str, Any]:
        """The condition of the APIService, once it is as wanted."""
        async with asyncio.timeout(120):
            while True:
                path = f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}"
                found = (await self.server.request("GET", path)).json
                for condition in found["status"].get("conditions") or ():
                    if all(condition.get(key) == value for key, value in wanted.items()):
                        return dict(condition)
                await asyncio.sleep(0.05)


@pytest.fixture
async def unregistered(tmp_path: Path) -> AsyncIterator[tuple[Aggregated, int]]:
    backend = Backend()
    async with InProcessServer() as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*make_certificate(tmp_path))
        context.load_verify_locations(server.pki.front_proxy_ca_cert)
        context.verify_mode = ssl.CERT_OPTIONAL
        listening = await asyncio.start_server(backend.handle, "127.0.0.1", 0, ssl=context)
        yield Aggregated(server, backend), listening.sockets[0].getsockname()[1]
        listening.close()
    await backend.drain()


@pytest.fixture
async def aggregated(unregistered: tuple[Aggregated, int]) -> Aggregated:
    made, port = unregistered
    await made.register(port, insecureSkipTLSVerify=True)
    await made.condition(status="True", reason="Passed", message="all checks passed")
    async with asyncio.timeout(120):
        while (await made.server.request("GET", BASE)).status == 503:
            await asyncio.sleep(0.02)
    made.backend.heads.clear()
    made.backend.shown.clear()
    return made


async def test_who_asks_is_told_and_nothing_else_is_believed(aggregated: Aggregated) -> None:
    answer = await aggregated.server.request(
        "GET",
        f"{BASE}/things?a=1&b=%20",
        headers={
            "X-Remote-User": "root",
            "X-Remote-Group": "forged",
            "X-Remote-Extra-Scopes": "all",
            "Authorization": "Bearer secret",
            "Connection": "X-Remote-User",
        },
    )
    assert answer.status == 200
    head = aggregated.backend.heads[0].decode()
    assert head.startswith(f"GET {BASE}/things?a=1&b=%20 HTTP/1.1\r\n")
    lines = head.lower().split("\r\n")
    told = [line for line in lines if line.startswith(("x-remote-", "authorization"))]
    assert told.pop().startswith("x-remote-extra-authentication.kubernetes.io%2fcredential-id: x509sha256=")
    assert told == [
        "x-remote-user: kubernetes-admin",
        "x-remote-group: system:masters",
        "x-remote-group: system:authenticated",
    ]
    assert "forged" not in head and "secret" not in head and "Scopes" not in head
    assert any(line.startswith("audit-id: ") for line in lines)
    shown = aggregated.backend.shown[0]
    assert ("commonName", "front-proxy-client") in [pair for each in shown["subject"] for pair in each]


async def test_paths_are_passed_on_as_they_were_judged(aggregated: Aggregated) -> None:
    await aggregated.server.request("GET", f"{BASE}/namespaces/a%2Fthings/x")
    assert aggregated.backend.heads[0].startswith(f"GET {BASE}/namespaces/a/things/x HTTP/1.1".encode())


def serve_two_events(aggregated: Aggregated) -> asyncio.Event:
    """Watches get one event at once, and another when the event that this gives is set."""
    more = asyncio.Event()

    async def watch(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n")
        await more.wait()
        writer.write(b"4\r\ntwo\n\r\n")
        await reader.read()

    aggregated.backend.serve = watch
    return more


async def test_watches_flow_event_by_event(aggregated: Aggregated) -> None:
    more = serve_two_events(aggregated)
    aggregated.backend.gone.clear()
    reader, writer = await aggregated.connect()
    writer.write(f"GET {BASE}/things?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await reader.readuntil(b"one\n")
    more.set()
    await reader.readuntil(b"two\n")
    writer.transport.abort()
    await aggregated.backend.gone.wait()


async def test_two_hundred_watches_at_once(aggregated: Aggregated) -> None:
    more = serve_two_events(aggregated)
    watches = [await aggregated.connect() for _ in range(200)]
    try:
        async with asyncio.timeout(120):
            for _, writer in watches:
                writer.write(f"GET {BASE}/things?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            for reader, _ in watches:
                await reader.readuntil(b"one\n")
            aggregated.backend.serve = ok
            assert (await aggregated.server.request("GET", f"{BASE}/things")).status == 200  # there is room for others
            more.set()
            for reader, _ in watches:
                await reader.readuntil(b"two\n")
    finally:
        for _, writer in watches:
            writer.transport.abort()


async def test_upgrades(aggregated: Aggregated) -> None:
    async def shout(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n")
        writer.write((await reader.readline()).upper())
        await reader.read()

    aggregated.backend.serve = shout
    upgrade = f"GET {BASE}/things HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n".encode()
    assert await aggregated.ask(upgrade + b"word\n", until=b"WORD\n")
    assert b"X-Remote-User" in aggregated.backend.heads[0]


async def test_a_refused_upgrade_is_not_reused(aggregated: Aggregated) -> None:
    """CVE-2018-1002105: a second request behind a refused upgrade would reach the backend as whom it likes."""
    reached: list[bytes] = []

    async def refuse(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno")
        reached.append(await reader.read())

    aggregated.backend.serve = refuse
    upgrade = f"GET {BASE}/things HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n".encode()
    answer = await aggregated.ask(upgrade + f"GET {BASE}/x HTTP/1.1\r\nX-Remote-User: root\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 400 ") and answer.endswith(b"no")
    await aggregated.backend.gone.wait()
    assert b"root" not in b"".join([*reached, *aggregated.backend.heads])


@pytest.mark.parametrize(
    ("answer", "status", "text"),
    [
        (b"HTTP/1.1 302 Found\r\nLocation: https://evil/\r\nContent-Length: 0\r\n\r\n", 502, "attempted to redirect"),
        (b"nonsense\r\n\r\n", 503, "error trying to reach service: net/http: HTTP/1.x transport connection broken"),
        (b"", 503, "error trying to reach service: EOF"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * (1 << 20), 503, "error trying to reach service: net/http: server response"),
    ],
)
async def test_backends_that_misbehave(aggregated: Aggregated, answer: bytes, status: int, text: str) -> None:
    """One that redirects would send the client's credentials elsewhere (CVE-2022-3172)."""

    async def misbehave(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        with suppress(ConnectionError):
            await writer.drain()
            if answer:
                await reader.read()

    aggregated.backend.serve = misbehave
    got = await aggregated.server.request("GET", f"{BASE}/things")
    assert (got.status, text in got.body.decode()) == (status, True), got.body
    assert b"evil" not in got.body and "location" not in got.headers


async def test_a_backend_that_dies_in_the_middle(aggregated: Aggregated) -> None:
    async def die(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    aggregated.backend.serve = die
    answer = await aggregated.ask(f"GET {BASE}/things HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert not answer.endswith(b"0\r\n\r\n")
    aggregated.backend.serve = ok
    assert (await aggregated.server.request("GET", f"{BASE}/things")).status == 200


async def test_a_certificate_of_another_name_is_not_trusted(unregistered: tuple[Aggregated, int]) -> None:
    made, port = unregistered
    await made.register(port)
    condition = await made.condition(status="False", reason="FailedDiscoveryCheck")
    assert "failing or missing response from https://localhost:" in condition["message"]
    answer = await made.server.request("GET", f"{BASE}/things")
    assert (answer.status, answer.body) == (503, b"service unavailable\n")
    assert not made.backend.heads


async def test_services_of_other_names_and_ports_lead_nowhere(unregistered: tuple[Aggregated, int]) -> None:
    """An APIService may name any service; who writes one must not send the server to where no service leads."""
    made, port = unregistered
    for name, spec in (
        ("behind", {"type": "ExternalName", "externalName": "localhost"}),
        ("routed", {"ports": [{"port": 443}]}),
    ):
        document = {"metadata": {"name": name}, "spec": spec}
        answer = await made.server.request("POST", "/api/v1/namespaces/default/services", document)
        assert answer.status == 201, answer.body
    places = [
        ("default", "localhost", port),
        ("default", f"127.0.0.1:{port}", port),
        ("default", "behind.default.svc", port),
        ("default", "x/../behind", port),
        ("default/x/..", "behind", port),
        ("kube-system", "behind", port),
        ("default", "user@behind", port),
        ("default", "routed", port),
    ]
    for number, (namespace, name, wanted) in enumerate(places):
        group = f"g{number}.example.com"
        service = {"namespace": namespace, "name": name, "port": wanted}
        spec = {"group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10}
        spec |= {"insecureSkipTLSVerify": True, "service": service}
        document = {"metadata": {"name": f"v1.{group}"}, "spec": spec}
        answer = await made.server.request("POST", "/apis/apiregistration.k8s.io/v1/apiservices", document)
        assert answer.status in (201, 422), answer.body
        if answer.status == 201:
            answer = await made.server.request("GET", f"/apis/{group}/v1/things")
            assert answer.status in (404, 503), answer.body  # 404 until the handler is there
            await made.unavailable(f"v1.{group}")
            answer = await made.server.request("GET", f"/apis/{group}/v1/things")
            assert (answer.status, answer.body) == (503, b"service unavailable\n")
    assert not made.backend.heads and not made.backend.met


async def test_what_is_behind_is_listed(aggregated: Aggregated) -> None:
    """A backend without an aggregated document of its own is asked for the list of its group version."""
    accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    async with asyncio.timeout(120):
        while True:
            items = (await aggregated.server.request("GET", "/apis", headers=accept)).json["items"]
            (versions,) = [item["versions"] for item in items if item["metadata"].get("name") == GROUP]
            if versions == [{"version": "v1", "resources": [], "freshness": "Current"}]:
                break
            await asyncio.sleep(0.05)
    plain = (await aggregated.server.request("GET", f"/apis/{GROUP}")).json
    assert plain["preferredVersion"] == {"groupVersion": f"{GROUP}/v1", "version": "v1"}


async def test_discovery_is_not_sent_again_while_it_is_the_same(unregistered: tuple[Aggregated, int]) -> None:
    made, port = unregistered
    thing = {"resource": "things", "scope": "Namespaced", "singularResource": "thing", "verbs": ["get"]}
    versions = [{"version": "v1", "resources": [{**thing, "responseKind": {"kind": "Thing"}}]}]
    items = [{"metadata": {"name": GROUP}, "versions": versions}]
    made.backend.discovery = orjson.dumps({"kind": "APIGroupDiscoveryList", "items": items})
    await made.register(port, insecureSkipTLSVerify=True)
    await made.condition(status="True", reason="Passed")
    accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}

    async def listed() -> list[Any]:
        found = (await made.server.request("GET", "/apis", headers=accept)).json["items"]
        return [item["versions"] for item in found if item["metadata"].get("name") == GROUP]

    async with asyncio.timeout(120):
        while await listed() != [[{**versions[0], "freshness": "Current"}]]:
            await asyncio.sleep(0.05)
        name = f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}"
        merge = {"Content-Type": "application/merge-patch+json"}
        priority = 20
        while b'"1"' not in made.backend.tags:
            priority += 1
            await made.server.request("PATCH", name, {"spec": {"versionPriority": priority}}, headers=merge)
            await asyncio.sleep(0.05)
        while await listed() != [[{**versions[0], "freshness": "Current"}]]:
            await asyncio.sleep(0.05)


async def until_listed(made: Aggregated) -> str:
    """The address of the backend's document of version 3."""
    async with asyncio.timeout(120):
        while True:
            paths = (await made.server.request("GET", "/openapi/v3")).json["paths"]
            if BASE[1:] in paths:
                return str(paths[BASE[1:]]["serverRelativeURL"])
            await asyncio.sleep(0.05)


async def test_documents_of_others_are_listed_and_passed_on(unregistered: tuple[Aggregated, int]) -> None:
    async def document(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nspec")
        await reader.read()

    made, port = unregistered
    address = f"/openapi/v3{BASE}?hash=1"
    made.backend.documents["/openapi/v3"] = {"paths": {BASE[1:]: {"serverRelativeURL": address}}}
    await made.register(port, insecureSkipTLSVerify=True)
    assert await until_listed(made) == address
    made.backend.serve = document
    made.backend.heads.clear()
    answer = await made.server.request("GET", address)
    assert (answer.status, answer.body) == (200, b"spec")
    assert made.backend.heads[0].startswith(f"GET {address} HTTP/1.1\r\n".encode())


SWAGGER: dict[str, Any] = {
    "swagger": "2.0",
    "paths": {
        f"{BASE}/things": {"get": {"responses": {"200": {"schema": {"$ref": "#/definitions/com.example.v1.Thing"}}}}},
        "/apis/elsewhere/v1/x": {"get": {"responses": {"200": {"schema": {"$ref": "#/definitions/Other"}}}}},
    },
    "definitions": {
        "com.example.v1.Thing": {
            "type": "object",
            "properties": {"metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}},
        },
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object", "description": "of an older release"},
        "Other": {"type": "object"},
    },
}


async def test_a_document_of_version_2_is_merged_and_converted(unregistered: tuple[Aggregated, int]) -> None:
    made, port = unregistered
    made.backend.documents["/openapi/v2"] = SWAGGER
    await made.register(port, insecureSkipTLSVerify=True)
    converted = (await made.server.request("GET", await until_listed(made))).json
    assert converted["openapi"] == "3.0.0"
    assert "com.example.v1.Thing" in converted["components"]["schemas"]
    async with asyncio.timeout(120):
        while f"{BASE}/things" not in (merged := (await made.server.request("GET", "/openapi/v2")).json)["paths"]:
            await asyncio.sleep(0.05)
    renamed = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta_v2"
    definitions = merged["definitions"]
    assert definitions[renamed] == {"type": "object", "description": "of an older release"}
    assert definitions["com.example.v1.Thing"]["properties"]["metadata"] == {"$ref": f"#/definitions/{renamed}"}
    assert "Other" not in definitions and "/apis/elsewhere/v1/x" not in merged["paths"]
    await made.server.request("DELETE", f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}")
    async with asyncio.timeout(120):
        while f"{BASE}/things" in (await made.server.request("GET", "/openapi/v2")).json["paths"]:
            await asyncio.sleep(0.05)


async def test_what_is_unavailable_is_counted_and_health_tells_of_each_controller(aggregated: Aggregated) -> None:
    server = aggregated.server
    path = "/api/v1/namespaces/default/services/behind"
    shown = (await server.request("GET", "/metrics")).body.decode()
    assert f'aggregator_unavailable_apiservice{{name="v1.{GROUP}"}} 0' in shown
    assert 'aggregator_unavailable_apiservice{name="v1.apps"} 0' in shown
    await server.request("DELETE", path)
    await aggregated.condition(status="False", reason="ServiceNotFound")
    shown = (await server.request("GET", "/metrics")).body.decode()
    assert f'aggregator_unavailable_apiservice{{name="v1.{GROUP}"}} 1' in shown
    assert f'aggregator_unavailable_apiservice_total{{name="v1.{GROUP}",reason="ServiceNotFound"}} 1' in shown
    health = (await server.request("GET", "/readyz?verbose")).body.decode()
    for name in ("registration", "discovery", "status-local-available", "openapi", "openapiv3"):
        assert f"[+]poststarthook/apiservice-{name}-controller ok" in health
