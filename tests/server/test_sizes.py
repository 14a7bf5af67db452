"""Objects that storage does not take: managed fields are given up first, then the write is refused."""

from __future__ import annotations

import pytest

REFUSAL = "etcdserver: request is too large"


@pytest.fixture(scope="module")
def maps(server):
    return f"/api/v1/namespaces/{server.namespace('sizes')}/configmaps"


def config_map(name, keys):
    """A config map of small values: its managed fields are about as large as itself."""
    data = {f"a-rather-long-key-of-forty-characters-{n:06}": "v" for n in range(keys)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def has_managers(server, path):
    return "managedFields" in server.call("GET", path)[2]["metadata"]


def test_create_gives_up_managed_fields(server, maps):
    assert server.call("POST", maps, config_map("small", 1000))[0] == 201
    assert has_managers(server, f"{maps}/small")
    code, _, made = server.call("POST", maps, config_map("created", 24_000))
    assert (code, len(made["data"])) == (201, 24_000)
    assert "managedFields" not in made["metadata"]
    assert not has_managers(server, f"{maps}/created")


def test_update_gives_up_managed_fields(server, maps):
    assert server.call("POST", maps, config_map("updated", 10))[0] == 201
    assert server.call("PUT", f"{maps}/updated", config_map("updated", 24_000))[0] == 200
    assert not has_managers(server, f"{maps}/updated")


def test_patch_gives_up_managed_fields(server, maps):
    assert server.call("POST", maps, config_map("patched", 10))[0] == 201
    patch = {"data": config_map("", 24_000)["data"]}
    answer = server.call("PATCH", f"{maps}/patched", patch, {"Content-Type": "application/merge-patch+json"})
    assert answer[0] == 200
    assert not has_managers(server, f"{maps}/patched")


def test_apply_does_not(server, maps):
    path, headers = f"{maps}/applied?fieldManager=me", {"Content-Type": "application/apply-patch+yaml"}
    code, _, status = server.call("PATCH", path, config_map("applied", 18_000), headers)
    assert (code, status["message"]) == (500, REFUSAL)
    assert server.call("GET", f"{maps}/applied")[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_larger_ones_are_refused(server, maps, method):
    name = f"large-{method.lower()}"
    path = maps
    if method == "PUT":
        assert server.call("POST", maps, config_map(name, 10))[0] == 201
        path = f"{maps}/{name}"
    code, _, status = server.call(method, path, config_map(name, 36_000))
    assert code == 500
    assert status == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": REFUSAL, "code": 500,
    }  # fmt: skip


def test_dry_run_stores_nothing_and_refuses_nothing(server, maps):
    assert server.call("POST", f"{maps}?dryRun=All", config_map("dry", 36_000))[0] == 201
