"""Admission that takes its time: conditions that cost as much as they may, webhooks that answer too much or never.

Whoever registers them is trusted; others must not wait for what they do not need.
"""

from __future__ import annotations

import base64
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.robustness.attacks.second_client import processor_seconds

from pilothouse.credentials.issuing import issue_serving
from pilothouse.credentials.pki import Pki

MAPS = "/api/v1/namespaces/default/configmaps"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
APPLY = "application/apply-patch+yaml"
SECRETS = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]}


def policy(name: str, *, conditions: list[str], validations: list[str], rule: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": f"c{n}", "expression": text} for n, text in enumerate(conditions)],
            "validations": [{"expression": text} for text in validations],
        },
    }


def binding(name: str, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"], **more},
    }


@contextmanager
def enforced(victim: Any, made: dict[str, Any], probe: Callable[[], bool], **bound: Any) -> Iterator[None]:
    """A policy that is bound and takes effect, until the block ends."""
    name = made["metadata"]["name"]
    paths = f"{ADMISSION}/validatingadmissionpolicies", f"{ADMISSION}/validatingadmissionpolicybindings"
    assert victim.call("POST", paths[0], made).status == 201
    assert victim.call("POST", paths[1], binding(name, **bound)).status == 201
    deadline = time.monotonic() + 120
    while not probe():
        assert time.monotonic() < deadline, "the policy takes no effect"
        time.sleep(0.02)
    yield
    for path in reversed(paths):
        assert victim.call("DELETE", f"{path}/{name}").status == 200


def test_conditions_that_cost_as_much_as_they_may(victim: Any) -> None:
    """Expressions end with their budget, and what they take until then is done aside."""
    maps = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    nested = "!has(object.data) || object.data.all(a, object.data.all(b, object.data.all(c, a + b != c + 'x')))"
    made = policy("costly", conditions=[nested], validations=["object.metadata.name != 'probe'"], rule=maps)
    body = {"apiVersion": "v1", "kind": "ConfigMap"}

    def refused() -> bool:
        return int(victim.call("POST", f"{MAPS}?dryRun=All", {**body, "metadata": {"name": "probe"}}).status) == 422

    with enforced(victim, made, refused), victim.attacked("conditions that cost as much as they may"):
        for number in range(2):
            costly = {**body, "metadata": {"name": f"costly{number}"}, "data": {f"k{n}": "" for n in range(300)}}
            assert victim.call("POST", MAPS, costly).status in (201, 403, 422, 500)


def test_policies_with_long_params(victim: Any) -> None:
    """Params that change before each request: whoever is judged by them does not read them on the loop."""
    victim.server.namespace("params")
    where, names = "/api/v1/namespaces/params/configmaps", [f"long-{number}" for number in range(4)]
    data = {f"k{number}": "v" * 20 for number in range(20_000)}
    for name in names:
        params = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"a": "b"}}}
        assert victim.call("POST", where, {**params, "data": data}).status == 201
    refuses, looks = "object.metadata.name != 'probe'", "size(params.data) > 10"
    made = policy("parameterized", conditions=[], validations=[refuses, looks], rule=SECRETS)
    made["spec"]["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
    selector = {"matchLabels": {"a": "b"}}
    ref = {"selector": selector, "namespace": "params", "parameterNotFoundAction": "Deny"}
    path, secret = "/api/v1/namespaces/default/secrets?dryRun=All", {"apiVersion": "v1", "kind": "Secret"}

    def write(name: str) -> int:
        return int(victim.call("POST", path, {**secret, "metadata": {"name": name}}).status)

    with (
        enforced(victim, made, lambda: write("probe") == 422, paramRef=ref),
        victim.attacked("policies with four params of 20,000 entries", allowance=96 << 20, hold=0.01),
    ):
        for number in range(4):
            changed = {"data": {"k1": str(number)}}
            for name in names:
                assert victim.call("PATCH", f"{where}/{name}", changed, "application/merge-patch+json").status == 200
            assert write("judged") == 201


def test_cve_2021_25735_changes_of_nodes_are_held_against_what_is_stored(victim: Any) -> None:
    """Whoever changed a node could make admission compare the change with itself."""
    nodes = {"operations": ["UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes", "nodes/status"]}
    kept = "object.metadata.labels.pool == oldObject.metadata.labels.pool"
    made = policy("pools", conditions=[], validations=[kept], rule=nodes)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"pool": "a"}}}
    assert victim.call("POST", "/api/v1/nodes", node).status == 201
    path = "/api/v1/nodes/n"
    moved = {"metadata": {"labels": {"pool": "b"}}}
    merge, strategic = "application/merge-patch+json", "application/strategic-merge-patch+json"
    operations = [{"op": "replace", "path": "/metadata/labels/pool", "value": "b"}]

    def statuses() -> list[int]:
        return [
            victim.call("PUT", path, {**node, "metadata": {**node["metadata"], "labels": {"pool": "b"}}}).status,
            victim.call("PATCH", path, moved, merge).status,
            victim.call("PATCH", f"{path}/status", moved, merge).status,
            victim.call("PATCH", path, moved, strategic).status,
            victim.call("PATCH", path, operations, "application/json-patch+json").status,
            victim.call("PATCH", f"{path}?fieldManager=m&force=true", {**node, **moved}, APPLY).status,
        ]

    def refused() -> bool:
        return int(victim.call("PATCH", f"{path}?dryRun=All", moved, merge).status) == 422

    with enforced(victim, made, refused):
        assert statuses() == [422] * 6
        assert victim.call("PATCH", path, {"metadata": {"labels": {"other": "b"}}}, merge).status == 200
    assert victim.call("GET", path).json["metadata"]["labels"] == {"pool": "a", "other": "b"}


class Unhelpful:
    """A webhook that takes requests, and answers with so many bytes or, without, with nothing."""

    def __init__(self, pki: Pki, folder: Path, answer: int) -> None:
        cert, key = folder / "hook.crt", folder / "hook.key"
        issue_serving(pki, cert, key, ["localhost"], ["127.0.0.1"], time.time())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self._context, self._answer = context, answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._open: list[ssl.SSLSocket] = []
        ca = base64.b64encode(pki.ca_cert.read_bytes()).decode()
        self.config = {"url": f"https://127.0.0.1:{self._socket.getsockname()[1]}/", "caBundle": ca}
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._socket.close()
        for each in self._open:
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                plain, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with suppress(OSError):
            connection = self._context.wrap_socket(plain, server_side=True)
            self._open.append(connection)
            connection.recv(65536)
            if self._answer:
                head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {self._answer}\r\n\r\n"
                connection.sendall(head.encode())
                for _ in range(self._answer >> 16):
                    connection.sendall(b" " * 65536)


@pytest.mark.parametrize(
    ("what", "answer", "count"),
    [("with 100 MB", 100 << 20, 3), ("never", 0, 20)],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_webhooks_that_answer(victim: Any, tmp_path: Path, what: str, answer: int, count: int) -> None:
    """Requests that need the webhook fail, all others are served meanwhile."""
    hook = Unhelpful(Pki(victim.server.data / "pki"), tmp_path, answer)
    registered = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "unhelpful"},
        "webhooks": [
            {
                "name": "unhelpful.example.com",
                "clientConfig": hook.config,
                "rules": [SECRETS],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 2,
            }
        ],
    }
    path = f"{ADMISSION}/validatingwebhookconfigurations"
    assert victim.call("POST", path, registered).status == 201
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"generateName": "a"}}
    found: list[int] = []

    def write() -> None:
        found.append(victim.call("POST", "/api/v1/namespaces/default/secrets", secret).status)

    with victim.attacked(f"webhooks that answer {what}", allowance=count * 40 << 20 if answer else 32 << 20):
        threads = [threading.Thread(target=write) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert victim.call("DELETE", f"{path}/unhelpful").status == 200
    hook.close()
    assert set(found) <= {201, 500} and 500 in found


def test_a_policy_of_many_variables(victim: Any) -> None:
    """Each was compiled anew for every expression behind it: 1,000 of them (48 KB) took more than half a minute."""
    rule = {"operations": ["CREATE"], "apiGroups": ["none"], "apiVersions": ["v1"], "resources": ["none"]}
    made = policy("variables", conditions=[], validations=["variables.v699 > 0"], rule=rule)
    texts = ["1", *(f"variables.v{number} + 1" for number in range(699))]
    made["spec"]["variables"] = [{"name": f"v{number}", "expression": text} for number, text in enumerate(texts)]
    worked = processor_seconds(victim.server.process.pid)
    before = worked()
    with victim.attacked("a policy of 700 variables"):
        assert victim.call("POST", f"{ADMISSION}/validatingadmissionpolicies", made).status == 201
    assert worked() - before < 5
    assert victim.call("DELETE", f"{ADMISSION}/validatingadmissionpolicies/variables").status == 200


def test_limits_of_many_amounts(victim: Any) -> None:
    """What each container of a pod is given, and held against."""
    victim.server.namespace("limits")
    amounts = {f"example.com/r{number}": "1000" for number in range(800)}
    for number in range(6):
        body = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": f"l{number}"}}
        limits = {**body, "spec": {"limits": [{"type": "Container", "max": amounts}]}}
        assert victim.call("POST", "/api/v1/namespaces/limits/limitranges", limits).status == 201
    containers = [{"name": f"c{number}", "image": "i"} for number in range(150)]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "limited"}, "spec": {"containers": containers}}
    with victim.attacked("limits of 800 amounts for 150 containers"):
        for _ in range(2):
            assert victim.call("POST", "/api/v1/namespaces/limits/pods", pod).status == 422


def test_a_mutation_for_each_of_many_params(victim: Any, crowd: Callable[[str, int], None]) -> None:
    """Each is done in no time, and waits for nothing before the next one is."""
    crowd("many-params", 1_000)
    maps, name = {"apiVersion": "v1", "kind": "ConfigMap"}, "many-params"
    version = "admissionregistration.k8s.io/v1"
    expression = "Object{metadata: Object.metadata{annotations: {params.metadata.name: 'x'}}}"
    rule = {**SECRETS, "resources": ["limitranges"]}
    spec = {
        "reinvocationPolicy": "Never",
        "paramKind": maps,
        "matchConstraints": {"resourceRules": [rule]},
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
    }
    body = {"apiVersion": version, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}
    assert victim.call("POST", f"{ADMISSION}/mutatingadmissionpolicies", body).status == 201
    ref = {"namespace": "many-params", "selector": {}, "parameterNotFoundAction": "Allow"}
    bound = {"apiVersion": version, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name}}
    bound["spec"] = {"policyName": name, "paramRef": ref}
    assert victim.call("POST", f"{ADMISSION}/mutatingadmissionpolicybindings", bound).status == 201
    path = "/api/v1/namespaces/default/limitranges"
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"generateName": "m"}, "spec": {"limits": []}}
    try:
        while "annotations" not in victim.call("POST", f"{path}?dryRun=All", limits).json["metadata"]:
            assert victim.server.process.poll() is None
        with victim.attacked("a mutation for each of 1,000 params"):
            for _ in range(2):
                answer = victim.call("POST", f"{path}?dryRun=All", limits)
                assert len(answer.json["metadata"]["annotations"]) == 1_000
    finally:
        assert victim.call("DELETE", f"{ADMISSION}/mutatingadmissionpolicybindings/{name}").status == 200
        assert victim.call("DELETE", f"{ADMISSION}/mutatingadmissionpolicies/{name}").status == 200
