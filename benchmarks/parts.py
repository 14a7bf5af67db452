"""Measures single parts of a request in this process: ``parts.py``.

Each figure is the best of several batches, in microseconds, beside its aim where there is one. What admission costs is
measured by ``admission.py``, whole requests by ``run.py``. The exit code is 1 when a figure is worse than its aim.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import orjson

from pilothouse.apis import types
from pilothouse.apis.core.config_map import ConfigMapStrategy
from pilothouse.apis.core.pod.strategy import PodStrategy
from pilothouse.apis.gates import default_gates
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.authz.attributes import Attributes
from pilothouse.authz.rbac.authorizer import RBACAuthorizer
from pilothouse.authz.rbac.index import Index
from pilothouse.controlplane.bootstrap.static_objects import static_objects
from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request_info import resolve
from pilothouse.flowcontrol.controller import FlowController
from pilothouse.machinery import protobuf
from pilothouse.machinery.field_manager import FieldManager
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.schema.decoding import decode
from pilothouse.machinery.schema.types import Struct
from pilothouse.machinery.user import User

BATCHES, ROUNDS = 9, 400
BINDINGS = 5000
NOW = "2026-01-01T00:00:00Z"
RBAC_GROUP = "rbac.authorization.k8s.io"
CONFIG_MAP = {"metadata": {"name": "x", "namespace": "default"}, "data": {"key": "value"}}
POD = {
    "metadata": {"name": "web-7d4b9", "namespace": "default", "labels": {"app": "web", "tier": "front"}},
    "spec": {
        "nodeName": "node-1",
        "serviceAccountName": "default",
        "tolerations": [
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in ("not-ready", "unreachable")
        ],
        "containers": [
            {
                "name": "main",
                "image": "nginx:1.27",
                "ports": [{"containerPort": 80}],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "resources": {
                    "requests": {"cpu": "100m", "memory": "128Mi"},
                    "limits": {"cpu": "1", "memory": "256Mi"},
                },
                "livenessProbe": {"httpGet": {"path": "/healthz", "port": 80}},
                "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/token", "readOnly": True}],
            }
        ],
        "volumes": [
            {
                "name": "token",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
                        {"configMap": {"name": "root", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    ]
                },
            }
        ],
    },
}


@dataclass(frozen=True, slots=True)
class Part:
    """Something to measure: what is done, to what, and how long it may take."""

    title: str
    action: Callable[[Any], object]
    make: Callable[[], Any] = lambda: None
    aim: float | None = None


def main() -> int:
    """Measure and print."""
    pod = parts_of("pod", "Pod", PodStrategy(), POD)
    config_map = parts_of("config map", "ConfigMap", ConfigMapStrategy(), CONFIG_MAP)
    missed = False
    for part in [*pod, *config_map, access(), seat()]:
        micros = measure(part)
        aim = "" if part.aim is None else f"   aim {part.aim:.0f}"
        print(f"{part.title:36}{micros:8.1f} µs{aim}")
        missed = missed or (part.aim is not None and micros > part.aim)
    return int(missed)


def measure(part: Part) -> float:
    """Microseconds a call, in the best batch."""
    best = float("inf")
    for _ in range(BATCHES):
        inputs = [part.make() for _ in range(ROUNDS)]
        started = time.thread_time()
        for value in inputs:
            part.action(value)
        best = min(best, time.thread_time() - started)
    return best / ROUNDS * 1e6


def parts_of(title: str, kind: str, strategy: Strategy, body: dict[str, Any]) -> list[Part]:
    """The steps of creating an object of a kind."""
    struct: Struct = types.struct(f"core.v1.{kind}")
    sent = orjson.dumps({"kind": kind, "apiVersion": "v1", **body})
    manager = FieldManager(struct, GroupVersionKind("", "v1", kind), reset_fields={"v1": {"f:status": {}}})
    ctx = Context(now=NOW)

    def decoded() -> dict[str, Any]:
        return decode(struct, orjson.loads(sent))[0]

    def defaulted() -> dict[str, Any]:
        obj = decoded()
        strategy.default(obj)
        return obj

    def prepared() -> dict[str, Any]:
        obj = manager.update(None, defaulted(), "bench", NOW)
        strategy.prepare_for_create(ctx, obj)
        return obj

    stored = orjson.dumps(prepared())
    return [
        Part(f"{title}: parse and decode", lambda _: decode(struct, orjson.loads(sent))),
        Part(f"{title}: default", strategy.default, decoded),
        Part(f"{title}: managed fields of a create", lambda o: manager.update(None, o, "bench", NOW), defaulted, 80),
        Part(f"{title}: validate", lambda o: strategy.validate(ctx, o), prepared, 120),
        Part(f"{title}: warnings", lambda o: strategy.warnings_on_create(ctx, o), prepared),
        Part(f"{title}: JSON to protobuf", lambda _: protobuf.encode_message(struct, orjson.loads(stored))),
    ]


def access() -> Part:
    """One decision among thousands of bindings."""
    index = Index()
    for number in range(BINDINGS):
        namespace = f"n{number % 500}"
        rules = [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}]
        role = {"kind": "Role", "name": f"r{number}", "apiGroup": RBAC_GROUP}
        subjects = [{"kind": "User", "name": f"u{number}", "apiGroup": RBAC_GROUP}]
        index.put("Role", {"metadata": {"name": role["name"], "namespace": namespace}, "rules": rules})
        binding = {"metadata": {"name": f"b{number}", "namespace": namespace}, "roleRef": role, "subjects": subjects}
        index.put("RoleBinding", binding)
    authorizer = RBACAuthorizer(index)
    attributes = Attributes(User("u7", groups=("a", "b")), "list", namespace="n7", resource="pods", version="v1")
    return Part(f"RBAC decision, {BINDINGS:,} bindings", lambda _: authorizer.decide(attributes), aim=10)


def seat() -> Part:
    """A seat for a read in a level with queues, taken and given back."""
    controller = FlowController(600, lambda group, resource: None, default_gates())
    controller.configure(static_objects("prioritylevelconfigurations"), static_objects("flowschemas"))
    user = User("system:serviceaccount:a:b", groups=("system:serviceaccounts", "system:authenticated"))
    info = resolve("GET", "/api/v1/namespaces/a/configmaps/x", Query(""))
    request: Any = SimpleNamespace(info=info, user=user)

    def take(_: Any) -> None:
        ticket = controller.start(controller.classify(user, info), request)
        assert ticket is not None
        ticket.release()

    return Part("flow control, a seat", take, aim=8)


if __name__ == "__main__":
    sys.exit(main())
