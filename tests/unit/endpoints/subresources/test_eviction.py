from __future__ import annotations

from typing import Any

import pytest

from pilothouse.endpoints.subresources.budgets import check_budget, disrupted
from pilothouse.endpoints.subresources.eviction import is_spared
from pilothouse.machinery.errors import StatusError

POD = "/api/v1/namespaces/n/pods/p"
BUDGETS = "/apis/policy/v1/namespaces/n/poddisruptionbudgets"
RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
NOW = "2026-01-02T03:04:05Z"


async def evict(server: Any, name: str = "p", query: str = "", **options: Any) -> tuple[int, Any]:
    body: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    if options:
        body["deleteOptions"] = options
    code, status = await server("POST", f"/api/v1/namespaces/n/pods/p/eviction{query}", body)
    return code, status


async def budget(server: Any, allowed: int, name: str = "b", **status: Any) -> None:
    spec = {"selector": {"matchLabels": {"app": "a"}}, "minAvailable": 1}
    await server("POST", BUDGETS, {"metadata": {"name": name}, "spec": spec})
    report = {"observedGeneration": 1, "disruptionsAllowed": allowed, **status}
    code, obj = await server("PATCH", f"{BUDGETS}/{name}/status", {"status": report}, "merge-patch")
    assert code == 200, obj


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
async def test_pods_that_no_budget_can_guard_are_deleted(server: Any, phase: str) -> None:
    await server.pod(status={"phase": phase})
    await budget(server, 0)
    assert (await evict(server))[0] == 201
    assert (await server("GET", POD))[0] == 404


async def test_a_pod_without_a_budget_is_marked_and_deleted(server: Any) -> None:
    await server.pod(status=RUNNING, nodeName="node")
    assert (await evict(server, gracePeriodSeconds=7))[0] == 201
    _, pod = await server("GET", POD)
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 7
    marks = [(c["type"], c.get("reason")) for c in pod["status"]["conditions"]]
    assert marks == [("Ready", None), ("DisruptionTarget", "EvictionByEvictionAPI")]


async def test_a_disruption_is_taken_and_given_to_the_server_itself(server: Any) -> None:
    await server.pod(status=RUNNING, nodeName="node")
    await budget(server, 1, currentHealthy=2, desiredHealthy=1)
    assert (await evict(server, query="?dryRun=All"))[0] == 201
    assert (await evict(server))[0] == 201
    _, obj = await server("GET", f"{BUDGETS}/b")
    assert obj["status"]["disruptionsAllowed"] == 0
    assert list(obj["status"]["disruptedPods"]) == ["p"]
    assert obj["status"]["conditions"][0]["reason"] == "InsufficientPods"
    owners = [(e["manager"], e.get("subresource")) for e in obj["metadata"]["managedFields"]]
    assert ("kube-apiserver", "status") in owners


async def test_a_budget_that_allows_nothing(server: Any) -> None:
    await server.pod(status=RUNNING)
    await budget(server, 0, currentHealthy=1, desiredHealthy=1)
    code, status = await evict(server)
    assert code == 429
    cause = {
        "reason": "DisruptionBudget",
        "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
    }
    assert status["details"] == {"causes": [cause]}
    assert (await server("GET", POD))[0] == 200


async def test_a_disruption_that_failed_is_not_given_back(server: Any) -> None:
    await server.pod(status=RUNNING)
    await budget(server, 1, currentHealthy=2, desiredHealthy=1)
    code, status = await evict(server, preconditions={"uid": "other"})
    assert (code, status["details"]) == (409, {"name": "p", "kind": "Pod"})
    assert (await evict(server))[0] == 429


async def test_an_unready_pod_of_a_whole_budget_costs_nothing(server: Any) -> None:
    await server.pod(status={"phase": "Running"}, nodeName="node")
    await budget(server, 0, currentHealthy=1, desiredHealthy=1)
    assert (await evict(server))[0] == 201
    assert (await server("GET", f"{BUDGETS}/b"))[1]["status"]["disruptionsAllowed"] == 0


async def test_an_empty_version_is_none_once_the_pod_is_marked(server: Any) -> None:
    await server.pod(status=RUNNING)
    assert (await evict(server, preconditions={"resourceVersion": ""}))[0] == 201
    assert (await server("GET", POD))[0] == 404


async def test_an_empty_uid_is_found_out_by_the_deletion_alone(server: Any) -> None:
    await server.pod(status=RUNNING)
    code, status = await evict(server, preconditions={"uid": "", "resourceVersion": "1"})
    assert code == 409
    assert "the ResourceVersion in the precondition (1) does not match" in status["message"]
    code, status = await evict(server, preconditions={"uid": ""})
    assert code == 409
    assert "the UID in the precondition () does not match" in status["message"]
    conditions = (await server("GET", POD))[1]["status"]["conditions"]
    assert [condition["type"] for condition in conditions] == ["Ready", "DisruptionTarget"]


async def test_two_budgets_are_one_too_many(server: Any) -> None:
    await server.pod(status=RUNNING)
    await budget(server, 1, "b1")
    await budget(server, 1, "b2")
    code, status = await evict(server)
    assert (code, status["code"]) == (500, 500)
    assert "more than one PodDisruptionBudget" in status["message"]


async def test_requests_that_make_no_sense(server: Any) -> None:
    await server.pod()
    assert (await evict(server, "q"))[1]["message"] == "name in URL does not match name in Eviction object"
    code, status = await evict(server, ignoreStoreReadErrorWithClusterBreakingPotential=True)
    assert (code, status["details"]["kind"]) == (422, "Eviction")
    code, status = await evict(server, propagationPolicy="Never")
    assert (code, status["details"]["kind"]) == (422, "DeleteOptions")
    assert (await server("GET", f"{POD}/eviction"))[0] == 405


async def test_the_older_version_is_taken(server: Any) -> None:
    await server.pod()
    body = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "p"}}
    assert (await server("POST", f"{POD}/eviction", body))[0] == 201


def made(generation: int = 1, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "b", "generation": generation},
        "spec": {},
        "status": {"observedGeneration": 1, **status},
    }


FALSE = {"type": "DisruptionAllowed", "status": "False", "reason": "R", "message": "m"}


@pytest.mark.parametrize(
    ("budget", "code", "message"),
    [
        (made(2, disruptionsAllowed=1), 429, "The disruption budget b is still being processed by the server."),
        (
            made(disruptionsAllowed=-1),
            403,
            "The disruption budget b does not allow evicting pods currently: pdb disruptions allowed is negative",
        ),
        (
            made(disruptionsAllowed=1, disruptedPods=dict.fromkeys(map(str, range(2001)), NOW)),
            403,
            "The disruption budget b does not allow evicting pods currently: too many pending evictions not "
            "confirmed by "
            "PDB controller",
        ),
        (
            made(disruptionsAllowed=0, conditions=[{**FALSE, "reason": "SyncFailed"}]),
            429,
            "The disruption budget b does not allow evicting pods currently because it failed sync: m",
        ),
        (
            made(disruptionsAllowed=0, currentHealthy=3, desiredHealthy=1, conditions=[FALSE]),
            429,
            "The disruption budget b does not allow evicting pods currently (R): m",
        ),
        (
            made(disruptionsAllowed=0, currentHealthy=3, desiredHealthy=1),
            429,
            "The disruption budget b does not allow evicting pods currently",
        ),
    ],
)
def test_refusals_of_a_budget(budget: dict[str, Any], code: int, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        check_budget(budget)
    assert refused.value.code == code
    assert (refused.value.details or {})["causes"] == [{"reason": "DisruptionBudget", "message": message}]


def test_the_last_disruption_changes_the_condition() -> None:
    first = disrupted(made(disruptionsAllowed=2), "p", NOW)
    assert "conditions" not in first["status"]
    last = disrupted(first, "q", NOW)
    assert last["status"]["conditions"][0]["lastTransitionTime"] == NOW
    kept = made(disruptionsAllowed=1, conditions=[{**FALSE, "lastTransitionTime": "then"}])
    assert disrupted(kept, "r", NOW)["status"]["conditions"][0]["lastTransitionTime"] == "then"


@pytest.mark.parametrize(
    ("ready", "policy", "status", "spared"),
    [
        ("True", "AlwaysAllow", {}, False),
        ("False", "AlwaysAllow", {}, True),
        ("False", None, {"currentHealthy": 1, "desiredHealthy": 1}, True),
        ("False", None, {"currentHealthy": 0, "desiredHealthy": 1}, False),
        ("False", None, {"currentHealthy": 1, "desiredHealthy": 0}, False),
    ],
)
def test_unready_pods(ready: str, policy: str | None, status: dict[str, int], spared: bool) -> None:
    pod = {"status": {"conditions": [{"type": "Ready", "status": ready}]}}
    spec = {"unhealthyPodEvictionPolicy": policy} if policy else {}
    assert is_spared(pod, {"spec": spec, "status": status}) is spared
