from __future__ import annotations

from typing import Any

import pytest

POD = "/api/v1/namespaces/n/pods/p"


def binding(pod: str = "p", **target: str) -> dict[str, Any]:
    return {"metadata": {"name": pod}, "target": target or {"kind": "Node", "name": "node"}}


async def test_a_bound_pod_has_its_node_and_what_the_binding_says(server: Any) -> None:
    await server.pod(status={"nominatedNodeName": "other"})
    body = {"metadata": {"name": "p", "annotations": {"a": "1"}, "labels": {"zone": "z"}}, "target": {"name": "node"}}
    code, status = await server("POST", f"{POD}/binding", body)
    assert (code, status) == (
        201,
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201},
    )
    _, pod = await server("GET", POD)
    assert pod["spec"]["nodeName"] == "node"
    assert pod["metadata"]["annotations"] == {"a": "1"}
    assert pod["metadata"]["labels"] == {"app": "a", "zone": "z"}
    assert "nominatedNodeName" not in pod["status"]
    assert [(c["type"], c["status"]) for c in pod["status"]["conditions"]] == [("PodScheduled", "True")]


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (binding("q"), 400, "name in URL does not match name in Binding object"),
        (binding(kind="Node"), 500, "target.name: Required value"),
        (
            binding(kind="Pod", name="x"),
            500,
            'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
        ),
        ({**binding(), "metadata": {"name": "p", "uid": "u"}}, 409, "UID in precondition: u, UID in object meta: "),
        ({**binding(), "metadata": {"name": "p", "namespace": "m"}}, 400, "does not match the namespace sent"),
    ],
)
async def test_refusals(server: Any, body: dict[str, Any], code: int, message: str) -> None:
    await server.pod()
    got, status = await server("POST", f"{POD}/binding", body)
    assert got == code
    assert message in status["message"]


async def test_a_pod_is_bound_once(server: Any) -> None:
    await server.pod()
    assert (await server("POST", "/api/v1/namespaces/n/bindings", binding()))[0] == 201
    code, status = await server("POST", f"{POD}/binding", binding())
    assert (code, status["message"]) == (
        409,
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "node"',
    )


async def test_gates_and_dry_runs(server: Any) -> None:
    await server.pod(schedulingGates=[{"name": "x.io/g"}])
    code, status = await server("POST", f"{POD}/binding", binding())
    assert (code, status["details"]["kind"]) == (409, "pods/binding")
    await server.pod("q")
    assert (await server("POST", "/api/v1/namespaces/n/pods/q/binding?dryRun=All", binding("q")))[0] == 201
    assert "nodeName" not in (await server("GET", "/api/v1/namespaces/n/pods/q"))[1]["spec"]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/api/v1/namespaces/n/bindings", 405),
        ("POST", "/api/v1/bindings", 404),
        ("POST", "/api/v1/namespaces/n/bindings/x", 404),
        ("GET", f"{POD}/binding", 405),
        ("POST", f"{POD}/binding", 404),
    ],
)
async def test_paths(server: Any, method: str, path: str, code: int) -> None:
    assert (await server(method, path, binding() if method == "POST" else None))[0] == code


@pytest.mark.parametrize(
    ("name", "message"),
    [("", "Name parameter required."), ("a/b", "Name parameter invalid: \"a/b\": may not contain '/'")],
)
async def test_names_that_no_pod_can_have_are_refused(server: Any, name: str, message: str) -> None:
    code, status = await server("POST", "/api/v1/namespaces/n/bindings", binding(name))
    assert (code, status["reason"], status["message"]) == (400, "BadRequest", message)


async def test_what_a_binding_does_follows_the_gates(server: Any) -> None:
    pods = server.storage.store("", "v1", "pods")
    pods.strategy.gates -= {"ClearingNominatedNodeNameAfterBinding", "PodTopologyLabelsAdmission"}
    await server.pod(status={"nominatedNodeName": "other"})
    metadata = {"name": "p", "labels": {"zone": "z"}, "annotations": {"k": "v"}}
    code, _ = await server("POST", f"{POD}/binding", {"metadata": metadata, "target": {"name": "m"}})
    assert code == 201
    _, pod = await server("GET", POD)
    assert pod["status"]["nominatedNodeName"] == "other"
    assert (pod["metadata"]["labels"], pod["metadata"]["annotations"]) == ({"app": "a"}, {"k": "v"})
