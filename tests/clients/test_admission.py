"""What a cluster's owner demands is enforced, seen from outside: by kubectl, under load, and by webhooks over TLS."""

from __future__ import annotations

import base64
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pilothouse.testing.in_process import InProcessServer

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"


@pytest.fixture(scope="module")
def api() -> Iterator[InProcessServer]:
    with InProcessServer() as server:
        yield server


def make_namespace(api: InProcessServer, name: str, **labels: str) -> str:
    assert api.call("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}}).status == 201
    account = {"metadata": {"name": "default"}}
    api.call("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)
    return name


def test_fifty_creates_at_once_never_overspend(api: InProcessServer) -> None:
    namespace = make_namespace(api, "quota")
    base = f"/api/v1/namespaces/{namespace}"
    assert api.call(
        "POST", f"{base}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "20"}}}
    )
    quota = api.call("GET", f"{base}/resourcequotas/q").json
    quota["status"] = {"hard": {"configmaps": "20"}, "used": {"configmaps": "0"}}
    assert api.call("PUT", f"{base}/resourcequotas/q/status", quota).status == 200

    def create(number: int) -> int:
        return api.call("POST", f"{base}/configmaps", {"metadata": {"name": f"m{number}"}}).status

    with ThreadPoolExecutor(50) as pool:
        codes = list(pool.map(create, range(50)))
    assert sorted(codes) == [201] * 20 + [403] * 30
    assert api.call("GET", f"{base}/resourcequotas/q").json["status"]["used"] == {"configmaps": "20"}
    assert len(api.call("GET", f"{base}/configmaps").json["items"]) == 20


def test_kubectl_shows_why_a_pod_was_refused(kubectl: Any, server: Any) -> None:
    namespace = server.namespace("kubectl-admission")
    kubectl("label", "ns", namespace, "pod-security.kubernetes.io/enforce=baseline")
    refusal = kubectl("-n", namespace, "run", "bad", "--image=i", '--overrides={"spec":{"hostPID":true}}', fails=True)
    assert (
        'Error from server (Forbidden): pods "bad" is forbidden: violates PodSecurity "baseline:latest": '
        "host namespaces (hostPID=true)"
    ) in refusal


class Hook(BaseHTTPRequestHandler):
    """Labels config maps, and refuses those named bad; at other paths it fails, lies, or takes its time."""

    released = threading.Event()
    """Lets those go on who take their time."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review["request"]
        response: dict[str, Any] = {"uid": request["uid"], "allowed": True}
        if self.path.startswith("/fail"):
            self.send_error(500)
            return
        if self.path.startswith("/lie"):
            response["uid"] = "somebody-else"
        if self.path.startswith("/slow"):
            self.released.wait(30)
        if self.path.startswith("/mutate"):
            patch = [{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]
            response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
        elif request["name"] == "bad":
            response |= {"allowed": False, "status": {"message": "no bad ones"}, "warnings": ["mind the names"]}
        body = json.dumps({**review, "request": None, "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


def make_certificate(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hook")])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    path = folder / "hook.pem"
    path.write_bytes(certificate.public_bytes(pem) + key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    (folder / "hook.crt").write_bytes(certificate.public_bytes(pem))
    return path


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Where a webhook server listens and who vouches for it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(make_certificate(tmp_path))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    bundle = base64.b64encode((tmp_path / "hook.crt").read_bytes()).decode()
    Hook.released.clear()
    yield {"url": f"https://127.0.0.1:{server.server_port}", "caBundle": bundle}
    Hook.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


def webhook(hook: dict[str, str], path: str, namespace: str) -> dict[str, Any]:
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    return {
        "name": f"{path}.example.com",
        "clientConfig": {**hook, "url": f"{hook['url']}/{path}"},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


def test_webhooks_change_and_refuse(api: InProcessServer, hook: dict[str, str]) -> None:
    namespace = make_namespace(api, "hooked")
    for kind, path in (("mutatingwebhookconfigurations", "mutate"), ("validatingwebhookconfigurations", "check")):
        body = {"metadata": {"name": path}, "webhooks": [webhook(hook, path, namespace)]}
        assert api.call("POST", f"{CONFIGURATIONS}/{kind}", body).status == 201
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert api.call("POST", path, {"metadata": {"name": "good"}}).json["metadata"]["labels"] == {"seen": "yes"}
    refused = api.call("POST", path, {"metadata": {"name": "bad"}})
    assert refused.status == 400
    assert refused.json["message"] == 'admission webhook "check.example.com" denied the request: no bad ones'
    assert refused.headers["warning"] == '299 - "mind the names"'
    assert api.call("POST", f"{path}?dryRun=All", {"metadata": {"name": "dry"}}).status == 201


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("fail", "failed to call webhook: an error on the server ("),
        ("lie", 'received invalid webhook response: expected response.uid="'),
        ("slow", "failed to call webhook: Post "),
    ],
)
def test_webhooks_that_cannot_be_relied_on(api: InProcessServer, hook: dict[str, str], path: str, said: str) -> None:
    namespace = make_namespace(api, f"unreliable-{path}")
    configurations = f"{CONFIGURATIONS}/validatingwebhookconfigurations"
    wanted = {**webhook(hook, path, namespace), "timeoutSeconds": 1}
    body = {"metadata": {"name": path}, "webhooks": [wanted]}
    made = api.call("POST", configurations, body)
    assert made.status == 201
    where = f"/api/v1/namespaces/{namespace}/configmaps"
    with ThreadPoolExecutor(2) as pool:
        refused = pool.submit(api.call, "POST", where, {"metadata": {"name": "m"}})
        # Nobody else waits for a slow webhook.
        assert (
            pool.submit(api.call, "POST", "/api/v1/namespaces/default/configmaps", named(path)).result().status == 201
        )
        answer = refused.result()
    failed = f'Internal error occurred: failed calling webhook "{path}.example.com": {said}'
    assert (answer.status, answer.json["message"][: len(failed)]) == (500, failed)
    wanted["failurePolicy"] = "Ignore"
    body["metadata"] = made.json["metadata"]
    assert api.call("PUT", f"{configurations}/{path}", body).status == 200
    assert api.call("POST", where, {"metadata": {"name": "m"}}).status == 201
    page = api.call("GET", "/metrics").body.decode()
    assert f'webhook_fail_open_count{{name="{path}.example.com",type="validating"}} 1' in page


def named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": f"beside-{name}"}}
