from __future__ import annotations

from typing import Any

import pytest

APPS = "/apis/apps/v1/namespaces/n"
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
SPEC = {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
SCALE = {"kind": "Scale", "apiVersion": "autoscaling/v1"}


async def created(server: Any, path: str = f"{APPS}/deployments", **spec: Any) -> dict[str, Any]:
    code, obj = await server("POST", path, {"metadata": {"name": "w"}, "spec": {**SPEC, **spec}})
    assert code == 201, obj
    made: dict[str, Any] = obj
    return made


async def test_a_scale_is_a_view_of_its_parent(server: Any) -> None:
    parent = await created(server)
    code, scale = await server("GET", f"{APPS}/deployments/w/scale")
    metadata = parent["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")}
    assert (code, scale) == (
        200,
        {**SCALE, "metadata": kept, "spec": {"replicas": 2}, "status": {"replicas": 0, "selector": "app=a"}},
    )


@pytest.mark.parametrize(
    ("path", "spec", "selector"),
    [
        (f"{APPS}/replicasets", {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, "app"),
        (f"{APPS}/statefulsets", {"serviceName": "s"}, "app=a"),
        ("/api/v1/namespaces/n/replicationcontrollers", {"selector": {"app": "a"}}, "app=a"),
    ],
)
async def test_every_scalable_kind(server: Any, path: str, spec: dict[str, Any], selector: str) -> None:
    await created(server, path, **spec)
    code, scale = await server("PUT", f"{path}/w/scale", {"metadata": {"name": "w"}, "spec": {"replicas": 7}})
    assert (code, scale["spec"], scale["status"]["selector"]) == (200, {"replicas": 7}, selector)
    _, parent = await server("GET", f"{path}/w")
    assert (parent["spec"]["replicas"], parent["metadata"]["generation"]) == (7, 2)


async def test_scaling_to_nothing_is_not_leaving_open(server: Any) -> None:
    await created(server)
    code, scale = await server("PATCH", f"{APPS}/deployments/w/scale", {"spec": {"replicas": 0}}, "merge-patch")
    assert (code, scale["spec"]) == (200, {})
    _, parent = await server("GET", f"{APPS}/deployments/w")
    assert parent["spec"]["replicas"] == 0


async def test_who_scales_owns_the_replicas(server: Any) -> None:
    await created(server)
    path = f"{APPS}/deployments/w"
    await server("PATCH", f"{path}/scale?fieldManager=hpa", {"spec": {"replicas": 4}}, "merge-patch")
    _, parent = await server("GET", path)
    owners = {
        entry["manager"]: entry
        for entry in parent["metadata"]["managedFields"]
        if "f:replicas" in entry["fieldsV1"].get("f:spec", {})
    }
    assert list(owners) == ["hpa"]
    assert owners["hpa"]["subresource"] == "scale"
    assert owners["hpa"]["apiVersion"] == "apps/v1"


@pytest.mark.parametrize(
    ("metadata", "replicas", "code", "message"),
    [
        (
            {},
            -1,
            422,
            'Scale.autoscaling "w" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
        ),
        ({"resourceVersion": "1"}, 1, 409, "the object has been modified"),
        ({"uid": "other"}, 1, 409, "Precondition failed: UID in precondition: other, UID in object meta: "),
        ({"name": "x"}, 1, 400, "the name of the object (x) does not match the name on the URL (w)"),
    ],
)
async def test_refusals(server: Any, metadata: dict[str, str], replicas: int, code: int, message: str) -> None:
    await created(server)
    body = {"metadata": {"name": "w", **metadata}, "spec": {"replicas": replicas}}
    got, status = await server("PUT", f"{APPS}/deployments/w/scale", body)
    assert got == code
    assert message in status["message"]
    _, parent = await server("GET", f"{APPS}/deployments/w")
    assert parent["spec"]["replicas"] == 2


async def test_a_patch_cannot_mean_another_object(server: Any) -> None:
    await created(server)
    path = f"{APPS}/deployments/w/scale"
    code, status = await server("PATCH", path, {"metadata": {"uid": "other"}}, "merge-patch")
    assert (code, status["details"]["kind"]) == (409, "deployments/scale")


async def test_missing_and_dry(server: Any) -> None:
    code, status = await server("GET", f"{APPS}/deployments/w/scale")
    assert (code, status["message"]) == (404, 'deployments.apps "w" not found')
    await created(server)
    path = f"{APPS}/deployments/w/scale"
    code, scale = await server("PATCH", f"{path}?dryRun=All", {"spec": {"replicas": 9}}, "merge-patch")
    assert (code, scale["spec"]) == (200, {"replicas": 9})
    assert (await server("GET", path))[1]["spec"] == {"replicas": 2}
    assert (await server("DELETE", path))[0] == 405


async def test_as_a_table(server: Any) -> None:
    await created(server)
    _, table = await server("GET", f"{APPS}/deployments/w/scale", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert table["rows"][0]["cells"][:3] == ["w", 2, 0]
