from __future__ import annotations

from typing import Any

import pytest

from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request import Refusal
from pilothouse.endpoints.subresources.logs import read_log_parameters
from pilothouse.endpoints.subresources.proxying import Reference
from pilothouse.machinery import errors
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.gvk import GroupResource
from pilothouse.testing.ports import free_port

POD = "/api/v1/namespaces/n/pods/p"
TWO = [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]


@pytest.fixture
def closed_port() -> int:
    return free_port()


async def on_node(server: Any, port: int) -> None:
    """A pod on a node whose kubelet does not answer."""
    await server.pod(nodeName="node")
    await server("POST", "/api/v1/nodes", {"metadata": {"name": "node"}})
    endpoints = {"kubeletEndpoint": {"Port": port}}
    status = {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": endpoints}
    code, node = await server("PATCH", "/api/v1/nodes/node/status", {"status": status}, "merge-patch")
    assert code == 200, node


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("", 400, "a container name must be specified for pod p, choose one of: [a b]"),
        ("?container=z", 400, "container z is not valid for pod p"),
        ("?container=a&tailLines=ten", 400, 'strconv.ParseInt: parsing "ten": invalid syntax'),
        ("?container=a&tailLines=-1", 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("?container=a&limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than 0"),
        ("?container=a&sinceSeconds=0", 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        ("?container=a&sinceSeconds=1&sinceTime=2024-01-01T00:00:00Z", 422, "[]: Forbidden: at most one of"),
        ("?container=a&sinceTime=yesterday", 400, 'cannot parse "yesterday" as "2006"'),
        ("?container=a&stream=All", 422, "stream: Forbidden: may not be specified"),
    ],
)
async def test_logs_that_cannot_be_asked_for(server: Any, query: str, code: int, message: str) -> None:
    await server.pod(containers=TWO)
    got, status = await server("GET", f"{POD}/log{query}")
    assert got == code
    assert message in status["message"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("stream=Both", 'stream: Unsupported value: "Both": supported values: "All", "Stderr", "Stdout"'),
        ("stream=Stdout&tailLines=1", "`tailLines` and specific `stream` are mutually exclusive for now"),
    ],
)
async def test_logs_of_one_stream(server: Any, query: str, message: str) -> None:
    await server.pod()
    server.storage.store("", "v1", "pods").strategy.gates |= {"PodLogsQuerySplitStreams"}
    code, status = await server("GET", f"{POD}/log?{query}")
    assert code == 422
    assert message in status["message"]
    assert (await server("GET", f"{POD}/log?stream=Stderr"))[0] == 204
    assert read_log_parameters("p", Query(""), split_streams=True) == {"stream": "All"}


async def test_the_log_of_a_pod_without_a_node_is_empty(server: Any) -> None:
    await server.pod()
    assert (await server("GET", f"{POD}/log")) == (204, None)
    assert server.response.content_type == b""
    assert (await server("POST", f"{POD}/log"))[0] == 405


async def test_a_kubelet_that_does_not_answer(server: Any, closed_port: int) -> None:
    await on_node(server, closed_port)
    code, status = await server("GET", f"{POD}/log?timestamps=true&previous=1&tailLines=3")
    at = f"127.0.0.1:{closed_port}"
    url = f"https://{at}/containerLogs/n/p/c?previous=true&tailLines=3&timestamps=true"
    assert (code, status["message"]) == (500, f'Get "{url}": dial tcp {at}: connect: connection refused')
    code, status = await server("GET", f"{POD}/exec?command=ls&stdout=1", connection="Upgrade")
    assert (code, status["message"]) == (500, f"error dialing backend: dial tcp {at}: connect: connection refused")


async def test_a_node_that_is_gone_is_reported_as_a_pod(server: Any) -> None:
    await server.pod(nodeName="lost")
    code, status = await server("GET", f"{POD}/log")
    assert (code, status["message"]) == (404, 'pods "lost" not found')


@pytest.mark.parametrize("what", ["exec", "attach", "portforward"])
async def test_connections(server: Any, closed_port: int, what: str) -> None:
    await server.pod()
    code, status = await server("GET", f"{POD}/{what}")
    assert (code, status["message"]) == (400, "pod p does not have a host assigned")
    await server("DELETE", POD)
    await on_node(server, closed_port)
    for method in ("GET", "POST"):
        code, status = await server(method, f"{POD}/{what}")
        assert (code, status["message"]) == (400, "Upgrade request required")
    assert (await server("DELETE", f"{POD}/{what}"))[0] == 405


@pytest.mark.parametrize("what", ["exec", "attach", "portforward"])
async def test_entering_a_container_by_get_needs_the_right_to_create(server: Any, what: str) -> None:
    await server.pod()
    server.refusal = Refusal(errors.forbidden(GroupResource("", "pods"), "p", "others"), "why not")
    code, status = await server("GET", f"{POD}/{what}")
    assert (code, status["message"]) == (403, 'pods "p" is forbidden: why not')
    assert (await server("POST", f"{POD}/{what}"))[0] == 400
    server.refusal = Refusal(errors.internal_error("webhook down"), "webhook down")
    code, status = await server("GET", f"{POD}/{what}")
    assert (code, status["message"]) == (500, "webhook down")
    pods = server.storage.store("", "v1", "pods")
    pods.strategy.gates -= {"AuthorizePodWebsocketUpgradeCreatePermission"}
    assert (await server("GET", f"{POD}/{what}"))[0] == 400


async def test_ports_are_numbers(server: Any) -> None:
    code, status = await server("GET", f"{POD}/portforward?ports=http")
    why = 'cannot convert to []int32: strconv.ParseUint: parsing "http": invalid syntax'
    assert (code, status["message"]) == (400, why)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p", ("", "p", "")),
        ("p:80", ("", "p", "80")),
        ("https:p:web", ("https", "p", "web")),
        ("https:p:", ("https", "p", "")),
    ],
)
def test_references(text: str, expected: tuple[str, str, str]) -> None:
    reference = Reference(text, "pod")
    assert (reference.scheme, reference.name, reference.port) == expected


@pytest.mark.parametrize("text", ["ftp:p:80", "a:b:c:d", ":80", "http::80"])
def test_what_is_no_reference(text: str) -> None:
    with pytest.raises(StatusError) as refused:
        Reference(text, "pod")
    assert refused.value.message == f'invalid pod request "{text}"'


async def test_proxies_refuse_local_addresses(server: Any, closed_port: int) -> None:
    await server.pod(status={"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]})
    code, status = await server("GET", f"{POD}:8080/proxy/x/y")
    assert (code, status["message"]) == (400, "address not allowed")
    await server("DELETE", POD)
    await on_node(server, closed_port)
    assert (await server("OPTIONS", "/api/v1/nodes/node/proxy/metrics"))[1]["message"] == "address not allowed"
    code, status = await server("GET", "/api/v1/nodes/lost/proxy/")
    assert (code, status["message"]) == (404, 'nodes "lost" not found')


async def test_services_without_endpoints(server: Any) -> None:
    code, status = await server("GET", "/api/v1/namespaces/n/services/https:s:http/proxy/")
    assert (code, status["message"]) == (503, 'no endpoints available for service "s"')


async def test_a_proxy_without_a_path_is_a_directory(server: Any) -> None:
    await server.pod(status={"podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}]})
    assert (await server("GET", f"{POD}/proxy?a=b"))[0] == 301
    assert server.response.headers == [(b"location", f"{POD}/proxy/?a=b".encode())]


async def test_component_statuses(server: Any) -> None:
    code, status = await server("GET", "/api/v1/componentstatuses/etcd-0")
    assert (code, status["conditions"]) == (200, [{"type": "Healthy", "status": "True", "message": "ok"}])
    _, listed = await server("GET", "/api/v1/componentstatuses?fieldSelector=metadata.name%3Detcd-0")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["etcd-0"]
    assert (await server("GET", "/api/v1/componentstatuses/x"))[1]["message"] == 'componentstatus "x" not found'
    code, status = await server("GET", "/api/v1/componentstatuses?watch=1")
    assert (code, status["message"]) == (405, 'watch is not supported on resources of kind "componentstatuses"')
    assert (await server("POST", "/api/v1/componentstatuses", {}))[0] == 405
