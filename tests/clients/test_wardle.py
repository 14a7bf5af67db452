"""The examples behind our server, seen by real kubectl."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from examples.metrics.__main__ import SERVER as METRICS
from examples.wardle.__main__ import SERVER as WARDLE
from tests.conftest import Kubectl, find_client

from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.library_server import InProcessLibraryServer

ALPHA = "apiVersion: wardle.example.com/v1alpha1\n"
FLUNDER = ALPHA + "kind: Flunder\nmetadata: {{name: {name}, labels: {{a: b}}}}\nspec: {{reference: {reference}}}\n"
FISCHER = ALPHA + "kind: Fischer\nmetadata: {name: strict}\ndisallowedFlunders: [banned]\n"


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    with InProcessServer() as main, InProcessLibraryServer(WARDLE, main=main) as server:
        server.register(main)
        yield Kubectl(find_client("kubectl", "KUBECTL"), main.kubeconfig)


def test_discovery(kubectl: Kubectl) -> None:
    listed = kubectl("api-resources", "--api-group=wardle.example.com", "--no-headers")
    assert [line.split() for line in listed.splitlines()] == [
        ["fischers", "wardle.example.com/v1alpha1", "false", "Fischer"],
        ["flunders", "wardle.example.com/v1beta1", "true", "Flunder"],
    ]


def test_versions_are_converted(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=FLUNDER.format(name="one", reference="other"))
    found = json.loads(kubectl("get", "flunders.v1beta1.wardle.example.com", "one", "-o", "json"))
    assert found["spec"] == {"flunderReference": "other", "referenceType": "Flunder"}
    found = json.loads(kubectl("get", "flunders.v1alpha1.wardle.example.com", "one", "-o", "json"))
    assert found["spec"] == {"reference": "other", "referenceType": "Flunder"}
    assert "one" in kubectl("get", "flunders", "-l", "a=b")


def test_applying_twice(kubectl: Kubectl) -> None:
    for reference in ("first", "second"):
        kubectl("apply", "--server-side", "-f", "-", stdin=FLUNDER.format(name="applied", reference=reference))
    found = json.loads(kubectl("get", "flunder", "applied", "-o", "json", "--show-managed-fields"))
    assert found["spec"]["flunderReference"] == "second"
    assert [entry["apiVersion"] for entry in found["metadata"]["managedFields"]] == ["wardle.example.com/v1alpha1"]


def test_the_plugin_reads_fischers(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=FISCHER)
    refused = kubectl("create", "-f", "-", stdin=FLUNDER.format(name="banned", reference="x"), fails=True)
    assert "this name may not be used, please change the resource name" in refused


def test_validation_speaks_of_the_stored_version(kubectl: Kubectl) -> None:
    wrong = ALPHA + "kind: Flunder\nmetadata: {name: wrong}\nspec: {referenceType: Fischer}\n"
    refused = kubectl("create", "-f", "-", stdin=wrong, fails=True)
    assert 'spec.fischerReference: Invalid value: "": cannot be empty if referenceType is Fischer' in refused


def test_explaining(kubectl: Kubectl) -> None:
    assert "flunderReference\t<string>" in kubectl("explain", "flunder.spec")
    alpha = kubectl("explain", "flunder.spec.reference", "--api-version=wardle.example.com/v1alpha1")
    assert "A name of another flunder or fischer" in alpha


def test_watching(kubectl: Kubectl) -> None:
    watching = kubectl.popen("get", "flunders", "--watch-only", "-o", "name")
    assert watching.stdout is not None
    try:
        number = 0
        seen = ""
        # The watch begins some time after the command does: new objects come until one is seen.
        while not seen:
            number += 1
            kubectl("create", "-f", "-", stdin=FLUNDER.format(name=f"watched-{number}", reference="x"))
            seen = _line(watching.stdout)
        assert seen.startswith("flunder.wardle.example.com/watched-")
    finally:
        watching.kill()
        watching.communicate()


def _line(stream: object) -> str:
    """The next line of a pipe, if there is one within a moment."""
    import select

    ready, _, _ = select.select([stream], [], [], 0.5)
    return ready[0].readline() if ready else ""


def test_rights_are_those_of_the_main_server(kubectl: Kubectl) -> None:
    refused = kubectl("get", "flunders", "--as=jane", fails=True)
    assert 'User "jane" cannot list resource "flunders" in API group "wardle.example.com"' in refused
    kubectl("create", "clusterrole", "reads", "--verb=list", "--resource=flunders")
    kubectl("create", "clusterrolebinding", "reads", "--clusterrole=reads", "--user=joe")
    assert "Error" not in kubectl("get", "flunders", "--as=joe")


def test_top() -> None:
    with InProcessServer() as main, InProcessLibraryServer(METRICS, main=main) as server:
        server.register(main)
        kubectl = Kubectl(find_client("kubectl", "KUBECTL"), main.kubeconfig)
        main.call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        capacity = {"cpu": "4", "memory": "8Gi"}
        node = {"metadata": {"name": "n1"}, "status": {"capacity": capacity, "allocatable": capacity}}
        assert main.call("POST", "/api/v1/nodes", node).status == 201
        resources = {"requests": {"cpu": "500m", "memory": "128Mi"}}
        spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i", "resources": resources}]}
        pod = {"metadata": {"name": "p"}, "spec": spec}
        assert main.call("POST", "/api/v1/namespaces/default/pods", pod).status == 201
        path = "/api/v1/namespaces/default/pods/p/status"
        patch = {"status": {"phase": "Running"}}
        typed = {"Content-Type": "application/merge-patch+json"}
        assert main.call("PATCH", path, patch, typed).status == 200
        assert kubectl("top", "pods", "--no-headers").split() == ["p", "250m", "64Mi"]
        assert kubectl("top", "nodes", "--no-headers").split() == ["n1", "250m", "6%", "64Mi", "0%"]
        described = kubectl("get", "podmetrics.metrics.k8s.io", "p", "-o", "jsonpath={.containers[0].usage.cpu}")
        assert described == "250m"
