"""Traces, as a collector gets them: a real gRPC server, which takes what OTLP exporters send."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.server.conftest import Peer, serve_peer

from pilothouse.testing.calling import Caller
from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.waiting import until

MAPS = "/api/v1/namespaces/default/configmaps"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
UNSAMPLED = f"00-{TRACE}-b7ad6b7169203331-00"


class Collector:
    """Keeps all spans it is sent."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.resources: list[dict[str, str]] = []
        self._server = grpc.server(ThreadPoolExecutor(2))
        handler = grpc.unary_unary_rpc_method_handler(
            self._export, ExportTraceServiceRequest.FromString, lambda answer: answer
        )
        service = "opentelemetry.proto.collector.trace.v1.TraceService"
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": handler}),))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def _export(self, request: ExportTraceServiceRequest, context: object) -> bytes:
        for each in request.resource_spans:
            self.resources.append({pair.key: pair.value.string_value for pair in each.resource.attributes})
            for scope in each.scope_spans:
                self.spans += scope.spans
        return b""

    def stop(self) -> None:
        self._server.stop(None).wait()

    def of_trace(self, trace: bytes) -> dict[str, Span]:
        return {span.name: span for span in list(self.spans) if span.trace_id == trace}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.stop()


@pytest.fixture(scope="module")
def hook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    def answer(path: str, body: Any) -> tuple[int, Any]:
        return 200, {**body, "response": {"uid": body["request"]["uid"], "allowed": True}}

    peer = serve_peer(tmp_path_factory.mktemp("hook"), answer)
    yield peer
    peer.stop()


@pytest.fixture(scope="module")
def server(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessServer]:
    file = tmp_path_factory.mktemp("tracing") / "tracing.yaml"
    file.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
        f"endpoint: 127.0.0.1:{collector.port}\nsamplingRatePerMillion: 0\n"
    )
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        with InProcessServer(f"--tracing-config-file={file}") as server:
            yield server


def value(span: Span, name: str) -> Any:
    found = next(pair.value for pair in span.attributes if pair.key == name)
    return found.int_value if found.HasField("int_value") else found.string_value


def test_a_sampled_write_is_told_with_filters_admission_and_storage(
    server: InProcessServer, collector: Collector, hook: Peer
) -> None:
    webhook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "traced"},
        "webhooks": [
            {
                "name": "traced.example.com",
                "clientConfig": {"url": f"{hook.url}/", "caBundle": _encoded(hook.authority)},
                "rules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
                ],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    assert server.call("POST", path, webhook).status == 201
    made = server.call("POST", MAPS, {"metadata": {"name": "traced"}}, {"traceparent": PARENT, "User-Agent": "tester"})
    assert made.status == 201
    trace = bytes.fromhex(TRACE)
    name = "POST /api/v1/namespaces/{:namespace}/configmaps"
    spans = until(lambda: (found := collector.of_trace(trace)) and name in found and found)
    root = spans[name]
    assert root.parent_span_id == bytes.fromhex("b7ad6b7169203331")
    assert root.kind == Span.SPAN_KIND_SERVER
    assert value(root, "http.response.status_code") == 201
    assert value(root, "http.target") == MAPS
    assert value(root, "audit-id")
    within = [
        name, "constrainedimpersonation", "priorityandfairness", "authorization", "Create", "Create sqlite",
    ]  # fmt: skip
    for outer, inner in pairwise(within):
        assert spans[inner].parent_span_id == spans[outer].span_id, inner
    assert spans["authentication"].parent_span_id == root.span_id
    assert [event.name for event in spans["Create"].events] == [
        "limitedReadBody succeeded", "About to convert to expected version", "Conversion done",
        "About to check admission control", "About to store object in database", "About to write a response",
    ]  # fmt: skip
    called = spans["Call validating webhook"]
    assert (value(called, "webhook"), value(called, "operation")) == ("traced.example.com", "CREATE")
    assert called.parent_span_id == spans["Create"].span_id
    assert hook.headers[-1]["traceparent"] == f"00-{TRACE}-{called.span_id.hex()}-01"
    assert collector.resources[0]["service.name"] == "apiserver"
    assert collector.resources[0]["service.instance.id"].startswith("apiserver-")


def test_only_the_trusted_decide_what_is_sampled(server: InProcessServer, collector: Collector) -> None:
    """With a rate of 0, nothing is traced that somebody trusted has not sampled."""
    before = len(collector.spans)
    assert server.call("GET", f"{MAPS}/traced", headers={"traceparent": UNSAMPLED}).status in (200, 404)
    assert server.call("GET", f"{MAPS}/traced").status in (200, 404)
    anybody = Caller(server.url, ssl._create_unverified_context())
    assert anybody.call("GET", "/version", headers={"traceparent": f"00-{'2' * 32}-b7ad6b7169203331-01"}).status == 200
    other = "1" * 32
    assert server.call("GET", "/version", headers={"traceparent": f"00-{other}-b7ad6b7169203331-01"}).status == 200
    until(lambda: "GET" in collector.of_trace(bytes.fromhex(other)))  # the outermost ends, and is sent, last
    assert {span.trace_id.hex() for span in collector.spans[before:]} <= {other, TRACE}
    assert [span.name for span in collector.spans if span.trace_id.hex() == other and not span.name[0].islower()] == [
        "GET"
    ]


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
