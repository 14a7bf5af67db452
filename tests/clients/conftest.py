"""What the tests of real clients share: helm, kubectl with variables of its own, and manifests of several kinds."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from tests.conftest import Kubectl, Server, find_client, go_environment

Run = Callable[..., "subprocess.CompletedProcess[str]"]

TEMPLATE = "metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: 'nginx:1.27'}], restartPolicy: %s}"
MANIFESTS = {
    "deployment": (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: thing}\nspec:\n  replicas: 2\n"
        f"  selector: {{matchLabels: {{app: web}}}}\n  template: {{{TEMPLATE % 'Always'}}}\n"
    ),
    "service": (
        "apiVersion: v1\nkind: Service\nmetadata: {name: thing}\n"
        "spec:\n  selector: {app: web}\n  ports: [{name: http, port: 80, targetPort: http}]\n"
    ),
    "configmap": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: thing}\ndata: {color: red}\n",
    "job": (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: thing}\n"
        f"spec:\n  backoffLimit: 2\n  template: {{{TEMPLATE % 'Never'}}}\n"
    ),
    "cronjob": (
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: thing}\nspec:\n  schedule: '*/5 * * * *'\n"
        f"  jobTemplate: {{spec: {{template: {{{TEMPLATE % 'OnFailure'}}}}}}}\n"
    ),
    "ingress": (
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: thing}\n"
        "spec:\n  rules:\n  - host: example.com\n"
        "    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}\n"
    ),
    "poddisruptionbudget": (
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: thing}\n"
        "spec:\n  minAvailable: 50%\n  selector: {matchLabels: {app: web}}\n"
    ),
    "role": (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: thing}\n"
        "rules: [{apiGroups: [''], resources: [pods], verbs: [get, list]}]\n"
    ),
}


PATHS = {
    "deployment": "/apis/apps/v1/namespaces/{}/deployments/",
    "service": "/api/v1/namespaces/{}/services/",
    "configmap": "/api/v1/namespaces/{}/configmaps/",
    "job": "/apis/batch/v1/namespaces/{}/jobs/",
    "cronjob": "/apis/batch/v1/namespaces/{}/cronjobs/",
    "ingress": "/apis/networking.k8s.io/v1/namespaces/{}/ingresses/",
    "poddisruptionbudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets/",
    "role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles/",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for a ``manifest`` runs for every kind there is one of."""
    if "manifest" in metafunc.fixturenames:
        metafunc.parametrize(("kind", "manifest"), list(MANIFESTS.items()), ids=list(MANIFESTS))


@pytest.fixture(scope="session")
def manifests() -> dict[str, str]:
    """One manifest a kind; every object is named ``thing``."""
    return MANIFESTS


@pytest.fixture(scope="session")
def read(server: Server) -> Callable[..., Any]:
    """``read(namespace, kind)`` asks the server itself for the object, None when there is none."""

    def get(namespace: str, kind: str, name: str = "thing") -> Any:
        status, _, obj = server.call("GET", PATHS[kind].format(namespace) + name)
        return obj if status == 200 else None

    return get


@pytest.fixture(scope="session")
def run(kubectl: Kubectl) -> Run:
    """Runs kubectl and gives all of its result, whatever it is; keywords are variables of its environment."""

    def start(*words: str, stdin: str | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [kubectl.path, "--kubeconfig", str(kubectl.kubeconfig), *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**go_environment(), "HOME": str(kubectl.kubeconfig.parent), **variables},
        )

    return start


@pytest.fixture(scope="session")
def helm(server: Server) -> Kubectl:
    """The real helm, pointed at the shared server."""
    return Kubectl(find_client("helm", "HELM"), server.kubeconfig)
