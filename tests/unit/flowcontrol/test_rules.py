from __future__ import annotations

from typing import Any

import pytest

from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request_info import resolve
from pilothouse.flowcontrol.rules import matches_rules
from pilothouse.machinery.user import User

ANN = User("ann", groups=("staff",))
ACCOUNT = User("system:serviceaccount:shop:cart")
PODS: dict[str, Any] = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"]}
EVERYTHING: dict[str, Any] = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}


def subject(kind: str, **fields: str) -> dict[str, Any]:
    return {"kind": kind, kind[0].lower() + kind[1:]: fields}


@pytest.mark.parametrize(
    ("given", "user", "found"),
    [
        (subject("User", name="ann"), ANN, True),
        (subject("User", name="*"), ANN, True),
        (subject("User", name="bob"), ANN, False),
        (subject("Group", name="staff"), ANN, True),
        (subject("Group", name="*"), ACCOUNT, True),
        (subject("Group", name="other"), ANN, False),
        (subject("ServiceAccount", namespace="shop", name="cart"), ACCOUNT, True),
        (subject("ServiceAccount", namespace="shop", name="*"), ACCOUNT, True),
        (subject("ServiceAccount", namespace="sho", name="*"), ACCOUNT, False),
        (subject("ServiceAccount", namespace="shop", name="*"), ANN, False),
        ({"kind": "Group"}, ANN, False),
        ({"kind": "Robot"}, ANN, False),
    ],
)
def test_subjects(given: dict[str, Any], user: User, found: bool) -> None:
    rule = {"subjects": [given], "resourceRules": [EVERYTHING]}
    assert matches_rules([rule], user, resolve("GET", "/api/v1/namespaces/a/pods", Query(""))) is found


@pytest.mark.parametrize(
    ("rule", "method", "path", "found"),
    [
        ({**PODS, "namespaces": ["a"]}, "GET", "/api/v1/namespaces/a/pods", True),
        ({**PODS, "namespaces": ["a"]}, "GET", "/api/v1/namespaces/b/pods", False),
        ({**PODS, "namespaces": ["*"]}, "GET", "/api/v1/pods", False),
        ({**PODS, "clusterScope": True}, "GET", "/api/v1/pods", True),
        ({**PODS, "namespaces": ["*"]}, "GET", "/api/v1/namespaces/a/pods/p/log", True),
        ({**PODS, "namespaces": ["*"]}, "GET", "/api/v1/namespaces/a/pods/p/status", False),
        ({**PODS, "namespaces": ["*"]}, "DELETE", "/api/v1/namespaces/a/pods/p", False),
        ({**EVERYTHING, "apiGroups": ["apps"]}, "GET", "/api/v1/namespaces/a/pods", False),
        (EVERYTHING, "POST", "/apis/apps/v1/namespaces/a/deployments", True),
    ],
)
def test_resources(rule: dict[str, Any], method: str, path: str, found: bool) -> None:
    given = {"subjects": [subject("User", name="*")], "resourceRules": [rule]}
    assert matches_rules([given], ANN, resolve(method, path, Query(""))) is found


@pytest.mark.parametrize(
    ("urls", "path", "found"),
    [
        (["*"], "/version", True),
        (["/version"], "/version", True),
        (["/healthz"], "/healthz/etcd", True),
        (["/healthz/*"], "/healthz/etcd", True),
        (["/healthz/*"], "/healthz", False),
        (["/health"], "/healthz", False),
    ],
)
def test_paths(urls: list[str], path: str, found: bool) -> None:
    rule = {"subjects": [subject("User", name="*")], "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": urls}]}
    assert matches_rules([rule], ANN, resolve("GET", path, Query(""))) is found
    assert not matches_rules([rule], ANN, resolve("POST", path, Query("")))
