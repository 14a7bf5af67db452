"""Roles that mean more than anybody can count, by somebody who may write those of one namespace."""

from __future__ import annotations

from typing import Any

import pytest

GROUP = "rbac.authorization.k8s.io"
NAMESPACE = "/apis/rbac.authorization.k8s.io/v1/namespaces"
WRITES = {"verbs": ["create", "update"], "apiGroups": [GROUP], "resources": ["roles"]}
EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}


def role(name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": {"name": name}, "rules": list(rules)}


def bind(victim: Any, namespace: str, name: str, user: str) -> None:
    binding = {"apiVersion": f"{GROUP}/v1", "kind": "RoleBinding", "metadata": {"name": name}}
    reference = {"apiGroup": GROUP, "kind": "Role", "name": name}
    subject = {"apiGroup": GROUP, "kind": "User", "name": user}
    body = {**binding, "roleRef": reference, "subjects": [subject]}
    assert victim.call("POST", f"{NAMESPACE}/{namespace}/rolebindings", body).status == 201


def rights_in(victim: Any, namespace: str, user: str, *rules: dict[str, Any]) -> str:
    """Where roles of a namespace are in which somebody holds some."""
    path = f"{NAMESPACE}/{victim.server.namespace(namespace)}/roles"
    assert victim.call("POST", path, role("held", *rules)).status == 201
    bind(victim, namespace, "held", user)
    return path


def wide(count: int) -> dict[str, Any]:
    fields = ("verbs", "apiGroups", "resources", "resourceNames")
    return {field: [f"x{number}" for number in range(count)] for field in fields}


@pytest.mark.parametrize("count", [30, 300])
def test_rules_that_nobody_holds(victim: Any, count: int) -> None:
    """The fourth power of what stands in a rule are its parts."""
    path = rights_in(victim, f"editor-{count}", "editor", WRITES)
    with victim.attacked(f"a rule of {count}^4 parts, not held"):
        answer = victim.call("POST", path, role("wide", wide(count)), user="editor")
    assert answer.status == 403
    assert b"is attempting to grant RBAC permissions not currently held" in answer.body


def test_rules_that_an_owner_holds(victim: Any) -> None:
    """They are granted, and asked for with each request of those who have them."""
    path = rights_in(victim, "owned", "owner", EVERYTHING)
    many = [f"x{number}" for number in range(20_000)]
    asked = {"namespace": "owned", "verb": "get", "group": "x7", "resource": "x19999"}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    with victim.attacked("a rule of 400 million pairs, held"):
        body = role("wide", {"verbs": ["get"], "apiGroups": many, "resources": many})
        assert victim.call("POST", path, body, user="owner").status == 201
        bind(victim, "owned", "wide", "reader")
        allowed = False
        while not allowed:
            answer = victim.call(
                "POST",
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                {**review, "spec": {"resourceAttributes": asked}},
                user="reader",
            )
            allowed = answer.json["status"]["allowed"]


def test_a_review_of_rules_bound_many_times(victim: Any) -> None:
    """Each binding tells all rules of its role again: forty times fifteen thousand."""
    path = rights_in(victim, "bound", "owner", EVERYTHING)
    rules = [{"verbs": ["get"], "apiGroups": ["x"], "resources": [f"x{number}"]} for number in range(15_000)]
    assert victim.call("POST", path, role("long", *rules)).status == 201
    for number in range(40):
        binding = {"apiVersion": f"{GROUP}/v1", "kind": "RoleBinding", "metadata": {"name": f"b{number}"}}
        reference = {"apiGroup": GROUP, "kind": "Role", "name": "long"}
        subjects = [{"apiGroup": GROUP, "kind": "User", "name": "reader"}]
        body = {**binding, "roleRef": reference, "subjects": subjects}
        assert victim.call("POST", f"{NAMESPACE}/bound/rolebindings", body).status == 201
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "bound"}}
    with victim.attacked("a review of 600,000 rules", allowance=100 << 20):
        answer = victim.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review, user="reader")
    status = answer.json["status"]
    assert status["incomplete"]
    assert "more rules than can be listed" in status["evaluationError"]
    assert len(status["resourceRules"]) > 100_000
