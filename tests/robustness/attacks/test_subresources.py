"""Requests to subresources: short ones that work on what is long, and long ones for little."""

from __future__ import annotations

from typing import Any

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
PODS = "/api/v1/namespaces/default/pods"


def test_scales_of_a_large_deployment(victim: Any) -> None:
    variables = [{"name": f"V{number}", "value": "v" * 20} for number in range(8_000)]
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i", "env": variables}]},
    }
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "large"}, "spec": spec}
    assert victim.call("POST", DEPLOYMENTS, deployment).status == 201
    with victim.attacked("a scale of a deployment with 8,000 variables", allowance=100 << 20):
        assert victim.call("GET", f"{DEPLOYMENTS}/large/scale").status == 200
        merge = "application/merge-patch+json"
        assert victim.call("PATCH", f"{DEPLOYMENTS}/large/scale", {"spec": {"replicas": 1}}, merge).status == 200


def test_evictions_beside_many_budgets(victim: Any) -> None:
    values = [f"v{number}" for number in range(4_000)]
    selector = {"matchExpressions": [{"key": "a", "operator": "In", "values": values}]}
    for number in range(70):
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": f"b{number}"}}
        made = victim.call("POST", BUDGETS, {**budget, "spec": {"minAvailable": 1, "selector": selector}})
        assert made.status == 201
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    assert victim.call("POST", "/api/v1/namespaces/default/serviceaccounts", account).status == 201
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "guarded", "labels": {"a": "v1"}}}
    spec = {"nodeName": "somewhere", "containers": [{"name": "c", "image": "i"}]}
    assert victim.call("POST", PODS, {**pod, "spec": spec}).status == 201
    running = {"status": {"phase": "Running"}}
    assert victim.call("PATCH", f"{PODS}/guarded/status", running, "application/merge-patch+json").status == 200
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "guarded"}}
    with victim.attacked("evictions beside 70 budgets of 4,000 values"):
        for _ in range(4):
            assert victim.call("POST", f"{PODS}/guarded/eviction?dryRun=All", eviction).status in (429, 500)


def test_a_long_time_in_a_request_for_a_log(victim: Any) -> None:
    since = "2026-01-01T00:00:00." + "1" * 800_000
    with victim.attacked("a log since a time of 800 KB"):
        for _ in range(5):
            assert victim.call("GET", f"{PODS}/nobody/log?sinceTime={since}").status in (400, 404)
