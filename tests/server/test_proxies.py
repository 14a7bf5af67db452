"""The proxies of pods, services and nodes, and what kubelets cannot make the server do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pilothouse.endpoints.subresources import links
from pilothouse.net.dialing import is_global_unicast
from pilothouse.testing.in_process import Answer, InProcessServer
from pilothouse.testing.kubelet import StandInKubelet

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
PODS = "/api/v1/namespaces/default/pods"
MERGE = {"Content-Type": "application/merge-patch+json"}


class Place:
    """A server, and one process on this machine that poses as a pod."""

    def __init__(self, server: InProcessServer) -> None:
        self.server = server
        self.heads: list[bytes] = []
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lengths = [line[16:] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length: ")]
        self.heads.append(head + await reader.readexactly(int(lengths[0]) if lengths else 0))
        writer.write(self.answer)
        writer.close()

    async def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        return await self.server.request(method, path, body, headers)

    async def make_pod(self, address: str) -> None:
        spec = {"containers": [{"name": "c", "image": "x", "ports": [{"containerPort": self.port}]}]}
        assert (await self.call("POST", PODS, {"metadata": {"name": "web"}, "spec": spec})).status == 201
        status = {"status": {"podIP": address, "podIPs": [{"ip": address}]}}
        answer = await self.call("PATCH", f"{PODS}/web/status", status, MERGE)
        assert answer.status == 200, answer.body


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with InProcessServer("--disable-admission-plugins=ServiceAccount") as server:
        made = Place(server)
        listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
        made.port = listening.sockets[0].getsockname()[1]
        yield made
        listening.close()


@pytest.fixture
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests reach nothing but loopback, which proxies refuse."""
    made = links.Links.__init__

    def make(self: Any, *arguments: Any, **named: Any) -> None:
        made(self, *arguments, **{**named, "guard": _allow})

    monkeypatch.setattr(links.Links, "__init__", make)


def _allow(address: str) -> bool:
    return True


@pytest.mark.usefixtures("anywhere")
async def test_pods(place: Place) -> None:
    await place.make_pod("127.0.0.1")
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        body = b"sent" if method in ("POST", "PUT", "PATCH") else None
        answer = await place.call(method, f"{PODS}/web/proxy/a%2Fb/c%20d/?q=%41", body)
        assert (answer.status, answer.body) == (200, b"ok"), answer.body
        head = place.heads.pop()
        assert head.startswith(f"{method} /a%2Fb/c%20d/?q=%41 HTTP/1.1\r\n".encode())
        assert head.endswith(b"\r\n\r\n" + (body or b""))
    assert (await place.call("HEAD", f"{PODS}/web/proxy/x")).status == 200
    answer = await place.call("GET", f"{PODS}/web:{place.port}/proxy")
    assert (answer.status, answer.headers["location"]) == (301, f"{PODS}/web:{place.port}/proxy/")
    place.answer = b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
    answer = await place.call("GET", f"{PODS}/web/proxy/x")
    assert (answer.status, answer.headers["location"]) == (302, f"{PODS}/web/proxy/elsewhere")


@pytest.mark.usefixtures("anywhere")
async def test_services(place: Place) -> None:
    await place.make_pod("127.0.0.1")
    services = "/api/v1/namespaces/default/services"
    spec = {"ports": [{"name": "http", "port": 80}], "selector": {"a": "b"}}
    await place.call("POST", services, {"metadata": {"name": "s"}, "spec": spec})
    for ref in ("s:http", "s:80", "http:s:http"):
        answer = await place.call("GET", f"{services}/{ref}/proxy/x")
        assert (answer.status, answer.json["message"]) == (503, 'no endpoints available for service "s"')
    endpoint = {
        "addresses": ["10.9.9.9"],
        "targetRef": {"kind": "Pod", "name": "web", "namespace": "default"},
    }
    piece = {
        "metadata": {"name": "s-1", "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": place.port}],
        "endpoints": [endpoint],
    }
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    assert (await place.call("POST", slices, piece)).status == 201
    answer = await place.call("GET", f"{services}/s:http/proxy/x")
    assert answer.status == 503, "the endpoint is none of the pod's addresses"


async def test_local_addresses_are_refused(place: Place) -> None:
    await place.make_pod("127.0.0.1")
    answer = await place.call("GET", f"{PODS}/web/proxy/x")
    assert (answer.status, answer.json["message"]) == (400, "address not allowed")
    assert not place.heads


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "169.254.169.254", "0.0.0.0"])
async def test_nodes_do_not_lead_elsewhere(place: Place, address: str) -> None:
    """CVE-2022-3294: whoever may write a node's status must not send the server to itself or to its link."""
    kind = "Hostname" if address == "localhost" else "InternalIP"
    status = {
        "addresses": [{"type": kind, "address": address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": place.port}},
    }
    await place.call("POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "status": status})
    for name in ("n", f"http:n:{place.port}"):
        answer = await place.call("GET", f"/api/v1/nodes/{name}/proxy/pods")
        assert (answer.status, answer.json["message"]) == (400, "address not allowed")
    assert not place.heads


async def test_kubelets_do_not_redirect(place: Place) -> None:
    """CVE-2020-8559: a redirect from a kubelet is followed by nobody, and never shown to clients of streams."""
    assert not is_global_unicast("127.0.0.1")
    async with StandInKubelet() as kubelet:
        await place.call("POST", "/api/v1/nodes", kubelet.node("n"))
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}
        await place.call("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})

        async def redirect(request: Any) -> Any:
            from pilothouse.net.messages import Response

            return Response(302, b"", b"", [(b"Location", f"http://127.0.0.1:{place.port}/".encode())])

        kubelet._server._http.handler = redirect
        answer = await place.call("GET", f"{PODS}/p/log")
        assert answer.status == 500 and answer.json["message"].endswith(": redirects forbidden")
        upgrade = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
        answer = await place.call("POST", f"{PODS}/p/exec?command=ls&stdout=1", headers=upgrade)
        assert (answer.status, answer.json["message"]) == (500, "invalid upgrade response: status code 302")
        assert "location" not in answer.headers
    assert not place.heads


@pytest.mark.parametrize(
    ("status", "said", "code", "message"),
    [
        (400, b"previous terminated container not found", 400, "previous terminated container not found"),
        (404, b"gone", 404, "the server could not find the requested resource ( pods/log p)"),
        (500, b"broken", 500, "Internal error occurred: broken"),
        (403, b"not for you", 403, "not for you ( pods/log p)"),
    ],
)
async def test_what_kubelets_say_about_logs(place: Place, status: int, said: bytes, code: int, message: str) -> None:
    async with StandInKubelet() as kubelet:
        await place.call("POST", "/api/v1/nodes", kubelet.node("n"))
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}
        await place.call("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})

        async def refuse(request: Any) -> Any:
            from pilothouse.net.messages import Response

            return Response(status, said, b"text/plain")

        kubelet._server._http.handler = refuse
        answer = await place.call("GET", f"{PODS}/p/log")
        assert (answer.status, answer.json["message"]) == (code, message)


EGRESS = """
apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {{uds: {{udsName: {path}}}}}
"""


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
    writer.close()


@pytest.fixture
async def remote(tmp_path: Path) -> AsyncIterator[Place]:
    """Addresses of the cluster are reached by a tunnel, whose far end is this machine."""

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0]
        host, _, port = line.split()[1].decode().rpartition(":")
        assert host == "10.9.9.9"
        inner, outer = await asyncio.open_connection("127.0.0.1", int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(carry(reader, outer), carry(inner, writer), return_exceptions=True)

    path = tmp_path / "tunnel"
    (tmp_path / "egress.yaml").write_text(EGRESS.format(path=path))
    tunnel = await asyncio.start_unix_server(connect, path)
    flags = (f"--egress-selector-config-file={tmp_path}/egress.yaml", "--disable-admission-plugins=ServiceAccount")
    async with InProcessServer(*flags) as server:
        made = Place(server)
        listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
        made.port = listening.sockets[0].getsockname()[1]
        yield made
        listening.close()
    tunnel.close()


async def test_services_lead_to_their_pods(remote: Place) -> None:
    await remote.make_pod("10.9.9.9")
    services = "/api/v1/namespaces/default/services"
    ports = [{"name": "http", "port": 80}]
    await remote.call("POST", services, {"metadata": {"name": "s"}, "spec": {"ports": ports, "selector": {"a": "b"}}})
    target = {"kind": "Pod", "name": "web", "namespace": "default"}
    piece = {
        "metadata": {"name": "s-1", "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": remote.port}],
        "endpoints": [{"addresses": ["10.9.9.9"], "targetRef": target}],
    }
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    assert (await remote.call("POST", slices, piece)).status == 201
    for reference in ("s:http", "s:80", "http:s:http"):
        answer = await remote.call("POST", f"{services}/{reference}/proxy/x?y=1", b"body")
        assert (answer.status, answer.body) == (200, b"ok"), answer.body
        head = remote.heads.pop()
        assert head.startswith(b"POST /x?y=1 HTTP/1.1\r\n") and head.endswith(b"\r\n\r\nbody")
        assert f"X-Forwarded-Uri: {services}/{reference}/proxy/x\r\n".encode() in head


async def test_nodes_lead_to_their_kubelets_and_other_ports(remote: Place) -> None:
    async with StandInKubelet() as kubelet:
        node = kubelet.node("n")
        node["status"]["addresses"] = [{"type": "InternalIP", "address": "10.9.9.9"}]
        assert (await remote.call("POST", "/api/v1/nodes", node)).status == 201
        answer = await remote.call("GET", "/api/v1/nodes/n/proxy/healthz")
        assert (answer.status, answer.body) == (200, b"ok")
        assert kubelet.requests[-1][:2] == ("GET", "/healthz")
        answer = await remote.call("GET", f"/api/v1/nodes/http:n:{remote.port}/proxy/metrics")
        assert (answer.status, answer.body) == (200, b"ok"), answer.body
        assert remote.heads[0].startswith(b"GET /metrics HTTP/1.1\r\n")


async def test_logs_and_streams_are_counted(place: Place) -> None:
    async with StandInKubelet() as kubelet:
        await place.call("POST", "/api/v1/nodes", kubelet.node("n"))
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}
        await place.call("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
        kubelet.log("default", "p")
        await place.call("GET", f"{PODS}/p/log")
        await place.call("GET", f"{PODS}/p/log?insecureSkipTLSVerifyBackend=true")
        upgrade = {"Connection": "Upgrade", "Upgrade": "nonsense"}
        await place.call("POST", f"{PODS}/p/exec?command=ls&stdout=1", headers=upgrade)
    shown = (await place.call("GET", "/metrics")).body.decode()
    assert 'kube_apiserver_pod_logs_insecure_backend_total{usage="enforce_tls"} 1' in shown
    assert 'kube_apiserver_pod_logs_insecure_backend_total{usage="skip_tls_allowed"} 1' in shown
    counted = 'apiserver_websocket_streaming_requests_total{subresource="exec",proxy_type="translated_at_apiserver"} 1'
    assert counted in shown
